//! The commands around the program: where they run, and what they print.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_recipe::Instance;
use refit_run::with_first_signals;

use crate::error::{CrashError, io_error, unwritable};

/// How often refit looks whether a process has ended.
pub const TICK: Duration = Duration::from_millis(1);
/// How long a program may take to become ready.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The variable in which everyone finds the recorded file system.
pub const MOUNT: &str = "REFIT_MOUNT";
/// Files of what the program and the load print.
const PROGRAM: &str = "program";
const LOAD: &str = "load";

/// Where hooks run.
pub struct Hooks<'a> {
    /// The recorded file system.
    pub mount: &'a Path,
    /// A directory for what they print.
    pub output: &'a Path,
    /// Of a recipe.
    pub instance: Option<&'a Instance>,
}

impl Hooks<'_> {
    /// A shell command of the user's, not the program itself.
    pub fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", command])
            .envs(self.env())
            .process_group(0);
        shell.stdin(Stdio::null());
        with_first_signals(&mut shell);
        shell
    }

    /// Variables of the program and of every hook.
    pub fn env(&self) -> Vec<(String, String)> {
        match self.instance {
            Some(instance) => instance.env().to_vec(),
            None => vec![(MOUNT.to_owned(), self.mount.display().to_string())],
        }
    }

    /// The names of a recipe's ports and directories replaced by their values.
    pub fn expand(&self, text: &str) -> String {
        match self.instance {
            Some(instance) => instance.expand(text),
            None => text.to_owned(),
        }
    }

    /// The file for what the program prints.
    pub fn program_file(&self) -> Result<File, CrashError> {
        create(&self.program_path())
    }

    /// Where a recipe's service finds its own output.
    fn program_path(&self) -> PathBuf {
        match self.instance {
            Some(instance) => instance.service_log.clone(),
            None => self.output.join(PROGRAM),
        }
    }

    /// The file for what the load prints.
    pub fn load_file(&self) -> Result<File, CrashError> {
        self.file(LOAD)
    }

    /// A file for what a process prints.
    pub fn file(&self, name: &str) -> Result<File, CrashError> {
        create(&self.output.join(name))
    }

    /// The same file twice, for standard output and error.
    pub fn files(&self, name: &str) -> Result<[File; 2], CrashError> {
        let file = self.file(name)?;
        let second = file
            .try_clone()
            .map_err(io_error("cannot duplicate a descriptor"))?;
        Ok([file, second])
    }

    /// The last lines of the program, for an error.
    pub fn printed_by_program(&self) -> String {
        printed(&self.program_path())
    }

    /// The last lines of the load.
    pub fn printed_by_load(&self) -> String {
        printed(&self.output.join(LOAD))
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
            printed(&self.output.join(name))
        )))
    }
}

fn create(path: &Path) -> Result<File, CrashError> {
    File::create(path).map_err(unwritable(path))
}

/// The last lines of a file, for an error.
fn printed(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    if lines.is_empty() {
        "it printed nothing".to_owned()
    } else {
        // No line of refit's begins like this.
        format!("it printed:\n  | {}", lines.join("\n  | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_hook_passes_for_one_of_refits() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("setup");
        fs::write(
            &file,
            "1\n2\nrefit: nothing was lost\n  type this\n\r\n  \nlast",
        )
        .unwrap();
        assert_eq!(
            printed(&file),
            "it printed:\n  | refit: nothing was lost\n  |   type this\n  | \n  |   \n  | last"
        );
        assert_eq!(printed(&dir.path().join("none")), "it printed nothing");
    }
}
