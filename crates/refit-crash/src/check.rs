//! What is there after a cut: the user's command, or a checker of ours.

mod log;
mod mail;
mod tool;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use regex_lite::Regex;

use crate::promise::Found;

/// How to find out what is there.
#[derive(Clone, Debug)]
pub enum Check {
    /// A shell command: it prints the id of each item that is there, a line
    /// each, and `!ID` for one that is there in part. It finds the mount point
    /// in `$REFIT_MOUNT` and the file of the acknowledged ids in `$REFIT_ACKED`.
    /// Any exit code but 0 says that the state as a whole is no good.
    Command(String),
    /// `log:FILE[:REGEX]`: an item for each whole line.
    Log {
        /// Below the mount point.
        file: PathBuf,
        /// Its first group is the id; without one the line is it.
        regex: Option<Regex>,
    },
    /// `lines:FILE`: the number of each whole line, counted from 1.
    Lines {
        /// Below the mount point.
        file: PathBuf,
    },
    /// `mail:DIR`: mails of `--ack smtp` in a Maildir or a Postfix queue.
    Mail {
        /// Below the mount point.
        directory: PathBuf,
    },
    /// `sqlite:DB:QUERY`: `PRAGMA integrity_check`, then a row for each item.
    Sqlite {
        /// Below the mount point.
        database: PathBuf,
        /// One column: the ids.
        query: String,
    },
    /// `postgres:DIR:QUERY`: recovers by starting, then a row for each item.
    Postgres {
        /// The data directory, below the mount point.
        directory: PathBuf,
        /// One column: the ids.
        query: String,
    },
}

/// What a check may use.
pub struct Place<'a> {
    /// Where the state is mounted.
    pub mount: &'a Path,
    /// The acknowledged ids, a line each.
    pub acked: &'a Path,
    /// A check that takes longer is killed.
    pub timeout: Duration,
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Check, String> {
        let Some((kind, rest)) = text.split_once(':') else {
            return Ok(Check::Command(text.to_owned()));
        };
        let two = |form: &str| {
            rest.split_once(':')
                .map(|(first, second)| (PathBuf::from(first), second.to_owned()))
                .ok_or_else(|| format!("{text:?} lacks its query; write {form}"))
        };
        let check = match kind {
            "log" => match rest.split_once(':') {
                None => Check::Log {
                    file: rest.into(),
                    regex: None,
                },
                Some((file, regex)) => Check::Log {
                    file: file.into(),
                    regex: Some(Regex::new(regex).map_err(|error| format!("{regex:?}: {error}"))?),
                },
            },
            "lines" => Check::Lines { file: rest.into() },
            "mail" => Check::Mail {
                directory: rest.into(),
            },
            "sqlite" => {
                let (database, query) = two("sqlite:FILE:'SELECT id FROM t'")?;
                Check::Sqlite { database, query }
            }
            "postgres" => {
                let (directory, query) = two("postgres:DIR:'SELECT id FROM t'")?;
                Check::Postgres { directory, query }
            }
            _ => return Ok(Check::Command(text.to_owned())),
        };
        check.is_below(text)?;
        Ok(check)
    }
}

impl Check {
    fn is_below(&self, text: &str) -> Result<(), String> {
        let (Check::Log { file: path, .. }
        | Check::Lines { file: path }
        | Check::Mail { directory: path }
        | Check::Sqlite { database: path, .. }
        | Check::Postgres {
            directory: path, ..
        }) = self
        else {
            return Ok(());
        };
        if path.is_relative() && path.iter().all(|part| part != "..") {
            Ok(())
        } else {
            Err(format!(
                "{}: the path in {text:?} is meant below $REFIT_MOUNT; write it without the mount point",
                path.display()
            ))
        }
    }

    /// The program that the check needs, if it is one of the machine's.
    #[must_use]
    pub fn tool(&self) -> Option<PathBuf> {
        match self {
            Check::Sqlite { .. } => Some("sqlite3".into()),
            Check::Postgres { .. } => tool::postgres(),
            _ => None,
        }
    }

    /// Looks what is there.
    ///
    /// # Errors
    /// The check itself cannot run: that says nothing about the state.
    pub fn find(&self, place: &Place) -> io::Result<Found> {
        match self {
            Check::Command(command) => tool::command(command, place),
            Check::Log { file, regex } => {
                let opened = File::open(place.mount.join(file));
                log::find(opened, |_, line| log::id(regex.as_ref(), line))
            }
            Check::Lines { file } => {
                let opened = File::open(place.mount.join(file));
                log::find(opened, |number, _| Some(number.to_string()))
            }
            Check::Mail { directory } => Ok(mail::find(&place.mount.join(directory))),
            Check::Sqlite { database, query } => tool::sqlite(database, query, place),
            Check::Postgres { directory, query } => tool::single(directory, query, place),
        }
    }
}

#[cfg(test)]
mod tests;
