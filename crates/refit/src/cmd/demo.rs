//! `refit demo`: what a swap does on this machine, with nothing to install.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_crash::filesystem::Kind;
use refit_crash::machine_lacks;
use refit_knobs::{ALLOCATORS, Variant};
use refit_lab::{CommandSubject, Request, Subject, compare};
use refit_launch::allocator::{find, here};
use refit_report::demo::{self, LogMode};
use refit_report::{Compared, Proof};
use tempfile::TempDir;

use super::compare::prove::cut;
use super::output::Output;
use super::print;
use super::progress::Bar;
use crate::cli::{DemoArgs, OutputArgs};

static MAILQUEUE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mailqueue"));
static LOGLINES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loglines"));

/// Messages of one run on a fast disk.
const MOST_MESSAGES: u32 = 200;
/// … and on the slowest.
const FEWEST_MESSAGES: u32 = 2;
/// Round pairs that should fit into the budget: the warm-up, the eight that five
/// candidates need for a verdict, and a reserve.
const ROUND_PAIRS: u32 = 12;
const SEED: u64 = 0x5eed;

/// The modes of the log writer; whether a line then outlives the program, and a
/// power cut. Four modes with four slices each take ten seconds.
const MODES: [(&str, [bool; 2]); 4] = [
    ("none", [false, false]),
    ("fflush", [true, false]),
    ("fsync", [false, false]),
    ("both", [true, true]),
];
const SLICES: usize = 4;
const SLICE_MS: &str = "620";

/// So many power cuts of each mode that the demo takes seconds longer, on a disk that is recorded.
const CUTS: [&str; 9] = [
    "--quiet", "--cuts", "20", "--size", "64M", "--for", "20s", "--ack", "fd:1",
];
const ON_THE_DISK: &str = "exec \"$0\" \"$REFIT_MOUNT\" 200 acknowledge";
/// The messages that are there, and with a `!` those of which something is.
const IS_THERE: &str = "cd \"$REFIT_MOUNT\" && { grep -l '^Message-Id: <' message-*; \
                        grep -L '^Message-Id: <' message-* | sed 's/^/!/'; true; }";

pub fn main(args: &DemoArgs) -> ExitCode {
    let shown = match args.what.as_deref() {
        None => mailqueue(args),
        Some("fsync") => fsync_matrix(args).and_then(|text| print::result(&text)),
        Some(other) => Err(anyhow::anyhow!(
            "there is no demo `{other}`\n  type `refit demo` or `refit demo fsync`"
        )),
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

/// A new directory.
fn work_directory(args: &DemoArgs) -> Result<TempDir> {
    TempDir::with_prefix_in("refit-demo-", &args.dir)
        .with_context(|| format!("cannot make a directory in {}", args.dir.display()))
}

fn install(dir: &Path, name: &str, program: &[u8]) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, program)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The mail queue under every swap that is installed here, as a comparison.
fn mailqueue(args: &DemoArgs) -> Result<()> {
    let work = work_directory(args)?;
    let program = install(work.path(), "mailqueue", MAILQUEUE)?;
    // Each run gets a queue of its own, and none is deleted before the end:
    // freeing blocks slows what follows.
    let queue = work.path().join("queue");
    fs::create_dir(&queue).with_context(|| format!("cannot make {}", queue.display()))?;
    let mut candidates = vec!["sync=off".to_owned()];
    candidates.extend(
        ALLOCATORS
            .iter()
            .filter(|known| !known.is_c_librarys() && find(known, None, here).is_ok())
            .map(|known| format!("malloc={}", known.name)),
    );
    // The baseline, the hidden one and the run without refit.
    let variants = candidates.len() as u32 + 3;
    let messages = affordable_messages(
        &program,
        work.path(),
        args.budget / (2 * ROUND_PAIRS * variants),
    )?;
    let subject = CommandSubject {
        words: vec![
            program.clone().into(),
            ".".into(),
            messages.to_string().into(),
        ],
        fresh_copy: Some(queue),
        ..CommandSubject::default()
    };
    let request = Request {
        candidates: candidates
            .iter()
            .map(|word| Variant::parse(word))
            .collect::<Result<_, _>>()?,
        bare: true,
        budget: args.budget,
        seed: SEED,
        ..Request::of(Subject::Command(subject))
    };
    let output = Output::open(&OutputArgs::default())?;
    let mut bar = Bar::new(false, &output);
    let experiment = compare(&request, &mut bar);
    bar.finish();
    let counts = [messages, MOST_MESSAGES];
    let budget_s = args.budget.as_secs_f64();
    let (experiment, _remains) = experiment?;
    let compared = Compared {
        proof: Some(proof(program.as_os_str(), work.path())),
        comparison: experiment,
    };
    let text = demo::mail_queue(&compared, &print::style(), counts, budget_s);
    print::result(&(text + &in_memory(work.path())))
}

/// What a power cut takes of the same queue with sync=off, where the crash lab can be had.
fn proof(program: &OsStr, work: &Path) -> Proof {
    let lacks = machine_lacks(Kind::Ext4);
    if !lacks.is_empty() {
        return Proof::NotCut(lacks.join("; "));
    }
    let command = [
        OsStr::new("sh"),
        OsStr::new("-c"),
        OsStr::new(ON_THE_DISK),
        program,
    ];
    let mut words: Vec<OsString> = CUTS.into_iter().map(OsString::from).collect();
    let options: [(&str, OsString); 3] = [
        ("--record", work.join("cuts").into()),
        ("--check", IS_THERE.into()),
        ("--ends-with", std::process::id().to_string().into()),
    ];
    for (option, value) in options {
        words.extend([option.into(), value]);
    }
    words.extend(["sync=off", "--"].map(OsString::from));
    words.extend(command.map(OsStr::to_owned));
    match cut(&words, None) {
        Ok(report) => Proof::Cut(Box::new(report)),
        Err(error) => Proof::NotCut(format!("{error:#}")),
    }
}

/// A note, where no disk is measured.
fn in_memory(directory: &Path) -> String {
    if refit_session::is_tmpfs(directory) {
        demo::in_memory(directory)
    } else {
        String::new()
    }
}

/// As many messages as one run may have, so that it takes no longer than `time`.
fn affordable_messages(program: &Path, work: &Path, time: Duration) -> Result<u32> {
    let mut messages = FEWEST_MESSAGES;
    loop {
        let queue = TempDir::new_in(work)?;
        let began = Instant::now();
        let output = Command::new(program)
            .arg(queue.path())
            .arg(messages.to_string())
            .output()
            .context("cannot start the demo's program")?;
        let took = began.elapsed();
        if !output.status.success() {
            bail!(
                "the demo's program failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        // A fourth of the time is enough to know the rest.
        if took * 4 >= time || messages == MOST_MESSAGES {
            let fit = f64::from(messages) * time.as_secs_f64() / took.as_secs_f64();
            return Ok((fit as u32).clamp(FEWEST_MESSAGES, MOST_MESSAGES));
        }
        messages = (messages * 4).min(MOST_MESSAGES);
    }
}

fn fsync_matrix(args: &DemoArgs) -> Result<String> {
    let work = work_directory(args)?;
    let program = install(work.path(), "loglines", LOGLINES)?;
    let mut modes = MODES.map(|(name, [outlives_program, outlives_cut])| LogMode {
        name,
        outlives_program,
        outlives_cut,
        ns_per_line: Vec::new(),
    });
    for slice in 0..SLICES {
        let mut order: Vec<&mut LogMode> = modes.iter_mut().collect();
        // Every second slice in mirrored order.
        if slice % 2 == 1 {
            order.reverse();
        }
        for mode in order {
            let log = work.path().join(format!("log-{slice}-{}", mode.name));
            let ns = ns_per_line(&program, &log, mode.name)?;
            mode.ns_per_line.push(ns);
        }
    }
    let directory = work.path().parent().unwrap_or(work.path());
    Ok(demo::log_lines(directory, &modes) + &in_memory(work.path()))
}

fn ns_per_line(program: &Path, log: &Path, mode: &str) -> Result<f64> {
    let output = Command::new(program)
        .arg(log)
        .args([mode, SLICE_MS])
        .output()
        .context("cannot start the demo's program")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut numbers = printed.split_whitespace().map(str::parse::<f64>);
    match (output.status.success(), numbers.next(), numbers.next()) {
        (true, Some(Ok(lines)), Some(Ok(ns))) if lines > 0.0 => Ok(ns / lines),
        _ => bail!(
            "the demo's program failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}
