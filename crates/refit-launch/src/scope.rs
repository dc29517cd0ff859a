//! A path scope in the form in which the kernel names files.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// The pattern with the links in it resolved: an open file's path has none
/// (proc_pid_fd(5)). What does not exist yet, and everything from the first
/// wildcard on, stays as it was given.
pub fn resolved(pattern: &str) -> String {
    let is_tree = pattern.ends_with('/');
    let path = Path::new(pattern);
    let names: Vec<&OsStr> = path
        .components()
        .filter(|component| !matches!(component, Component::RootDir))
        .map(Component::as_os_str)
        .collect();
    let plain = names
        .iter()
        .position(|name| name.to_string_lossy().contains(['*', '?']))
        .unwrap_or(names.len());
    for kept in (1..=plain).rev() {
        let prefix: PathBuf = Path::new("/").join(names[..kept].iter().collect::<PathBuf>());
        let Ok(real) = prefix.canonicalize() else {
            continue;
        };
        let whole: PathBuf = [real]
            .into_iter()
            .chain(names[kept..].iter().map(PathBuf::from))
            .collect();
        // `*` in the resolved path would become a wildcard: the pattern stays as given.
        return match whole.to_str() {
            Some(text)
                if text.matches(['*', '?']).count() == pattern.matches(['*', '?']).count() =>
            {
                let end = if is_tree && !text.ends_with('/') {
                    "/"
                } else {
                    ""
                };
                format!("{text}{end}")
            }
            _ => pattern.to_owned(),
        };
    }
    pattern.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_as_far_as_there_are_files() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join("spool/incoming")).unwrap();
        std::os::unix::fs::symlink(real.join("spool"), real.join("link")).unwrap();
        let root = real.to_str().unwrap();
        for (given, expected) in [
            ("/link/incoming/", "/spool/incoming/"),
            ("/link/incoming", "/spool/incoming"),
            ("/link/", "/spool/"),
            ("/link/later/on/", "/spool/later/on/"),
            ("/link/*/x", "/spool/*/x"),
            ("/l*k/incoming/", "/l*k/incoming/"),
            ("/none/", "/none/"),
        ] {
            assert_eq!(
                resolved(&format!("{root}{given}")),
                format!("{root}{expected}")
            );
        }
        assert_eq!(resolved("/"), "/");
        assert_eq!(resolved("/**"), "/**");
    }
}
