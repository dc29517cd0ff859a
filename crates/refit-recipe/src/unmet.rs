//! A condition that a recipe sets, as a command that succeeds where it is met.

use std::process::{Command, Stdio};

use refit_run::printable;

use crate::command_path::command_path;
use crate::user::{User, as_user};

/// What a command of `needs` prints where it fails; `None` where it succeeds.
pub(crate) fn unmet(command: &str, user: Option<User>) -> Option<String> {
    let words = as_user(user, command);
    let output = Command::new(&words[0])
        .args(&words[1..])
        .env("PATH", command_path())
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) if output.status.success() => return None,
        Ok(output) => output,
        Err(error) => return Some(format!("cannot run `{}`: {error}", words[0])),
    };
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let line = printed.lines().find(|line| !line.trim().is_empty());
    Some(line.map_or_else(
        || format!("`{}` fails", printable(command)),
        |line| printable(line.trim()),
    ))
}
