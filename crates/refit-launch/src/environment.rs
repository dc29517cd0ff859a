//! What the first program finds in its environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

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

    fn remove(&mut self, name: &str) {
        self.0.retain(|(n, _)| n != name);
    }

    /// GLIBC_TUNABLES holds many settings in one variable: ours go after the
    /// user's, and the last one of a name wins (glibc elf/dl-tunables.c).
    pub fn set_allocator_variable(&mut self, name: &str, value: &str) {
        match self.get(name) {
            Some(old) if name == "GLIBC_TUNABLES" && !old.is_empty() => {
                let mut joined = old.to_owned();
                joined.push(":");
                joined.push(value);
                self.set(name, joined);
            }
            Some(_) => self.set(name, value),
            // mimalloc 2.0 looks at the first 256 variables only (src/options.c).
            None => self.0.insert(0, (name.into(), value.into())),
        }
    }

    /// `ours` first, then what was inherited, each once.
    pub fn preload(&mut self, ours: &[PathBuf]) {
        let inherited = self
            .get("LD_PRELOAD")
            .map(OsStr::to_owned)
            .unwrap_or_default();
        let theirs = inherited
            .as_bytes()
            .split(|byte| *byte == b':' || *byte == b' ')
            .filter(|entry| !entry.is_empty())
            .map(|entry| PathBuf::from(OsStr::from_bytes(entry)))
            .filter(|path| !ours.contains(path) && !is_our_library(path));
        let all: Vec<PathBuf> = ours.iter().cloned().chain(theirs).collect();
        if all.is_empty() {
            self.remove("LD_PRELOAD");
        } else {
            let joined: Vec<&[u8]> = all.iter().map(|path| path.as_os_str().as_bytes()).collect();
            self.set("LD_PRELOAD", OsString::from_vec(joined.join(&b':')));
        }
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

/// Whether it is a library of an outer refit, which the inner one replaces.
fn is_our_library(path: &Path) -> bool {
    let mut ours = refit_session::LIBRARIES.iter();
    ours.any(|library| path.file_name() == Some(OsStr::new(library.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Environment {
        Environment(vec![(name.into(), value.into())])
    }

    #[test]
    fn our_libraries_come_first_and_once() {
        let mut env = with("LD_PRELOAD", "/a.so /x/librefit-sync.so:/b.so");
        env.preload(&["/x/librefit-sync.so".into(), "/b.so".into()]);
        assert_eq!(
            env.get("LD_PRELOAD"),
            Some(OsStr::new("/x/librefit-sync.so:/b.so:/a.so"))
        );
    }

    #[test]
    fn no_library_leaves_no_variable() {
        let mut env = with("LD_PRELOAD", "");
        env.preload(&[]);
        assert_eq!(env.get("LD_PRELOAD"), None);
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

    #[test]
    fn tunables_are_joined_and_other_variables_replaced() {
        let mut env = with("GLIBC_TUNABLES", "glibc.malloc.check=1");
        env.set_allocator_variable("GLIBC_TUNABLES", "glibc.malloc.arena_max=2");
        assert_eq!(
            env.get("GLIBC_TUNABLES"),
            Some(OsStr::new("glibc.malloc.check=1:glibc.malloc.arena_max=2"))
        );
        let mut env = with("MALLOC_CONF", "narenas:1");
        env.set_allocator_variable("MALLOC_CONF", "narenas:2");
        assert_eq!(env.get("MALLOC_CONF"), Some(OsStr::new("narenas:2")));
    }
}
