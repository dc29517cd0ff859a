//! `refit watch PID --per COMMAND`: memory against operations, and which part of it grows.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_lab::{MemoryWatch, NoSample};
use refit_report::memory_growth;
use refit_run::{count_interruptions, doze, interruptions, with_first_signals};

use super::recording::SHARE;
use crate::cli::WatchArgs;
use crate::cmd::print;

/// How often it is looked whether a sample is due.
const TICK: Duration = Duration::from_millis(20);

pub fn main(args: &WatchArgs, per: &str) -> ExitCode {
    match watch(args, per) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn watch(args: &WatchArgs, per: &str) -> Result<()> {
    let [pid] = args.what.as_slice() else {
        bail!(
            "--per counts the operations of one process\n  name it: refit watch PID --per '{per}'"
        );
    };
    let word = pid.to_string_lossy();
    let Some(pid) = word.parse().ok().filter(|pid| *pid > 0) else {
        bail!(
            "`{word}` is not the number of a process\n  name it: refit watch $(pgrep -o {word}) --per '{per}'"
        );
    };
    count_interruptions();
    let mut watch = MemoryWatch::new(pid);
    let began = Instant::now();
    let mut due = began;
    loop {
        let over = args.time.is_some_and(|time| began.elapsed() >= time);
        if over || print::has_lost_reader() || interruptions() > 0 {
            break;
        }
        if Instant::now() < due {
            doze(TICK);
            continue;
        }
        let begun = Instant::now();
        match watch.sample(operations(per)?) {
            // Of one core, no more than the share that watching may take.
            Ok(cost) => due = begun + args.interval.max(cost.div_f64(SHARE)),
            Err(NoSample::Ended(_)) if !watch.points().is_empty() => {
                print::say("the process has ended");
                break;
            }
            Err(error @ NoSample::Ended(_)) => bail!("{error}\n  find one: pgrep -a NAME"),
            Err(error) => bail!("{error}\n  watch a process of your own, or as root"),
        }
        print::result(&memory_growth::line(&watch))?;
    }
    print::result(&memory_growth::verdict(&watch))
}

/// The first number that the command prints.
fn operations(per: &str) -> Result<f64> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", per])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = with_first_signals(&mut shell).output();
    let output = output.context("cannot start /bin/sh")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let digits = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let mut numbers = digits.filter_map(|number| number.parse::<f64>().ok());
    match numbers.next() {
        Some(number) if output.status.success() && number.is_finite() => Ok(number),
        _ => bail!(
            "`{per}` gave no number of operations ({})\n  it has to print how many were done so far: --per 'cat FILE'",
            output.status
        ),
    }
}
