//! `preload`: a library of the user's own, loaded before the program's.

use std::fmt;
use std::path::PathBuf;

use super::choice::unknown_value;
use super::{Behaviour, Knob, Value};
use crate::error::Hint;
use crate::explain::Prose;
use crate::word::Word;
use crate::{Class, Launch, Scope, SettingError};

pub static KNOB: Knob = Knob {
    name: "preload",
    form: "preload=/abs/path.so",
    about: "a library to load before the program's own; may be repeated",
    example: "preload=/abs/path.so",
    scoped: false,
    has_members: false,
    once: false,
    aliases: &["ld_preload", "library", "lib"],
    opposites: &[],
    parse: |word| Ok(Value::Preload(Library::parse(word)?)),
};

/// A path that ld.so can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Library {
    pub path: String,
}

impl Library {
    /// The word's value as a library; the word may be of any knob.
    pub(super) fn parse(word: &Word) -> Result<Self, SettingError> {
        let path = word.value.to_owned();
        if path.is_empty() {
            return Err(unknown_value(word, "an absolute path".to_owned(), None));
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
            None => Ok(Self { path }),
        }
    }

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
            backend: "LD_PRELOAD, in the order given",
            covers: &["dynamically linked programs that get the variable handed down"],
            not_covered: &[
                "statically linked programs, most Go programs among them",
                "setuid and setgid programs: ld.so ignores a preload with a `/` there",
                "programs of another word size or C library than the library's",
            ],
            notes: vec!["ld.so expands $ORIGIN, $LIB and $PLATFORM in the path".to_owned()],
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.preload.push(self.to_path());
    }
}
