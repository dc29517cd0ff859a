//! `refit compare`: which variant is better, by how much, and how certain that is.

mod request;

use std::process::ExitCode;

use anyhow::Result;
use refit_lab::experiment::Role;
use refit_lab::{Comparison, GateAnswer, Verdict, compare};
use refit_recipe::remove_abandoned_instances;
use refit_report::terminal;
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
    remove_abandoned();
    remove_abandoned_instances(&request.dir);
    if let Some(cost) = refit_launch::privileged::cost(&request.reach) {
        print::say(cost);
    }
    let mut bar = Bar::new(args.quiet, &output);
    let comparison = compare(&request, &mut bar);
    bar.finish();
    let comparison = comparison?;
    output.write(&comparison)?;
    print::result(&terminal(&comparison, &print::style()))?;
    Ok(code(&comparison, args.strict))
}

/// The answer of the whole comparison.
fn code(comparison: &Comparison, strict: bool) -> u8 {
    let is_candidate = |role: Role| role == Role::Candidate;
    let were_any = comparison.variants.iter().any(|v| is_candidate(v.role));
    if were_any && comparison.candidates().next().is_none() {
        return TROUBLE;
    }
    let answers = |answer: GateAnswer| comparison.gates.iter().any(|gate| gate.answer == answer);
    if answers(GateAnswer::Failed) {
        return FAILED;
    }
    // Nothing is open where everything is exact.
    if comparison.is_exact() {
        return 0;
    }
    let has_verdict = |index: usize| {
        let effect = comparison.effects.get(index, &comparison.main);
        let verdict = effect.and_then(|effect| effect.verdict);
        verdict.is_some_and(Verdict::is_settled)
    };
    let open = if comparison.gates.is_empty() {
        comparison
            .candidates()
            .any(|(index, _)| !has_verdict(index))
    } else {
        answers(GateAnswer::Undecided)
    };
    if strict && open { UNDECIDED } else { 0 }
}
