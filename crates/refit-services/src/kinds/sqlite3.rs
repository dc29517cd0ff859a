//! The command sqlite3 on a file, as the user that the file belongs to, so that no journal belongs to another one.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use refit_packages::how_to_install;

use crate::ask::{Ask, QUESTION, input};

const CLIENT: &str = "/usr/bin/sqlite3";
/// How long others may keep the file locked.
pub const BUSY_MS: u32 = 10_000;

/// A file, and whose it is.
#[derive(Clone)]
pub struct Sqlite3 {
    /// The file.
    pub path: PathBuf,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// How sqlite3 gets its statements.
pub enum Sql<'a> {
    /// As one word of its command line.
    Word(&'a str),
    /// By its standard input: there is no limit of length, and errors have lines.
    Input(&'a str),
}

impl Sqlite3 {
    /// Rows of columns. Not opened as read-only: what a killed writer left is taken back by the next
    /// one who opens the file, and that one needs to write.
    ///
    /// # Errors
    /// What sqlite3 reports.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        self.query_within(sql, QUESTION)
    }

    /// Rows of columns of a question that may take so long.
    ///
    /// # Errors
    /// What sqlite3 reports.
    pub fn query_within(&self, sql: &str, within: Duration) -> Result<Vec<Vec<String>>, String> {
        let printed = self.run(&["-ascii"], &Sql::Word(sql), within)?;
        let rows = printed.split_terminator('\x1e');
        Ok(rows
            .map(|row| row.split('\x1f').map(str::to_owned).collect())
            .collect())
    }

    /// What sqlite3 prints of statements, which may take so long.
    ///
    /// # Errors
    /// What sqlite3 reports.
    pub fn run(&self, words: &[&str], sql: &Sql, within: Duration) -> Result<String, String> {
        let mut command = Command::new(CLIENT);
        command
            .args(["-init", "/dev/null", "-batch", "-bail", "-cmd"])
            .arg(format!(".timeout {BUSY_MS}"))
            .args(words)
            .arg(&self.path)
            .env_clear()
            .current_dir("/")
            .gid(self.gid)
            .uid(self.uid);
        match sql {
            Sql::Word(sql) => command.arg(sql).stdin(Stdio::null()),
            Sql::Input(sql) => {
                let input = input(sql.as_bytes());
                command.stdin(input.map_err(|error| format!("{CLIENT}: {error}"))?)
            }
        };
        let output = command.answer(within);
        let output = output
            .map_err(|error| format!("{CLIENT}: {error}\n  {}", how_to_install(&["sqlite"])))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let is_busy = errors.contains("is locked");
        Err(match is_busy {
            true => format!(
                "{errors}: another program has it for more than {} s\n  see which: fuser -v {}",
                BUSY_MS / 1000,
                self.path.display()
            ),
            false => errors,
        })
    }
}
