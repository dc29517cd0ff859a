//! `conf.NAME=VALUE`: an edit of the instance's configuration, or a command,
//! each with its inverse.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use refit_knobs::Class;
use refit_run::printable;

use crate::file::ConfEntry;

/// What a value does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfAction {
    /// The one place where `from` stands (whole lines) gets `to`; without `from` it is
    /// added at the end. Its inverse is the same the other way round.
    Edit {
        /// In the instance's directory.
        file: String,
        /// The lines that go.
        from: Option<String>,
        /// The lines that come.
        to: String,
    },
    /// Commands.
    Command {
        /// Makes the change.
        command: String,
        /// Takes it back.
        inverse: String,
    },
}

/// Why a `conf.` setting cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ConfError {
    /// The recipe knows no such name or value.
    #[error(
        "{setting}: the recipe {recipe} declares no such setting\n  it has {}",
        printable(known)
    )]
    Unknown {
        /// The setting, as typed.
        setting: String,
        /// The recipe's name.
        recipe: String,
        /// The settings that it declares, with their values.
        known: String,
    },
    /// The recipe has no such load.
    #[error(
        "{setting}: the recipe {recipe} has no such load\n  it has {}",
        printable(known)
    )]
    NoLoad {
        /// The setting, as typed.
        setting: String,
        /// The recipe's name.
        recipe: String,
        /// What can be set about it.
        known: String,
    },
    /// It has no such value.
    #[error(
        "{setting}: no such value\n  it is {}, and {} where nothing is set",
        printable(form),
        printable(default)
    )]
    LoadValue {
        /// The setting, as typed.
        setting: String,
        /// The values that it can have.
        form: String,
        /// As the recipe has it.
        default: String,
    },
    /// Only requests at a rate arrive.
    #[error("load.arrivals is of requests at a rate\n  add the rate, as in load.rate=200/s")]
    NeedsRate,
    /// Latencies at a rate are compared with latencies at a rate.
    #[error(
        "a variant has load.rate and the baseline has none, or the other way round\n  give all of them one: --with load.rate=200/s"
    )]
    MixedLoops,
    /// It is of the command that an open loop replaces.
    #[error(
        "{setting} is of the closed loop, and load.rate sends requests at their times\n  leave out one of the two"
    )]
    ClosedOnly {
        /// The setting.
        setting: String,
    },
    /// The line is not there, or more than once.
    #[error("{setting}: {} holds `{line}` {count} times as a whole line, and it has to be there once", file.display())]
    Line {
        /// The setting.
        setting: String,
        /// The file.
        file: PathBuf,
        /// What was looked for.
        line: String,
        /// How often it is there.
        count: usize,
    },
    /// The file cannot be read or written.
    #[error("{setting}: cannot edit {}: {cause}", file.display())]
    File {
        /// The setting.
        setting: String,
        /// The file.
        file: PathBuf,
        /// The kernel's error.
        cause: std::io::Error,
    },
}

/// What an entry asks for, or what is wrong with it.
pub fn action(entry: &ConfEntry) -> Result<ConfAction, &'static str> {
    let ConfEntry {
        file,
        from,
        to,
        command,
        inverse,
        ..
    } = entry.clone();
    if entry.bound.is_some() && entry.class != Class::BoundedLoss {
        return Err("`bound` is for the class bounded-loss");
    }
    if entry.bound.is_none() && entry.class == Class::BoundedLoss {
        return Err(
            "a value of class bounded-loss declares its `bound`, a time as 600ms or newest-only; without one it is loses-on-crash",
        );
    }
    match (file, from, to, command, inverse) {
        (Some(file), from, Some(to), None, None) => {
            if from.as_ref().is_some_and(String::is_empty) || to.is_empty() {
                return Err("`from` and `to` are lines, and not empty");
            }
            if Path::new(&file).is_absolute() || file.split('/').any(|part| part == "..") {
                return Err("`file` lies in the instance's directory");
            }
            Ok(ConfAction::Edit { file, from, to })
        }
        (None, None, None, Some(command), Some(inverse)) => {
            Ok(ConfAction::Command { command, inverse })
        }
        _ => Err("write either `file`, `from` and `to`, or `command` and `inverse`"),
    }
}

impl ConfAction {
    /// Makes the edit below `dir`; `expand` replaces `$REFIT_…` by values. A command is
    /// left to the caller.
    ///
    /// # Errors
    /// [`ConfError`]; then the file is as it was.
    pub fn edit(
        &self,
        setting: &str,
        dir: &Path,
        backwards: bool,
        expand: impl Fn(&str) -> String,
    ) -> Result<(), ConfError> {
        let ConfAction::Edit { file, from, to } = self else {
            return Ok(());
        };
        let file = dir.join(file);
        let failed = |cause| ConfError::File {
            setting: setting.to_owned(),
            file: file.clone(),
            cause,
        };
        // As root we write where the service's user may have put a link.
        let real = file.canonicalize().map_err(failed)?;
        if !real.starts_with(dir.canonicalize().map_err(failed)?) {
            let outside = io::Error::other("it is a link out of the instance's directory");
            return Err(failed(outside));
        }
        let text = fs::read_to_string(&file).map_err(failed)?;
        let to = expand(to);
        let edited = match (from, backwards) {
            (None, false) => {
                let end = if text.is_empty() || text.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                Ok(format!("{text}{end}{to}\n"))
            }
            (None, true) => exchange(&text, &to, None),
            (Some(from), false) => exchange(&text, &expand(from), Some(&to)),
            (Some(from), true) => exchange(&text, &to, Some(&expand(from))),
        };
        let edited = edited.map_err(|(line, count)| ConfError::Line {
            setting: setting.to_owned(),
            file: file.clone(),
            line,
            count,
        })?;
        // In place: mode and owner stay.
        fs::write(&file, edited).map_err(failed)
    }
}

/// Replaces `old`, which stands there once as whole lines, by `new`, or removes it.
fn exchange(text: &str, old: &str, new: Option<&str>) -> Result<String, (String, usize)> {
    let is_whole = |at: &usize| {
        let (before, after) = (&text[..*at], &text[at + old.len()..]);
        (before.is_empty() || before.ends_with('\n'))
            && (after.is_empty() || after.starts_with('\n'))
    };
    let places: Vec<usize> = text
        .match_indices(old)
        .map(|(at, _)| at)
        .filter(is_whole)
        .collect();
    let [at] = places[..] else {
        return Err((old.to_owned(), places.len()));
    };
    let (before, after) = (&text[..at], &text[at + old.len()..]);
    Ok(match new {
        Some(new) => format!("{before}{new}{after}"),
        None => format!("{before}{}", after.strip_prefix('\n').unwrap_or(after)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> ConfEntry {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn an_edit_and_its_inverse_restore_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("main.cf");
        let expand = |text: &str| text.replace("$REFIT_DIR", "/d");
        for (before, from, to, after) in [
            (
                "a = 1\nq = /d/q\nb\n",
                Some("q = $REFIT_DIR/q"),
                "q = /t",
                "a = 1\nq = /t\nb\n",
            ),
            ("a = 1\nq", Some("q"), "r", "a = 1\nr"),
            ("a\nb\nc\n", Some("b"), "x\ny", "a\nx\ny\nc\n"),
            ("a\nb\nbb\n", Some("b"), "x", "a\nx\nbb\n"),
            ("a = 1\n", None, "r = $REFIT_DIR", "a = 1\nr = /d\n"),
            ("", None, "r", "r\n"),
        ] {
            fs::write(&file, before).unwrap();
            let action = ConfAction::Edit {
                file: "main.cf".to_owned(),
                from: from.map(str::to_owned),
                to: to.to_owned(),
            };
            action.edit("conf.a=b", dir.path(), false, expand).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), after);
            action.edit("conf.a=b", dir.path(), true, expand).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), before);
        }
    }

    #[test]
    fn a_link_out_of_the_instance_is_not_followed() {
        let [dir, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let file = outside.path().join("f");
        fs::write(&file, "a\n").unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("f")).unwrap();
        let action = ConfAction::Edit {
            file: "f".to_owned(),
            from: None,
            to: "b".to_owned(),
        };
        let error = action.edit("conf.a=b", dir.path(), false, str::to_owned);
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("out of the instance")
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "a\n");
    }

    #[test]
    fn a_line_that_is_not_there_once_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let action = ConfAction::Edit {
            file: "f".to_owned(),
            from: Some("q = 1".to_owned()),
            to: "q = 2".to_owned(),
        };
        for text in ["q = 10\n", "q = 1\nq = 1\n"] {
            fs::write(dir.path().join("f"), text).unwrap();
            let error = action
                .edit("conf.q=2", dir.path(), false, str::to_owned)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("`q = 1`") && error.contains("conf.q=2"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), text);
        }
    }

    #[test]
    fn an_entry_is_an_edit_or_a_command_with_its_inverse() {
        let all = |text: &str| action(&entry(&format!("class = 'safe'\n{text}")));
        assert!(all("file = 'f'\nto = 'x'").is_ok());
        assert!(all("command = 'a'\ninverse = 'b'").is_ok());
        for wrong in [
            "",
            "command = 'a'",
            "file = 'f'\nfrom = 'x'",
            "file = 'f'\nto = 'x'\ncommand = 'a'",
            "file = '/etc/passwd'\nto = 'x'",
            "file = '../f'\nto = 'x'",
            "file = 'f'\nto = ''",
        ] {
            assert!(all(wrong).is_err(), "{wrong}");
        }
    }
}
