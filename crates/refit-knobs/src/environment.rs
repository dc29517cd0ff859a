//! The variables that settings give to a program: the same for a run, a unit, a server's own list, a wrapper, a
//! container and a pod, which differ only in what the variables hold already.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::launch::{Allocator, Launch};

/// A library that settings preload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preload<'a> {
    /// That of an allocator; glibc's own needs none.
    Allocator(&'a Allocator),
    /// A file.
    File(&'a Path),
}

/// A variable and the value that settings give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Its name.
    pub name: String,
    /// What the settings ask for.
    pub value: String,
    /// What becomes of a value that is there already.
    pub join: Join,
}

/// What becomes of the value that a variable has without the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// It is replaced.
    Replace,
    /// It stays, after that of the settings and a colon: of two libraries that define a function, ld.so takes the
    /// first (ld.so(8)).
    Before,
    /// It stays, before that of the settings and a colon: of two tunables of a name, glibc takes the last
    /// (elf/dl-tunables.c).
    After,
}

impl Launch {
    /// What is preloaded, in the order in which functions are looked for: the allocator serves even where a library
    /// that was named defines malloc too.
    pub fn preloads(&self) -> impl Iterator<Item = Preload<'_>> {
        let allocator = self.malloc.iter().map(Preload::Allocator);
        allocator.chain(self.preload.iter().map(|path| Preload::File(path)))
    }

    /// The variables, each name once. What is preloaded is not among them: [`Assignment::preload`].
    #[must_use]
    pub fn variables(&self) -> Vec<Assignment> {
        let assignment = |(name, value): (&String, &String)| Assignment {
            name: name.clone(),
            value: value.clone(),
            join: Join::Replace,
        };
        let of_malloc = self.malloc.iter().flat_map(|malloc| &malloc.env);
        let of_malloc = of_malloc.map(|(name, value)| Assignment {
            join: match &**name {
                "GLIBC_TUNABLES" => Join::After,
                _ => Join::Replace,
            },
            ..assignment((name, value))
        });
        let zone = self.tz.iter().map(|zone| Assignment {
            name: "TZ".to_owned(),
            value: zone.clone(),
            join: Join::Replace,
        });
        let env = self
            .env
            .iter()
            .map(|(name, value)| assignment((name, value)));
        of_malloc.chain(env).chain(zone).collect()
    }
}

impl Assignment {
    /// The variable for [`Launch::preloads`]: their files as the program will find them, with colons between them.
    #[must_use]
    pub fn preload(files: String) -> Option<Assignment> {
        (!files.is_empty()).then(|| Assignment {
            name: "LD_PRELOAD".to_owned(),
            value: files,
            join: Join::Before,
        })
    }

    /// The whole value of the variable, which holds this one without the settings.
    #[must_use]
    pub fn onto(&self, there: Option<&OsStr>) -> OsString {
        let ours = self.value.as_bytes();
        let there = there.unwrap_or_default().as_bytes();
        let parts: Vec<&[u8]> = match self.join {
            Join::Replace => vec![ours],
            // ld.so(8): "separated by spaces or colons".
            Join::Before => {
                let is_new = |entry: &&[u8]| {
                    !entry.is_empty() && !ours.split(|byte| *byte == b':').any(|own| own == *entry)
                };
                let there = there.split(|byte| [b':', b' '].contains(byte));
                std::iter::once(ours).chain(there.filter(is_new)).collect()
            }
            Join::After if there.is_empty() => vec![ours],
            Join::After => vec![there, ours],
        };
        OsString::from_vec(parts.join(&b':'))
    }
}

/// Whether the value of a process's variable is this one of the settings, alone or joined with what was there.
#[must_use]
pub fn holds(name: &str, found: &str, value: &str) -> bool {
    match name {
        "LD_PRELOAD" | "GLIBC_TUNABLES" => format!(":{found}:").contains(&format!(":{value}:")),
        _ => found == value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    fn launch(words: &[&str]) -> Launch {
        let settings = Settings::parse(words.iter().map(OsString::from));
        settings.expect("settings").launch()
    }

    #[test]
    fn the_allocator_is_before_the_libraries_that_were_named() {
        let launch = launch(&["preload=/a.so", "malloc=jemalloc", "preload=/b.so"]);
        let preloads: Vec<_> = launch.preloads().collect();
        let [Preload::Allocator(_), Preload::File(a), Preload::File(b)] = preloads[..] else {
            panic!("{preloads:?}");
        };
        assert_eq!((a, b), (Path::new("/a.so"), Path::new("/b.so")));
    }

    #[test]
    fn each_variable_says_what_becomes_of_a_value_that_is_there() {
        let launch = launch(&[
            "malloc=glibc:arena_max=2",
            "env.A=b",
            "tz=UTC",
            "preload=/a.so",
        ]);
        let preload = Assignment::preload("/a.so".to_owned());
        let assignments: Vec<_> = preload.into_iter().chain(launch.variables()).collect();
        let with = |there: &str| -> Vec<String> {
            let whole = |one: &Assignment| one.onto(Some(OsStr::new(there)));
            let whole = assignments.iter().map(|one| (one, whole(one)));
            whole
                .map(|(one, value)| format!("{}={}", one.name, value.to_string_lossy()))
                .collect()
        };
        let tunable = "glibc.malloc.arena_max=2";
        assert_eq!(
            with("/x.so /a.so:/y.so"),
            [
                "LD_PRELOAD=/a.so:/x.so:/y.so".to_owned(),
                format!("GLIBC_TUNABLES=/x.so /a.so:/y.so:{tunable}"),
                "A=b".to_owned(),
                "TZ=UTC".to_owned(),
            ]
        );
        assert_eq!(
            with("")[..2],
            [
                "LD_PRELOAD=/a.so".to_owned(),
                format!("GLIBC_TUNABLES={tunable}")
            ]
        );
        let none = assignments[0].onto(None);
        assert_eq!(none, "/a.so");
        assert_eq!(Assignment::preload(String::new()), None);
    }

    #[test]
    fn a_joined_value_is_found_between_others() {
        for (name, found, meant) in [
            ("LD_PRELOAD", "/a.so", true),
            ("LD_PRELOAD", "/a.so:/x.so", true),
            ("LD_PRELOAD", "/x.so:/a.so", true),
            ("LD_PRELOAD", "/x/a.so", false),
            ("TZ", "/a.so:/x.so", false),
            ("TZ", "/a.so", true),
        ] {
            assert_eq!(holds(name, found, "/a.so"), meant, "{name}={found}");
        }
    }
}
