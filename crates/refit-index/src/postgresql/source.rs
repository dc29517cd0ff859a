//! What is read of the server: it is asked by programs of its own, in transactions that only read.

use std::process::{Command, Stdio};

use refit_servers::postgresql;

use crate::address::Address;
use crate::copy::limited;
use crate::error::IndexError;

/// Statements that are taken of pg_stat_statements.
const MOST_STATEMENTS: usize = 50;

/// A program of the newest version that is installed; the one on the PATH may be another's.
fn program(name: &str) -> Result<Command, IndexError> {
    let path = postgresql::program(name, None).ok_or_else(|| IndexError::Missing {
        program: name.to_owned(),
        package: "postgresql".to_owned(),
    })?;
    let mut command = Command::new(path);
    command
        .env("PGOPTIONS", "-c default_transaction_read_only=on")
        .env("PGAPPNAME", "refit");
    command.stdin(Stdio::null());
    Ok(command)
}

/// The statements of pg_stat_statements that took the most time, without those about catalogs.
pub fn statements(address: &Address) -> Result<Vec<String>, IndexError> {
    let mut command = program("psql")?;
    if let Some(password) = &address.password {
        command.env("PGPASSWORD", password);
    }
    // A backslash could be a command of psql's when the statement is run on the copy.
    let query = format!(
        "SELECT coalesce(json_agg(query), '[]') FROM (
            SELECT query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
            WHERE d.datname = current_database() AND query ~* '^\\s*(select|with|insert|update|delete)\\M'
                AND query !~* 'pg_catalog|information_schema|pg_stat_|\\\\'
            GROUP BY query ORDER BY sum(total_exec_time) DESC LIMIT {MOST_STATEMENTS}) s"
    );
    command.args([
        "-XqAt",
        "--no-password",
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        &query,
        "-d",
        &address.shown,
    ]);
    let what = format!(
        "pg_stat_statements of {} (or write queries into a file: --queries FILE)",
        address.shown
    );
    let printed = limited(&mut command, &what, &address.shown)?;
    serde_json::from_slice(&printed).map_err(|error| IndexError::Failed {
        what,
        output: error.to_string(),
    })
}

/// What pg_dump prints of the database, compressed.
pub fn dump(address: &Address) -> Result<Vec<u8>, IndexError> {
    let mut command = program("pg_dump")?;
    if let Some(password) = &address.password {
        command.env("PGPASSWORD", password);
    }
    command.args([
        "-Fc",
        "--no-owner",
        "--no-privileges",
        "--no-comments",
        "--no-tablespaces",
    ]);
    command.args([
        "--no-publications",
        "--no-subscriptions",
        "--no-security-labels",
    ]);
    command.args([
        "--no-password",
        "--lock-wait-timeout=30s",
        "-d",
        &address.shown,
    ]);
    let what = format!("the copy of {}", address.shown);
    limited(&mut command, &what, &address.shown)
}
