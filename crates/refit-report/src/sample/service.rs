//! A recipe for the tests: a service under load, with a parent and children.

use std::collections::BTreeMap;

use refit_lab::Verdict::{Faster, Inconclusive, Less, More, Same};
use refit_lab::experiment::{
    Class, Direction, LoadMetricRecord, LoadRecord, LoadUnit, RecipeRecord, Role, ServiceRecord,
    UnavailableRecord,
};
use refit_lab::{Comparison, Effects};
use refit_run::{Calls, MemorySample, Pressure};

use super::{effect, made};

/// As of commands; in place of the wall the rate.
const VARIANTS: [(&str, Role, Class, f64, f64); 5] = [
    ("baseline", Role::Baseline, Class::Safe, 412.0, 0.04),
    (
        "sync@exe:cleanup=off",
        Role::Candidate,
        Class::LosesOnCrash,
        1013.0,
        0.05,
    ),
    (
        "conf.queue=tmpfs",
        Role::Candidate,
        Class::LosesOnCrash,
        1290.0,
        0.06,
    ),
    ("malloc=jemalloc", Role::Candidate, Class::Safe, 413.0, 0.04),
    ("baseline again", Role::Hidden, Class::Safe, 411.0, 0.04),
];

/// Three candidates of a mail server, 10 round pairs.
pub fn service() -> Comparison {
    let mut comparison = made(&VARIANTS, 10, 0x5e1f);
    comparison.experiment.command = vec!["postfix-cleanup".to_owned()];
    comparison.experiment.main = "rate".to_owned();
    comparison.experiment.with.clear();
    comparison.experiment.recipe = Some(recipe());
    comparison.experiment.unavailable = vec![UnavailableRecord {
        settings: "malloc=tcmalloc".to_owned(),
        reason: "libtcmalloc is not installed".to_owned(),
    }];
    comparison.effects = Effects::from_iter([
        effect(1, "rate", 1.459, [1.38, 1.53], Some(Faster)),
        effect(1, "p99", -0.61, [-0.66, -0.55], Some(Faster)),
        effect(1, "syncs", -0.9997, [-0.9997, -0.9997], Some(Less)),
        effect(1, "pss", 0.004, [-0.003, 0.009], Some(Same)),
        effect(2, "rate", 2.13, [1.99, 2.25], Some(Faster)),
        effect(2, "psi-io", -0.98, [-0.99, -0.97], Some(Less)),
        effect(3, "rate", -0.011, [-0.04, 0.02], Some(Inconclusive)),
        effect(3, "pss", 0.21, [0.2, 0.22], Some(More)),
        effect(4, "rate", -0.002, [-0.02, 0.016], None),
    ]);
    for effect in comparison.effects.iter_mut() {
        effect.gain = match effect.metric.as_str() {
            "rate" => effect.verdict == Some(Faster),
            _ => effect.gain,
        };
        effect.pairs = 10;
    }
    for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
        let rate = run.run.metrics.wall_ns as f64 / 1e6;
        let name = VARIANTS[run.variant].0;
        run.load = Some(load(name, rate, run.pair));
        run.run.metrics = refit_run::Metrics::default();
    }
    comparison
}

fn recipe() -> RecipeRecord {
    RecipeRecord {
        load: Vec::new(),
        name: "postfix-cleanup".to_owned(),
        folder: None,
        question: "Does Postfix get faster when cleanup no longer waits for its fsync?".to_owned(),
        unit: "mail".to_owned(),
        replicas: None,
        is_service: true,
        keeps_service: false,
        has_promise: true,
        applies_to: None,
        health: None,
        applied: BTreeMap::new(),
        packages: BTreeMap::new(),
        is_exact: false,
        note: None,
        then: BTreeMap::new(),
        ddl: BTreeMap::new(),
        metrics: vec![LoadMetricRecord {
            name: "p99".to_owned(),
            unit: LoadUnit::Milliseconds,
            better: Direction::Less,
            about: "99th percentile of the time to accept a mail".to_owned(),
        }],
        series: Vec::new(),
        why: BTreeMap::from([(
            VARIANTS[1].0.to_owned(),
            "cleanup is the only daemon that syncs when a mail arrives".to_owned(),
        )]),
    }
}

fn load(variant: &str, rate: f64, pair: usize) -> LoadRecord {
    let window_s = 2000.0 / rate;
    let p99 = if variant.starts_with("sync") {
        9.1e6
    } else {
        23.4e6
    };
    LoadRecord {
        operations: 2000,
        window_ns: (window_s * 1e9) as u64,
        values: BTreeMap::from([("p99".to_owned(), p99)]),
        outcome: "2000 delivered".to_owned(),
        answers: Vec::new(),
        latencies: None,
        service: Some(service_record(variant, window_s, pair)),
    }
}

fn service_record(variant: &str, window_s: f64, pair: usize) -> ServiceRecord {
    let cleanup = if variant.starts_with("sync") {
        suppressed(4000)
    } else {
        real(4000)
    };
    let memory: Vec<MemorySample> = (0..=24)
        .map(|i| sample(variant, f64::from(i) / 24.0, window_s, pair))
        .collect();
    ServiceRecord {
        ready_ns: 310_000_000,
        user_ns: 800_000_000,
        system_ns: 600_000_000,
        cpu_source: "processes".to_owned(),
        written_bytes: Some(90 << 20),
        pressure: Some(Pressure::default()),
        calls: BTreeMap::from([
            (
                "/usr/lib/postfix/sbin/cleanup".to_owned(),
                BTreeMap::from([("fsync".to_owned(), cleanup)]),
            ),
            (
                "/usr/lib/postfix/sbin/qmgr".to_owned(),
                BTreeMap::from([("fdatasync".to_owned(), real(1))]),
            ),
        ]),
        end: memory[24].clone(),
        memory,
        fork_copies_bytes: Some((6 << 20) + (pair << 12) as u64),
        memory_used_bytes: Some((95 << 20) - (pair << 18) as i64),
    }
}

fn sample(variant: &str, part: f64, window_s: f64, pair: usize) -> MemorySample {
    let children = if variant.starts_with("malloc") {
        51.0
    } else {
        40.0
    };
    let children = (children * (0.4 + 0.6 * part.sqrt()) + pair as f64 * 0.1) * 1048576.0;
    MemorySample {
        at_ms: (part * window_s * 1e3) as u64,
        processes: 9,
        parent_pss_bytes: 3 << 20,
        children_pss_bytes: children as u64,
        rss_bytes: (children * 2.4) as u64,
        vsz_bytes: 800 << 20,
        cost_us: 900,
        ..MemorySample::default()
    }
}

fn real(seen: u64) -> Calls {
    Calls {
        seen,
        suppressed: 0,
        real: seen,
        waited_ns: seen * 900_000,
        injected: 0,
    }
}

fn suppressed(seen: u64) -> Calls {
    Calls {
        seen,
        suppressed: seen,
        ..Calls::default()
    }
}
