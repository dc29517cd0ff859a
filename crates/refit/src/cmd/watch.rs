//! `refit watch`: samples what already runs, until its time is over or Ctrl-C, or a
//! command until it ends.

mod command;
mod cpu;
mod growth;
mod keys;
mod live;
mod metrics_file;
mod metrics_server;
mod publisher;
mod recording;
mod target;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use refit_run::series::Target;
use refit_run::{count_interruptions, doze, interruptions};

use super::print;
use super::run::OWN_FAILURE;
use crate::cli::WatchArgs;
use recording::{Recording, TICK};
use target::{hides_processes, target};

pub fn main(args: &WatchArgs) -> ExitCode {
    if !Path::new("/proc/self").exists() {
        print::say("no process can be seen: /proc is not mounted here\n  mount -t proc proc /proc");
        return ExitCode::from(match args.command.is_empty() {
            true => 2,
            false => OWN_FAILURE,
        });
    }
    if !args.command.is_empty() {
        return command::main(args);
    }
    if let Some(per) = &args.per {
        return growth::main(args, per);
    }
    if args.cpu {
        return cpu::main(args);
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
    if !args.batch && !recording.to_stdout && print::is_interactive() {
        let shown = live::show(&mut recording, args.time);
        return recording.finish().and(shown);
    }
    let began = Instant::now();
    loop {
        let over = args.time.is_some_and(|time| began.elapsed() >= time);
        if recording.is_due() || over {
            recording.sample();
            if !recording.to_stdout {
                print::result(&recording.lines())?;
            }
            if !recording.has_processes() {
                print::say("all that was watched has ended");
                break;
            }
        }
        // What is kept elsewhere goes on.
        let is_unread = !args.is_kept() && print::has_lost_reader();
        if over || is_unread || interruptions() > 0 {
            break;
        }
        doze(TICK);
        recording.tick();
    }
    recording.finish()
}
