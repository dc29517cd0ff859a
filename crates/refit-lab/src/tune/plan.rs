//! What comes next in a tuning: a pure function of its record.

use refit_knobs::Variant;
use refit_stats::{FEWEST_PAIRS, STAGES};

use super::record::{Answer, Outcome, Step, StepKind, Tuning};
use super::risk::Risk;
use crate::verdict::Verdict;

/// The screening may take this share of the budget; the rest confirms.
const SCREENING: f64 = 0.6;
/// With power cuts at the end the comparisons may take this share of it.
const BEFORE_CUTS: f64 = 0.7;
/// Round pairs of the step that tries settings together.
const JOINT_PAIRS: usize = 8;
/// At most so many are tried together.
const MOST_JOINT: usize = 4;
/// A comparison takes a little more than its budget where its last run is slow.
const KEPT: f64 = 0.92;

/// A comparison to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What it is for.
    pub kind: StepKind,
    /// Its candidates.
    pub variants: Vec<String>,
    /// How many of them, from the first on, are not joint ones of a [`StepKind::Joint`].
    pub alone: usize,
    /// Round pairs at most; `None`: as many as it takes.
    pub pairs: Option<usize>,
    /// What it may take, in seconds.
    pub budget_s: f64,
    /// The file that holds it.
    pub file: String,
}

/// The next step; `None` at the end.
pub fn next(tuning: &Tuning) -> Option<Planned> {
    let left_s = left_s(tuning);
    if tuning.confirmation().is_some() || left_s <= 0.0 {
        return None;
    }
    let live = live(tuning);
    if live.is_empty() {
        return None;
    }
    let nth = tuning.steps.len() + 1;
    let planned = |kind: StepKind, variants: Vec<String>, pairs, left_s: f64| Planned {
        kind,
        alone: variants.len(),
        variants,
        pairs,
        budget_s: left_s * KEPT,
        file: format!("{nth}-{}.json", kind.word()),
    };
    let screening = (SCREENING * tuning.budget_s - tuning.took_s).max(0.0);
    let stages = of_kind(tuning, StepKind::Screen);
    let joint = of_kind(tuning, StepKind::Joint) > 0;
    // One stage in any case, where there is a choice: it shows what could be joined. Where there is none, one so that
    // what is confirmed was measured before.
    let fits_before = || stage_s(tuning, 1, STAGES[0]) + least_s(tuning, 1) <= left_s;
    let is_open = !is_decided(&live) || stages == 0 && (live.len() > 1 || fits_before());
    if let Some(pairs) = STAGES.get(stages)
        && is_open
        && !joint
        && stage_s(tuning, live.len(), *pairs) <= screening
    {
        let variants = live.iter().map(|one| one.variant.clone()).collect();
        return Some(planned(StepKind::Screen, variants, Some(*pairs), screening));
    }
    let best = best(tuning.accepted, &live);
    if least_s(tuning, best.len()) > left_s {
        return None;
    }
    let alone: Vec<String> = best.iter().map(|one| one.variant.clone()).collect();
    let joined = joined(tuning, &best);
    let candidates = alone.len() + joined.len();
    if !joint
        && !joined.is_empty()
        && stage_s(tuning, candidates, JOINT_PAIRS) + least_s(tuning, alone.len()) <= left_s
    {
        let step = Planned {
            alone: alone.len(),
            ..planned(
                StepKind::Joint,
                [alone, joined].concat(),
                Some(JOINT_PAIRS),
                left_s,
            )
        };
        return Some(step);
    }
    Some(planned(StepKind::Confirm, alone, None, left_s))
}

/// What is left for comparisons, in seconds.
fn left_s(tuning: &Tuning) -> f64 {
    let share = if tuning.prove { BEFORE_CUTS } else { 1.0 };
    (share * tuning.budget_s - tuning.took_s).max(0.0)
}

fn of_kind(tuning: &Tuning, kind: StepKind) -> usize {
    tuning.steps.iter().filter(|step| step.kind == kind).count()
}

/// The best together with what else was proven to gain in any step, as far as these settings can hold together.
fn joined(tuning: &Tuning, best: &[&Live]) -> Vec<String> {
    let outcomes = tuning.steps.iter().flat_map(|step| &step.outcomes);
    let gains = |one: &&Outcome| one.effect.as_ref().is_some_and(|effect| effect.gain);
    let mut gaining: Vec<&Outcome> = outcomes.filter(gains).collect();
    let gain = |one: &Outcome| one.gain.unwrap_or(f64::NEG_INFINITY);
    gaining.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    let mut joined: Vec<String> = Vec::new();
    for other in gaining {
        for one in best {
            let both = Variant::parse(&format!("{}+{}", one.variant, other.variant));
            let is_known = |name: &String| {
                let parts = |name: &str| {
                    let variant = Variant::parse(name).ok();
                    let settings = variant.iter().flat_map(|variant| &variant.settings().0);
                    let mut parts: Vec<String> = settings.map(ToString::to_string).collect();
                    parts.sort();
                    parts
                };
                let tried = tuning.proposals.iter().map(|one| &one.variant);
                let mut known = tried.chain(&joined);
                known.any(|known| parts(known) == parts(name))
            };
            let name = both.ok().map(|both| both.to_string());
            let new = name.filter(|name| one.variant != other.variant && !is_known(name));
            if let Some(name) = new.filter(|_| joined.len() < MOST_JOINT) {
                joined.push(name);
            }
        }
    }
    joined
}

/// What a confirmation takes at least, in seconds. A run that is observed takes longer than one that is measured: by
/// how much is not known before, so that half of it is taken.
fn least_s(tuning: &Tuning, candidates: usize) -> f64 {
    let share = if tuning.steps.is_empty() { 0.5 } else { 1.0 };
    share * stage_s(tuning, candidates, FEWEST_PAIRS)
}

/// A candidate that was not dropped.
#[derive(Clone, Debug)]
struct Live {
    variant: String,
    risk: Risk,
    /// What it seems to gain; `None` before it has run.
    gain: Option<f64>,
}

fn live(tuning: &Tuning) -> Vec<Live> {
    match tuning.steps.last() {
        None => tuning
            .tried()
            .map(|one| Live {
                variant: one.variant.clone(),
                risk: one.risk,
                gain: None,
            })
            .collect(),
        Some(step) => kept(step)
            .map(|one| Live {
                variant: one.variant.clone(),
                risk: one.risk,
                gain: one.gain,
            })
            .collect(),
    }
}

fn kept(step: &Step) -> impl Iterator<Item = &Outcome> {
    step.outcomes.iter().filter(|one| one.dropped.is_none())
}

/// Whether none that is left could take the place of another one that risks as much.
fn is_decided(live: &[Live]) -> bool {
    let mut others = live.iter().enumerate();
    others.all(|(at, one)| live[..at].iter().all(|other| other.risk != one.risk))
}

/// For each level of risk the one that seems to gain most; not one that seems to gain less than one that risks less.
fn best(accepted: Risk, live: &[Live]) -> Vec<&Live> {
    let mut best: Vec<&Live> = Vec::new();
    for level in accepted.levels() {
        let within = live.iter().filter(|one| one.risk.is_within(level));
        let unknown = f64::NEG_INFINITY;
        let most = within.max_by(|a, b| {
            let gains = [a, b].map(|one| one.gain.unwrap_or(unknown));
            gains[0].total_cmp(&gains[1])
        });
        // Without a screening each is the only one of its risk.
        let unmeasured = live
            .iter()
            .filter(|one| one.gain.is_none() && one.risk.is_within(level));
        for one in most.into_iter().chain(unmeasured) {
            if !best.iter().any(|other| other.variant == one.variant) {
                best.push(one);
            }
        }
    }
    best
}

/// What a stage takes, in seconds: every run of it, and a warm-up; the baseline and the hidden one beside them.
fn stage_s(tuning: &Tuning, candidates: usize, pairs: usize) -> f64 {
    2.0 * (candidates + 2) as f64 * (pairs + 1) as f64 * run_s(tuning)
}

/// What a run takes, in seconds.
fn run_s(tuning: &Tuning) -> f64 {
    let measured = tuning.steps.last().filter(|step| step.runs > 0);
    let measured = measured.map(|step| step.took_s / step.runs as f64);
    let observed = tuning.evidence.as_ref().map(|evidence| evidence.took_s);
    measured.or(observed).unwrap_or(0.0)
}

/// Where the first stage would take more than half of the budget, the last proposals are left out.
pub fn leave_out_what_does_not_fit(tuning: &mut Tuning) {
    let screening = SCREENING * tuning.budget_s - tuning.took_s;
    let mut tried = tuning.tried().count();
    while tried > 1 && stage_s(tuning, tried, STAGES[0]) > screening {
        tried -= 1;
    }
    let fitting = tuning
        .proposals
        .iter_mut()
        .filter(|one| one.left_out.is_none());
    for one in fitting.skip(tried) {
        one.left_out = Some("no time for it in this budget (--budget TIME)".to_owned());
    }
}

/// One for each level of risk that is accepted.
pub fn answers(tuning: &Tuning) -> Vec<Answer> {
    let confirmed = tuning.confirmation();
    let levels = tuning.accepted.levels().into_iter();
    levels
        .map(|level| {
            let outcomes = confirmed.iter().flat_map(|step| &step.outcomes);
            let within: Vec<&Outcome> = outcomes.filter(|one| one.risk.is_within(level)).collect();
            let gains = within.iter().filter(|one| one.dropped.is_none());
            let best = gains.max_by(|a, b| {
                let gain = |one: &Outcome| one.gain.unwrap_or(f64::NEG_INFINITY);
                gain(a).total_cmp(&gain(b))
            });
            let nothing = match best {
                Some(_) => None,
                None => Some(nothing(tuning, level, &within)),
            };
            Answer {
                accepted: level,
                variant: best.map(|one| one.variant.clone()),
                risk: best.map_or(Risk::NONE, |one| one.risk),
                effect: best.and_then(|one| one.effect.clone()),
                proof: None,
                is_open: matches!(nothing, Some(Nothing::Open(_))),
                reason: nothing.map(Nothing::reason),
            }
        })
        .collect()
}

/// Why there is nothing to take.
enum Nothing {
    /// Nothing that was tried helps, or nothing was worth trying.
    Helps(String),
    /// A larger budget may find something.
    Open(String),
}

impl Nothing {
    fn reason(self) -> String {
        match self {
            Nothing::Helps(reason) | Nothing::Open(reason) => reason,
        }
    }
}

/// Why there is nothing to take at this level.
fn nothing(tuning: &Tuning, level: Risk, confirmed: &[&Outcome]) -> Nothing {
    let is_within = |risk: Risk| risk.is_within(level);
    let tried = tuning.tried().filter(|one| is_within(one.risk)).count();
    if tried == 0 {
        let reason = "nothing that the run showed makes a setting of this class worth trying";
        return Nothing::Helps(reason.to_owned());
    }
    let has_verdict = |one: &&&Outcome| {
        let verdict = one.effect.as_ref().and_then(|effect| effect.verdict);
        verdict.is_some_and(Verdict::is_settled)
    };
    let told = confirmed.iter().map(|one| {
        let why = one.dropped.as_deref().unwrap_or("without a verdict");
        format!("{} is {why}", one.variant)
    });
    let told: Vec<String> = told.collect();
    let told = match told.is_empty() {
        true => String::new(),
        false => format!("measured with new runs, {}", told.join(", ")),
    };
    let left = live(tuning)
        .into_iter()
        .filter(|one| is_within(one.risk))
        .count();
    let open = match confirmed.len() {
        0 => left,
        all => all - confirmed.iter().filter(has_verdict).count(),
    };
    if open > 0 {
        let needed = tuning.took_s + stage_s(tuning, open, 2 * FEWEST_PAIRS);
        let minutes = (needed / 60.0 / SCREENING).ceil();
        let why = match told.is_empty() {
            true => "the budget is too short for a verdict".to_owned(),
            false => told,
        };
        return Nothing::Open(format!(
            "{why}; a run takes {:.1} s: give about --budget {minutes:.0}m",
            run_s(tuning)
        ));
    }
    if !confirmed.is_empty() {
        return Nothing::Helps(told);
    }
    Nothing::Helps(match tried {
        1 => "what was tried gains nothing that matters".to_owned(),
        tried => {
            format!("none of the {tried} variants that were tried gains anything that matters")
        }
    })
}

#[cfg(test)]
mod tests;
