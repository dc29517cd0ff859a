//! Test lines: one of each facility that the configuration names, which have to arrive in the same
//! files after a restart as before. rsyslogd is active, too, when it writes to no file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use super::config::{Config, Part};

/// By their numbers (RFC 5424, 6.2.1); without those that no program logs as.
const FACILITIES: &str = "- user mail daemon auth syslog lpr news uucp cron authpriv ftp - - - - \
                          local0 local1 local2 local3 local4 local5 local6 local7";
const INFO: usize = 6;

/// That a facility is written to no file is known after this.
const LONGEST: Duration = Duration::from_secs(2);
/// One file is written right after the other.
const NEXT_FILE: Duration = Duration::from_millis(200);
/// After the restart.
const ARRIVES_WITHIN: Duration = Duration::from_secs(10);

/// `FACILITY.info in FILE`.
pub type Arrived = BTreeSet<String>;

/// Whose lines are logged, and where they are looked for.
pub struct TestLines {
    facilities: Vec<(usize, &'static str)>,
    files: BTreeSet<String>,
}

impl TestLines {
    /// For a configuration.
    pub fn of(config: &Config) -> TestLines {
        let mut named = BTreeSet::from(["user".to_owned()]);
        for bytes in config.files.values() {
            let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
            let lines = text.lines().filter(|line| !line.starts_with(['#', '$']));
            let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
            named.extend(words.map(str::to_owned));
        }
        let all = FACILITIES.split_whitespace().enumerate();
        let files = config.parts.iter().filter_map(|placed| match &placed.part {
            Part::Rule { file, .. } if file.starts_with('/') => Some(file.clone()),
            _ => None,
        });
        TestLines {
            facilities: all.filter(|(_, name)| named.contains(*name)).collect(),
            files: files.collect(),
        }
    }

    /// The facilities, for people.
    pub fn facilities(&self) -> String {
        let names: Vec<&str> = self.facilities.iter().map(|(_, name)| *name).collect();
        names.join(", ")
    }

    /// Where the lines arrive now.
    ///
    /// # Errors
    /// Why none can be logged.
    pub fn arrivals(&self) -> Result<Arrived, String> {
        let sent = self.send()?;
        let is_complete = |found: &Arrived| {
            let begins = self.facilities.iter().map(|(_, name)| format!("{name}."));
            let arrived = |begin: String| found.iter().any(|one| one.starts_with(&begin));
            begins.into_iter().all(arrived)
        };
        sent.wait(LONGEST, is_complete);
        std::thread::sleep(NEXT_FILE);
        Ok(sent.look())
    }

    /// Waits until the lines arrive again where they did; those that do not.
    ///
    /// # Errors
    /// Why none can be logged.
    pub fn missing(&self, before: &Arrived) -> Result<Vec<String>, String> {
        let sent = self.send()?;
        let found = sent.wait(ARRIVES_WITHIN, |found| before.is_subset(found));
        Ok(before.difference(&found).cloned().collect())
    }

    fn send(&self) -> Result<Sent, String> {
        let length = |file: &String| std::fs::metadata(file).map_or(0, |meta| meta.len());
        let from = self
            .files
            .iter()
            .map(|file| (file.clone(), length(file)))
            .collect();
        let failed = |error: std::io::Error| format!("/dev/log: {error}");
        let mut random = [0; 8];
        let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
        filled.map_err(failed)?;
        let socket = UnixDatagram::unbound().map_err(failed)?;
        socket.connect("/dev/log").map_err(failed)?;
        let mut lines = Vec::new();
        for (number, name) in &self.facilities {
            // The full stop: no line begins another one.
            let text = format!("test line {:016x} of {name}.", u64::from_ne_bytes(random));
            let line = format!("<{}>refit: {text}", number * 8 + INFO);
            socket.send(line.as_bytes()).map_err(failed)?;
            lines.push((*name, text));
        }
        Ok(Sent { lines, from })
    }
}

/// Lines that were logged.
struct Sent {
    lines: Vec<(&'static str, String)>,
    /// How long each file was then.
    from: BTreeMap<String, u64>,
}

impl Sent {
    fn look(&self) -> Arrived {
        let mut found = Arrived::new();
        for (file, from) in &self.from {
            let bytes = read_from(file, *from).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let arrived = self.lines.iter().filter(|(_, line)| text.contains(line));
            found.extend(arrived.map(|(name, _)| format!("{name}.info in {file}")));
        }
        found
    }

    fn wait(&self, longest: Duration, is_enough: impl Fn(&Arrived) -> bool) -> Arrived {
        let began = Instant::now();
        loop {
            let found = self.look();
            if is_enough(&found) || began.elapsed() > longest {
                return found;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a file has after this place; all of it, where it is another file since.
fn read_from(file: &str, from: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(file)?;
    let is_other = file.metadata()?.len() < from;
    file.seek(SeekFrom::Start(if is_other { 0 } else { from }))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
