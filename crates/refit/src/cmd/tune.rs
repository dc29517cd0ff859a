//! `refit tune`: observe, propose, screen, confirm; and what to take.

mod journal;
mod log;
mod prove;
mod request;
mod resume;

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use refit_lab::{Subject, tune};
use refit_recipe::remove_abandoned_instances;
use refit_report::{shell_word, tuning};
use refit_run::{interrupting_signal, on_interruption};
use refit_session::remove_abandoned;

use self::journal::FileJournal;
use self::log::Log;
use super::output::Output;
use super::print;
use super::progress::Bar;
use crate::cli::{OutputArgs, TuneArgs};

/// Usage or environment trouble.
const TROUBLE: u8 = 2;

pub fn main(args: &TuneArgs) -> ExitCode {
    match run(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => print::failed(&error, TROUBLE),
    }
}

fn run(args: &TuneArgs) -> Result<u8> {
    // What was typed when it was begun.
    let mut then = None;
    let (request, mut record, log) = match &args.resume {
        Some(path) => {
            let log = Log::open(path);
            let record = log.read_record()?;
            if record.is_over() {
                print::say("this tuning is at its end");
                print::result(&tuning(&record, &log.shown(), &print::style()))?;
                return Ok(0);
            }
            let (typed, request, record) = resume::resume(args, record)?;
            // Before anything is measured that could not be recorded.
            log.write_record(&record)?;
            then = Some(typed);
            (request, record, log)
        }
        None => {
            let request = request::request(args, std::env::args_os().skip(2))?;
            let record = request::tuning(args, &request)?;
            let log = Log::create(args.log.as_deref(), &record)?;
            (request, record, log)
        }
    };
    remove_abandoned();
    if let Subject::Recipe(subject) = &request.subject {
        remove_abandoned_instances(&subject.dir);
    }
    if let Some(cost) = refit_launch::privileged::cost(&request.reach) {
        print::say(cost);
    }
    let none = Output::open(&OutputArgs::default())?;
    let bar = Bar::new(args.quiet, &none);
    on_interruption(bar.notice());
    let mut journal = FileJournal::new(&log, bar);
    let made = tune(&request, &mut record, &mut journal);
    journal.power_cuts_begin();
    let mut stored = journal.finish(&record);
    made?;
    let mut code = 0;
    if let (Some(recipe), false) = (request.subject.recipe(), record.interrupted) {
        match prove::prove(then.as_ref().unwrap_or(args), recipe, &mut record, &log) {
            Ok(of_proof) => code = of_proof,
            // The answers are printed all the same.
            Err(error) => stored = stored.and(Err(error)),
        }
    }
    print::result(&tuning(&record, &log.shown(), &print::style()))?;
    stored.map_err(|error| {
        let log = shell_word(&log.shown());
        anyhow!("{error:#}\n  make room there, then go on from what is recorded: refit tune --resume {log}")
    })?;
    Ok(match interrupting_signal() {
        Some(signal) if record.interrupted => 128 + u8::try_from(signal).unwrap_or_default(),
        _ => code,
    })
}
