//! A redis server of refit's own that reads the settings of a change, and nothing else: what it
//! refuses, the service would refuse at its next start. It has a socket in a directory of its own,
//! no port, and no data.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use crate::abandoned_dirs::remove_left;
use crate::sys::ends_with_this;

/// Of the directory; the process id follows.
const PLACE: &str = "/run/refit-redis-";

/// A server without data starts within milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The server; it ends with this.
pub struct Sample {
    dir: PathBuf,
    child: Option<Child>,
}

impl Drop for Sample {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Sample {
    /// Starts it with a configuration, as another user than root.
    ///
    /// # Errors
    /// What it reports.
    pub fn start(program: &str, text: &str, (uid, gid): (u32, u32)) -> Result<Sample, String> {
        remove_left(PLACE);
        let dir = PathBuf::from(format!("{PLACE}{}", std::process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
        DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
        let mut sample = Sample {
            dir: dir.clone(),
            child: None,
        };
        let conf = dir.join("conf");
        let log = dir.join("log");
        fs::write(&conf, text).map_err(failed)?;
        chown(&dir, Some(uid), Some(gid)).map_err(failed)?;
        let out = fs::File::create(&log).map_err(failed)?;
        let also_out = out.try_clone().map_err(failed)?;
        let socket = dir.join("socket").display().to_string();
        let own = dir.display().to_string();
        let words = ["--port", "0", "--unixsocket", &socket, "--dir", &own];
        let more = ["--daemonize", "no", "--supervised", "no", "--logfile", ""];
        let mut command = Command::new(program);
        command
            .arg(&conf)
            .args(words)
            .args(more)
            .env_clear()
            .current_dir(&dir)
            .gid(gid)
            .uid(uid)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(also_out);
        ends_with_this(&mut command);
        let child = command
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let child = sample.child.insert(child);
        let began = Instant::now();
        while Client::unix(&dir.join("socket")).is_err() {
            let ended = child.try_wait().map_err(failed)?;
            if ended.is_some() || began.elapsed() > TIMEOUT {
                return Err(told(&fs::read_to_string(&log).unwrap_or_default()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(sample)
    }

    /// A connection to it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn client(&self) -> Result<Client, String> {
        Client::unix(&self.dir.join("socket")).map_err(|error| error.to_string())
    }
}

/// What a server printed that did not start, without what every server prints.
fn told(log: &str) -> String {
    let is_told = |line: &&str| {
        let is_log = line
            .split(':')
            .next()
            .is_some_and(|pid| pid.parse::<u32>().is_ok());
        !line.is_empty() && !is_log && !line.starts_with("***") && !line.starts_with("Reading")
    };
    let told: Vec<&str> = log.lines().map(str::trim).filter(is_told).collect();
    // redis 8 takes an unknown word for a module's, and says in its log that no module has it.
    let warned = log.lines().filter_map(|line| line.split_once(" # "));
    let warned = warned.map(|(_, text)| text.trim());
    let warned = warned.filter(|text| !text.starts_with("WARNING "));
    match told.is_empty() {
        true => warned.collect::<Vec<_>>().join("; "),
        false => told.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_server_from_starting_is_told() {
        let fatal = "\n*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***\nReading the configuration file, at line 1\n\
                     >>> 'nosuch 1'\nBad directive or wrong number of arguments\n";
        let said = ">>> 'nosuch 1'; Bad directive or wrong number of arguments";
        assert_eq!(told(fatal), said);
        let warned = "7:C 27 Nov 2026 07:29:50.224 # WARNING Memory overcommit must be enabled!\n\
                      7:C 27 Nov 2026 07:29:50.224 * Configuration loaded\n\
                      7:M 27 Nov 2026 07:29:50.226 # Unresolved Configuration(s) Detected:\n\
                      7:M 27 Nov 2026 07:29:50.226 #  >>> 'nosuch 1'\n";
        let said = "Unresolved Configuration(s) Detected:; >>> 'nosuch 1'";
        assert_eq!(told(warned), said);
        assert_eq!(told(&[warned, fatal].concat()), told(fatal));
    }
}
