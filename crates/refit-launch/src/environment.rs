//! What the first program finds in its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use refit_knobs::Assignment;

/// The environment of the program, in the order of refit's own.
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// refit's own environment.
    pub fn inherited() -> Environment {
        Environment(std::env::vars_os().collect())
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_os_str())
    }

    /// Sets a variable; one that exists keeps its position.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        let value = value.into();
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Gives each its value, joined with what is there where both count. One that is new comes first: mimalloc 2.0
    /// looks at the first 256 variables only (src/options.c).
    pub fn assign(&mut self, assignments: impl IntoIterator<Item = Assignment>) {
        for assignment in assignments {
            let value = assignment.onto(self.get(&assignment.name));
            let mut there = self.0.iter_mut();
            match there.find(|(name, _)| *name == *assignment.name) {
                Some((_, old)) => *old = value,
                None => self.0.insert(0, (assignment.name.into(), value)),
            }
        }
    }

    /// Takes the libraries of an outer refit out, which the inner one replaces.
    pub fn forget_outer(&mut self) {
        const NAME: &str = "LD_PRELOAD";
        let Some(preloaded) = self.get(NAME) else {
            return;
        };
        let entries = preloaded.as_bytes().split(|byte| b": ".contains(byte));
        let is_theirs = |entry: &&[u8]| !entry.is_empty() && !is_our_library(entry);
        let theirs: Vec<&[u8]> = entries.filter(is_theirs).collect();
        let theirs = theirs.join(&b':');
        match theirs.is_empty() {
            true => self.remove(NAME),
            false => self.set(NAME, OsString::from_vec(theirs)),
        }
    }

    fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// Adds a variable without a meaning, so that all together have this many bytes,
    /// NULs included. A larger environment stays as it is.
    pub fn fill_up_to(&mut self, bytes: usize) {
        const NAME: &str = "REFIT_PADDING";
        self.remove(NAME);
        let have: usize = self.entries().map(|entry| entry.len() + 1).sum();
        if let Some(room) = bytes.checked_sub(have + NAME.len() + 2) {
            self.set(NAME, "x".repeat(room));
        }
    }

    /// As `NAME=VALUE` bytes.
    pub fn entries(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.0
            .iter()
            .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
    }
}

/// Whether an entry of LD_PRELOAD is a library of refit's.
fn is_our_library(entry: &[u8]) -> bool {
    let name = Path::new(OsStr::from_bytes(entry)).file_name();
    let mut ours = refit_session::LIBRARIES.iter();
    ours.any(|library| name == Some(OsStr::new(library.name)))
}

#[cfg(test)]
mod tests {
    use refit_knobs::Settings;

    use super::*;

    fn with(name: &str, value: &str) -> Environment {
        Environment(vec![(name.into(), value.into())])
    }

    #[test]
    fn the_libraries_of_an_outer_refit_are_forgotten() {
        let mut env = with("LD_PRELOAD", "/a.so /x/librefit-sync.so:/b.so");
        env.forget_outer();
        assert_eq!(env.get("LD_PRELOAD"), Some(OsStr::new("/a.so:/b.so")));
        let mut env = with("LD_PRELOAD", "/x/librefit-sync.so");
        env.forget_outer();
        assert_eq!(env.get("LD_PRELOAD"), None);
    }

    #[test]
    fn what_is_there_stays_where_both_count() {
        let mut env = with("LD_PRELOAD", "/a.so");
        let settings = ["malloc=glibc:arena_max=2", "env.LD_PRELOAD_X=1"];
        let settings = Settings::parse(settings.map(OsString::from)).expect("settings");
        env.assign(settings.launch().variables());
        env.assign(Assignment::preload("/ours.so".to_owned()));
        let entries = env
            .entries()
            .map(|entry| String::from_utf8(entry).expect("text"));
        let meant = [
            "LD_PRELOAD_X=1",
            "GLIBC_TUNABLES=glibc.malloc.arena_max=2",
            "LD_PRELOAD=/ours.so:/a.so",
        ];
        assert_eq!(entries.collect::<Vec<_>>(), meant);
    }

    #[test]
    fn the_environment_is_filled_to_the_byte() {
        let mut env = with("A", "b");
        env.fill_up_to(100);
        assert_eq!(
            env.entries().map(|entry| entry.len() + 1).sum::<usize>(),
            100
        );
        env.fill_up_to(10);
        assert_eq!(env.entries().count(), 1);
    }
}
