//! `refit crash`: what a program loses at a power cut.

mod request;

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use refit_crash::open::{StateName, open};
use refit_crash::{CrashReport, Progress, crash};
use refit_session::names::OwnName;

use rustix::fs::{FlockOperation, flock};

use super::output;
use crate::cli::CrashArgs;

/// Exit codes: more was lost than the class allows; no verdict.
const LOST: u8 = 1;
const TROUBLE: u8 = 2;

/// Where records are stored without --record.
const RECORDS: &str = "/var/tmp";
const NAME: OwnName = OwnName {
    prefix: "refit-crash-",
    bytes: 6,
};
const REPORT: &str = "report.json";

pub fn main(args: &CrashArgs) -> ExitCode {
    let code = if args.variants.first().is_some_and(|word| word == "open") {
        reopen(args)
    } else {
        run(args)
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "refit: {error:#}");
            ExitCode::from(TROUBLE)
        }
    }
}

fn run(args: &CrashArgs) -> Result<u8> {
    let mut request = request::plan(args)?;
    let json = args
        .json
        .as_deref()
        .map(|path| create("--json", path))
        .transpose()?;
    let html = args
        .html
        .as_deref()
        .map(|path| create("--html", path))
        .transpose()?;
    let missing = refit_crash::missing(&request);
    if !missing.is_empty() {
        return Err(refit_crash::CrashError::Missing(missing).into());
    }
    let records = Records::new(args.record.as_deref())?;
    request.directory.clone_from(&records.directory);
    let report = crash(&request, &mut Steps { quiet: args.quiet })?;
    let text = serde_json::to_string_pretty(&report)? + "\n";
    fs::write(records.directory.join(REPORT), &text).context("cannot write the report")?;
    if let Some(mut file) = json {
        file.write_all(text.as_bytes()).context("--json")?;
    }
    if let Some(mut file) = html {
        file.write_all(refit_report::crash::html(&report).as_bytes())
            .context("--html")?;
    }
    io::stdout()
        .write_all(refit_report::crash::terminal(&report, &output::style()).as_bytes())
        .context("cannot write to stdout")?;
    records.keep_if_needed(&report)?;
    Ok(code(&report))
}

fn code(report: &CrashReport) -> u8 {
    if report.invalid.is_some() {
        return TROUBLE;
    }
    u8::from(report.modes.iter().any(|mode| report.breaks_class(mode))) * LOST
}

fn create(option: &str, path: &Path) -> Result<File> {
    File::create(path).with_context(|| {
        format!(
            "{option}: cannot write {}; name a file in a directory that exists",
            path.display()
        )
    })
}

/// What is being done, a line each.
struct Steps {
    quiet: bool,
}

impl Progress for Steps {
    fn step(&mut self, mode: &str, what: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "refit: {mode}: {what}");
        }
    }
}

/// The directory of the records.
struct Records {
    directory: PathBuf,
    /// Locked as long as refit or one of its processes lives.
    _lock: File,
    /// It was named with --record.
    is_asked_for: bool,
    is_kept: bool,
}

impl Records {
    fn new(asked: Option<&Path>) -> Result<Records> {
        remove_abandoned();
        let directory = match asked {
            Some(path) => {
                fs::create_dir(path).with_context(|| {
                    format!(
                        "--record {}: name a directory that does not exist yet",
                        path.display()
                    )
                })?;
                fs::canonicalize(path)?
            }
            None => {
                let path = Path::new(RECORDS).join(NAME.make()?);
                fs::create_dir(&path)
                    .with_context(|| format!("cannot make a directory in {RECORDS}"))?;
                path
            }
        };
        // Servers that drop root have to reach the file system in it.
        fs::set_permissions(&directory, Permissions::from_mode(0o711))?;
        let lock = File::open(&directory)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Records {
            directory,
            _lock: lock,
            is_asked_for: asked.is_some(),
            is_kept: false,
        })
    }

    /// The states with a loss can be opened again.
    fn keep_if_needed(mut self, report: &CrashReport) -> Result<()> {
        let has_loss = report
            .modes
            .iter()
            .any(|mode| mode.states.iter().any(refit_crash::report::State::is_bad));
        self.is_kept = self.is_asked_for || has_loss;
        if self.is_kept {
            let bytes = size(&self.directory);
            let _ = writeln!(
                io::stderr(),
                "refit: the records are in {} ({} MB); remove it when you are done",
                self.directory.display(),
                bytes / 1_000_000
            );
        }
        Ok(())
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if !self.is_kept {
            // What remains is in /var/tmp, under refit's name.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Removes what a killed refit left: a directory of that name that is not locked
/// and has no report.
fn remove_abandoned() {
    let entries = fs::read_dir(RECORDS).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_ours = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| NAME.is_own(name));
        if !is_ours || path.is_symlink() || path.join(REPORT).exists() || is_new(&path) {
            continue;
        }
        // Shared: another refit that looks at the same moment holds nothing.
        let is_held = File::open(&path).is_ok_and(|directory| {
            flock(&directory, FlockOperation::NonBlockingLockShared).is_err()
        });
        if !is_held {
            // The next start tries again.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Its refit may be about to lock it.
fn is_new(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|about| about.modified());
    changed.is_ok_and(|time| {
        time.elapsed()
            .is_ok_and(|age| age < Duration::from_secs(60))
    })
}

fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => size(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}

/// `refit crash open STATE [-- COMMAND]`
fn reopen(args: &CrashArgs) -> Result<u8> {
    let [_, state] = args.variants.as_slice() else {
        bail!("refit crash open takes one state: DIRECTORY/MODE/c1234-torn-17");
    };
    let state = StateName::parse(Path::new(state))?;
    let path = state.directory.join(REPORT);
    let text =
        fs::read_to_string(&path).with_context(|| format!("no record: {}", path.display()))?;
    let report: CrashReport = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a report of refit crash", path.display()))?;
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let command: Vec<OsString> = if args.command.is_empty() {
        vec![shell]
    } else {
        args.command.clone()
    };
    let code = open(&state, &report, &command)?;
    Ok(u8::try_from(code).unwrap_or(TROUBLE))
}
