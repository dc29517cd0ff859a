//! `refit compare`: which variant is better, by how much, and how certain that is.

mod prove;
mod request;

use std::process::ExitCode;

use anyhow::{Result, bail};
use refit_lab::experiment::Role;
use refit_lab::{Comparison, GateAnswer, Verdict, compare};
use refit_recipe::remove_abandoned_instances;
use refit_report::Compared;
use refit_run::{interrupting_signal, on_interruption};
use refit_session::remove_abandoned;

use self::request::request;
use super::output::Output;
use super::print;
use super::progress::Bar;
use crate::cli::CompareArgs;

/// A gate failed.
const FAILED: u8 = 1;
/// Usage or environment trouble; the baseline or every candidate failed.
const TROUBLE: u8 = 2;
/// A person must decide.
const UNDECIDED: u8 = 3;

pub fn main(args: &CompareArgs) -> ExitCode {
    match run(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => print::failed(&error, TROUBLE),
    }
}

fn run(args: &CompareArgs) -> Result<u8> {
    let request = request(args)?;
    let output = Output::open(&args.output)?;
    prove::warn(args, request.recipe.as_ref());
    remove_abandoned();
    remove_abandoned_instances(&request.dir);
    if let Some(cost) = refit_launch::privileged::cost(&request.reach) {
        print::say(cost);
    }
    let mut bar = Bar::new(args.quiet, &output);
    on_interruption(bar.notice());
    let comparison = compare(&request, &mut bar);
    bar.finish();
    let (comparison, remains) = comparison?;
    let mut compared = Compared {
        comparison,
        proof: None,
    };
    let mut proof_code = 0;
    if let (true, Some(recipe), None) = (
        args.prove,
        &request.recipe,
        &compared.comparison.experiment.failed,
    ) {
        // Stored already, in case that nothing comes of the cuts.
        output.write(&compared)?;
        drop(remains);
        bar.power_cuts_begin();
        let (proof, code) = prove::prove(args, recipe, &compared.comparison);
        compared.proof = Some(proof);
        proof_code = code;
    }
    // The table first: a full disk cannot take it away. And a terminal that is gone
    // cannot take the files away.
    let printed = print::result(&compared.terminal(&print::style()));
    output.write(&compared)?;
    printed?;
    let comparison = &compared.comparison;
    if let Some(failed) = &comparison.experiment.failed {
        bail!("{failed}");
    }
    Ok(
        match (code(comparison, args.strict), interrupting_signal()) {
            // Cuts that were interrupted say nothing.
            (0, Some(signal)) if proof_code == TROUBLE => interrupted(signal),
            (0, _) => proof_code,
            (code, _) => code,
        },
    )
}

/// As a shell reports a program that the signal ended: 130 after Ctrl-C.
fn interrupted(signal: i32) -> u8 {
    128 + u8::try_from(signal).unwrap_or_default()
}

/// The answer of the whole comparison.
fn code(comparison: &Comparison, strict: bool) -> u8 {
    let is_candidate = |role: Role| role == Role::Candidate;
    let were_any = comparison
        .experiment
        .variants
        .iter()
        .any(|v| is_candidate(v.role));
    if were_any && comparison.experiment.candidates().next().is_none() {
        return TROUBLE;
    }
    let answers = |answer: GateAnswer| comparison.gates.iter().any(|gate| gate.answer == answer);
    if answers(GateAnswer::Failed) {
        return FAILED;
    }
    // Nothing is open where everything is exact, and was answered twice.
    if comparison.experiment.is_exact() {
        return match interrupting_signal() {
            Some(signal) if comparison.experiment.plan.pairs == 0 => interrupted(signal),
            _ => 0,
        };
    }
    let open = match comparison.gates.is_empty() {
        true if !were_any => comparison.experiment.interrupted,
        true => is_open(comparison),
        false => answers(GateAnswer::Undecided),
    };
    // A confirmation that was cut short confirms nothing.
    let again = comparison.confirmation.as_deref();
    let cut_short = again.is_some_and(|again| again.experiment.interrupted && is_open(again));
    match interrupting_signal() {
        Some(_) if open && !comparison.gates.is_empty() => UNDECIDED,
        Some(signal) if open || cut_short => interrupted(signal),
        _ if strict && open => UNDECIDED,
        _ => 0,
    }
}

/// Whether a candidate has no verdict on the main metric.
fn is_open(comparison: &Comparison) -> bool {
    comparison.experiment.candidates().any(|(index, _)| {
        let effect = comparison.effects.get(index, &comparison.experiment.main);
        let verdict = effect.and_then(|effect| effect.verdict);
        !verdict.is_some_and(Verdict::is_settled)
    })
}
