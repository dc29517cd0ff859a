//! What mariadbd of this machine would use, and what the running server uses.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ask::{Ask, QUESTION};

use refit_servers::mariadb::in_sql;

const PROGRAM: &str = "/usr/sbin/mariadbd";
const CLIENT: &str = "/usr/bin/mariadb";

/// All options that the server would start with: it reads its files, prints them and ends.
pub struct Options {
    printed: String,
    errors: String,
}

impl Options {
    /// With a value in addition to its files.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub fn read(added: Option<(&str, &str)>) -> Result<Options, String> {
        let mut command = Command::new(PROGRAM);
        command.args(["--help", "--verbose"]);
        if let Some((name, value)) = added {
            command.arg(format!("--{name}={value}"));
        }
        let output = command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::null())
            .answer(QUESTION)
            .map_err(|error| format!("{PROGRAM}: {error}"))?;
        Ok(Options {
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// What it refuses, and what it would use in place of a value: a server starts with that, and
    /// says so in its log only.
    pub fn refused(&self, name: &str) -> Option<String> {
        let is_meant = |line: &&str| {
            let is_adjusted = line.contains(" adjusted to ") && in_sql(line).contains(name);
            line.contains("[ERROR]") || is_adjusted
        };
        let lines = self.errors.lines().filter(is_meant);
        let texts: Vec<&str> = lines
            .map(|line| line.split_once("] ").map_or(line, |(_, text)| text))
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The value of an option, as information_schema has it.
    pub fn value(&self, name: &str) -> Option<String> {
        let mut rows = self.printed.lines().filter_map(|line| {
            let (key, value) = line.split_once(char::is_whitespace)?;
            (in_sql(key) == name).then(|| value.trim())
        });
        let found = rows.next_back()?;
        Some(match found {
            "TRUE" => "ON".to_owned(),
            "FALSE" => "OFF".to_owned(),
            "(No default value)" => String::new(),
            other => other.to_owned(),
        })
    }
}

/// What the running server knows of a variable.
pub struct Known {
    /// The global value.
    pub value: String,
    /// Only a restart changes it.
    pub is_read_only: bool,
    /// Each session has one of its own, which it took from the global one when it began.
    pub is_of_session: bool,
}

/// A variable of the running server; `None` where it has none of this name.
///
/// # Errors
/// What the client reports.
pub fn variable(name: &str) -> Result<Option<Known>, String> {
    let rows = ask(&format!(
        "SELECT GLOBAL_VALUE, READ_ONLY, VARIABLE_SCOPE FROM information_schema.SYSTEM_VARIABLES \
         WHERE VARIABLE_NAME = '{name}'"
    ))?;
    let Some(row) = rows.lines().next() else {
        return Ok(None);
    };
    let fields: Vec<&str> = row.split('\t').collect();
    let [value, read_only, scope] = fields[..] else {
        return Err(format!("an answer of other columns: {row}"));
    };
    Ok(Some(Known {
        value: value.to_owned(),
        is_read_only: read_only == "YES",
        is_of_session: scope == "SESSION",
    }))
}

/// Sets a variable in the running server.
///
/// # Errors
/// What the client reports.
pub fn set(name: &str, value: &str) -> Result<(), String> {
    let is_number = value.parse::<f64>().is_ok();
    let quoted = match is_number {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
    };
    ask(&format!("SET GLOBAL {name} = {quoted}")).map(|_| ())
}

fn ask(sql: &str) -> Result<String, String> {
    client(&[], sql, QUESTION)
}

/// What the client prints of one statement, which may take so long: by the socket, as root. `words` come before its own.
///
/// # Errors
/// What the client reports.
pub fn client(words: &[String], sql: &str, within: Duration) -> Result<String, String> {
    let output = Command::new(CLIENT)
        .args(words)
        .args([
            "--batch",
            "--skip-column-names",
            "--connect-timeout=10",
            "-e",
            sql,
        ])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .answer(within)
        .map_err(|error| format!("{CLIENT}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let mut lines = errors.lines().filter(|line| line.starts_with("ERROR"));
    Err(lines.next().unwrap_or(errors.trim()).to_owned())
}
