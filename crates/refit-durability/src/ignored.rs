//! Paths that do not matter: what is made again by itself, or is gone after a reboot in any case.

/// Ends of names: logs, locks, process numbers, and what a program makes again by itself.
const ENDS: [&str; 13] = [
    "/LOG",
    "/LOG.old",
    "/pg_internal.init",
    ".log",
    ".pid",
    ".lock",
    ".lck",
    ".swp",
    ".swx",
    ".pyc",
    "-shm",
    "/LOCK",
    "/lock.mdb",
];

/// Caches, wherever they lie.
const WITHIN: [&str; 2] = ["/.cache/", "/__pycache__/"];

/// Trees of caches, and what a start makes again.
const BELOW: [&str; 6] = [
    "/var/cache/",
    "/proc/",
    "/sys/",
    "/dev/",
    "/run/",
    "/var/run/",
];

/// What `--ignore` names, besides what is always left out.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    /// A directory ends with `/`; anything else is a path, or its end.
    typed: Vec<String>,
}

impl Ignored {
    /// As `--ignore` takes them.
    #[must_use]
    pub fn new(typed: Vec<String>) -> Ignored {
        Ignored { typed }
    }

    /// Whether nothing is told of this path.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        ENDS.iter().any(|end| path.ends_with(end))
            || WITHIN.iter().any(|part| path.contains(part))
            || BELOW.iter().any(|tree| path.starts_with(tree))
            || self.typed.iter().any(|typed| is_below(path, typed))
    }
}

/// `/tmp/` is the tree below it; `*.db` the end of a name; anything else one path.
fn is_below(path: &str, typed: &str) -> bool {
    match typed.strip_prefix('*') {
        Some(end) => path.ends_with(end),
        None if typed.ends_with('/') => path.starts_with(typed),
        None => path == typed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_locks_and_caches_are_left_out() {
        let ignored = Ignored::new(vec!["/srv/tmp/".into(), "*.bak".into(), "/a/b".into()]);
        for path in [
            "/srv/x.log",
            "/var/lib/x.pid",
            "/home/me/.cache/x",
            "/srv/__pycache__/x.cpython-311.pyc.1234",
            "/srv/db-shm",
            "/srv/db/LOCK",
            "/srv/tmp/x",
            "/srv/x.bak",
            "/a/b",
        ] {
            assert!(ignored.covers(path), "{path}");
        }
        for path in [
            "/srv/x",
            "/srv/blog",
            "/srv/run/x",
            "/srv/tmpx",
            "/a/bc",
            "/srv/BLOCK",
        ] {
            assert!(!ignored.covers(path), "{path}");
        }
    }
}
