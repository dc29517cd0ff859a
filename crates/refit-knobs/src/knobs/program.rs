//! `program`: another executable in place of the command's first word, as yesterday's build in place of today's.

use std::fmt;

use crate::error::SettingError;
use crate::explain::{Class, Prose};
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "program",
    form: "program=PATH",
    about: "another executable in place of the command's first word",
    example: "program=./old",
    scoped: false,
    has_members: false,
    once: true,
    permanent: "",
    grounds: &[],
    values: |_| Vec::new(),
    aliases: &["executable", "binary", "command", "argv0"],
    opposites: &[],
};

/// An executable, as it would be typed as the first word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executable {
    pub path: String,
}

pub(crate) fn parse(word: &Word) -> Result<Executable, SettingError> {
    match word.value {
        "" => Err(word.unknown_value("an executable".to_owned(), None)),
        path => Ok(Executable {
            path: path.to_owned(),
        }),
    }
}

impl fmt::Display for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl Behaviour for Executable {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        Class::ChangesBehaviour
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!(
                "{} runs in place of the command's first word, with the same arguments",
                self.path
            ),
            risk: "whatever the other executable does differently; refit does not know",
            backend: "exec: the first word is replaced before the program starts",
            covers: &["the command itself, of any kind"],
            not_covered: &[
                "what the command starts: a script that names the program runs the one that it names",
                "recipes: a recipe has its own commands",
            ],
            notes: vec![
                "it is looked for as a command's first word is, in the PATH where it has no `/`, and its argv[0] is \
                 the value as given"
                    .to_owned(),
                "with --fresh-copy a relative path is one in the copy".to_owned(),
            ],
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.program = Some(self.path.clone());
    }
}
