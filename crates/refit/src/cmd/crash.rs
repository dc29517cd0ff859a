//! `refit crash`: what a program loses at a power cut.

mod request;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use refit_crash::open::{StateName, open};
use refit_crash::records::Records;
use refit_crash::{CrashReport, Progress, crash};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::bounded::bounded;
use super::print;
use super::result_file::{ResultFile, to_stdout};
use crate::cli::CrashArgs;

/// Exit codes: more was lost than the class allows; no verdict.
const LOST: u8 = 1;
const TROUBLE: u8 = 2;

pub fn main(args: &CrashArgs) -> ExitCode {
    let code = if args.variants.first().is_some_and(|word| word == "open") {
        reopen(args)
    } else {
        run(args)
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => failed(args, &error),
    }
}

fn failed(args: &CrashArgs, error: &anyhow::Error) -> ExitCode {
    let written = args
        .failure
        .as_ref()
        .map(|file| fs::write(file, format!("{error:#}")));
    match written {
        Some(Ok(())) => ExitCode::from(TROUBLE),
        _ => print::failed(error, TROUBLE),
    }
}

/// Whatever ends the process that started this one ends this one too, SIGKILL included, and
/// with it the processes, mounts and loop devices of the lab (prctl(2), PR_SET_PDEATHSIG).
fn end_with(parent: i32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("prctl")?;
    // It may have ended before the call above.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        bail!("the process {parent} that started this one has ended");
    }
    Ok(())
}

fn run(args: &CrashArgs) -> Result<u8> {
    if let Some(parent) = args.ends_with {
        end_with(parent)?;
    }
    let mut request = request::plan(args)?;
    let file = |option, path: &Option<PathBuf>| {
        let made = path.as_deref().map(ResultFile::create).transpose();
        made.context(option)
    };
    let to_stdout = to_stdout([("--json", &args.json), ("--html", &args.html)])?;
    let json = file("--json", &args.json)?;
    let html = file("--html", &args.html)?;
    let missing = refit_crash::missing(&request);
    if !missing.is_empty() {
        return Err(refit_crash::CrashError::Missing(missing).into());
    }
    let mut records = Records::new(args.record.as_deref())?;
    records.directory().clone_into(&mut request.directory);
    let report = crash(&request, &mut Steps { quiet: args.quiet })?;
    let text = serde_json::to_string_pretty(&report)? + "\n";
    records.write_report(&text)?;
    if let Some(file) = json {
        file.write(text.as_bytes())?;
    }
    let shown = bounded(&report);
    if let Some(file) = html {
        file.write(refit_report::crash::html(&shown).as_bytes())?;
    }
    if !to_stdout {
        print::result(&refit_report::crash::terminal(&shown, &print::style()))?;
    }
    if let Some(bytes) = records.keep_if_needed(&report) {
        print::say(format_args!(
            "the records are in {} ({} MB); remove it when you are done",
            records.directory().display(),
            bytes / 1_000_000
        ));
    }
    Ok(code(&report))
}

fn code(report: &CrashReport) -> u8 {
    if report.invalid.is_some() {
        return TROUBLE;
    }
    u8::from(report.modes.iter().any(|mode| report.breaks_class(mode))) * LOST
}

/// What is being done, a line each.
struct Steps {
    quiet: bool,
}

impl Progress for Steps {
    fn step(&mut self, mode: &str, what: &str) {
        if !self.quiet {
            print::say(format_args!("{mode}: {what}"));
        }
    }
}

/// `refit crash open STATE [-- COMMAND]`
fn reopen(args: &CrashArgs) -> Result<u8> {
    let [_, state] = args.variants.as_slice() else {
        bail!("refit crash open takes one state: DIRECTORY/MODE/c1234-torn-17");
    };
    let state = StateName::parse(Path::new(state))?;
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let command: Vec<OsString> = if args.command.is_empty() {
        vec![shell]
    } else {
        args.command.clone()
    };
    let code = open(&state, &command)?;
    Ok(u8::try_from(code).unwrap_or(TROUBLE))
}
