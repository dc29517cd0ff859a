//! Checks by another program.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Place;
use crate::promise::Found;

/// A check looks at a small state; its end is looked for this often.
const PAUSE: Duration = Duration::from_micros(200);
/// So much of the end of what it says on stderr is repeated: servers begin with
/// greetings, and tracebacks end with their cause.
const SAID: usize = 300;

struct Said {
    output: String,
    errors: String,
    /// `None`: it was killed after the timeout.
    code: Option<i32>,
}

/// Runs a program to its end or the timeout.
fn run(mut command: Command, input: &[u8], place: &Place) -> io::Result<Said> {
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = command
        .env("REFIT_MOUNT", place.mount)
        .env("REFIT_ACKED", place.acked)
        .stdin(stored(input)?)
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()?;
    let began = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait()? {
            break status.code().or(Some(128));
        }
        if began.elapsed() > place.timeout {
            child.kill()?;
            child.wait()?;
            break None;
        }
        sleep(PAUSE);
    };
    Ok(Said {
        output: text(&mut output)?,
        errors: text(&mut errors)?,
        code,
    })
}

fn stored(input: &[u8]) -> io::Result<Stdio> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(input)?;
    file.rewind()?;
    Ok(file.into())
}

fn text(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Said {
    /// Why the state is no good, if the program says so.
    fn broken(&self, timeout: Duration) -> Option<String> {
        let words = self.errors.trim();
        let skipped = words.chars().count().saturating_sub(SAID);
        let words: String = words.chars().skip(skipped).collect();
        match self.code {
            Some(0) => None,
            Some(code) => Some(format!("the check ended with {code}: {words}")),
            None => Some(format!(
                "the check took more than {} s: {words}",
                timeout.as_secs()
            )),
        }
    }
}

/// The user's own.
pub fn command(command: &str, place: &Place) -> io::Result<Found> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]);
    let said = run(shell, &[], place)?;
    let mut found = Found {
        broken: said.broken(place.timeout),
        ..Found::default()
    };
    for line in said
        .output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        match line.strip_prefix('!') {
            Some(id) => found.damaged.insert(id.to_owned()),
            None => found.ids.insert(line.to_owned()),
        };
    }
    Ok(found)
}

/// `PRAGMA integrity_check` and the rows.
pub fn sqlite(database: &Path, query: &str, place: &Place) -> io::Result<Found> {
    let path = place.mount.join(database);
    if !path.exists() {
        return Ok(Found::default());
    }
    let mut sqlite = Command::new("sqlite3");
    sqlite.args([
        "-batch",
        "-bail",
        "-noheader",
        "-list",
        "-init",
        "/dev/null",
    ]);
    sqlite.arg(&path).arg("PRAGMA integrity_check;").arg(query);
    let said = run(sqlite, &[], place)?;
    let mut found = Found {
        broken: said.broken(place.timeout),
        ..Found::default()
    };
    let mut lines = said.output.lines();
    match lines.next() {
        Some("ok") => found.ids = lines.map(str::to_owned).collect(),
        Some(words) => {
            found
                .broken
                .get_or_insert_with(|| format!("integrity_check: {words}"));
        }
        None => {}
    }
    Ok(found)
}

/// The newest server that is installed as Debian does it, or the one in the path.
pub fn postgres() -> Option<PathBuf> {
    let mut installed: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin/postgres"))
        .filter(|path| path.exists())
        .collect();
    installed.sort();
    installed.pop().or_else(|| Some("postgres".into()))
}

/// `postgres --single` recovers as the server does when it starts, and ends
/// when its input does. It refuses to run as root: the data's owner runs it.
pub fn single(directory: &Path, query: &str, place: &Place) -> io::Result<Found> {
    let data = place.mount.join(directory);
    let Ok(about) = std::fs::metadata(&data) else {
        return Ok(Found {
            broken: Some(format!("{} is gone", directory.display())),
            ..Found::default()
        });
    };
    let mut server = Command::new(postgres().unwrap_or_else(|| "postgres".into()));
    server.args(["--single", "-j", "-D"]).arg(&data);
    server.args(["-c", "log_min_messages=warning", "postgres"]);
    server.uid(about.uid()).gid(about.gid()).current_dir("/");
    let said = run(server, format!("{query};\n\n").as_bytes(), place)?;
    let mut found = Found {
        broken: said.broken(place.timeout),
        ..Found::default()
    };
    // "\t 1: i = "17"\t(typeid = 23, len = 4, typmod = -1, byval = t)"
    let rows = said
        .output
        .lines()
        .filter(|line| line.contains("(typeid = "));
    let values = rows.filter_map(|line| line.split_once("= \"")?.1.split_once('"'));
    found.ids = values.map(|(value, _)| value.to_owned()).collect();
    let failed = ["FATAL:", "PANIC:", "ERROR:"];
    let complaint = said
        .errors
        .lines()
        .find(|line| failed.iter().any(|word| line.contains(word)));
    if let Some(line) = complaint {
        found.broken.get_or_insert_with(|| line.to_owned());
    }
    Ok(found)
}
