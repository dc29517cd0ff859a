//! What comes next in a tuning: a pure function of its record.

use refit_stats::{FEWEST_PAIRS, STAGES};

use super::record::{Answer, Outcome, Step, StepKind, Tuning};
use super::risk::Risk;

/// The screening may take this share of the budget; the rest confirms.
const SCREENING: f64 = 0.6;
/// A comparison takes a little more than its budget where its last run is slow.
const KEPT: f64 = 0.92;

/// A comparison to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What it is for.
    pub kind: StepKind,
    /// Its candidates.
    pub variants: Vec<String>,
    /// Round pairs at most; `None`: as many as it takes.
    pub pairs: Option<usize>,
    /// What it may take, in seconds.
    pub budget_s: f64,
    /// The file that holds it.
    pub file: String,
}

/// The next step; `None` at the end.
pub fn next(tuning: &Tuning) -> Option<Planned> {
    if tuning.confirmation().is_some() || tuning.left_s() <= 0.0 {
        return None;
    }
    let live = live(tuning);
    if live.is_empty() {
        return None;
    }
    let nth = tuning.steps.len() + 1;
    let planned = |kind: StepKind, variants: Vec<String>, pairs, left_s: f64| Planned {
        kind,
        variants,
        pairs,
        budget_s: left_s * KEPT,
        file: format!("{nth}-{}.json", kind.word()),
    };
    let screening = (SCREENING * tuning.budget_s - tuning.took_s).max(0.0);
    if let Some(pairs) = STAGES.get(tuning.steps.len())
        && !is_decided(&live)
        && stage_s(tuning, live.len(), *pairs) <= screening
    {
        let variants = live.iter().map(|one| one.variant.clone()).collect();
        return Some(planned(StepKind::Screen, variants, Some(*pairs), screening));
    }
    let best = best(tuning.accepted, &live);
    if least_s(tuning, best.len()) > tuning.left_s() {
        return None;
    }
    let variants = best.into_iter().map(|one| one.variant.clone()).collect();
    Some(planned(StepKind::Confirm, variants, None, tuning.left_s()))
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
            Answer {
                accepted: level,
                variant: best.map(|one| one.variant.clone()),
                risk: best.map_or(Risk::NONE, |one| one.risk),
                effect: best.and_then(|one| one.effect.clone()),
                reason: match best {
                    Some(_) => None,
                    None => Some(nothing(tuning, level, &within)),
                },
            }
        })
        .collect()
}

/// Why there is nothing to take at this level.
fn nothing(tuning: &Tuning, level: Risk, confirmed: &[&Outcome]) -> String {
    let is_within = |risk: Risk| risk.is_within(level);
    let tried = tuning.tried().filter(|one| is_within(one.risk)).count();
    let left = live(tuning)
        .into_iter()
        .filter(|one| is_within(one.risk))
        .count();
    if tried == 0 {
        return "nothing that the run showed makes a setting of this class worth trying".to_owned();
    }
    if !confirmed.is_empty() {
        let told = confirmed.iter().map(|one| {
            let verdict = one.effect.as_ref().and_then(|effect| effect.verdict);
            let word = verdict.map_or("without a verdict", |verdict| verdict.word());
            format!("{} is {word}", one.variant)
        });
        let told: Vec<String> = told.collect();
        return format!("measured with new runs, {}", told.join(", "));
    }
    if left > 0 {
        let needed = tuning.took_s + stage_s(tuning, left, 2 * FEWEST_PAIRS);
        let minutes = (needed / 60.0 / SCREENING).ceil();
        return format!(
            "the budget is too short for a verdict, as a run takes {:.1} s; give about --budget {minutes:.0}m",
            run_s(tuning)
        );
    }
    match tried {
        1 => "what was tried gains nothing that matters".to_owned(),
        tried => {
            format!("none of the {tried} variants that were tried gains anything that matters")
        }
    }
}

#[cfg(test)]
mod tests {
    use refit_knobs::Class;

    use super::*;
    use crate::effects::EffectRecord;
    use crate::tune::{Evidence, ProposalRecord};

    const LOSES: Risk = Risk {
        loss: Class::LosesOnCrash,
        changes_behaviour: false,
    };

    fn tuning(proposals: &[(&str, Risk)], run_s: f64) -> Tuning {
        let request = crate::Request::default();
        let mut tuning = Tuning::new(&request, LOSES, Vec::new(), String::new());
        (tuning.budget_s, tuning.took_s) = (100.0, run_s);
        tuning.evidence = Some(Evidence {
            took_s: run_s,
            ..Evidence::default()
        });
        tuning.proposals = proposals
            .iter()
            .map(|(variant, risk)| ProposalRecord {
                variant: (*variant).to_owned(),
                risk: *risk,
                why: String::new(),
                left_out: None,
            })
            .collect();
        tuning
    }

    /// A step whose candidates seem to gain so much; what gains nothing was dropped.
    fn step(kind: StepKind, took_s: f64, gains: &[(&str, Risk, f64)]) -> Step {
        let outcomes = gains.iter().map(|(variant, risk, gain)| Outcome {
            variant: (*variant).to_owned(),
            risk: *risk,
            effect: Some(EffectRecord::default()),
            gain: Some(*gain),
            dropped: (*gain <= 0.0).then(|| "no gain".to_owned()),
        });
        Step {
            kind,
            file: String::new(),
            pairs: 3,
            runs: 10,
            took_s,
            outcomes: outcomes.collect(),
        }
    }

    const THREE: [(&str, Risk); 3] = [("a", Risk::NONE), ("b", Risk::NONE), ("c", LOSES)];

    #[test]
    fn it_screens_until_one_of_each_risk_is_left_and_confirms_that() {
        let mut tuning = tuning(&THREE, 0.1);
        let first = next(&tuning).unwrap();
        assert_eq!((first.kind, first.pairs), (StepKind::Screen, Some(3)));
        assert_eq!(first.variants, ["a", "b", "c"]);
        assert!(first.budget_s <= 60.0, "{first:?}");
        let all = [
            ("a", Risk::NONE, 0.1),
            ("b", Risk::NONE, 0.2),
            ("c", LOSES, 0.3),
        ];
        tuning.steps.push(step(StepKind::Screen, 1.0, &all));
        let second = next(&tuning).unwrap();
        assert_eq!((second.pairs, &*second.file), (Some(6), "2-screen.json"));
        let one = [
            ("a", Risk::NONE, 0.0),
            ("b", Risk::NONE, 0.2),
            ("c", LOSES, 0.3),
        ];
        tuning.steps.push(step(StepKind::Screen, 1.0, &one));
        let last = next(&tuning).unwrap();
        assert_eq!((last.kind, last.pairs), (StepKind::Confirm, None));
        assert_eq!(last.variants, ["b", "c"]);
        tuning.steps.push(step(StepKind::Confirm, 1.0, &one[1..]));
        assert_eq!(next(&tuning), None);
        let answers = answers(&tuning);
        let found: Vec<_> = answers.iter().map(|one| one.variant.as_deref()).collect();
        assert_eq!(found, [Some("b"), Some("b"), Some("c")]);
    }

    #[test]
    fn what_risks_more_and_seems_to_gain_less_is_not_confirmed() {
        let mut tuning = tuning(&THREE, 0.1);
        let all = [("a", Risk::NONE, 0.4), ("c", LOSES, 0.3)];
        tuning.steps.push(step(StepKind::Screen, 1.0, &all));
        assert_eq!(next(&tuning).unwrap().variants, ["a"]);
    }

    #[test]
    fn without_time_the_best_by_now_is_confirmed_or_nothing_is_begun() {
        let mut tuning = tuning(&THREE, 1.0);
        let all = [
            ("a", Risk::NONE, 0.1),
            ("b", Risk::NONE, 0.2),
            ("c", LOSES, 0.3),
        ];
        tuning.steps.push(step(StepKind::Screen, 10.0, &all));
        tuning.took_s = 40.0;
        let last = next(&tuning).unwrap();
        assert_eq!(
            (last.kind, last.variants),
            (StepKind::Confirm, vec!["b".to_owned(), "c".to_owned()])
        );
        assert!(last.budget_s < 60.0);
        tuning.took_s = 70.0;
        assert_eq!(next(&tuning), None);
        let reason = answers(&tuning)[0].reason.clone().unwrap();
        assert!(reason.contains("--budget"), "{reason}");
    }

    #[test]
    fn proposals_that_do_not_fit_are_left_out_and_named() {
        let mut tuning = tuning(&THREE, 2.0);
        leave_out_what_does_not_fit(&mut tuning);
        assert_eq!(tuning.tried().count(), 1);
        assert!(
            tuning.proposals[2]
                .left_out
                .as_ref()
                .unwrap()
                .contains("--budget")
        );
        assert_eq!(next(&tuning).unwrap().kind, StepKind::Confirm);
    }

    #[test]
    fn where_nothing_is_tried_nothing_runs_and_the_answer_tells() {
        let tuning = tuning(&[], 1.0);
        assert_eq!(next(&tuning), None);
        let answers = answers(&tuning);
        assert_eq!(answers.len(), 3);
        let reason = answers[0].reason.as_deref().unwrap();
        assert!(
            reason.starts_with("nothing that the run showed"),
            "{reason}"
        );
    }
}
