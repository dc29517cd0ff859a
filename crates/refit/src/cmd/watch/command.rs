//! `refit watch -- COMMAND`: starts it as `run` does, with nothing swapped; with --heap the counting
//! libraries are beneath it.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use refit_knobs::Launch;
use refit_launch::{Options, end_as, prepare};
use refit_run::series::{LiveHeap, Target};
use refit_session::{Collector, remove_abandoned};

use super::recording::{Recording, TICK};
use crate::cli::WatchArgs;
use crate::cmd::print;
use crate::cmd::result_file::refuse_stdout;
use crate::cmd::run::{NOT_EXECUTABLE, NOT_FOUND, OWN_FAILURE};

pub fn main(args: &WatchArgs) -> ExitCode {
    match run(args) {
        Ok(code) => code,
        Err(error) => print::failed(&error, OWN_FAILURE),
    }
}

fn run(args: &WatchArgs) -> Result<ExitCode> {
    refuse_stdout(args.files())?;
    remove_abandoned();
    let options = Options {
        count: args.heap,
        heap: args.heap,
        ..Options::default()
    };
    let prepared = prepare(&Launch::default(), &options, &args.command)?;
    let mut recording = Recording::begin(args, Target::Processes(Vec::new()))?;
    let mut collector = args
        .heap
        .then(|| Collector::new(&prepared.session.path, true));
    let mut started = false;
    let tick = || {
        recording.tick();
        if !started && let Some(leader) = prepared.session.leader() {
            recording.set_root(leader);
            started = true;
        }
        if started && recording.is_due() {
            recording.sample();
            recording
                .series
                .set_heap(collector.as_mut().and_then(LiveHeap::read));
            // The program's output is its own.
            print::drawn(&recording.lines());
        }
    };
    let ended = prepared.run(TICK, tick);
    let leader = prepared.session.leader();
    recording.series.heap_coverage = collector.map(|collector| collector.heap().into());
    prepared.session.remove();
    match ended {
        Ok(ended) => {
            if let Some(leader) = leader {
                recording.set_root(leader);
            }
            // What happened since the last one, also where there was none.
            recording.sample();
            recording.series.largest_process_bytes = ended.usage.max_rss_bytes;
            if let Err(error) = recording.finish() {
                print::say(format_args!("{error:#}"));
            }
            end_as(ended.end)
        }
        Err(error) => {
            let name = args.command[0].display();
            print::say(format_args!("cannot run {name}: {error}"));
            Ok(ExitCode::from(match error.0.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_EXECUTABLE,
            }))
        }
    }
}
