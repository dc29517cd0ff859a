//! `schema`: the declared schema of a database, as the file that makes it from nothing.

use std::fmt;

use crate::error::SettingError;
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "schema",
    form: "schema=FILE|-",
    about: "the schema of a database, as the statements in FILE make it; `-` is the standard input",
    example: "schema=schema.sql",
    scoped: false,
    has_members: false,
    once: true,
    permanent: "schema=",
    grounds: &[Ground::Database],
    values: |_| Vec::new(),
    aliases: &["ddl", "tables"],
    opposites: &[],
};

pub(crate) fn parse(word: &Word) -> Result<File, SettingError> {
    match word.value {
        "" => Err(word.unknown_value("a file".to_owned(), None)),
        path => Ok(File {
            path: path.to_owned(),
        }),
    }
}

/// A file of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub path: String,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl Behaviour for File {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    /// What a plan finds to destroy raises it.
    fn class(&self) -> Class {
        Class::Safe
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!(
                "the schema of a database for the one that the statements in {} make in an empty one",
                self.path
            ),
            risk: "none to data, but where the plan lists what it destroys: that is loses-data, and has to be accepted",
            backend: "statements that the difference of two catalogs asks for: the database's own, and that of a private \
                      instance of the same server with the file",
            covers: &["refit plan, apply, status and revert of a database"],
            not_covered: &[
                "commands and recipes",
                "rows that the file puts into tables",
                "renames: a new name is another column or table",
            ],
            notes: Vec::new(),
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.schema = Some(self.path.clone());
    }
}
