//! How the comparison itself went.

use refit_lab::experiment::{Experiment, INCOMPLETE, OF_ANOTHER, Role};
use refit_lab::{Comparison, EffectRecord, GateAnswer};

use super::note::{Note, note};
use crate::answers::is_exact;
use crate::format;
use crate::paint::Tone;
use crate::row::keeps_service;

/// `14 round pairs, seed 0x5eed; noise floor today 0.7 % …; look 2 of 5`.
pub fn summary(comparison: &Comparison) -> String {
    if is_exact(&comparison.experiment) {
        let runs = match comparison.experiment.plan.pairs {
            0 => "not every variant was run twice",
            _ => "each variant was run twice, in mirrored order, and gave the same answers",
        };
        return format!("{runs}; seed {}", format::seed(comparison.experiment.seed));
    }
    let plan = &comparison.experiment.plan;
    let mut parts = vec![format!(
        "{}, seed {}",
        format::plural(plan.pairs, "round pair"),
        format::seed(comparison.experiment.seed)
    )];
    if keeps_service(&comparison.experiment) {
        parts.push(
            "one start of the service served all runs: the replicate is the round, not the start"
                .to_owned(),
        );
    }
    if comparison
        .experiment
        .variants
        .iter()
        .any(|variant| variant.role == Role::Hidden)
    {
        parts.push(
            match comparison.effects.noise_floor(&comparison.experiment) {
                Some(floor) => format!(
                    "noise floor today {} (a hidden second baseline)",
                    format::magnitude(floor)
                ),
                None => "noise floor unknown (too few round pairs)".to_owned(),
            },
        );
    }
    match (plan.look, plan.looks.len()) {
        (_, 0) => {}
        (0, _) => parts.push("before the first look".to_owned()),
        (look, looks) => parts.push(format!("look {look} of {looks}")),
    }
    parts.join("; ")
}

/// What ended it before its plan.
pub fn failed(experiment: &Experiment) -> Option<Note> {
    let text = experiment.failed.as_deref()?.lines().next()?;
    Some(note("failed:", Tone::Bad, text.to_owned()))
}

/// How far it came.
pub fn interrupted(experiment: &Experiment) -> Option<Note> {
    let plan = &experiment.plan;
    let most = plan.looks.last().copied().unwrap_or(plan.pairs);
    experiment.interrupted.then(|| {
        let made = format!(
            "{} of up to {} were completed",
            plan.pairs,
            format::plural(most, "round pair")
        );
        note("interrupted:", Tone::Unsure, made)
    })
}

/// Runs that do not count although their variant was not disqualified.
pub fn left_out(experiment: &Experiment) -> Option<Note> {
    let takes_part = |variant: usize| {
        let variant = experiment.variants.get(variant);
        variant.is_some_and(|variant| variant.disqualified.is_none())
    };
    let runs = experiment.runs.iter();
    let out: Vec<&str> = runs
        .filter(|run| !run.warmup && takes_part(run.variant))
        .filter_map(|run| run.failure.as_deref())
        .collect();
    let of_another = |why: &&&str| [INCOMPLETE, OF_ANOTHER].contains(*why);
    let last = out.iter().rev().find(|why| !of_another(why));
    let why = match last {
        Some(why) => format!("a run of the same round pair did not count: {why}"),
        // Of a variant that is out, which has a note of its own.
        None => "another run of the same round pair failed (--csv gives the reason)".to_owned(),
    };
    (!out.is_empty()).then(|| {
        let runs = format::plural(out.len(), "run");
        note("left out:", Tone::Unsure, format!("{runs}, since {why}"))
    })
}

/// What the position within a round does to a run.
pub fn slot_effect(comparison: &Comparison) -> Option<Note> {
    let of = |effect: &&EffectRecord| effect.metric == comparison.experiment.main;
    let mut certain: Vec<f64> = comparison
        .effects
        .iter()
        .filter(of)
        .filter_map(|effect| effect.slot_effect)
        .collect();
    certain.sort_by(f64::total_cmp);
    let (low, high) = (
        format::percent(*certain.first()?),
        format::percent(*certain.last()?),
    );
    let adds = if low == high {
        low
    } else {
        format!("{low} to {high}")
    };
    let text = format!("{adds} for running later in a round; mirrored rounds cancel it");
    Some(note("slot effect:", Tone::Plain, text))
}

/// Each gate with its answers.
pub fn gates(comparison: &Comparison) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for record in &comparison.gates {
        let label = format!("gate {}:", record.gate);
        let name = comparison
            .experiment
            .variants
            .get(record.variant)
            .map_or("?", |variant| &variant.name);
        let text = format!("{} {}", name, record.answer);
        let tone = match record.answer {
            GateAnswer::Passed => Tone::Good,
            GateAnswer::Failed => Tone::Bad,
            GateAnswer::Undecided => Tone::Unsure,
        };
        match notes.iter_mut().find(|note| note.label == label) {
            Some(note) => {
                note.text = format!("{}; {text}", note.text);
                note.tone = worse(note.tone, tone);
            }
            None => notes.push(note(&label, tone, text)),
        }
    }
    notes
}

fn worse(a: Tone, b: Tone) -> Tone {
    let order = [Tone::Bad, Tone::Unsure];
    order
        .into_iter()
        .find(|tone| [a, b].contains(tone))
        .unwrap_or(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::tests::has;
    use crate::sample;

    #[test]
    fn failed_runs_are_counted_aloud() {
        let mut comparison = sample::experiment();
        let last = comparison.experiment.runs.len() - 1;
        comparison.experiment.runs.as_mut_slice()[last].failure = Some("exit code 1".to_owned());
        has(
            &comparison,
            "left out: 1 run, since a run of the same round pair did not count: exit code 1",
        );
    }

    #[test]
    fn gates_and_a_slot_effect_have_a_line_each() {
        let mut comparison = sample::experiment();
        comparison.gates = sample::gates();
        for variant in [1, 2] {
            sample::effect_mut(&mut comparison, variant, "wall").slot_effect =
                Some(0.004 * variant as f64);
        }
        has(
            &comparison,
            "gate wall<+2%: sync=off passed; malloc=jemalloc passed; thp=never undecided",
        );
        has(
            &comparison,
            "slot effect: +0.4 % to +0.8 % for running later in a round; mirrored rounds cancel it",
        );
        let gates = gates(&comparison);
        assert_eq!(gates[0].tone, Tone::Unsure);
    }

    #[test]
    fn what_is_not_known_yet_is_reported() {
        let mut comparison = sample::experiment();
        for effect in comparison.effects.iter_mut() {
            effect.interval = None;
        }
        comparison.experiment.plan.look = 0;
        comparison.experiment.plan.pairs = 3;
        assert_eq!(
            summary(&comparison),
            "3 round pairs, seed 0x5eed; noise floor unknown (too few round pairs); before the first look"
        );
    }
}
