//! The commands around the program: where they run, and what they print.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_run::with_first_signals;

use crate::error::{CrashError, io_error};

/// How often refit looks whether a process has ended.
pub const TICK: Duration = Duration::from_millis(1);
/// How long a program may take to become ready.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The variable in which everyone finds the recorded file system.
pub const MOUNT: &str = "REFIT_MOUNT";
/// Files of what the program and the load print.
pub const PROGRAM: &str = "program";
pub const LOAD: &str = "load";

/// Where hooks run.
pub struct Hooks<'a> {
    /// The recorded file system.
    pub mount: &'a Path,
    /// A directory for what they print.
    pub output: &'a Path,
}

impl Hooks<'_> {
    /// A shell command of the user's, not the program itself.
    pub fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", command])
            .env(MOUNT, self.mount)
            .process_group(0);
        shell.stdin(Stdio::null());
        with_first_signals(&mut shell);
        shell
    }

    /// A file for what a process prints.
    pub fn file(&self, name: &str) -> Result<File, CrashError> {
        let path = self.output.join(name);
        File::create(&path).map_err(io_error(format!("cannot write {}", path.display())))
    }

    /// The same file twice, for standard output and error.
    pub fn files(&self, name: &str) -> Result<[File; 2], CrashError> {
        let file = self.file(name)?;
        let second = file
            .try_clone()
            .map_err(io_error("cannot duplicate a descriptor"))?;
        Ok([file, second])
    }

    /// The last lines that a process printed, for an error.
    pub fn last_lines(&self, name: &str) -> String {
        let text = fs::read(self.output.join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        if lines.is_empty() {
            "it printed nothing".to_owned()
        } else {
            format!("it printed:\n  {}", lines.join("\n  "))
        }
    }

    /// Runs a hook that has to succeed.
    pub fn run(&self, option: &str, command: &str, timeout: Duration) -> Result<(), CrashError> {
        let name = option.trim_start_matches('-');
        let [output, errors] = self.files(name)?;
        let mut child = self
            .shell(command)
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(io_error(format!("cannot start {option}")))?;
        let began = Instant::now();
        let how = loop {
            match child
                .try_wait()
                .map_err(io_error(format!("cannot wait for {option}")))?
            {
                Some(status) if status.success() => return Ok(()),
                Some(status) => break format!("ended with {status}"),
                None if began.elapsed() > timeout => {
                    break format!("took more than {} s", timeout.as_secs());
                }
                None => sleep(TICK),
            }
        };
        Err(CrashError::Refused(format!(
            "{option} {command:?} {how}; {}",
            self.last_lines(name)
        )))
    }
}
