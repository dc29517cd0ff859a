//! Which rsyslogd a service runs, with which configuration, and since when.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::config::Config;
use crate::ask::{Ask, QUESTION};
use crate::systemd::{self, Unit};
use crate::{Error, FileError};

const CONFIG: &str = "/etc/rsyslog.conf";

/// An rsyslogd.
pub struct Server {
    /// The program.
    program: String,
    /// Its configuration file.
    pub config: String,
}

impl Server {
    /// What a unit starts; `None` where that is another program.
    pub fn of(unit: &Unit) -> Option<Server> {
        let (program, words) = unit.starts(&["rsyslogd"])?;
        let mut words = words.into_iter().skip_while(|word| !word.starts_with("-f"));
        let config = match words.next().as_deref() {
            None => CONFIG.to_owned(),
            Some("-f") => words.next().unwrap_or_default(),
            Some(joined) => joined[2..].to_owned(),
        };
        Some(Server { program, config })
    }

    /// The command that checks the configuration.
    pub fn check_command(&self) -> String {
        format!("{} -N1 -f {}", self.program, self.config)
    }

    /// Lets rsyslogd read its configuration and end. Any warning counts: with a configuration that it
    /// refuses, rsyslogd starts all the same, and writes to no file.
    ///
    /// # Errors
    /// [`Error::Command`], with what it prints.
    pub fn check(&self) -> Result<(), Error> {
        let command = self.check_command();
        let mut words = command.split_whitespace();
        let failed = |output: String| Error::Command {
            command: command.clone(),
            output,
        };
        let output = Command::new(words.next().unwrap_or_default())
            .args(words)
            .current_dir("/")
            .stdin(Stdio::null())
            .answer(QUESTION)
            .map_err(|error| failed(error.to_string()))?;
        let printed = String::from_utf8_lossy(&output.stderr);
        let is_told = |line: &&str| !line.contains("alidation run") && !line.is_empty();
        let lines: Vec<&str> = printed.lines().filter(is_told).collect();
        if output.status.success() && lines.is_empty() {
            return Ok(());
        }
        Err(failed(lines.join("\n")))
    }
}

/// A file of a configuration that changed after the service was started: a restart would take that up
/// too. `None` where there is none, or the service does not run.
///
/// # Errors
/// Where systemd cannot be asked.
pub fn changed_since_start(service: &str, config: &Config) -> Result<Option<String>, Error> {
    let words = ["show", "-p", "ExecMainStartTimestampMonotonic", "--value"];
    let shown = systemd::systemctl(&[&words[..], &[service]].concat())?;
    let Some(started_us) = shown.trim().parse().ok().filter(|us| *us > 0) else {
        return Ok(None);
    };
    let since = |clock| {
        let now = clock_gettime(clock);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    };
    let up = since(ClockId::Monotonic).saturating_sub(Duration::from_micros(started_us));
    let started = since(ClockId::Realtime).saturating_sub(up);
    for file in config.files.keys() {
        let path = Path::new(file);
        let meta = std::fs::metadata(path).map_err(FileError::at(path))?;
        let changed = Duration::new(meta.ctime().unsigned_abs(), meta.ctime_nsec() as u32);
        if changed > started {
            return Ok(Some(file.clone()));
        }
    }
    Ok(None)
}
