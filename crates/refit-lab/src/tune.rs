//! The loop of a tuning: observe one run, propose what it makes worth trying, screen with few runs, confirm the best
//! with new ones. Every step is a comparison; what is between them are the decisions.
//!
//! Promises: what is not accepted is not run; an answer rests on the runs of its confirmation alone, all answers
//! together at 5 %; the budget is kept; after each step the record is whole, and a tuning that was interrupted goes on
//! from there.

mod evidence;
mod plan;
mod propose;
mod record;
mod risk;

use std::time::{Duration, Instant, SystemTime};

use refit_knobs::Variant;
use refit_recipe::Recipe;
use refit_run::{count_interruptions, interruptions};
use refit_stats::{Standing, is_behind, screen, stage_levels};

pub use self::evidence::Evidence;
#[cfg(feature = "schema")]
pub use self::record::schema as tuning_schema;
pub use self::record::{
    Answer, Outcome, ProofRecord, ProposalRecord, SCHEMA as TUNING_SCHEMA, Step, StepKind, Tuning,
};
pub use self::risk::Risk;

use self::plan::Planned;
use self::propose::Aim;
use crate::compare::compare;
use crate::comparison::Comparison;
use crate::effects::{EffectRecord, ratio};
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::request::Request;
use crate::rounds::Progress;

/// Receives the progress of a tuning, and stores it.
pub trait Journal: Progress {
    /// The run begins that is observed.
    fn observes(&mut self);
    /// The proposals are made.
    fn proposed(&mut self, tuning: &Tuning);
    /// A step begins, whose comparison belongs into this file.
    fn step_begins(&mut self, kind: StepKind, variants: &[String], file: &str);
    /// A step is over, and in the record; its file holds the comparison.
    fn step_ended(&mut self, tuning: &Tuning, comparison: &Comparison);
}

impl Tuning {
    /// Nothing has run yet. `words` and `directory`: how it is resumed.
    #[must_use]
    pub fn new(request: &Request, accepted: Risk, words: Vec<String>, directory: String) -> Tuning {
        let experiment = Experiment::planned(request, Vec::new());
        let started = SystemTime::UNIX_EPOCH.elapsed();
        Tuning {
            schema: TUNING_SCHEMA,
            kind: "tune".to_owned(),
            refit: experiment.refit,
            started_unix: started.map_or(0, |since| since.as_secs()),
            words,
            options: None,
            directory,
            command: experiment.command,
            recipe: experiment.recipe,
            main: experiment.main,
            accepted,
            seed: request.seed,
            delta: request.delta,
            budget_s: request.budget.as_secs_f64(),
            took_s: 0.0,
            evidence: None,
            proposals: Vec::new(),
            steps: Vec::new(),
            answers: Vec::new(),
            prove: false,
            proof: None,
            interrupted: false,
        }
    }
}

/// Goes on with a tuning until its end, or until it is interrupted. `request` is what is tuned: its candidates, rounds
/// and budget are not used.
///
/// # Errors
/// [`LabError`]: what ends a step before anything was measured. The steps before it are in the record.
pub fn tune(
    request: &Request,
    tuning: &mut Tuning,
    journal: &mut dyn Journal,
) -> Result<(), LabError> {
    count_interruptions();
    let (began, before) = (Instant::now(), tuning.took_s);
    let took = || before + began.elapsed().as_secs_f64();
    tuning.interrupted = false;
    if tuning.evidence.is_none() {
        journal.observes();
        let observed = observe(request, tuning);
        if interruptions() > 0 {
            tuning.interrupted = true;
            return Ok(());
        }
        observed?;
        tuning.took_s = took();
        plan::leave_out_what_does_not_fit(tuning);
        journal.proposed(tuning);
    }
    while let Some(planned) = plan::next(tuning) {
        if interruptions() > 0 {
            tuning.interrupted = true;
            return Ok(());
        }
        let comparison = make(request, tuning, &planned, journal)?;
        tuning.took_s = took();
        if comparison.experiment.interrupted {
            tuning.interrupted = true;
            return Ok(());
        }
        if let Some(failed) = &comparison.experiment.failed {
            return Err(LabError::Ended(failed.clone()));
        }
        tuning
            .steps
            .push(step(&planned, &comparison, request.subject.recipe()));
        journal.step_ended(tuning, &comparison);
    }
    tuning.answers = plan::answers(tuning);
    Ok(())
}

fn observe(request: &Request, tuning: &mut Tuning) -> Result<(), LabError> {
    let evidence = Evidence::observe(request)?;
    let unit = Experiment::planned(request, Vec::new()).main_metric().unit;
    tuning.proposals = propose::proposals(request, &evidence, Aim::of(unit), tuning.accepted);
    tuning.evidence = Some(evidence);
    Ok(())
}

/// The comparison of a step.
fn make(
    request: &Request,
    tuning: &Tuning,
    planned: &Planned,
    journal: &mut dyn Journal,
) -> Result<Comparison, LabError> {
    let words = planned.variants.iter();
    let candidates = words.filter_map(|word| Variant::parse(word).ok()).collect();
    // New runs in a new order.
    let nth = tuning.steps.len() as u64;
    let request = Request {
        candidates,
        seed: tuning.seed.wrapping_add(nth),
        budget: Duration::from_secs_f64(planned.budget_s),
        rounds: planned.pairs.map(|pairs| 2 * pairs),
        precision: None,
        gates: Vec::new(),
        confirm: false,
        bare: false,
        unavailable: Vec::new(),
        ..request.clone()
    };
    journal.step_begins(planned.kind, &planned.variants, &planned.file);
    let (comparison, remains) = compare(&request, journal)?;
    drop(remains);
    Ok(comparison)
}

/// What a comparison decides.
fn step(planned: &Planned, comparison: &Comparison, recipe: Option<&Recipe>) -> Step {
    let experiment = &comparison.experiment;
    let standings = standings(comparison, planned, recipe);
    let outcomes = planned.variants.iter().enumerate().map(|(at, name)| {
        let index = at + 1;
        let record = &experiment.variants[index];
        let effect = comparison.effects.get(index, &experiment.main).cloned();
        let joins = |at: &usize| *at >= planned.alone && standings[*at] == Standing::Stays;
        let dropped = match (&record.disqualified, &effect, standings[at]) {
            (Some(reason), ..) => Some(format!("disqualified: {reason}")),
            (None, None, _) => Some("it was not measured".to_owned()),
            (None, Some(effect), _) if planned.kind == StepKind::Confirm => {
                not_confirmed(comparison, effect)
            }
            (None, Some(_), Standing::Stays) if joins(&at) => {
                not_better_than(comparison, planned, at, recipe)
                    .map(|alone| format!("no clear gain over {alone} alone"))
            }
            (None, Some(_), Standing::Stays) => None,
            (None, Some(_), Standing::NoGain) => Some("no gain that matters".to_owned()),
            (None, Some(_), Standing::Behind(leader)) => {
                Some(format!("behind {}", planned.variants[leader]))
            }
        };
        Outcome {
            variant: name.clone(),
            // What its runs show counts too.
            risk: risk_of(name, recipe).and(record.risk()),
            gain: effect
                .as_ref()
                .map(|effect| gain(experiment, effect.change)),
            effect,
            dropped,
        }
    });
    Step {
        kind: planned.kind,
        file: planned.file.clone(),
        pairs: experiment.plan.pairs,
        runs: experiment.runs.len(),
        took_s: experiment.plan.took_s,
        outcomes: outcomes.collect(),
    }
}

/// Why new runs do not prove that it gains, where they do not.
fn not_confirmed(comparison: &Comparison, effect: &EffectRecord) -> Option<String> {
    let is_noise = (comparison.effects).is_within_noise(&comparison.experiment, effect);
    let why = match effect.verdict {
        _ if effect.gain => return None,
        _ if is_noise => "it differs by less than today's noise".to_owned(),
        Some(verdict) => format!("it is {verdict}"),
        None => "too few runs for a verdict".to_owned(),
    };
    Some(format!("not confirmed: {why}"))
}

fn standings(comparison: &Comparison, planned: &Planned, recipe: Option<&Recipe>) -> Vec<Standing> {
    let experiment = &comparison.experiment;
    let candidates = planned.variants.len();
    let levels = stage_levels(candidates);
    let is_in = |at: usize| experiment.variants[at + 1].is_candidate();
    let risks: Vec<Risk> = planned
        .variants
        .iter()
        .map(|name| risk_of(name, recipe))
        .collect();
    let to_baseline: Vec<_> = (0..candidates)
        .map(|at| ratio(experiment, [0, at + 1], levels).filter(|_| is_in(at)))
        .collect();
    screen(
        &to_baseline,
        |one, other| ratio(experiment, [other + 1, one + 1], levels),
        |one, other| risks[other].is_within(risks[one]),
        experiment.main_metric().measure,
        experiment.delta,
    )
}

/// One of the variants that are tried alone than which this one is not clearly better, of those that risk no more.
fn not_better_than(
    comparison: &Comparison,
    planned: &Planned,
    joint: usize,
    recipe: Option<&Recipe>,
) -> Option<String> {
    let experiment = &comparison.experiment;
    let levels = stage_levels(planned.variants.len());
    let measure = experiment.main_metric().measure;
    let risk = |at: usize| risk_of(&planned.variants[at], recipe);
    let is_better = |alone: usize| {
        let ratio = ratio(experiment, [joint + 1, alone + 1], levels);
        ratio.is_some_and(|ratio| is_behind(&ratio, measure))
    };
    let mut alone = (0..planned.alone).filter(|at| {
        experiment.variants[at + 1].is_candidate() && risk(*at).is_within(risk(joint))
    });
    let found = alone.find(|at| !is_better(*at))?;
    Some(planned.variants[found].clone())
}

fn risk_of(word: &str, recipe: Option<&Recipe>) -> Risk {
    Variant::parse(word).map_or(Risk::NONE, |variant| propose::risk(&variant, recipe))
}

/// A relative change as a gain: the more the better.
fn gain(experiment: &Experiment, change: f64) -> f64 {
    let log_ratio = change.ln_1p();
    match experiment.main_metric().measure {
        refit_stats::Measure::Rate => log_ratio,
        _ => -log_ratio,
    }
}
