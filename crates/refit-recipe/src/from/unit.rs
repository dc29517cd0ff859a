//! What a systemd unit starts, as its files have it: systemd.unit(5), systemd.service(5).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where unit files lie, the strongest first.
const DIRECTORIES: &[&str] = &[
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
];

/// How a unit starts its program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Without `.service`.
    pub name: String,
    /// The words of its last `ExecStart=`, without prefixes, with specifiers and variables replaced.
    pub words: Vec<String>,
    pub working_directory: Option<String>,
    /// A link to /dev/null, or an empty file.
    pub is_masked: bool,
    environment: Vec<(String, String)>,
}

impl Unit {
    /// The unit below `root`; `None` if its directories hold none of that name.
    pub fn read(root: &Path, typed: &str) -> Option<Unit> {
        let typed = typed.strip_suffix(".service").unwrap_or(typed);
        let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
        let is_name = typed.len() < 250
            && !typed.starts_with(['.', '-'])
            && !typed.is_empty()
            && typed.chars().all(allowed);
        if !is_name {
            return None;
        }
        let asked = (root == Path::new("/")).then(|| loaded(typed)).flatten();
        let files = asked.unwrap_or_else(|| files(root, typed));
        let (file, drop_ins) = files.split_first()?;
        let mut unit = Unit {
            name: typed.to_owned(),
            ..Unit::default()
        };
        if fs::metadata(file).is_ok_and(|meta| !meta.is_file() || meta.len() == 0) {
            unit.is_masked = true;
            return Some(unit);
        }
        for path in std::iter::once(file).chain(drop_ins) {
            let text = fs::read(path).unwrap_or_default();
            unit.add(&String::from_utf8_lossy(&text));
        }
        unit.words = unit.with_variables();
        Some(unit)
    }

    /// What follows the `@` of its name.
    pub fn instance(&self) -> &str {
        let parts = self.name.split_once('@');
        parts.map_or("", |(_, instance)| instance)
    }

    /// Its name up to the `@`.
    pub fn family(&self) -> &str {
        self.name.split('@').next().unwrap_or_default()
    }

    /// The name of its program, without directories.
    pub fn program(&self) -> &str {
        let program = self.words.first().map_or("", |word| word);
        program.rsplit('/').next().unwrap_or_default()
    }

    fn add(&mut self, text: &str) {
        let text = text.replace("\\\n", " ");
        let mut in_service = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                in_service = line == "[Service]";
            }
            let Some((key, value)) = line.split_once('=').filter(|_| in_service) else {
                continue;
            };
            let value = value.trim();
            match key.trim() {
                "ExecStart" => {
                    let command = value.trim_start_matches(['@', '-', ':', '+', '!']);
                    let words = words(command);
                    self.words = words.iter().map(|word| self.specified(word)).collect();
                }
                "Environment" if value.is_empty() => self.environment.clear(),
                "Environment" => {
                    for pair in words(value) {
                        let pair = self.specified(&pair);
                        let pair = pair.split_once('=');
                        self.environment
                            .extend(pair.map(|(name, value)| (name.to_owned(), value.to_owned())));
                    }
                }
                "WorkingDirectory" => {
                    let directory = self.specified(value.trim_start_matches('-'));
                    self.working_directory = Some(directory).filter(|path| path.starts_with('/'));
                }
                _ => {}
            }
        }
    }

    /// A word with the specifiers that name the unit replaced.
    fn specified(&self, word: &str) -> String {
        // %I is %i with its escapes undone: `-` stands for `/` there.
        let unescaped = self.instance().replace('-', "/").replace("\\x2d", "-");
        let mut text = String::new();
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match letters.next() {
                Some('i') => text += self.instance(),
                Some('I') => text += &unescaped,
                Some('p' | 'P') => text += self.family(),
                Some('N') => text += &self.name,
                Some('n') => text += &format!("{}.service", self.name),
                Some('%') => text.push('%'),
                Some(other) => text.extend(['%', other]),
                None => text.push('%'),
            }
        }
        text
    }

    /// The words with the variables of `Environment=` in their places: `$NAME` as words, `${NAME}` as a part of one.
    fn with_variables(&self) -> Vec<String> {
        let mut all = Vec::new();
        for word in &self.words {
            let mut variables = self.environment.iter().rev();
            let whole = word.strip_prefix('$');
            if let Some((_, value)) = variables.find(|(name, _)| whole == Some(name)) {
                all.extend(words(value));
                continue;
            }
            let mut word = word.clone();
            for (name, value) in self.environment.iter().rev() {
                word = word.replace(&format!("${{{name}}}"), value);
            }
            all.push(word);
        }
        all
    }
}

/// The files of a unit as systemd has them, where it runs.
fn loaded(name: &str) -> Option<Vec<PathBuf>> {
    // sd_booted(3)
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let mut systemctl = Command::new("systemctl");
    systemctl.args(["show", "-p", "FragmentPath", "-p", "DropInPaths", "--"]);
    systemctl.arg(format!("{name}.service"));
    let output = systemctl.stderr(Stdio::null()).output().ok()?;
    let shown = String::from_utf8(output.stdout).ok()?;
    let value = |key: &str| {
        let mut lines = shown.lines();
        lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    let file = value("FragmentPath").filter(|path| path.starts_with('/'))?;
    let drop_ins = value("DropInPaths").unwrap_or_default();
    let all = std::iter::once(file).chain(drop_ins.split_whitespace());
    Some(all.map(PathBuf::from).collect())
}

/// The file of a unit, or of its template, and then its drop-ins in the order in which they count.
fn files(root: &Path, name: &str) -> Vec<PathBuf> {
    let family = name.split_once('@').map(|(family, _)| format!("{family}@"));
    let mut names = vec![name.to_owned()];
    names.extend(family);
    let file = names.iter().find_map(|name| {
        let paths = DIRECTORIES.iter();
        let mut paths = paths.map(|dir| root.join(dir).join(format!("{name}.service")));
        paths.find(|path| path.symlink_metadata().is_ok())
    });
    let Some(file) = file else {
        return Vec::new();
    };
    // A link is another name of a unit.
    let target = fs::read_link(&file).ok();
    let target = target.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.extend(target.and_then(|name| Some(name.strip_suffix(".service")?.to_owned())));
    let mut drop_ins: Vec<PathBuf> = Vec::new();
    for (dir, name) in DIRECTORIES
        .iter()
        .flat_map(|dir| names.iter().map(move |name| (dir, name)))
    {
        let dir = root.join(dir).join(format!("{name}.service.d"));
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_known = drop_ins
                .iter()
                .any(|file| file.ends_with(entry.file_name()));
            if path.extension().is_some_and(|ending| ending == "conf") && !is_known {
                drop_ins.push(path);
            }
        }
    }
    drop_ins.sort_by_key(|file| file.file_name().map(ToOwned::to_owned));
    drop_ins.insert(0, file);
    drop_ins
}

/// Words at blanks outside of quotation marks, without these.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (_, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t' | '\r') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::super::by_unit::tests::tree;
    use super::*;

    #[test]
    fn the_strongest_file_and_then_its_drop_ins_count() {
        let root = tree(&[
            (
                "usr/lib/systemd/system/a@.service",
                "[Unit]\nExecStart=/no\n[Service]\nEnvironment='MORE=-x \"y z\"' DIR=/srv\n\
                 ExecStart=-/usr/bin/a --of %i \\\n  --name '%n 100%%' $MORE ${DIR}/a $GONE\n",
            ),
            (
                "usr/lib/systemd/system/b.service",
                "[Service]\nExecStart=/usr/bin/b\n",
            ),
            (
                "etc/systemd/system/b.service",
                "[Service]\nExecStart=/usr/local/bin/b \"x y\"\nWorkingDirectory=-/srv/b\n",
            ),
            (
                "etc/systemd/system/a@.service.d/10.conf",
                "[Service]\nEnvironment=DIR=/weaker\n",
            ),
            (
                "run/systemd/system/a@15-main.service.d/20.conf",
                "[Service]\nEnvironment=DIR=/stronger\n",
            ),
            ("etc/systemd/system/c.service", ""),
        ]);
        let a = Unit::read(root.path(), "a@15-main.service").unwrap();
        let name = "a@15-main.service 100%";
        assert_eq!(
            a.words,
            [
                "/usr/bin/a",
                "--of",
                "15-main",
                "--name",
                name,
                "-x",
                "y z",
                "/stronger/a",
                "$GONE"
            ]
        );
        let b = Unit::read(root.path(), "b").unwrap();
        assert_eq!(b.words, ["/usr/local/bin/b", "x y"]);
        assert_eq!(b.working_directory.as_deref(), Some("/srv/b"));
        assert!(Unit::read(root.path(), "c").unwrap().is_masked);
        for none in ["d", "", "../b", "b/../b", "-x", "b.socket", "b\n"] {
            assert_eq!(Unit::read(root.path(), none), None, "{none}");
        }
    }
}
