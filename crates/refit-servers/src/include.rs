//! The files that the include directives of configurations mean.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use glob::Pattern;

/// The files that a pattern of glob(3) means, in their order; one without wildcards means itself, there or not. A relative one
/// begins at `directory`. `ours` is a file that counts as one of its directory, there or not. Names that begin with a dot are
/// not matched by `*` and `?`, but by brackets. `names` are those in a directory, none where the directory does not exist.
///
/// # Errors
/// Those of `names`.
pub fn matching<E>(
    names: impl Fn(&str) -> Result<Vec<String>, E>,
    directory: &str,
    pattern: &str,
    ours: &str,
) -> Result<Vec<String>, E> {
    let top = if pattern.starts_with('/') {
        ""
    } else {
        directory
    };
    let mut paths = vec![top.trim_end_matches('/').to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let mut next = Vec::new();
        for path in paths {
            let mut all = vec![part.to_owned()];
            if part.contains(['*', '?', '[']) {
                all = names(&format!("{path}/"))?;
                let own = ours.rsplit_once('/').filter(|(of, _)| *of == path);
                all.extend(own.map(|(_, name)| name.to_owned()));
                let pattern = Pattern::new(part).unwrap_or_default();
                let hides = |name: &str| name.starts_with('.') && part.starts_with(['*', '?']);
                all.retain(|name| pattern.matches(name) && !hides(name));
                all.sort();
                all.dedup();
            }
            next.extend(all.iter().map(|name| format!("{path}/{name}")));
        }
        paths = next;
    }
    Ok(paths)
}

/// The files of this machine that a pattern means, from a directory.
#[must_use]
pub fn files(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let names = |directory: &str| names(Path::new(directory));
    let found = matching(names, &directory.to_string_lossy(), pattern, "").unwrap_or_default();
    let paths = found.into_iter().map(PathBuf::from);
    paths.filter(|path| path.is_file()).collect()
}

/// The names in a directory of this machine; none where it does not exist.
///
/// # Errors
/// It cannot be read.
pub fn names(directory: &Path) -> io::Result<Vec<String>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let entries = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(Vec::new()),
        entries => entries?,
    };
    let name =
        |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    entries.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_those_of_glob() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().display().to_string();
        fs::create_dir_all(format!("{root}/a.d")).expect("made");
        for name in ["a.d/b.conf", "a.d/a.conf", "a.d/.c.conf", "a.d/d", "file"] {
            fs::write(format!("{root}/{name}"), "").expect("written");
        }
        for (pattern, meant) in [
            (
                "a.d/*.conf",
                &["a.d/a.conf", "a.d/b.conf", "a.d/o.conf"][..],
            ),
            ("*/[!a].conf", &["a.d/b.conf", "a.d/o.conf"]),
            ("a.d/?", &["a.d/d"]),
            ("a.d/.*.conf", &["a.d/.c.conf"]),
            (
                "[a].d/[!*]?*",
                &["a.d/.c.conf", "a.d/a.conf", "a.d/b.conf", "a.d/o.conf"],
            ),
            ("a.d/{b}.conf", &["a.d/{b}.conf"]),
            ("none/*", &[]),
        ] {
            let ours = format!("{root}/a.d/o.conf");
            let names = |directory: &str| names(Path::new(directory));
            let found = matching(names, &root, pattern, &ours).expect("read");
            let meant: Vec<_> = meant.iter().map(|path| format!("{root}/{path}")).collect();
            assert_eq!(found, meant, "{pattern}");
        }
    }
}
