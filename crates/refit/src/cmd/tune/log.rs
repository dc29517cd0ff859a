//! The directory of a tuning: its record `tune.json`, and a comparison for each step.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use refit_lab::{TUNING_SCHEMA, Tuning};
use refit_run::printable;
use serde::Serialize;

use crate::cmd::named_file;
use crate::cmd::result_file::replace;

/// The record's file.
const RECORD: &str = "tune.json";
/// Names of their own that are tried.
const MOST: u32 = 10_000;

/// A directory that exists.
pub struct Log {
    path: PathBuf,
}

impl Log {
    /// A new directory, or an empty one, with the record as it is.
    pub fn create(asked: Option<&Path>, tuning: &Tuning) -> Result<Log> {
        let log = match asked {
            Some(path) => Log::asked(path)?,
            None => Log::of_its_own(tuning)?,
        };
        log.write_record(tuning)?;
        Ok(log)
    }

    fn asked(path: &Path) -> Result<Log> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let entries = fs::read_dir(path);
                let mut entries = entries.with_context(|| format!("--log {}", path.display()))?;
                if entries.next().is_some() {
                    bail!(
                        "--log {}: the directory is not empty\n  name a new one",
                        path.display()
                    );
                }
            }
            made => made.with_context(|| format!("cannot make --log {}", path.display()))?,
        }
        let path = path.to_owned();
        Ok(Log { path })
    }

    /// `tune-NAME-N` below the current directory.
    fn of_its_own(tuning: &Tuning) -> Result<Log> {
        let word = tuning.command.first().map_or("", |word| word);
        let name = word.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name: String = name.chars().filter(|c| plain(*c)).take(40).collect();
        for n in 1..MOST {
            let path = PathBuf::from(format!("tune-{name}-{n}"));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    made.context(
                        "cannot make a directory for the log here\n  name one: --log DIR",
                    )?;
                    return Ok(Log { path });
                }
            }
        }
        bail!("there are {MOST} logs of {name} here\n  name a new directory: --log DIR");
    }

    /// One that holds a tuning.
    pub fn open(path: &Path) -> Log {
        let path = path.to_owned();
        Log { path }
    }

    /// The record.
    pub fn read_record(&self) -> Result<Tuning> {
        let path = self.path.join(RECORD);
        let text = named_file::read(&path, named_file::MOST_OF_RESULT)
            .context("--resume wants the directory of a tuning (--log)")?;
        let tuning: Tuning = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", path.display()))?;
        if tuning.schema != TUNING_SCHEMA {
            bail!(
                "{} has schema {}, and this refit knows {TUNING_SCHEMA}\n  use refit {}, which wrote it",
                path.display(),
                tuning.schema,
                printable(&tuning.refit)
            );
        }
        Ok(tuning)
    }

    /// As it is typed.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The record, as a whole.
    pub fn write_record(&self, tuning: &Tuning) -> Result<()> {
        self.write(RECORD, tuning)
    }

    /// A file of the directory, as a whole.
    pub fn write(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string(value)?;
        text.push('\n');
        replace(&self.path.join(name), text.as_bytes())
    }
}
