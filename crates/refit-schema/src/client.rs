//! What a database has to answer, and what is different between servers.

use crate::{Catalog, SchemaError, Way};

/// A database that is asked.
pub trait Client {
    /// Rows of columns.
    ///
    /// # Errors
    /// What the database reports.
    fn rows(&self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, String>;

    /// The one number that a question to the data answers, with the rights of whom the data belongs to.
    ///
    /// # Errors
    /// What the database reports.
    fn count(&self, sql: &str) -> Result<u64, String> {
        let rows = self.rows(sql, 1)?.concat().concat();
        let number = rows.trim().parse();
        number.map_err(|_| format!("{sql}: another answer: {rows}"))
    }

    /// Runs statements, one after the other in one session, up to the first that fails.
    ///
    /// # Errors
    /// What the database reports.
    fn script(&self, sql: &str) -> Result<(), String>;
}

/// An empty database in a private instance of the same server. It goes with this value.
pub trait Private: Client {
    /// Loads a file of statements of somebody else's.
    ///
    /// # Errors
    /// What the database reports, with the line: `3: near "FOO": syntax error`.
    fn load(&self, text: &str) -> Result<(), String>;
}

/// A kind of database.
pub trait Server: Sync {
    /// The catalog of a database.
    ///
    /// # Errors
    /// What the database reports.
    fn read(&self, client: &dyn Client) -> Result<Catalog, String>;

    /// Whether it prints an expression otherwise after it was loaded from what it printed; then it prints the same again.
    fn prints_otherwise(&self) -> bool {
        false
    }

    /// The statements that lead from one catalog to another.
    ///
    /// # Errors
    /// [`SchemaError::NotKnown`], [`SchemaError::NoWay`].
    fn way(&self, from: &Catalog, to: &Catalog) -> Result<Way, SchemaError>;

    /// A file that makes a catalog from nothing.
    fn export(&self, catalog: &Catalog) -> String;

    /// Goes a way: all of it, or up to the first statement that fails.
    ///
    /// # Errors
    /// What the database reports.
    fn go(&self, client: &dyn Client, way: &Way) -> Result<(), String>;
}
