//! A recipe of a database of your own: the indexes that its queries propose, each with its inverse.
//!
//! The database is copied, and only read. The copy is loaded into a private instance, where each
//! query is run and its plan is asked for; an index is proposed where the database itself says that
//! the query would use it, and its plan is kept as the reason. How much an index gains is what
//! `refit compare` measures.

mod address;
mod candidate;
mod columns;
mod copy;
mod error;
mod instance;
mod mariadb;
mod name;
mod postgresql;
mod queries;
mod recipe_text;
mod sqlite;

use std::path::Path;

use refit_recipe::Folder;

pub use candidate::{Candidate, Change};
pub use error::IndexError;

/// A recipe that was made from a database.
#[derive(Debug)]
pub struct Made {
    /// Its files.
    pub folder: Folder,
    /// What would be tried, in the order in which it is worth trying.
    pub candidates: Vec<Candidate>,
    /// Queries and how often each stands in the workload.
    pub queries: Vec<String>,
    /// What was not taken, and why.
    pub left_out: Vec<String>,
}

/// Whether `from` is a database: an SQLite file, an SQL dump or the address of a server.
#[must_use]
pub fn is_database(from: &Path) -> bool {
    copy::kind(from).is_some()
}

/// The recipe `name` of the database `from` and of the statements in the file `queries`.
///
/// # Errors
/// [`IndexError`]; nothing was written then.
pub fn from_database(from: &Path, queries: Option<&Path>, name: &str) -> Result<Made, IndexError> {
    match copy::kind(from) {
        Some(copy::Kind::Sqlite(how)) => sqlite::make(from, how, queries, name),
        Some(copy::Kind::Postgresql(how)) => postgresql::make(from, how, queries, name),
        Some(copy::Kind::Mariadb(how)) => mariadb::make(from, how, queries, name),
        None => Err(IndexError::NoDatabase {
            // What looks like an address may hold a password.
            from: match from.display().to_string() {
                text if text.contains("://") || text.contains('=') => "--from".to_owned(),
                text => text,
            },
        }),
    }
}
