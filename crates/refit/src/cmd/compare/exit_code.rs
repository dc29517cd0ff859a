//! The exit codes of `refit compare`.

use refit_lab::experiment::Role;
use refit_lab::{Comparison, GateAnswer, NeverSyncs, Verdict};
use refit_run::interrupting_signal;

/// A gate failed.
pub const FAILED: u8 = 1;
/// Usage or environment trouble; the baseline or every candidate failed.
pub const TROUBLE: u8 = 2;
/// A person must decide.
const UNDECIDED: u8 = 3;

/// As a shell reports a program that the signal ended: 130 after Ctrl-C.
pub fn interrupted(signal: i32) -> u8 {
    128 + u8::try_from(signal).unwrap_or_default()
}

/// The answer of the whole comparison.
pub fn code(comparison: &Comparison, strict: bool) -> u8 {
    let is_candidate = |role: Role| role == Role::Candidate;
    let were_any = comparison
        .experiment
        .variants
        .iter()
        .any(|v| is_candidate(v.role));
    if NeverSyncs::of(&comparison.experiment).is_some() {
        return 0;
    }
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
