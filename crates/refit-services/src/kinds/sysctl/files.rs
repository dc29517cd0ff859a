//! The files that set sysctls at boot, in their order: sysctl.d(5), and sysctl(8) `--system`.

use std::collections::BTreeMap;

use crate::{Error, System};

/// The strongest first: a file hides those of its name in the others.
const DIRECTORIES: [&str; 4] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
];

/// sysctl(8) reads it after all others; for systemd-sysctl, Debian has a link to it in /etc/sysctl.d.
const LAST: &str = "/etc/sysctl.conf";

/// A line that sets something.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// The file.
    pub file: String,
    /// The file, and the number of the line in it.
    pub place: String,
    /// With dots.
    pub key: String,
    /// As it is written.
    pub value: String,
}

/// All lines that set something, in their order: of one key the last one counts. `added` is a file
/// that need not be there.
///
/// # Errors
/// [`Error::File`], [`Error::Link`].
pub fn lines(system: &System, added: &str) -> Result<Vec<Line>, Error> {
    let mut files = BTreeMap::new();
    for dir in DIRECTORIES {
        for name in system.names(dir)? {
            if name.ends_with(".conf") && !name.starts_with('.') {
                files
                    .entry(name.clone())
                    .or_insert_with(|| format!("{dir}/{name}"));
            }
        }
    }
    let name = added.rsplit('/').next().unwrap_or_default();
    files
        .entry(name.to_owned())
        .or_insert_with(|| added.to_owned());
    let mut found = Vec::new();
    for file in files.into_values().chain([LAST.to_owned()]) {
        let bytes = system.read(&file)?.unwrap_or_default();
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            if let Some((key, value)) = assignment(line) {
                found.push(Line {
                    place: format!("{file}:{}", index + 1),
                    file: file.clone(),
                    key,
                    value,
                });
            }
        }
    }
    Ok(found)
}

/// Key and value of a line that sets one key. A pattern counts for nothing: it leaves out keys that
/// have a line of their own.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    // `-`: without complaints where it cannot be set.
    let key = key.trim();
    let key = key.strip_prefix('-').unwrap_or(key).trim();
    (!key.contains(['*', '?', '['])).then(|| (dotted(key), value.trim().to_owned()))
}

/// The key with dots between its names: where its first separator is a slash, dots are part of the
/// names, and become slashes.
fn dotted(key: &str) -> String {
    let first = key.chars().find(|c| ['.', '/'].contains(c));
    if first != Some('/') {
        return key.to_owned();
    }
    let swap = |c| match c {
        '/' => '.',
        '.' => '/',
        c => c,
    };
    key.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_systemd_reads_it() {
        for (line, meant) in [
            ("", None),
            ("# vm.a = 1", None),
            ("; vm.a = 1", None),
            ("vm.a", None),
            ("-vm.a", None),
            ("net.ipv4.conf.*.b = 1", None),
            (" vm.a = 1 2\t3 ", Some(("vm.a", "1 2\t3"))),
            ("-vm.a=1", Some(("vm.a", "1"))),
            ("vm/a=1", Some(("vm.a", "1"))),
            ("net/ipv4/conf/e.1/b=1", Some(("net.ipv4.conf.e/1.b", "1"))),
            ("net.ipv4.conf.e/1.b=", Some(("net.ipv4.conf.e/1.b", ""))),
        ] {
            let meant = meant.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(assignment(line), meant, "{line}");
        }
    }

    #[test]
    fn files_are_read_by_their_names_and_hide_one_another() {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("etc/sysctl.d/95.conf", "vm.a = 4\n"),
            ("etc/sysctl.d/20.conf", "vm.a = 1\n"),
            ("etc/sysctl.d/99", "vm.a = 9\n"),
            ("run/sysctl.d/20.conf", "vm.a = 9\n"),
            ("usr/lib/sysctl.d/50.conf", "\nvm.a = 2\n"),
            ("usr/lib/sysctl.d/90-refit.conf", "vm.a = 3\n"),
            ("etc/sysctl.conf", "vm.a = 5\n"),
        ] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let system = System::new(Some(root.path())).expect("a tree");
        let lines = lines(&system, "/etc/sysctl.d/90-refit.conf").expect("read");
        let places: Vec<_> = lines.iter().map(|line| &*line.place).collect();
        assert_eq!(
            places,
            [
                "/etc/sysctl.d/20.conf:1",
                "/usr/lib/sysctl.d/50.conf:2",
                "/usr/lib/sysctl.d/90-refit.conf:1",
                "/etc/sysctl.d/95.conf:1",
                "/etc/sysctl.conf:1"
            ]
        );
    }
}
