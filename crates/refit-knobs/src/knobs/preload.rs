//! `preload`: a library of the user's own, loaded before the program's.

use std::fmt;
use std::path::PathBuf;

use crate::error::{Hint, SettingError};
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "preload",
    form: "preload=/abs/path.so",
    about: "a library to load before the program's own; may be repeated",
    example: "preload=/abs/path.so",
    scoped: false,
    has_members: false,
    once: false,
    permanent: "preload=",
    grounds: &[
        Ground::Unit,
        Ground::ServerEnvironment,
        Ground::Wrapper,
        Ground::Container,
    ],
    values: |_| Vec::new(),
    aliases: &["ld_preload", "library", "lib"],
    opposites: &[],
};

/// A path that ld.so can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Library {
    pub path: String,
}

/// The word's value as a library; the word may be of any knob.
pub(crate) fn parse(word: &Word) -> Result<Library, SettingError> {
    let path = word.value.to_owned();
    if path.is_empty() {
        return Err(word.unknown_value("an absolute path".to_owned(), None));
    }
    if !path.starts_with('/') {
        let knob = word.knob.name;
        let hint = Hint::AsIn(format!("{knob}=/abs/path.so"));
        return Err(SettingError::RelativeLibrary { knob, path, hint });
    }
    // ld.so(8): "The items of the list can be separated by spaces or colons, and there is no support for
    // escaping either separator." Other white space breaks lists that scripts keep in LD_PRELOAD.
    match path.chars().find(|&c| c == ':' || c.is_whitespace()) {
        Some(separator) => Err(SettingError::LibrarySeparator {
            knob: word.knob.name,
            path,
            separator,
        }),
        None => Ok(Library { path }),
    }
}

impl Library {
    pub(super) fn to_path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl Behaviour for Library {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        Class::ChangesBehaviour
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!(
                "functions that {} defines take the place of those in the program's libraries",
                self.path
            ),
            risk: "whatever that library does; refit does not know",
            backend: "LD_PRELOAD, in the order given, after refit's own library",
            covers: &[
                "dynamically linked programs and what they start, also where a parent clears the environment: refit \
                 puts LD_PRELOAD back (not with --no-follow-env)",
            ],
            not_covered: &[
                "statically linked programs, most Go programs among them",
                "setuid and setgid programs: ld.so ignores a preload with a `/` there",
                "32-bit programs, and programs built for musl or another C library: they are started without it",
                "its openat2, io_submit and execveat, and the calls by number of its syscall that refit knows: refit makes \
                 these calls itself, and says so after the run; its execv, execl, execlp and execle where it has no execve",
            ],
            notes: vec![
                "its fsync, fdatasync, sync, syncfs, sync_file_range, msync, and its functions that open files or start \
                 programs, get every call that refit does not answer; what sync=off suppresses does not reach it"
                    .to_owned(),
                "ld.so expands $ORIGIN, $LIB and $PLATFORM in the path".to_owned(),
            ],
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.preload.push(self.to_path());
    }
}
