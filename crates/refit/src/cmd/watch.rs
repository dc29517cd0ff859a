//! `refit watch`: samples what already runs, until its time is over or Ctrl-C.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use refit_report::watch;
use refit_run::series::{SERIES_SCHEMA, Series, Target, Watcher};
use refit_run::{count_interruptions, doze, interruptions};

use super::print;
use crate::cli::WatchArgs;

/// Of one core, that watching may take.
const SHARE: f64 = 0.01;
/// How often the kernel's records are read.
const TICK: Duration = Duration::from_millis(50);
/// Lines between two headings.
const HEADING_EVERY: usize = 40;

pub fn main(args: &WatchArgs) -> ExitCode {
    match watch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn watch(args: &WatchArgs) -> Result<()> {
    let target = target(&args.what)?;
    count_interruptions();
    let mut watcher = Watcher::begin(target, args.interval, SHARE).context("cannot read /proc")?;
    let mut series = begin(args, &watcher);
    let began = Instant::now();
    let mut lines = 0;
    loop {
        let over = args.time.is_some_and(|time| began.elapsed() >= time);
        if watcher.due(Instant::now()) || over {
            let sample = watcher.sample();
            watcher.groups().clone_into(&mut series.groups);
            series.samples.push(sample);
            lines += print_lines(&series, lines)?;
            if !watcher.has_processes() {
                print::say("all that was watched has ended");
                break;
            }
        }
        if over || interruptions() > 0 {
            break;
        }
        doze(TICK);
        watcher.tick();
    }
    series.cost = watcher.cost();
    watcher.close_in_background();
    print::drawn(&watch::summary(&series));
    Ok(())
}

/// How many were printed.
fn print_lines(series: &Series, before: usize) -> Result<usize> {
    let lines = watch::lines(series);
    let printed = lines.lines().count();
    let is_due = before / HEADING_EVERY != (before + printed) / HEADING_EVERY;
    if before == 0 || is_due {
        print::result(&watch::heading())?;
    }
    print::result(&lines)?;
    Ok(printed)
}

fn begin(args: &WatchArgs, watcher: &Watcher) -> Series {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Series {
        schema: SERIES_SCHEMA,
        kind: "watch".to_owned(),
        refit: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix: started.map_or(0, |since| since.as_secs()),
        target: args
            .what
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        interval_ms: u64::try_from(args.interval.as_millis()).unwrap_or(u64::MAX),
        witness: watcher.witness(),
        groups: Vec::new(),
        samples: Vec::new(),
        cost: watcher.cost(),
    }
}

fn target(words: &[OsString]) -> Result<Target> {
    if words.is_empty() {
        return Ok(Target::Machine);
    }
    let mut pids = Vec::new();
    for word in words {
        let text = word.to_string_lossy();
        let Some(pid) = text.parse::<u32>().ok().filter(|pid| *pid > 0) else {
            bail!("`{text}` is not the number of a process\n  name one: refit watch 1234");
        };
        if !std::path::Path::new("/proc").join(pid.to_string()).exists() {
            bail!("there is no process {pid}\n  find one: pgrep -a NAME");
        }
        pids.push(pid);
    }
    Ok(Target::Processes(pids))
}
