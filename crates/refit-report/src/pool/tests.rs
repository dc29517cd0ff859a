use refit_lab::experiment::Class;
use refit_lab::{GroupRecord, MachineRecord, NotPooled, POOL_SCHEMA, ResultRecord, Risk};
use refit_run::metric::{MeasureRecord, Unit};

use super::*;
use crate::paint::Style;
use crate::sample::golden;

fn machine(name: &str, disk: &str, sync_ns: f64) -> MachineRecord {
    let fixed = [("machine", name), ("disk", disk), ("cores", "4")];
    MachineRecord {
        name: name.to_owned(),
        fixed: fixed
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        baseline: Some(4.12e8),
        sync_ns: Some(sync_ns),
    }
}

fn measured(machine: usize, change: f64, verdict: Verdict) -> MachineEffect {
    MachineEffect {
        machine,
        change,
        interval: Some([change - 0.02, change + 0.02]),
        verdict,
        gain: verdict == Verdict::Faster,
        results: 1,
        pairs: 14,
    }
}

/// Two machines with a slow disk and two with a fast one; a variant that one machine lacks.
pub(crate) fn sample() -> Pool {
    let group = |value: &str, machines: [usize; 2], change| GroupRecord {
        value: value.to_owned(),
        machines: machines.into(),
        change,
    };
    let off = PooledVariant {
        name: "sync=off".to_owned(),
        risk: Risk::of([Class::LosesOnCrash]),
        machines: vec![
            measured(0, -0.62, Verdict::Faster),
            measured(1, -0.59, Verdict::Faster),
            measured(2, -0.03, Verdict::Faster),
            measured(3, 0.004, Verdict::Same),
        ],
        pooled: Some(PooledEffect {
            change: -0.38,
            interval: [-0.71, 0.31],
            next: [-0.9, 2.1],
            p_equal: 1e-9,
            differ: true,
            verdict: Verdict::Inconclusive,
            gain: false,
        }),
        factors: vec![FactorRecord {
            name: "disk".to_owned(),
            groups: vec![
                group("ST4000 (rotating)", [0, 1], -0.605),
                group("SSD (solid state)", [2, 3], -0.013),
            ],
            p_equal: Some(0.002),
            explains: true,
        }],
        not_pooled: Vec::new(),
    };
    let jemalloc = PooledVariant {
        name: "malloc=jemalloc".to_owned(),
        risk: Risk::NONE,
        machines: vec![measured(0, -0.05, Verdict::Faster)],
        pooled: None,
        factors: Vec::new(),
        not_pooled: vec![NotPooled {
            file: "db2.json".to_owned(),
            why: "jemalloc is not installed".to_owned(),
        }],
    };
    let result = |machine: usize| ResultRecord {
        file: format!("db{}.json", machine + 1),
        machine,
        started_unix: 1_789_000_000 + machine as u64,
        seed: 7,
        refit: "0.1.0".to_owned(),
        pairs: 14,
        interrupted: machine == 3,
    };
    Pool {
        schema: POOL_SCHEMA,
        kind: "pool".to_owned(),
        refit: "0.1.0".to_owned(),
        words: None,
        command: vec!["./import.sh".to_owned()],
        question: None,
        main: "wall".to_owned(),
        measure: MeasureRecord::Duration,
        unit: Unit::Nanoseconds,
        unit_name: None,
        is_recipe: false,
        with: vec!["thp=never".to_owned()],
        delta: 0.01,
        results: (0..4).map(result).collect(),
        machines: vec![
            machine("db1", "ST4000 (rotating)", 8e6),
            machine("db2", "ST4000 (rotating)", 7.4e6),
            machine("db3", "SSD (solid state)", 3e5),
            machine("db4", "SSD (solid state)", 2.8e5),
        ],
        variants: vec![off, jemalloc],
    }
}

fn style(width: usize) -> Style {
    Style {
        width,
        colour: false,
    }
}

#[test]
fn a_pool_is_drawn() {
    golden("pool.txt", &terminal(&sample(), &style(120)));
    golden("pool.md", &markdown(&sample()));
}

#[test]
fn a_machine_that_measured_alone_is_named_once() {
    let mut pool = sample();
    pool.variants[0].pooled = None;
    pool.variants[0].machines.truncate(1);
    let text = terminal(&pool, &style(120));
    let start =
        "Not yet: on one machine only, db1: `sync=off` (−62.0 %), `malloc=jemalloc` (−5.0 %)\n";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_variant_that_no_result_counts_of_is_told_with_the_reason() {
    let mut pool = sample();
    pool.variants.truncate(1);
    let few = |why: &str, n: usize| NotPooled {
        file: format!("{n}.json"),
        why: why.to_owned(),
    };
    pool.variants[0].pooled = None;
    pool.variants[0].machines.clear();
    pool.variants[0].not_pooled = (0..4).map(|n| few("too few round pairs", n)).collect();
    let start = "Not yet: `sync=off`: too few round pairs on all 4 machines; measure for longer";
    let text = terminal(&pool, &style(500));
    assert!(text.starts_with(start), "{text}");
    let why = "disqualified: it failed";
    pool.variants[0].not_pooled = (0..4).map(|n| few(why, n)).collect();
    let text = terminal(&pool, &style(500));
    assert!(
        text.starts_with(&format!("No: `sync=off`: {why} on all 4 machines\n")),
        "{text}"
    );
}

#[test]
fn the_first_line_tells_whether_to_take_it_and_on_which_condition() {
    let first_line = |pool: &Pool| {
        let text = terminal(pool, &style(500));
        text.lines().next().unwrap_or_default().to_owned()
    };
    let everywhere = |gain: bool, verdict: Verdict| PooledEffect {
        gain,
        verdict,
        interval: [-0.41, -0.35],
        ..sample().variants[0].pooled.clone().unwrap()
    };
    let mut pool = sample();
    let line = first_line(&pool);
    assert!(
        line.starts_with("what `sync=off` gives depends on the disk: "),
        "{line}"
    );
    pool.variants[1].pooled = Some(everywhere(true, Verdict::Faster));
    let line = first_line(&pool);
    assert!(line.starts_with("Yes: `malloc=jemalloc` is "), "{line}");
    let then = "; what `sync=off` gives depends on the disk: ";
    assert!(line.contains(then), "{line}");
    pool.variants[0].factors.clear();
    pool.variants[0].pooled = Some(everywhere(true, Verdict::Faster));
    let line = first_line(&pool);
    let then = "; if losing data at a power cut is acceptable, `sync=off` is ";
    assert!(line.contains(then), "{line}");
    pool.variants.truncate(1);
    let line = first_line(&pool);
    let start = "Only if losing data at a power cut is acceptable: `sync=off` is ";
    assert!(line.starts_with(start), "{line}");
    for (verdict, start) in [
        (Verdict::Inconclusive, "Not yet: of `sync=off` "),
        (Verdict::Same, "No: `sync=off` makes no difference "),
    ] {
        pool.variants[0].pooled = Some(everywhere(false, verdict));
        let line = first_line(&pool);
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn no_pool_is_too_strange_to_be_drawn() {
    let draw = |pool: &Pool| {
        let texts = [0, 60, 200].map(|width| terminal(pool, &style(width)));
        let others = [markdown(pool), html(pool), svg(pool)];
        for text in texts.into_iter().chain(others) {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        }
    };
    let mut pool = sample();
    pool.command = vec!["a\u{1b}[2J\n".to_owned()];
    pool.question = Some("\u{9b}".to_owned());
    pool.variants[0].name = "\r<b>".to_owned();
    pool.machines[0].name = "\u{7}".to_owned();
    pool.machines[1]
        .fixed
        .insert("\u{7}".to_owned(), "\u{7}".to_owned());
    pool.results[1].file = "\u{7}".to_owned();
    pool.results[1].machine = 999;
    pool.results[1].started_unix = u64::MAX;
    for (index, one) in pool.variants[0].machines.iter_mut().enumerate() {
        one.machine = [0, 999, 1, 2][index];
        one.change = [-1.0, -3.0, 1e308, 0.0][index];
        one.interval = [Some([-1.0, 1e308]), None, Some([0.5, -0.5]), None][index];
    }
    pool.variants[0].factors[0].groups[0].machines = vec![999];
    pool.variants[0].factors[0].groups[0].value = "\u{7}".to_owned();
    draw(&pool);
    pool.variants[0].factors[0].explains = false;
    pool.variants[0].factors[0].p_equal = None;
    pool.variants[0].not_pooled.push(NotPooled {
        file: "\u{7}".to_owned(),
        why: "\u{7}".to_owned(),
    });
    draw(&pool);
    pool.machines.clear();
    draw(&pool);
    pool.variants.clear();
    pool.command.clear();
    pool.results.clear();
    draw(&pool);
}
