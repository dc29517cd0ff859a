//! `--prove`: the power of the answers that risk data is cut.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use refit_crash::CrashReport;
use refit_lab::{ProofRecord, Tuning};
use refit_recipe::Recipe;
use refit_report::crash;
use refit_run::interruptions;

use super::log::Log;
use crate::cli::TuneArgs;
use crate::cmd::compare::{Cuts, missing};

/// The file of the report, in the directory of the tuning.
const FILE: &str = "proof.json";
/// A cut took more than a class allows, or nothing was cut.
const FAILED: u8 = 1;
const TROUBLE: u8 = 2;

/// What has to be typed otherwise, before anything is measured.
pub fn refuse(args: &TuneArgs, recipe: Option<&Recipe>) -> Result<()> {
    if !args.prove {
        return Ok(());
    }
    let Some(recipe) = recipe else {
        bail!(
            "--prove needs a recipe, whose [promise] defines what is acknowledged\n  name one: refit tune --prove append-log\n  or cut a command: refit crash --check CHECK --ack SOURCE VARIANT -- COMMAND"
        );
    };
    if args.cuts == Some(0) {
        bail!("--cuts 0: nothing would be checked; take at least 1");
    }
    recipe.promise()?;
    Ok(())
}

/// Cuts the power, and stores the report and what it says of the answers. Returns the exit code.
pub fn prove(args: &TuneArgs, recipe: &Recipe, tuning: &mut Tuning, log: &Log) -> Result<u8> {
    let names: Vec<String> = tuning.risky().into_iter().map(str::to_owned).collect();
    if names.is_empty() || tuning.proof.is_some() {
        return Ok(0);
    }
    let began = Instant::now();
    let left = Duration::from_secs_f64(tuning.left_s());
    let cuts = Cuts {
        with: &args.with,
        quiet: args.quiet,
        cuts: args.cuts,
        seed: Some(tuning.seed),
        allocator_dir: args.allocator_dir.as_deref(),
        reach: &args.reach,
    };
    let made = match missing(recipe) {
        Some(why) => Err(why),
        None => {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            let report = cuts.make(recipe, &names, Some(began + left));
            report.map_err(|error| format!("{error:#}"))
        }
    };
    tuning.took_s += began.elapsed().as_secs_f64();
    if interruptions() > 0 {
        tuning.interrupted = true;
        log.write_record(tuning)?;
        return Ok(0);
    }
    let code = match made {
        Ok(report) => {
            log.write(FILE, &report)?;
            tuning.proof = Some(ProofRecord::Cut {
                file: FILE.to_owned(),
            });
            judge(tuning, &report)
        }
        Err(why) => {
            tuning.proof = Some(ProofRecord::NotCut(why));
            TROUBLE
        }
    };
    log.write_record(tuning)?;
    Ok(code)
}

/// What the cuts say of each answer.
fn judge(tuning: &mut Tuning, report: &CrashReport) -> u8 {
    if let Some(reason) = &report.invalid {
        tuning.proof = Some(ProofRecord::NotCut(format!(
            "nothing can be concluded: {reason}"
        )));
        return TROUBLE;
    }
    let mut code = 0;
    for (name, taken, breaks) in crash::taken(report) {
        if breaks {
            tuning.refute(&name, &taken);
            code = FAILED;
        }
        let answers = tuning.answers.iter_mut();
        for answer in answers.filter(|one| one.variant.as_deref() == Some(&name)) {
            answer.proof = Some(taken.clone());
        }
    }
    code
}
