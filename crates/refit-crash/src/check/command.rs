//! Checks by another program: a shell command, SQLite, PostgreSQL.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_servers::postgresql;

use crate::acknowledgement::Found;

/// How often refit looks whether a check has ended: most take milliseconds.
const PAUSE: Duration = Duration::from_micros(200);
/// How many characters of the end of its standard error are reported: servers
/// begin with greetings, and tracebacks end with their cause.
const REPORTED: usize = 300;

/// What a check is given.
pub struct CheckedImage<'a> {
    /// Where the image is mounted.
    pub mount: &'a Path,
    /// A file of the acknowledged ids, a line each.
    pub acknowledged: &'a Path,
    /// Where a recipe's check starts; `None`: where refit was started.
    pub dir: Option<&'a Path>,
    /// Variables of the program's run.
    pub env: &'a [(String, String)],
    /// A check that takes longer is killed.
    pub timeout: Duration,
}

struct Finished {
    output: String,
    errors: String,
    /// `None`: it was killed after the timeout.
    code: Option<i32>,
}

/// Runs a program to its end or the timeout.
fn run(mut command: Command, input: &[u8], image: &CheckedImage) -> io::Result<Finished> {
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    if let Some(dir) = image.dir {
        command.current_dir(dir);
    }
    let mut child = command
        .envs(image.env.iter().map(|(name, value)| (name, value)))
        .env("REFIT_MOUNT", image.mount)
        .env("REFIT_ACKED", image.acknowledged)
        .stdin(stored(input)?)
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()?;
    let began = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait()? {
            break status.code().or(Some(128));
        }
        if began.elapsed() > image.timeout {
            child.kill()?;
            child.wait()?;
            break None;
        }
        sleep(PAUSE);
    };
    Ok(Finished {
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

impl Finished {
    /// Why the image is bad, if the program reported that.
    fn broken(&self, timeout: Duration) -> Option<String> {
        let errors = self.errors.trim();
        let skipped = errors.chars().count().saturating_sub(REPORTED);
        let errors: String = errors.chars().skip(skipped).collect();
        match self.code {
            Some(0) => None,
            Some(code) => Some(format!("the check ended with {code}: {errors}")),
            None => Some(format!(
                "the check took more than {} s: {errors}",
                timeout.as_secs()
            )),
        }
    }
}

/// A command of the user's or of a recipe.
pub fn shell(command: &str, image: &CheckedImage) -> io::Result<Found> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]);
    let finished = run(shell, &[], image)?;
    Ok(Found {
        broken: finished.broken(image.timeout),
        ..items(&finished.output)
    })
}

/// A line for each item, after a `!` where only a part of it is there.
pub fn items(output: &str) -> Found {
    let mut found = Found::default();
    let lines = output.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        match line.strip_prefix('!') {
            Some(id) => found.damaged.insert(id.to_owned()),
            None => found.ids.insert(line.to_owned()),
        };
    }
    found
}

/// `PRAGMA integrity_check` and the rows.
pub fn sqlite(database: &Path, query: &str, image: &CheckedImage) -> io::Result<Found> {
    let path = image.mount.join(database);
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
    let finished = run(sqlite, &[], image)?;
    let mut found = Found {
        broken: finished.broken(image.timeout),
        ..Found::default()
    };
    let mut lines = finished.output.lines();
    match lines.next() {
        Some("ok") => found.ids = lines.map(str::to_owned).collect(),
        Some(problem) => {
            found
                .broken
                .get_or_insert_with(|| format!("integrity_check: {problem}"));
        }
        None => {}
    }
    Ok(found)
}

/// The server of the version that made the data in a directory; without such data the newest. Where it is not installed,
/// the one in the PATH: a server opens no data of another version.
pub fn postgres_server(data: Option<&Path>) -> PathBuf {
    let made = data.and_then(postgresql::version_of);
    postgresql::program("postgres", made.as_deref()).unwrap_or_else(|| "postgres".into())
}

/// `postgres --single` recovers as the server does when it starts, and ends
/// when its input does. It refuses to run as root: the data's owner runs it.
pub fn postgres(directory: &Path, query: &str, image: &CheckedImage) -> io::Result<Found> {
    let data = image.mount.join(directory);
    let Ok(about) = std::fs::metadata(&data) else {
        return Ok(Found {
            broken: Some(format!("{} is gone", directory.display())),
            ..Found::default()
        });
    };
    let mut server = Command::new(postgres_server(Some(&data)));
    server.args(["--single", "-j", "-D"]).arg(&data);
    server.args(["-c", "log_min_messages=warning", "postgres"]);
    server.uid(about.uid()).gid(about.gid()).current_dir("/");
    let finished = run(server, format!("{query};\n\n").as_bytes(), image)?;
    let mut found = Found {
        broken: finished.broken(image.timeout),
        ..Found::default()
    };
    // A row: "\t 1: i = "17"\t(typeid = 23, len = 4, typmod = -1, byval = t)"
    let rows = finished
        .output
        .lines()
        .filter(|line| line.contains("(typeid = "));
    let values = rows.filter_map(|line| line.split_once("= \"")?.1.split_once('"'));
    found.ids = values.map(|(value, _)| value.to_owned()).collect();
    let failed = ["FATAL:", "PANIC:", "ERROR:"];
    let failure = finished
        .errors
        .lines()
        .find(|line| failed.iter().any(|word| line.contains(word)));
    if let Some(line) = failure {
        found.broken.get_or_insert_with(|| line.to_owned());
    }
    Ok(found)
}
