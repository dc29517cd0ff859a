//! bench/run, which stores each part as it ends: what is killed loses the part that was running, and of one that keeps
//! a journal nothing but its running sample. The parts here are the test's own, and take no time; no peer is
//! asked for its version.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, refit_path, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_killed_bench_goes_on_where_it_was),
    test!(a_goal_is_missed_where_the_whole_interval_is),
];

/// `long` waits in its second sample until its standard input ends.
const SCRIPT: &str = "\
import importlib.machinery, pathlib, sys, types
sys.dont_write_bytecode = True
bench = sys.argv.pop(1)
sys.path[:0] = [bench]
run = types.ModuleType('run')
run.__file__ = bench + '/run'
importlib.machinery.SourceFileLoader('run', run.__file__).exec_module(run)
from part import Part

def short(bench):
    if pathlib.Path('no-peer').exists():
        raise run.process.Skipped('a peer is missing')
    def measure(part, seed):
        part.samples = [{'round': 0, 'seed': seed}]
    return Part('short', 'Short', measure)

def long(bench):
    def measure(part, seed):
        part.samples, part.seed = bench.journal.begin({'count': 4}, seed)
        for number in range(len(part.samples), 4):
            sample = {'round': number, 'seed': part.seed, 'of': seed}
            bench.journal.add(sample)
            part.samples.append(sample)
            pathlib.Path('at').write_text(f'{number} ')
            sys.stdin.read() if number == 1 else None
        bench.journal.end()
    return Part('long', 'Long', measure)

def broken(bench):
    raise KeyError('broken')

run.machine.VERSIONS = {}
run.HERE = run.process.DISK = run.process.MEMORY = '.'
run.PARTS, run.PROGRAMS = {'short': short, 'broken': broken, 'long': long}, {}
run.ORDER = list(run.PARTS)
run.main()
";

fn a_killed_bench_goes_on_where_it_was(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let dir = env.subdir("bench");
    let bench = |options: &[&str]| {
        let mut python = Command::new("python3");
        python.args(["-c", SCRIPT]).arg(source_dir().join("bench"));
        python.args(options).current_dir(&dir);
        python.env("REFIT_BIN", refit_path());
        python.stdout(Stdio::null()).stderr(Stdio::piped());
        python
    };
    let path = |name: &str| Path::new(&dir).join(name);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap_or_default();

    let mut first = bench(&[])
        .stdin(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    wait_until("the second sample of the long part", || read("at") == "1 ");
    first.kill().expect("it is our child");
    first.wait().expect("it is our child");
    let results = read("RESULTS.md");
    assert!(results.contains("### Short (`short`)"), "{results}");
    assert!(results.contains("it failed: 'broken'"), "{results}");
    assert!(!results.contains("`long`"), "{results}");

    // A kill can cut the last line short.
    let journal = read("work/journal");
    let cut_short = format!("{journal}{{\"round");
    fs::write(path("work/journal"), cut_short).expect("a file of the test");
    let output = bench(&["--resume"])
        .stdin(Stdio::null())
        .output()
        .expect("python3 is there");
    let errors = String::from_utf8_lossy(&output.stderr);
    // The part that failed is tried again, and fails again.
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("measured by this commit: short\n"),
        "{errors}"
    );
    assert!(
        errors.contains("2 parts, about 0:00 min in all"),
        "{errors}"
    );
    let results = read("RESULTS.md");
    assert!(results.contains("### Long (`long`)"), "{results}");
    assert_eq!(results.matches("Used by others: ").count(), 3, "{results}");

    // What cannot be measured now leaves what was.
    fs::write(path("no-peer"), "").expect("a file of the test");
    let short = || fs::read(path("results/short.packed")).expect("a stored part");
    let before = short();
    let output = bench(&["short"])
        .stdin(Stdio::null())
        .output()
        .expect("python3 is there");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("short was not measured; the result of "),
        "{errors}"
    );
    assert_eq!(short(), before);

    let packed = source_dir().join("bench/packed.py");
    let stored = Command::new("python3")
        .arg(packed)
        .arg(format!("{dir}/results/long.packed"))
        .output()
        .expect("python3 is there");
    let stored: serde_json::Value = serde_json::from_slice(&stored.stdout).expect("JSON");
    let samples = stored["samples"].as_array().expect("samples");
    let column = |name: &str| -> Vec<u64> {
        samples
            .iter()
            .filter_map(|sample| sample[name].as_u64())
            .collect()
    };
    assert_eq!(column("round"), [0, 1, 2, 3]);
    assert_eq!(column("seed"), [stored["seed"].as_u64().unwrap_or(0); 4]);
    let of = column("of");
    assert_eq!(of[0], of[1]);
    assert_ne!(of[1], of[2], "two sittings, each with a seed of its own");
    Outcome::Pass
}

/// Intervals of the noise and of refit, as ratios to the peer.
const GOALS: &str = "\
import sys
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1]]
from comparison import Goal
from estimate import Effect

def word(noise, refit):
    table = {name: [Effect(1, *ends, 0.95, 12)] for name, ends in (('noise', noise), ('refit', refit))}
    goal = Goal('refit', 0, 'not slower', noise_row='noise', tried='all')
    return goal.told(table)

print(word((0.966, 1.075), (1.034, 1.140)))
print(word((0.8, 1.3), (1.01, 1.2)))
print(word((0.957, 1.049), (0.945, 1.052)))
print(word((0.917, 1.001), (0.951, 1.055)))
";

fn a_goal_is_missed_where_the_whole_interval_is(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let mut python = Command::new("python3");
    python.args(["-c", GOALS]).arg(source_dir().join("bench"));
    let output = python.output().expect("python3 is there");
    let told = String::from_utf8_lossy(&output.stdout);
    let goal = "goal, refit: not slower";
    assert_eq!(
        told,
        format!(
            "{goal}: **missed**. Tried: all.\n{goal}: **missed**. Tried: all.\n\
             {goal}: **undecided**.\n{goal}: **met**.\n"
        ),
        "{output:?}"
    );
    Outcome::Pass
}
