//! `refit demo`: what a swap does on this machine, with nothing to install.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_knobs::Variant;
use refit_lab::{Request, compare};
use refit_launch::allocator::{KNOWN, find};
use refit_report::terminal;
use tempfile::TempDir;

use super::output::{Output, style};
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
const MODES: [(&str, &str, &str); 4] = [
    ("none", "no", "no"),
    ("fflush", "yes", "no"),
    ("fsync", "no", "no"),
    ("both", "yes", "yes"),
];
const SLICE_MS: &str = "620";

pub fn main(args: &DemoArgs) -> ExitCode {
    let text = match args.what.as_deref() {
        None => mailqueue(args),
        Some("fsync") => fsync_matrix(args),
        Some(other) => Err(anyhow::anyhow!(
            "there is no demo `{other}`\n  type `refit demo` or `refit demo fsync`"
        )),
    };
    match text.and_then(|text| {
        io::stdout()
            .write_all(text.as_bytes())
            .context("cannot write to stdout")
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "refit: {error:#}");
            ExitCode::from(2)
        }
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

fn note_memory(dir: &Path, out: &mut String) {
    if refit_session::is_tmpfs(dir) {
        let _ = writeln!(
            out,
            "\nnote: {} is in memory, where a sync has nothing to do; name a directory on a disk: --dir",
            dir.display()
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The smallest and the largest of sorted values.
fn range(sorted: &[f64]) -> (f64, f64) {
    (sorted[0], sorted[sorted.len() - 1])
}

/// The mail queue under every swap that is installed here, as a comparison.
fn mailqueue(args: &DemoArgs) -> Result<String> {
    let work = work_directory(args)?;
    let program = install(work.path(), "mailqueue", MAILQUEUE)?;
    // Each run gets a queue of its own, and none is deleted before the end:
    // freeing blocks slows what follows.
    let queue = work.path().join("queue");
    fs::create_dir(&queue).with_context(|| format!("cannot make {}", queue.display()))?;
    let mut candidates = vec!["sync=off".to_owned()];
    candidates.extend(
        KNOWN
            .iter()
            .filter(|known| find(known, None).is_some())
            .map(|known| format!("malloc={}", known.name)),
    );
    // The baseline, the hidden one and the run without refit.
    let variants = candidates.len() as u32 + 3;
    let messages = affordable_messages(
        &program,
        work.path(),
        args.budget / (2 * ROUND_PAIRS * variants),
    )?;
    let request = Request {
        command: vec![program.into(), ".".into(), messages.to_string().into()],
        candidates: candidates
            .iter()
            .map(|word| Variant::parse(word))
            .collect::<Result<_, _>>()?,
        bare: true,
        budget: args.budget,
        seed: SEED,
        fresh_copy: Some(queue),
        ..Request::default()
    };
    let output = Output::open(&OutputArgs::default())?;
    let mut bar = Bar::new(false, &output);
    let experiment = compare(&request, &mut bar);
    bar.finish();
    let mut out = format!(
        "A small mail queue: {messages} messages, each written, synced, renamed, and its directory synced.\n\n"
    );
    out.push_str(&terminal(&experiment?, &style()));
    out.push_str(
        "\nWhat sync=off risks: after a power cut, messages that were acknowledged are lost or torn.\n\n\
         Next:  refit demo fsync                       what a log line costs on this disk\n       \
         refit run -- YOUR COMMAND              what your program waits for; nothing is changed\n       \
         refit compare sync=off -- YOUR COMMAND whether those waits matter\n\n\
         The demo itself takes --budget and --dir; other options above are those of refit compare.\n",
    );
    if messages < MOST_MESSAGES {
        let _ = writeln!(
            out,
            "\nnote: a run has {messages} messages instead of {MOST_MESSAGES}, so that enough runs fit into {}; for more: --budget",
            seconds(args.budget)
        );
    }
    note_memory(work.path(), &mut out);
    Ok(out)
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

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn fsync_matrix(args: &DemoArgs) -> Result<String> {
    let work = work_directory(args)?;
    let program = install(work.path(), "loglines", LOGLINES)?;
    let mut times: [Vec<f64>; 4] = Default::default();
    for slice in 0..4 {
        for i in 0..4 {
            // Every second slice in mirrored order.
            let mode = if slice % 2 == 0 { i } else { 3 - i };
            let log = work.path().join(format!("log-{slice}-{mode}"));
            times[mode].push(ns_per_line(&program, &log, MODES[mode].0)?);
        }
    }
    let mut out = format!(
        "One log line after another, for ten seconds in all, on {}.\n\n\
         {:<10}{:>14}   {:<26}{:>12}   outlives the program   outlives a power cut\n",
        work.path().parent().unwrap_or(work.path()).display(),
        "per line",
        "median",
        "range of 4 slices",
        "lines/s"
    );
    for ((mode, program, power), times) in MODES.iter().zip(&mut times) {
        let middle = median(times);
        let (low, high) = range(times);
        let _ = writeln!(
            out,
            "{mode:<10}{:>14}   {:<26}{:>12.0}   {program:<20}   {power}",
            duration(middle),
            format!("{} … {}", duration(low), duration(high)),
            1e9 / middle,
        );
    }
    out.push_str(
        "\nnone: lines wait in the program's buffer. fflush: each line reaches the kernel. fsync alone does not\n\
         write what is still in the buffer: it costs the same and makes nothing durable. both: each line is on the\n\
         disk, if the disk does what it is told.\n",
    );
    note_memory(work.path(), &mut out);
    Ok(out)
}

fn duration(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.1} µs", ns / 1e3)
    } else {
        format!("{:.2} ms", ns / 1e6)
    }
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
