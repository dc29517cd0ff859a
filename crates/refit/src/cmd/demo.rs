//! `refit demo`: what a swap is, on this machine, with nothing to install.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use refit_knobs::Settings;
use refit_launch::{End, Options, prepare};
use refit_meter::{Calls, Collector};
use tempfile::TempDir;

use crate::cli::DemoArgs;

static MAILQUEUE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/mailqueue"));
static LOGLINES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loglines"));

/// Messages of one run.
const MESSAGES: &str = "500";
/// Off and on in mirrored order, so that a drift of the disk hits both alike.
const ORDER: [&str; 6] = ["on", "off", "off", "on", "on", "off"];

/// The modes of the log writer, with what a line outlives once it is written,
/// and the time of one slice. Four modes, four slices each: ten seconds.
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
            "there is no demo `{other}`\n  there are: refit demo, refit demo fsync"
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

/// A fresh directory, on a disk if nothing else was asked for.
fn workplace(args: &DemoArgs) -> Result<TempDir> {
    let parent = args.dir.as_deref().unwrap_or(Path::new("/var/tmp"));
    TempDir::with_prefix_in("refit-demo-", parent)
        .with_context(|| format!("cannot make a directory in {}", parent.display()))
}

fn place(dir: &Path, name: &str, program: &[u8]) -> Result<PathBuf> {
    let path = dir.join(name);
    fs::write(&path, program)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn warn_of_memory(dir: &Path, out: &mut String) {
    if refit_launch::session::is_tmpfs(dir) {
        let _ = writeln!(
            out,
            "\nnote: {} lies in memory, where a sync has nothing to do; choose a disk with --dir",
            dir.display()
        );
    }
}

/// One supervised run; its time and its sync calls.
fn run(settings: &Settings, command: &[OsString]) -> Result<(Duration, Calls)> {
    let options = Options {
        count: true,
        follow_env: true,
        allocator_dir: None,
    };
    let prepared = prepare(&settings.launch(), &options, command)?;
    let mut collector = Collector::new(&prepared.session.path, true);
    let ended = prepared.run(|| collector.fold_dead());
    collector.finish();
    prepared.session.remove();
    let (end, wall) = ended.context("cannot start the demo's program")?;
    if end != End::Exited(0) {
        bail!("the demo's program failed: {end:?}");
    }
    let (_, totals, _, _) = collector.report();
    Ok((wall, totals.get("fsync").copied().unwrap_or_default()))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The smallest and the largest of sorted values.
fn range(sorted: &[f64]) -> (f64, f64) {
    (sorted[0], sorted[sorted.len() - 1])
}

fn mailqueue(args: &DemoArgs) -> Result<String> {
    let work = workplace(args)?;
    let program = place(work.path(), "mailqueue", MAILQUEUE)?;
    let mut rows = [
        ("on", Vec::new(), Calls::default()),
        ("off", Vec::new(), Calls::default()),
    ];
    for (i, value) in ORDER.iter().enumerate() {
        // Nothing is deleted before the end: freeing blocks slows what follows.
        let queue = work.path().join(format!("queue-{i}"));
        fs::create_dir(&queue).with_context(|| format!("cannot make {}", queue.display()))?;
        let settings = Settings::parse([OsString::from(format!("sync={value}"))])?;
        let command = [program.clone().into(), queue.into(), MESSAGES.into()];
        let (wall, calls) = run(&settings, &command)?;
        let row = &mut rows[usize::from(*value == "off")];
        row.1.push(wall.as_secs_f64() * 1e3);
        row.2 = calls;
    }
    let mut out = format!(
        "A mail queue in small: {MESSAGES} messages, each written, synced, renamed, and its directory synced.\n\n\
         {:<12}{:>12}   {:<20}{:>10}   class\n",
        "setting", "median", "range of 3 runs", "fsync"
    );
    for (value, times, calls) in &mut rows {
        let middle = median(times);
        let (low, high) = range(times);
        let class = Settings::parse([OsString::from(format!("sync={value}"))])?.class();
        let done = if calls.suppressed > 0 {
            "suppressed"
        } else {
            "real"
        };
        let _ = writeln!(
            out,
            "{:<12}{middle:>9.1} ms   {:<20}{:>10}   {class} ({done})",
            format!("sync={value}"),
            format!("{low:.1} … {high:.1} ms"),
            calls.seen,
        );
    }
    let (on, off) = (rows[0].1[1], rows[1].1[1]);
    let _ = write!(
        out,
        "\nWithout the syncs it took {:.0} % of the time: the rest was waiting for the disk.\n\
         What it costs: after a power cut, messages that were acknowledged are gone or torn.\n\
         Three runs each are a look, not a measurement.\n\n\
         Next:  refit demo fsync            what a log line costs on this disk\n       \
         refit run -- YOUR COMMAND   what your program waits for; nothing is changed\n",
        100.0 * off / on
    );
    warn_of_memory(work.path(), &mut out);
    Ok(out)
}

fn fsync_matrix(args: &DemoArgs) -> Result<String> {
    let work = workplace(args)?;
    let program = place(work.path(), "loglines", LOGLINES)?;
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
         see what was not flushed: it pays for durability and does not get it. both: each line is on the disk, as far\n\
         as the disk does what it is told.\n",
    );
    warn_of_memory(work.path(), &mut out);
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
    let said = String::from_utf8_lossy(&output.stdout);
    let mut numbers = said.split_whitespace().map(str::parse::<f64>);
    match (output.status.success(), numbers.next(), numbers.next()) {
        (true, Some(Ok(lines)), Some(Ok(ns))) if lines > 0.0 => Ok(ns / lines),
        _ => bail!(
            "the demo's program failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
    }
}
