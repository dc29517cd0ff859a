//! `refit crash`: what a program loses at a power cut.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use refit_crash::ack_source::AckSource;
use refit_crash::check::Check;
use refit_crash::filesystem::Filesystem;
use refit_crash::open::{StateName, open};
use refit_crash::{CrashReport, Progress, Request, crash};
use refit_knobs::{Settings, Variant};
use refit_session::names::OwnName;

use rustix::fs::{FlockOperation, flock};

use super::output;
use crate::cli::CrashArgs;

/// Exit codes: more was lost than the class allows; no verdict.
const LOST: u8 = 1;
const TROUBLE: u8 = 2;

/// The time limit of a run that ends by itself, and the length of one of mails.
const LONGEST_RUN: Duration = Duration::from_secs(60);
const MAILS: Duration = Duration::from_secs(5);
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
    let mut request = request(args)?;
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

fn request(args: &CrashArgs) -> Result<Request> {
    let candidates = args
        .variants
        .iter()
        .map(|word| Variant::parse_os(word))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(twice) = candidates
        .iter()
        .enumerate()
        .find_map(|(at, one)| candidates[..at].contains(one).then_some(one))
    {
        bail!("the variant {twice} is given twice; name it once");
    }
    let Some(check_text) = args.check.clone() else {
        bail!(
            "no --check, which finds what is there after a cut\n  give a command that prints the id of each thing that is there, or for a log: --check log:FILE"
        );
    };
    let check: Check = check_text
        .parse()
        .map_err(anyhow::Error::msg)
        .context("--check")?;
    let ack = match (&args.ack, &args.ack_regex) {
        (Some(text), _) => text
            .parse::<AckSource>()
            .map_err(anyhow::Error::msg)
            .context("--ack")?,
        (None, Some(regex)) => AckSource::regex(regex)
            .map_err(anyhow::Error::msg)
            .context("--ack-regex")?,
        (None, None) => bail!(
            "no --ack, which says how the program acknowledges\n  take the lines that it prints (--ack fd:1), or --ack-regex, --ack smtp:HOST:PORT, --ack sync"
        ),
    };
    if args.command.is_empty() {
        bail!(
            "no command to run\n  write it after `--`: refit crash --check … --ack … sync=off -- COMMAND"
        );
    }
    if args.cuts == 0 {
        bail!("--cuts 0: nothing would be checked; take at least 1");
    }
    let is_mail = matches!(ack, AckSource::Smtp(_));
    if is_mail && args.load.is_some() {
        bail!("--ack smtp is a load by itself; leave out --load");
    }
    let smallest = args.fs.smallest();
    if args.size < smallest {
        bail!(
            "--size {}: a disk for {} needs at least {} bytes",
            args.size,
            args.fs.name(),
            smallest
        );
    }
    let mount = match &args.mount {
        Some(mount) => Some(fs::canonicalize(mount).with_context(|| {
            format!("--mount {}: name a directory that exists", mount.display())
        })?),
        None => None,
    };
    if let Some(mount) = &mount
        && (!mount.is_dir() || mount == Path::new("/"))
    {
        bail!("--mount {}: name a directory other than /", mount.display());
    }
    Ok(Request {
        command: args.command.clone(),
        candidates,
        with: Settings::parse(args.with.clone())?,
        check,
        check_text,
        ack,
        prepare: args.prepare.clone(),
        load: args.load.clone(),
        ready: args.ready.clone(),
        background: args.background.clone(),
        length: args
            .length
            .unwrap_or(if is_mail { MAILS } else { LONGEST_RUN }),
        stop: args.stop,
        filesystem: Filesystem {
            kind: args.fs,
            options: args.mount_options.clone(),
        },
        disk_bytes: args.size,
        record_cap: args.record_size,
        cuts: args.cuts,
        tear: args.tear.parse().context("--tear")?,
        check_timeout: args.check_timeout,
        mount,
        directory: PathBuf::new(),
        seed: args.seed.unwrap_or_else(crate::cli::new_seed),
        reach: args.reach.reach(),
        options: options(args),
        allocator_dir: args.allocator_dir.clone(),
        workers: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

/// Options without a place of their own in a report.
fn options(args: &CrashArgs) -> Vec<String> {
    let timeout = format!("{}ms", args.check_timeout.as_millis());
    let size = args.record_size.to_string();
    let mut words: Vec<String> = ["--check-timeout", &timeout, "--record-size", &size]
        .map(str::to_owned)
        .into();
    words.extend(args.reach.words());
    if let Some(directory) = &args.allocator_dir {
        words.extend([
            "--allocator-dir".to_owned(),
            directory.display().to_string(),
        ]);
    }
    words
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
