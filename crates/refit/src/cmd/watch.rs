//! `refit watch`: samples what already runs, until its time is over or Ctrl-C, or a
//! command until it ends.

mod command;
mod growth;
mod live;
mod recording;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use refit_run::series::Target;
use refit_run::{count_interruptions, doze, interruptions};

use super::print;
use crate::cli::WatchArgs;
use recording::Recording;

/// Of one core, that watching may take.
const SHARE: f64 = 0.01;
/// How often the kernel's records are read.
const TICK: Duration = Duration::from_millis(50);

pub fn main(args: &WatchArgs) -> ExitCode {
    if !args.command.is_empty() {
        return command::main(args);
    }
    if let Some(per) = &args.per {
        return growth::main(args, per);
    }
    match watch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn watch(args: &WatchArgs) -> Result<()> {
    let target = target(&args.what)?;
    if matches!(target, Target::Machine) && hides_processes() {
        print::say(
            "/proc hides what other users run from this one (hidepid, proc(5)): it is not in what follows",
        );
    }
    count_interruptions();
    let mut recording = Recording::begin(args, target)?;
    if !args.batch && print::is_interactive() {
        let shown = live::show(&mut recording, args.time);
        return recording.finish().and(shown);
    }
    let began = Instant::now();
    loop {
        let over = args.time.is_some_and(|time| began.elapsed() >= time);
        if recording.is_due() || over {
            recording.sample();
            print::result(&recording.lines())?;
            if !recording.has_processes() {
                print::say("all that was watched has ended");
                break;
            }
        }
        if over || interruptions() > 0 {
            break;
        }
        doze(TICK);
        recording.tick();
    }
    recording.finish()
}

/// The directory alone is there with hidepid=noaccess as well.
fn is_shown(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/stat")).is_ok()
}

/// /proc is mounted so that it shows a user their own processes alone (proc(5), hidepid). Members of the group that it
/// names, and processes with CAP_SYS_PTRACE, see all.
fn hides_processes() -> bool {
    if is_shown(1) {
        return false;
    }
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts = text.lines().filter_map(|line| line.split_once(" - proc "));
    mounts.any(|(mount, options)| {
        mount.split(' ').nth(4) == Some("/proc") && options.contains("hidepid=")
    })
}

/// Numbers of processes, or the name of a unit.
fn target(words: &[OsString]) -> Result<Target> {
    let mut pids = Vec::new();
    for word in words {
        let text = word.to_string_lossy();
        match text.parse::<u32>() {
            Ok(pid) if pid > 0 && is_shown(pid) => pids.push(pid),
            Ok(pid) if hides_processes() => bail!(
                "/proc shows no process {pid} to this user: there is none, or it is hidden (hidepid, proc(5))\n  watch it as root: sudo refit watch {pid}"
            ),
            Ok(pid) => bail!("there is no process {pid}\n  find one: pgrep -a NAME"),
            Err(_) if words.len() > 1 => {
                bail!(
                    "`{text}` is not the number of a process\n  name processes by number, or one unit alone: refit watch {text}"
                )
            }
            Err(_) => {
                return Target::unit(&text).map_err(|reason| {
                    anyhow!("{reason}\n  name a process: refit watch $(pgrep -o {text})")
                });
            }
        }
    }
    Ok(match pids.is_empty() {
        true => Target::Machine,
        false => Target::Processes(pids),
    })
}
