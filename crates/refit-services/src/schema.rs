//! An index of a table and the schema of a database, and what a database has to answer of them.

use serde::{Deserialize, Serialize};

/// An index, as the database describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// What it is of.
    pub definition: String,
    /// [`USABLE`], [`INVALID`], or what else keeps queries from it.
    pub state: String,
}

/// Queries can use it.
pub const USABLE: &str = "usable";

/// It was not completed: `pg_index.indisvalid` of PostgreSQL, the type `Corrupted` of MariaDB.
pub const INVALID: &str = "INVALID";

impl Index {
    /// One that queries can use.
    pub(crate) fn usable(definition: String) -> Index {
        Index {
            definition,
            state: USABLE.to_owned(),
        }
    }
}

impl std::fmt::Display for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.definition, self.state)
    }
}

/// An index that is made or altered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaEdit {
    /// Its name.
    pub index: String,
    /// The statement that makes it so.
    pub apply: String,
    /// The statement that takes this back.
    pub inverse: String,
    /// `None`: there is none.
    pub before: Option<Index>,
    /// As it is made.
    pub after: Index,
}

impl SchemaEdit {
    /// Whether it is as refit made it, or not completed.
    pub(crate) fn is_ours(&self, now: &Index) -> bool {
        now.definition == self.after.definition
            && [INVALID, &self.after.state].contains(&&*now.state)
    }
}

/// A table of a database, and how it is asked.
pub(crate) trait Database {
    /// An index of this name as it is now.
    ///
    /// # Errors
    /// What the database reports.
    fn index(&self, name: &str) -> Result<Option<Index>, String>;

    /// Where the table of an edit is gone: an index of the same name and keys on another table, which the first may
    /// have become. Its definition names that table.
    ///
    /// # Errors
    /// What the database reports.
    fn moved(&self, _: &SchemaEdit) -> Result<Option<Index>, String> {
        Ok(None)
    }

    /// An index of an edit as it is now, also on another table.
    ///
    /// # Errors
    /// What the database reports.
    fn found(&self, edit: &SchemaEdit) -> Result<Option<Index>, String> {
        match self.index(&edit.index)? {
            None => self.moved(edit),
            index => Ok(index),
        }
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// What the database reports.
    fn run(&self, sql: &str) -> Result<(), String>;

    /// Ends what a refit that was killed left running in the server.
    ///
    /// # Errors
    /// What the database reports.
    fn end_leftovers(&self, edits: &[SchemaEdit]) -> Result<(), String>;
}

/// A database whose schema a file declares, and how it is asked.
pub(crate) trait SchemaDatabase: refit_schema::Client {
    /// Itself, as what answers.
    fn as_client(&self) -> &dyn refit_schema::Client;

    /// What is different between servers.
    fn server(&self) -> &'static dyn refit_schema::Server;

    /// Makes an empty database in a private instance of the same server.
    ///
    /// # Errors
    /// What is missing, or what the server reports.
    fn empty(&self) -> Result<Box<dyn refit_schema::Private>, String>;

    /// What is to know of locks and waiting.
    fn notes(&self) -> Vec<String>;

    /// Its tables, for whoever meant one of them.
    ///
    /// # Errors
    /// What the database reports.
    fn tables(&self) -> Result<Vec<String>, String>;

    /// Ends what a refit that was killed left running in the server.
    ///
    /// # Errors
    /// What the database reports.
    fn end_leftovers(&self) -> Result<(), String> {
        Ok(())
    }
}
