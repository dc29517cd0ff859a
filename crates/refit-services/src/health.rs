//! A command that tells whether a service does its work: a mail that arrives, a page that is answered.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use crate::Error;

/// timeout(1) ends the command, and what it started, after this many seconds …
const LONGEST_S: &str = "60";
/// … by SIGKILL after as many more.
const GRACE_S: &str = "5";
/// How timeout(1) ends then, and where the command was killed: by somebody, or since it did not end.
const TIMED_OUT: i32 = 124;
const KILLED: i32 = 128 + SIGKILL;
const SIGKILL: i32 = 9;

/// Runs the command by a shell; what it prints goes to the standard error.
///
/// # Errors
/// [`Error::NotHealthy`]; `when`: in words, for it.
pub fn ask(command: &str, when: &str) -> Result<(), Error> {
    let how = match run(command) {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => ended(status),
        Err(error) => format!("could not be started: timeout: {error}"),
    };
    Err(Error::NotHealthy {
        command: command.lines().next().unwrap_or_default().to_owned(),
        how,
        when: when.to_owned(),
    })
}

fn run(command: &str) -> io::Result<ExitStatus> {
    let errors = io::stderr().as_fd().try_clone_to_owned()?;
    Command::new("timeout")
        .args(["-k", GRACE_S, LONGEST_S, "sh", "-c", command])
        .current_dir("/")
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .stdin(Stdio::null())
        .stdout(errors)
        .status()
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(TIMED_OUT), _) => format!("did not end within {LONGEST_S} s"),
        (Some(KILLED), _) | (_, Some(SIGKILL)) => "was killed".to_owned(),
        (Some(code), _) => format!("ended with {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_command_ended_is_told() {
        let how = |command: &str| match ask(command, "now") {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        assert_eq!(how("test $(pwd) = /"), "");
        assert_eq!(how("exit 7"), "`exit 7` ended with 7 now");
        assert_eq!(how("kill -9 $$"), "`kill -9 $$` was killed now");
    }
}
