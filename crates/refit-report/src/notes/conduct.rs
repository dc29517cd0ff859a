//! How the comparison itself went.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord, GateAnswer};

use super::{Note, note};
use crate::answers::is_exact;
use crate::format;
use crate::paint::Tone;
use crate::row::keeps_service;

/// `14 round pairs, seed 0x5eed; noise floor today 0.7 % …; look 2 of 5`.
pub fn summary(experiment: &Comparison) -> String {
    if is_exact(experiment) {
        let runs = match experiment.plan.pairs {
            0 => "not every variant was run twice",
            _ => "each variant was run twice, in mirrored order, and gave the same answers",
        };
        return format!("{runs}; seed {}", format::seed(experiment.seed));
    }
    let plan = &experiment.plan;
    let mut parts = vec![format!(
        "{}, seed {}",
        format::plural(plan.pairs, "round pair"),
        format::seed(experiment.seed)
    )];
    if keeps_service(experiment) {
        parts.push(
            "one start of the service served all runs: the replicate is the round, not the start"
                .to_owned(),
        );
    }
    if experiment
        .variants
        .iter()
        .any(|variant| variant.role == Role::Hidden)
    {
        parts.push(match experiment.effects.noise_floor(experiment) {
            Some(floor) => format!(
                "noise floor today {} (a hidden second baseline)",
                format::magnitude(floor)
            ),
            None => "noise floor unknown (too few round pairs)".to_owned(),
        });
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
    let out = runs
        .filter(|run| !run.warmup && run.failure.is_some() && takes_part(run.variant))
        .count();
    (out > 0).then(|| {
        let runs = format::plural(out, "run");
        note(
            "left out:",
            Tone::Unsure,
            format!(
                "{runs}, since another run of the same round pair failed (--csv gives the reason)"
            ),
        )
    })
}

/// What the position within a round does to a run.
pub fn slot_effect(experiment: &Comparison) -> Option<Note> {
    let of = |effect: &&EffectRecord| effect.metric == experiment.main;
    let mut certain: Vec<f64> = experiment
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
pub fn gates(experiment: &Comparison) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for record in &experiment.gates {
        let label = format!("gate {}:", record.gate);
        let name = experiment
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
        let mut experiment = sample::experiment();
        let last = experiment.runs.len() - 1;
        experiment.runs[last].failure = Some("exit code 1".to_owned());
        has(
            &experiment,
            "left out: 1 run, since another run of the same round pair failed (--csv gives the reason)",
        );
    }

    #[test]
    fn gates_and_a_slot_effect_have_a_line_each() {
        let mut experiment = sample::experiment();
        experiment.gates = sample::gates();
        for variant in [1, 2] {
            sample::effect_mut(&mut experiment, variant, "wall").slot_effect =
                Some(0.004 * variant as f64);
        }
        has(
            &experiment,
            "gate wall<+2%: sync=off passed; malloc=jemalloc passed; thp=never undecided",
        );
        has(
            &experiment,
            "slot effect: +0.4 % to +0.8 % for running later in a round; mirrored rounds cancel it",
        );
        let gates = gates(&experiment);
        assert_eq!(gates[0].tone, Tone::Unsure);
    }

    #[test]
    fn what_is_not_known_yet_is_said() {
        let mut experiment = sample::experiment();
        for effect in experiment.effects.iter_mut() {
            effect.interval = None;
        }
        experiment.plan.look = 0;
        experiment.plan.pairs = 3;
        assert_eq!(
            summary(&experiment),
            "3 round pairs, seed 0x5eed; noise floor unknown (too few round pairs); before the first look"
        );
    }
}
