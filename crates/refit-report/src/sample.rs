//! A comparison for the tests: its runs come from a seed, its effects are set
//! by hand.

mod service;

use std::collections::BTreeMap;
use std::path::Path;

use refit_lab::Verdict::{self, Faster, Inconclusive, Less, More, Same};
use refit_lab::experiment::{
    Class, Environment, Experiment, Outcome, PlanRecord, Role, RunRecord, SettingRecord,
    VariantRecord,
};
use refit_lab::{Comparison, EffectRecord, Effects, GateAnswer, GateRecord, Warning};
use refit_run::{Calls, Coverage, Metrics, Run, Usage};
use refit_stats::{Rng, Schedule};

pub use service::service;

/// Compares with the file of that name below goldens/; where REFIT_GOLDENS is set, writes it there, to be looked at.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("goldens")
        .join(name);
    if std::env::var_os("REFIT_GOLDENS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{name}");
}

/// Name, role, class, wall in ms, spread of its runs.
const VARIANTS: [(&str, Role, Class, f64, f64); 6] = [
    ("baseline", Role::Baseline, Class::Safe, 412.0, 0.012),
    (
        "sync=off",
        Role::Candidate,
        Class::LosesOnCrash,
        171.0,
        0.03,
    ),
    (
        "malloc=jemalloc",
        Role::Candidate,
        Class::Safe,
        410.0,
        0.012,
    ),
    ("thp=never", Role::Candidate, Class::Safe, 399.0, 0.07),
    ("bare", Role::Bare, Class::Safe, 410.8, 0.012),
    ("baseline again", Role::Hidden, Class::Safe, 412.4, 0.012),
];

/// Three candidates, `bare` and the hidden baseline; 14 round pairs of 74.
pub fn experiment() -> Comparison {
    let mut comparison = made(&VARIANTS, 14, 0x5eed);
    comparison.experiment.plan.looks = vec![8, 14, 24, 42, 74];
    comparison.experiment.plan.look = 2;
    comparison.experiment.plan.alpha = 0.0047;
    comparison.effects = Effects::from_iter([
        effect(1, "wall", -0.585, [-0.599, -0.572], Some(Faster)),
        effect(1, "syncs", -0.9988, [-0.9988, -0.9988], Some(Less)),
        effect(1, "written", -0.351, [-0.37, -0.33], Some(Less)),
        effect(1, "user", 0.001, [-0.004, 0.006], Some(Same)),
        effect(1, "max-rss", 0.12, [0.11, 0.13], Some(More)),
        effect(1, "psi-io", -0.9, [-0.95, -0.85], Some(Less)),
        effect(2, "wall", -0.005, [-0.009, 0.002], Some(Same)),
        effect(2, "max-rss", 0.158, [0.15, 0.16], Some(More)),
        effect(3, "wall", -0.032, [-0.069, 0.004], Some(Inconclusive)),
        effect(4, "wall", -0.003, [-0.008, 0.002], None),
        effect(5, "wall", 0.001, [-0.004, 0.007], None),
    ]);
    effect_mut(&mut comparison, 3, "wall").pairs_needed = Some(31);
    comparison.warnings = vec![Warning {
        text: "the load of the machine went from 0.3 to 4.1".to_owned(),
        action: "repeat it when nothing else runs".to_owned(),
    }];
    comparison
}

/// A comparison whose runs, and with them its effects, come from `rng`: any size of an effect, noise, number of round
/// pairs and of sync calls. The candidates are those of [`experiment`].
pub fn random(rng: &mut Rng) -> Comparison {
    let pairs = 1 + rng.below(14) as usize;
    let quiet = 10_f64.powf(-3.0 + 2.5 * rng.unit());
    let mut variants = VARIANTS;
    for (name, role, class, wall_ms, spread) in &mut variants {
        let is_equal = *role != Role::Candidate || rng.below(4) == 0;
        *wall_ms = match is_equal {
            true => 412.0,
            false => 412.0 * (2.0 * rng.unit() * quiet.sqrt() - 3.0 * rng.unit().powi(4)).exp(),
        };
        *spread = quiet * (0.5 + rng.unit());
        if *role == Role::Candidate && *name != "sync=off" {
            *class = Class::ALL[rng.below(4) as usize];
        }
    }
    let seed = rng.next_u64();
    let Experiment { plan, .. } = experiment().experiment;
    let mut made = made(&variants, pairs, seed).experiment;
    made.plan = PlanRecord {
        pairs,
        early_alpha: 0.001,
        ..plan
    };
    let counts: Vec<[u64; 2]> = variants
        .iter()
        .map(|(_, role, ..)| match rng.below(4) {
            _ if *role != Role::Candidate => [10, 12],
            0 => [0, 0],
            1 => [9, 11],
            _ => [10, 12],
        })
        .collect();
    let none = rng.below(5) == 0;
    for run in made.runs.as_mut_slice() {
        let [least, most] = counts[run.variant];
        for calls in run.run.totals.values_mut() {
            calls.real = if none {
                0
            } else {
                least + rng.below(most - least + 1)
            };
            calls.seen = calls.real + calls.suppressed;
        }
    }
    Comparison::new(made, &[], 0.0).restored()
}

/// `sync=off` once more.
pub fn confirmation() -> Comparison {
    let variants = [VARIANTS[0], VARIANTS[1], VARIANTS[5]];
    let mut comparison = made(&variants, 8, 0x5eee);
    comparison.experiment.plan.looks = vec![8];
    comparison.experiment.plan.look = 1;
    comparison.effects = Effects::from_iter([
        effect(1, "wall", -0.581, [-0.59, -0.57], Some(Faster)),
        effect(2, "wall", 0.0, [-0.005, 0.004], None),
    ]);
    for effect in comparison.effects.iter_mut() {
        effect.pairs = 8;
    }
    comparison
}

/// One gate, with an answer for each candidate.
pub fn gates() -> Vec<GateRecord> {
    let answers = [
        (1, GateAnswer::Passed),
        (2, GateAnswer::Passed),
        (3, GateAnswer::Undecided),
    ];
    let gate = |(variant, answer): (usize, GateAnswer)| GateRecord {
        gate: "wall<+2%".parse().expect("it is a gate"),
        variant,
        answer,
    };
    answers.map(gate).into()
}

/// An effect, to change it.
pub fn effect_mut<'a>(
    experiment: &'a mut Comparison,
    variant: usize,
    metric: &str,
) -> &'a mut EffectRecord {
    let mut effects = experiment.effects.iter_mut();
    effects
        .find(|effect| effect.variant == variant && effect.metric == metric)
        .expect("the sample has it")
}

fn effect(
    variant: usize,
    metric: &str,
    change: f64,
    interval: [f64; 2],
    verdict: Option<Verdict>,
) -> EffectRecord {
    EffectRecord {
        variant,
        metric: metric.to_owned(),
        change,
        interval: Some(interval),
        verdict,
        gain: matches!(verdict, Some(Faster | Less)),
        pairs: 14,
        ..EffectRecord::default()
    }
}

fn made(variants: &[(&str, Role, Class, f64, f64)], pairs: usize, seed: u64) -> Comparison {
    let mut runs = Vec::new();
    let mut rng = Rng::new(seed);
    for (pair, order) in Schedule::new(seed, variants.len())
        .take(pairs + 1)
        .enumerate()
    {
        for (round, order) in order.rounds().into_iter().enumerate() {
            for (slot, variant) in order.into_iter().enumerate() {
                let (name, _, _, wall_ms, spread) = variants[variant];
                let noise = 1.0
                    + spread * (rng.unit() + rng.unit() - 1.0)
                    + if pair == 0 { 0.05 } else { 0.0 };
                let at_s = runs.len() as f64 * 0.5;
                runs.push(RunRecord {
                    variant,
                    pair,
                    round,
                    slot,
                    warmup: pair == 0,
                    at_s,
                    failure: None,
                    load: None,
                    run: run(name, (wall_ms * noise * 1e6) as u64),
                });
            }
        }
    }
    let variants = variants
        .iter()
        .map(|(name, role, class, ..)| VariantRecord {
            name: (*name).to_owned(),
            role: *role,
            settings: if *role == Role::Candidate {
                vec![setting(name, *class)]
            } else {
                Vec::new()
            },
            class: *class,
            fewer_durable: None,
            disqualified: None,
            answers: Vec::new(),
            witness: None,
            memory: None,
        });
    let experiment = Experiment {
        schema: 1,
        kind: "compare".to_owned(),
        options: Some(vec!["--heap".to_owned()]),
        input: None,
        refit: "0.1.0".to_owned(),
        started_unix: 1_795_218_854,
        command: vec![
            "./import.sh".to_owned(),
            "--rows".to_owned(),
            "10000".to_owned(),
        ],
        main: "wall".to_owned(),
        recipe: None,
        with: vec![setting("disk=8ms", Class::ChangesBehaviour)],
        seed,
        delta: 0.01,
        plan: PlanRecord {
            pairs,
            budget_s: 60.0,
            took_s: 58.2,
            ..PlanRecord::default()
        },
        environment: Environment {
            fixed: BTreeMap::from(
                [("cpu", "8 × Model X"), ("kernel", "6.8.0")]
                    .map(|(k, v)| (k.to_owned(), v.to_owned())),
            ),
            ..Environment::default()
        },
        variants: variants.collect(),
        unavailable: Vec::new(),
        runs: runs.into_iter().collect(),
        interrupted: false,
        failed: None,
    };
    Comparison::unfinished(experiment, Effects::default())
}

pub fn setting(setting: &str, class: Class) -> SettingRecord {
    SettingRecord {
        setting: setting.parse().expect("it is a setting"),
        class,
        in_effect: None,
    }
}

fn run(variant: &str, wall_ns: u64) -> Run {
    let suppressed = if variant == "sync=off" { 812 } else { 0 };
    let calls = Calls {
        seen: 812,
        suppressed,
        real: 812 - suppressed,
        waited_ns: (812 - suppressed) * 300_000,
        injected: 0,
    };
    let totals = [("fsync".to_owned(), calls)];
    Run {
        exit: Outcome::Code(0),
        metrics: Metrics {
            wall_ns,
            usage: Usage {
                user_ns: 90_000_000,
                system_ns: 30_000_000,
                max_rss_bytes: Some(if variant == "malloc=jemalloc" {
                    44 << 20
                } else {
                    38 << 20
                }),
                minor_faults: 9_000,
                written_bytes: 4 << 20,
                ..Usage::default()
            },
            ..Metrics::default()
        },
        coverage: Coverage {
            backend: "preload".to_owned(),
            processes_seen: 1,
            processes_reached: 1,
            ..Coverage::default()
        },
        totals: totals.into_iter().filter(|_| variant != "bare").collect(),
        executables: Vec::new(),
        survivors: Vec::new(),
        heap: None,
        memory: None,
        purge: None,
        time: None,
        witness: None,
    }
}
