//! What is there after a cut: by the user's command, or by a check of refit's.

mod command;
mod log;
mod mail;

use regex_lite::Regex;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::acknowledgement::Found;
pub use command::CheckedImage;

/// How to find what is there.
#[derive(Clone, Debug)]
pub enum Check {
    /// A shell command. It prints a line for each item that is there: its id,
    /// or `!ID` for an item of which only a part is there. It finds the mount
    /// point in `$REFIT_MOUNT` and a file of the acknowledged ids in
    /// `$REFIT_ACKED`. An exit code other than 0 rejects the image as a whole.
    Command(String),
    /// `log:FILE[:REGEX]`: an item for each whole line.
    Log {
        /// Below the mount point.
        file: PathBuf,
        /// The first capture group is the id; without a group, the whole line is.
        regex: Option<Regex>,
    },
    /// `lines:FILE`: the number of each whole line, counted from 1.
    Lines {
        /// Below the mount point.
        file: PathBuf,
    },
    /// `mail:DIR`: mails of the source `smtp:` in Maildirs and Postfix queues.
    Mail {
        /// Below the mount point.
        directory: PathBuf,
    },
    /// `sqlite:FILE:QUERY`: `PRAGMA integrity_check`, then a row for each item.
    Sqlite {
        /// Below the mount point.
        database: PathBuf,
        /// One column: the ids.
        query: String,
    },
    /// `postgres:DIR:QUERY`: starts the server, which recovers, then a row for
    /// each item.
    Postgres {
        /// The data directory, below the mount point.
        directory: PathBuf,
        /// One column: the ids.
        query: String,
    },
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
                .ok_or_else(|| format!("{text:?} has no query; write {form}"))
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
        check.expect_below(text)?;
        Ok(check)
    }
}

impl Check {
    fn expect_below(&self, text: &str) -> Result<(), String> {
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
                "{}: the path in {text:?} has to be below $REFIT_MOUNT; write it without the mount point",
                path.display()
            ))
        }
    }

    /// The program that the check needs from the machine.
    #[must_use]
    pub fn program(&self) -> Option<PathBuf> {
        match self {
            Check::Sqlite { .. } => Some("sqlite3".into()),
            Check::Postgres { .. } => Some(command::postgres_server(None)),
            _ => None,
        }
    }

    /// Finds what is there.
    ///
    /// # Errors
    /// The check itself cannot run, which says nothing about the image.
    pub fn find(&self, image: &CheckedImage) -> io::Result<Found> {
        match self {
            Check::Command(command) => command::shell(command, image),
            Check::Log { file, regex } => {
                let opened = File::open(image.mount.join(file));
                log::find(opened, |_, line| log::id(regex.as_ref(), line))
            }
            Check::Lines { file } => {
                let opened = File::open(image.mount.join(file));
                log::find(opened, |number, _| Some(number.to_string()))
            }
            Check::Mail { directory } => Ok(mail::find(&image.mount.join(directory))),
            Check::Sqlite { database, query } => command::sqlite(database, query, image),
            Check::Postgres { directory, query } => command::postgres(directory, query, image),
        }
    }
}

#[cfg(test)]
mod fuzz {
    use std::collections::HashSet;
    use std::io::{Seek, Write};

    use super::*;

    /// What a check prints, and what a file of lines holds after a cut.
    #[test]
    fn outputs_of_checks() {
        refit_fuzz::Target::new(env!("CARGO_MANIFEST_DIR"), "outputs_of_checks")
            .seeds(["1\n2\n!3\n", " a b \r\n\n!\n", "1\n\0\0\0\n2", "é\n"])
            .words(["\n", "!", "\r\n", "\0"])
            .longest(2048)
            .run(|input| {
                let text = String::from_utf8_lossy(input);
                let found = command::items(&text);
                let both = found.ids.iter().chain(&found.damaged);
                assert!(both.clone().count() <= text.lines().count());
                assert!(both.into_iter().all(|id| !id.contains('\n')));
                assert!(
                    found
                        .ids
                        .iter()
                        .all(|id| !id.is_empty() && !id.starts_with('!'))
                );
                // What is printed again is found again.
                let printed = |(mark, ids): (&str, &HashSet<String>)| -> String {
                    ids.iter().map(|id| format!("{mark}{id}\n")).collect()
                };
                let again = [("", &found.ids), ("!", &found.damaged)]
                    .map(printed)
                    .concat();
                assert_eq!(command::items(&again).ids, found.ids);

                let mut file = tempfile::tempfile().unwrap();
                file.write_all(input).unwrap();
                file.rewind().unwrap();
                let lines = log::find(Ok(file), |number, _| Some(number.to_string())).unwrap();
                let whole = input.split_inclusive(|byte| *byte == b'\n');
                let whole = whole.filter(|line| line.ends_with(b"\n") && !line.contains(&0));
                assert_eq!(lines.ids.len(), whole.count());
            });
    }
}

#[cfg(test)]
mod tests;
