//! What is read of the server: it is asked by programs of its own, which only read.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::address::{Address, MariadbServer};
use crate::copy::limited;
use crate::error::{IndexError, at};

/// Statements that are taken of performance_schema.
const MOST_STATEMENTS: usize = 50;

/// A client of the server. Its own file of options may hold the password (`~/.my.cnf`).
fn client(program: &str, address: &Address, server: &MariadbServer) -> Command {
    let mut command = Command::new(program);
    if let Some(password) = &address.password {
        // Not on the command line, which everybody can read.
        command.env("MYSQL_PWD", password);
    }
    command.arg("--default-character-set=utf8mb4");
    command.args(&server.options).stdin(Stdio::null());
    command
}

fn missing(program: &str) -> impl FnOnce(std::io::Error) -> IndexError {
    move |cause| match cause.kind() {
        std::io::ErrorKind::NotFound => IndexError::Missing {
            program: program.to_owned(),
            package: "mariadb-client".to_owned(),
        },
        _ => at(program)(cause),
    }
}

/// The database as mariadb-dump prints it, packed.
pub fn dump(address: &Address, server: &MariadbServer) -> Result<Vec<u8>, IndexError> {
    let mut command = client("mariadb-dump", address, server);
    command.args([
        "--single-transaction",
        "--quick",
        "--skip-comments",
        "--no-tablespaces",
    ]);
    command.arg("--").arg(&server.database);
    let mut errors = tempfile::tempfile().map_err(at(std::env::temp_dir()))?;
    let to = errors.try_clone().map_err(at(std::env::temp_dir()))?;
    let spawned = command.stdout(Stdio::piped()).stderr(to).spawn();
    let mut child = spawned.map_err(missing("mariadb-dump"))?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-n", "-c"]);
    gzip.stdin(child.stdout.take().map_or(Stdio::null(), Stdio::from));
    let packed = limited(&mut gzip, "gzip", &address.shown);
    if packed.is_err() {
        // It may hold locks of the database.
        child.kill().map_err(at("mariadb-dump"))?;
    }
    let status = child.wait().map_err(at("mariadb-dump"))?;
    let packed = packed?;
    if status.success() {
        return Ok(packed);
    }
    let mut text = String::new();
    errors.rewind().map_err(at("mariadb-dump"))?;
    errors
        .read_to_string(&mut text)
        .map_err(at("mariadb-dump"))?;
    Err(IndexError::Failed {
        what: format!("the copy of {}", address.shown),
        output: match text.trim() {
            "" => status.to_string(),
            text => text.to_owned(),
        },
    })
}

/// The statements of performance_schema that took the most time, one of each kind, with the values that it had. Those that
/// it cut off (performance_schema_max_sql_text_length) are left out.
pub fn statements(address: &Address, server: &MariadbServer) -> Result<String, IndexError> {
    let mut command = client("mariadb", address, server);
    let query = format!(
        "SELECT CONCAT(MAX(SQL_TEXT), '\\n;') FROM performance_schema.events_statements_history_long \
         WHERE CURRENT_SCHEMA = DATABASE() AND SQL_TEXT REGEXP '^[[:space:]]*(select|with|insert|update|delete|replace)' \
         AND LENGTH(SQL_TEXT) < @@performance_schema_max_sql_text_length - 3 \
         GROUP BY DIGEST ORDER BY SUM(TIMER_WAIT) DESC LIMIT {MOST_STATEMENTS}"
    );
    command.args(["--batch", "--skip-column-names", "--raw", "-e", &query]);
    command.arg("--").arg(&server.database);
    let what = format!(
        "a look into performance_schema of {} (or write queries into a file: --queries FILE)",
        address.shown
    );
    let printed = limited(&mut command, &what, &address.shown)?;
    if printed.is_empty() {
        return Err(IndexError::NoHistory {
            from: address.shown.clone(),
        });
    }
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// The name of the database in a file of mariadb-dump's: its first comment has it.
pub fn name_in(file: &Path) -> Result<String, IndexError> {
    let mut head = Vec::new();
    let opened = File::open(file).map_err(at(file))?;
    opened.take(1024).read_to_end(&mut head).map_err(at(file))?;
    let head = String::from_utf8_lossy(&head);
    let name = head.lines().find_map(|line| {
        let (_, name) = line.strip_prefix("-- Host: ")?.split_once("Database: ")?;
        Some(name.trim())
    });
    let is_plain = |name: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_$-".contains(c);
        !name.is_empty() && name.chars().all(is_plain)
    };
    Ok(name.filter(is_plain).unwrap_or("copy").to_owned())
}
