//! Why there is no recipe.

use std::path::PathBuf;

use refit_recipe::{InstanceError, RecipeError};
use refit_run::LaunchError;

/// Why no recipe was made of a database.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Not a database that refit knows.
    #[error(
        "{from} is not a database\n  name an SQLite file, what `sqlite3 FILE .dump` or `pg_dump -Fc` or `mariadb-dump DATABASE` printed, postgresql://HOST/DATABASE or mariadb://HOST/DATABASE"
    )]
    NoDatabase {
        /// As typed.
        from: String,
    },
    /// The address of a server that cannot be read. It is not shown: it may hold a password.
    #[error("--from: {0}")]
    Address(&'static str),
    /// No file of queries.
    #[error(
        "{from}: which queries?\n  write them into a file, one after the other, and name it: --queries FILE"
    )]
    NoQueries {
        /// The database as typed.
        from: String,
    },
    /// A server that keeps no statements.
    #[error(
        "{from}: which queries? performance_schema has none of this database\n  write them into a file, or name a slow query log: --queries FILE"
    )]
    NoHistory {
        /// The database as typed.
        from: String,
    },
    /// None of the queries can be run.
    #[error("{}: no query can be run{}", path.display(), list(left_out))]
    NothingToRun {
        /// The file.
        path: PathBuf,
        /// Why not.
        left_out: Vec<String>,
    },
    /// The queries are fine as they are.
    #[error(
        "{from}: no index is proposed for these {queries} queries, and none of its indexes is unused{}",
        list(left_out)
    )]
    NothingToTry {
        /// The database as typed.
        from: String,
        /// How many were run.
        queries: usize,
        /// Queries that were not run, and why.
        left_out: Vec<String>,
    },
    /// It cannot be kept in a recipe's folder.
    #[error(
        "{from}: its copy takes more than {most} MiB compressed, which is what a recipe holds\n  name a copy with a part of the rows"
    )]
    TooLarge {
        /// The database as typed.
        from: String,
        /// The limit.
        most: u64,
    },
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// A program of the database is not installed.
    #[error("{program} is not installed\n  {}", refit_packages::how_to_install(&[package]))]
    Missing {
        /// Its name.
        program: String,
        /// What it comes with: a purpose of the table of packages, or a package's name.
        package: String,
    },
    /// A program of the database failed.
    #[error("{what} failed: {output}")]
    Failed {
        /// What it was to do.
        what: String,
        /// What it printed.
        output: String,
    },
    /// What the recipe needs is not installed.
    #[error("{0}")]
    Needs(String),
    /// The copy cannot be looked at.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// The private server cannot be prepared.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// What was made is not a recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
}

fn list(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

/// The kernel's error about a file.
pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> IndexError {
    let path = path.into();
    move |cause| IndexError::File { path, cause }
}
