//! What the files of a unit say of its service.

use super::files::Files;
use super::lines::{Line, lines};
use super::words::words;

/// A unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Its files.
    pub files: Files,
    lines: Vec<Line>,
}

impl Unit {
    /// The unit of these files. `read` is the content of one, which may be gone.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(
        files: Files,
        read: impl Fn(&str) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Unit, E> {
        let mut all = Vec::new();
        if !files.is_masked {
            for path in std::iter::once(&files.fragment).chain(&files.drop_ins) {
                let content = read(path)?.unwrap_or_default();
                all.extend(lines(path, &String::from_utf8_lossy(&content)));
            }
        }
        Ok(Unit { files, lines: all })
    }

    /// Its name without `.service`.
    #[must_use]
    pub fn name(&self) -> &str {
        let name = &self.files.name;
        name.strip_suffix(".service").unwrap_or(name)
    }

    /// Its name up to the `@`.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name().split('@').next().unwrap_or_default()
    }

    /// What follows the `@` of its name.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.name().split_once('@').map_or("", |(_, rest)| rest)
    }

    /// The lines of a key that holds a list: an empty value takes back what was before it.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<&Line> {
        let mut found = Vec::new();
        for line in self.lines.iter().filter(|line| line.key == key) {
            match &*line.value {
                "" => found.clear(),
                _ => found.push(line),
            }
        }
        found
    }

    /// The lines of a key, also those that take others back.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.key == key)
    }

    /// The last value of a key that holds one; empty where there is none.
    #[must_use]
    pub fn last(&self, key: &str) -> &str {
        self.all(key).last().map_or("", |line| &line.value)
    }

    /// The variables of `Environment=`, each once, with the line that it is from.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String, &Line)> {
        let mut found: Vec<(String, String, &Line)> = Vec::new();
        for line in self.list("Environment") {
            for word in words(&line.value) {
                let word = self.specified(&word);
                if let Some((name, value)) = word.split_once('=') {
                    found.retain(|(known, ..)| known != name);
                    found.push((name.to_owned(), value.to_owned(), line));
                }
            }
        }
        found
    }

    /// A variable of `Environment=`.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        let mut all = self.environment().into_iter();
        all.find_map(|(key, value, _)| (key == name).then_some(value))
    }

    /// The words of its last `ExecStart=`, without the characters before the program, with specifiers and the variables of
    /// `Environment=` in their places: `$NAME` as words, `${NAME}` as a part of one.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let lines = self.list("ExecStart");
        let Some(line) = lines.last() else {
            return Vec::new();
        };
        let environment = self.environment();
        let mut all = Vec::new();
        for word in words(
            line.value
                .trim_start_matches(['@', '-', ':', '+', '!', '|']),
        ) {
            let mut word = self.specified(&word);
            let whole = word.strip_prefix('$');
            if let Some((_, value, _)) = environment.iter().find(|(name, ..)| whole == Some(name)) {
                all.extend(words(value));
                continue;
            }
            for (name, value, _) in &environment {
                word = word.replace(&format!("${{{name}}}"), value);
            }
            all.push(word);
        }
        all
    }

    /// Where its processes start.
    #[must_use]
    pub fn working_directory(&self) -> String {
        let directory = self.specified(self.last("WorkingDirectory").trim_start_matches('-'));
        Some(directory)
            .filter(|path| path.starts_with('/'))
            .unwrap_or_else(|| "/".to_owned())
    }

    /// A word with the specifiers replaced that name the unit, or a directory of the system's services (systemd.unit(5)).
    /// Others stay.
    #[must_use]
    pub fn specified(&self, word: &str) -> String {
        let last = self.family().rsplit('-').next().unwrap_or_default();
        let file = match self.instance() {
            "" => self.family(),
            instance => instance,
        };
        let mut text = String::new();
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match letters.next() {
                Some('i') => text += self.instance(),
                Some('I') => text += &unescaped(self.instance()),
                Some('p') => text += self.family(),
                Some('P') => text += &unescaped(self.family()),
                Some('j') => text += last,
                Some('J') => text += &unescaped(last),
                Some('f') => text += &format!("/{}", unescaped(file)),
                Some('N') => text += self.name(),
                Some('n') => text += &self.files.name,
                Some('t') => text += "/run",
                Some('S') => text += "/var/lib",
                Some('C') => text += "/var/cache",
                Some('L') => text += "/var/log",
                Some('E') => text += "/etc",
                Some('%') => text.push('%'),
                Some(other) => text.extend(['%', other]),
                None => text.push('%'),
            }
        }
        text
    }
}

/// A name without its escapes: `-` is `/`, and `\xNN` is a byte (systemd-escape(1)).
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.bytes().next() {
        let hex = rest.strip_prefix("\\x").and_then(|hex| hex.get(..2));
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &rest[4..];
            continue;
        }
        bytes.push(if first == b'-' { b'/' } else { first });
        // Of a letter of several bytes none is `-` or a backslash.
        rest = rest.get(1..).unwrap_or_else(|| {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            bytes.extend(&rest.as_bytes()[1..length]);
            &rest[length..]
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
