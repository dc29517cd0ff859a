//! Files in the syntax of postgresql.conf (<https://www.postgresql.org/docs/15/config-setting.html>): `name = value`.
//! Of one name the last line counts. The `environment` of a Debian cluster has this syntax too.

use glob::Pattern;

use crate::matching;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing, or a comment.
    Nothing,
    /// `name = value`: the name as it is written, and the value without quotes.
    Sets(String, String),
    /// Other files stand in its place: a pattern for [`matching`], from the directory of the file.
    Includes(String),
    /// Something else. The server does not start with such a line, and reloads nothing.
    Unclear,
}

/// Reads a line.
#[must_use]
pub fn meaning(line: &str) -> Meaning {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Meaning::Nothing;
    }
    let is_of_name = |c: char| c.is_alphanumeric() || "_.-$".contains(c);
    let end = line.find(|c| !is_of_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let read = match rest.strip_prefix('\'') {
        Some(rest) => quoted_value(rest),
        None => {
            let end = rest.find(|c: char| c.is_whitespace() || "#'=".contains(c));
            let (value, rest) = rest.split_at(end.unwrap_or(rest.len()));
            (!value.is_empty()).then(|| (value.to_owned(), rest))
        }
    };
    let after = |rest: &str| rest.trim().is_empty() || rest.trim().starts_with('#');
    match read {
        Some((value, rest)) if !name.is_empty() && after(rest) => sets(name, value),
        _ => Meaning::Unclear,
    }
}

fn sets(name: &str, value: String) -> Meaning {
    match &*name.to_lowercase() {
        "include" | "include_if_exists" => Meaning::Includes(Pattern::escape(&value)),
        "include_dir" => Meaning::Includes(Pattern::escape(&value) + "/*.conf"),
        _ => Meaning::Sets(name.to_owned(), value),
    }
}

/// What stands between quotes, and what follows; `rest` begins after the first quote.
fn quoted_value(rest: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut left = rest.chars();
    loop {
        match left.next()? {
            '\\' => value.push(escaped(&mut left)?),
            '\'' => match left.as_str().strip_prefix('\'') {
                Some(rest) => {
                    left = rest.chars();
                    value.push('\'');
                }
                None => return Some((value, left.as_str())),
            },
            c => value.push(c),
        }
    }
}

/// What a backslash and the characters after it stand for (DeescapeQuotedString in PostgreSQL's guc-file.l).
fn escaped(left: &mut std::str::Chars) -> Option<char> {
    let is_octal = |c: &char| c.is_digit(8);
    let digits: String = left.clone().take(3).take_while(is_octal).collect();
    if let Ok(code) = u32::from_str_radix(&digits, 8) {
        left.by_ref().take(digits.len()).for_each(drop);
        return char::from_u32(code & 0xff);
    }
    Some(match left.next()? {
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        c => c,
    })
}

/// A value as such a file has it, whatever it holds but a line break.
#[must_use]
pub fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('\'', "''");
    format!("'{escaped}'")
}

/// A line that sets something.
#[derive(Clone, Debug)]
pub struct Line {
    /// The file, and the number of the line in it.
    pub place: String,
    /// In lower case.
    pub name: String,
    /// Without quotes.
    pub value: String,
}

/// All lines that the server reads, in its order.
#[derive(Debug, Default)]
pub struct Sources {
    /// The lines.
    pub lines: Vec<Line>,
    /// How many of them come before those of the file that was asked about; `None` where it is
    /// not read.
    pub before_ours: Option<usize>,
}

/// As deep as the server itself follows includes.
const DEPTH: usize = 10;

impl Sources {
    /// Reads a file and all that it includes. `read` is the content of a file, if it is there; `names` and `ours` are as for
    /// [`matching`].
    ///
    /// # Errors
    /// Those of `read` and `names`.
    pub fn read<E>(
        read: impl Fn(&str) -> Result<Option<Vec<u8>>, E>,
        names: impl Fn(&str) -> Result<Vec<String>, E>,
        file: &str,
        ours: &str,
    ) -> Result<Sources, E> {
        let mut sources = Sources::default();
        sources.add(&read, &names, file, ours, DEPTH)?;
        Ok(sources)
    }

    fn add<E>(
        &mut self,
        read: &impl Fn(&str) -> Result<Option<Vec<u8>>, E>,
        names: &impl Fn(&str) -> Result<Vec<String>, E>,
        file: &str,
        ours: &str,
        depth: usize,
    ) -> Result<(), E> {
        if file == ours {
            self.before_ours = Some(self.lines.len());
        }
        let Some(bytes) = read(file)?.filter(|_| depth > 0) else {
            return Ok(());
        };
        let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            match meaning(line) {
                Meaning::Includes(pattern) => {
                    for file in matching(names, directory, &pattern, ours)? {
                        self.add(read, names, &file, ours, depth - 1)?;
                    }
                }
                Meaning::Sets(name, value) => self.lines.push(Line {
                    place: format!("{file}:{}", index + 1),
                    name: name.to_lowercase(),
                    value,
                }),
                Meaning::Nothing | Meaning::Unclear => {}
            }
        }
        Ok(())
    }

    /// What the server would take of this name.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<&Line> {
        self.lines.iter().rfind(|line| line.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::names;

    /// `postgres -C NAME -D DIR` of PostgreSQL 15 prints the same values, and refuses what is unclear.
    #[test]
    fn a_line_is_read_as_the_server_reads_it() {
        let sets = |name: &str, value: &str| Meaning::Sets(name.to_owned(), value.to_owned());
        let includes = |pattern: &str| Meaning::Includes(pattern.to_owned());
        for (line, meant) in [
            ("", Meaning::Nothing),
            ("  # a = b", Meaning::Nothing),
            ("fsync = off # why", sets("fsync", "off")),
            ("fsync off", sets("fsync", "off")),
            ("work_mem=4MB\r", sets("work_mem", "4MB")),
            ("Fsync'off'", sets("Fsync", "off")),
            ("a = ''", sets("a", "")),
            ("a = b#c", sets("a", "b")),
            ("a = 'b'#c", sets("a", "b")),
            ("a = a/b:c.d-e", sets("a", "a/b:c.d-e")),
            ("a = 'it''s'\t# b", sets("a", "it's")),
            (r"a = 'b\'c\\'", sets("a", r"b'c\")),
            (r"a = 'b\tc\101\60\q'", sets("a", "b\tcA0q")),
            ("include_dir 'conf.d'", includes("conf.d/*.conf")),
            ("Include = '/a b'", includes("/a b")),
            ("include_if_exists '*'", includes("[*]")),
            ("a", Meaning::Unclear),
            ("a =", Meaning::Unclear),
            ("a == b", Meaning::Unclear),
            ("a = 'b", Meaning::Unclear),
            ("a = 'b'c", Meaning::Unclear),
            ("a = b c", Meaning::Unclear),
            ("= b", Meaning::Unclear),
        ] {
            assert_eq!(meaning(line), meant, "{line}");
        }
    }

    #[test]
    fn a_quoted_value_is_read_as_it_was() {
        for value in [
            "", "a", "it's", r"\", r"\'", r"\t\101", "''", "a # b", "a b=c",
        ] {
            let line = format!("n = {}", quoted(value));
            assert_eq!(
                meaning(&line),
                Meaning::Sets("n".to_owned(), value.to_owned())
            );
        }
    }

    #[test]
    fn the_files_of_a_directory_are_read_in_their_order() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().display().to_string();
        std::fs::create_dir_all(format!("{root}/conf.d")).expect("made");
        for (name, text) in [
            ("main.conf", "a = 1\ninclude_dir = 'conf.d'\nb = 1\n"),
            (
                "conf.d/10.conf",
                "C = 1\ninclude '10.conf'\ninclude '1*.conf'\n",
            ),
            ("conf.d/95.conf", "a = 2\n"),
            ("conf.d/.9.conf", "a = 3\n"),
            ("conf.d/99", "a = 4\n"),
        ] {
            std::fs::write(format!("{root}/{name}"), text).expect("written");
        }
        let read = |ours: &str| {
            let ours = format!("{root}/{ours}");
            let read = |file: &str| Ok(std::fs::read(file).ok());
            let names = |directory: &str| names(Path::new(directory));
            Sources::read(read, names, &format!("{root}/main.conf"), &ours).expect("read")
        };
        let sources = read("conf.d/90.conf");
        let mut found: Vec<_> = sources.lines.iter().map(|line| &*line.name).collect();
        assert_eq!(sources.before_ours, Some(found.len() - 2));
        // An include of itself ends.
        found.dedup();
        assert_eq!(found, ["a", "c", "a", "b"]);
        let last = sources.last("a").expect("set");
        assert_eq!(last.place, format!("{root}/conf.d/95.conf:1"));
        assert_eq!(read("other.d/90.conf").before_ours, None);
    }
}
