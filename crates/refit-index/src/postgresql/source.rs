//! What is read of the server: it is asked by programs of its own, in transactions that only read.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::address::Address;
use crate::copy::limited;
use crate::error::IndexError;

/// A program of the newest version that is installed; the one on the PATH may be another's.
fn program(name: &str) -> Result<Command, IndexError> {
    let version = |dir: &PathBuf| dir.file_name()?.to_str()?.parse::<u32>().ok();
    let dirs = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = dirs.map(|entry| entry.path()).max_by_key(version);
    let path = newest
        .map(|dir| dir.join("bin").join(name))
        .filter(|path| path.exists());
    let path = path.ok_or_else(|| IndexError::Missing {
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
