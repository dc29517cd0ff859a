use refit_knobs::Class;

use super::*;
use crate::effects::EffectRecord;
use crate::tune::{Evidence, ProposalRecord};

const LOSES: Risk = Risk {
    loss: Class::LosesOnCrash,
    changes_behaviour: false,
};

fn tuning(proposals: &[(&str, Risk)], run_s: f64) -> Tuning {
    let request = crate::Request::of(crate::Subject::Command(crate::CommandSubject::default()));
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
fn what_gains_alone_is_tried_together_once() {
    let safe = Risk::NONE;
    let mut tuning = tuning(
        &[("env.A=1", safe), ("env.B=1", safe), ("env.A=2", safe)],
        0.1,
    );
    let mut screen = step(
        StepKind::Screen,
        1.0,
        &[
            ("env.A=1", safe, 0.5),
            ("env.B=1", safe, 0.2),
            ("env.A=2", safe, 0.1),
        ],
    );
    for (at, one) in screen.outcomes.iter_mut().enumerate() {
        one.effect.as_mut().unwrap().gain = true;
        one.dropped = (at > 0).then(|| "behind env.A=1".to_owned());
    }
    tuning.steps.push(screen);
    let joint = next(&tuning).unwrap();
    assert_eq!((joint.kind, joint.alone), (StepKind::Joint, 1));
    // Two values of one name cannot hold together.
    assert_eq!(joint.variants, ["env.A=1", "env.A=1+env.B=1"]);
    let both = [("env.A=1", safe, 0.5), ("env.A=1+env.B=1", safe, 0.7)];
    tuning.steps.push(step(StepKind::Joint, 1.0, &both));
    let last = next(&tuning).unwrap();
    assert_eq!(
        (last.kind, last.variants),
        (StepKind::Confirm, vec!["env.A=1+env.B=1".to_owned()])
    );
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
    let answers = answers(&tuning);
    let reason = answers[0].reason.clone().unwrap();
    assert!(reason.contains("--budget"), "{reason}");
    assert!(answers[0].is_open);
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
    assert_eq!(next(&tuning).unwrap().kind, StepKind::Screen);
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
    assert!(!answers[0].is_open);
}
