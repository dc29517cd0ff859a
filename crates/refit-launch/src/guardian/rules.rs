//! The policy's rules, read as the preload reads them (`sync/decision.c`).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refit_session::{Knob, Rule};

use crate::sys::pattern;

/// The rules, and which of them have decided something.
pub struct Rules<'a> {
    rules: Vec<Rule>,
    matched: &'a AtomicU64,
}

impl Rules<'_> {
    /// In command order; bit i of `matched` is set when rule i decides.
    pub fn new<'a>(rules: &[Rule], matched: &'a AtomicU64) -> Rules<'a> {
        Rules {
            rules: rules.to_vec(),
            matched,
        }
    }

    /// Those for this executable, the last first.
    fn of(&self, knob: Knob, exe: &[u8]) -> impl Iterator<Item = (usize, &Rule)> {
        let of_exe = move |rule: &Rule| {
            let wanted = rule.exe.as_deref();
            wanted.is_none_or(|wanted| wanted.as_bytes() == exe)
        };
        let all = self.rules.iter().enumerate().rev();
        all.filter(move |(_, rule)| rule.knob == knob && of_exe(rule))
    }

    /// Whether the knob is swapped in this executable (a basename) for this
    /// path; `None`: as far as no path matters. The last match wins.
    pub fn swapped(&self, knob: Knob, exe: &[u8], path: Option<&Path>) -> bool {
        let matches = |rule: &Rule| match (&rule.path, path) {
            (None, _) => true,
            (Some(pattern), Some(path)) => pattern::matches(pattern, path),
            (Some(_), None) => false,
        };
        let Some((i, rule)) = self.of(knob, exe).find(|(_, rule)| matches(rule)) else {
            return false;
        };
        self.matched.fetch_or(1 << i, Relaxed);
        !rule.on
    }

    /// Whether a rule about paths can decide, before one that is about all.
    pub fn by_path(&self, knob: Knob, exe: &[u8]) -> bool {
        let first = self.of(knob, exe).next();
        first.is_some_and(|(_, rule)| rule.path.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(exe: Option<&str>, path: Option<&str>, on: bool) -> Rule {
        Rule {
            knob: Knob::Sync,
            exe: exe.map(str::to_owned),
            path: path.map(str::to_owned),
            on,
        }
    }

    #[test]
    fn the_last_match_wins_and_is_noted() {
        let matched = AtomicU64::new(0);
        let rules = [
            rule(None, None, false),
            rule(Some("db"), None, true),
            rule(Some("db"), Some("/tmp/"), false),
            rule(None, Some("/var/log/"), true),
        ];
        let rules = Rules::new(&rules, &matched);
        let off = |exe: &str, path: Option<&Path>| rules.swapped(Knob::Sync, exe.as_bytes(), path);
        assert!(off("a", Some(Path::new("/tmp/x"))));
        assert_eq!(matched.load(Relaxed), 0b1);
        assert!(!off("db", Some(Path::new("/x"))));
        assert!(off("db", Some(Path::new("/tmp/x"))));
        assert!(!off("a", Some(Path::new("/var/log/x"))));
        assert_eq!(matched.load(Relaxed), 0b1111);
        // Where the file is unknown, a path matches nothing.
        assert!(off("a", None) && !off("db", None));
        assert!(!rules.swapped(Knob::Disk, b"a", None));
        assert!(rules.by_path(Knob::Sync, b"a"));
        assert!(!rules.by_path(Knob::Disk, b"a"));
    }

    #[test]
    fn a_rule_about_everything_hides_paths_before_it() {
        let matched = AtomicU64::new(0);
        let rules = [
            rule(None, Some("/tmp/"), false),
            rule(Some("db"), None, true),
        ];
        let rules = Rules::new(&rules, &matched);
        assert!(!rules.by_path(Knob::Sync, b"db"));
        assert!(rules.by_path(Knob::Sync, b"a"));
    }
}
