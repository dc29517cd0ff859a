//! `refit compare`: the peak memory of a run, and from where its program is started.

use serde_json::Value;

use crate::compared::{compare, compare_shell, list, printed, runs_of, variant};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(peak_memory_is_the_programs_own_however_small),
    test!(peak_memory_is_that_of_the_largest_process_of_a_tree),
    test!(a_measured_program_is_refits_child_in_a_session_of_its_own),
    test!(thp_never_stays_with_its_variant),
];

/// A short comparison of equal variants; what it printed, and its result.
fn compared(env: &TestEnv, command: &[&str]) -> (String, Value) {
    let options = ["--quiet", "--rounds", "6", "env.A=1", "--"];
    let (output, result) = compare(env, &[&options[..], command].concat());
    expect_code(&output, 0);
    (printed(&output), result)
}

/// The median of all runs, each of which has to have a value, in KiB.
fn peak_kib(result: &Value) -> f64 {
    let runs = list(&result["runs"]).iter();
    let of = |run: &Value| run["metrics"]["max_rss_bytes"].as_f64();
    let mut peaks: Vec<f64> = runs
        .map(|run| of(run).unwrap_or_else(|| panic!("unknown in {run}")) / 1024.0)
        .collect();
    assert!(peaks.len() >= 18, "{} runs", peaks.len());
    peaks.sort_by(f64::total_cmp);
    peaks[peaks.len() / 2]
}

fn peak_memory_is_the_programs_own_however_small(env: &TestEnv) -> Outcome {
    let program = env.program("touch_memory");
    let peak = |mib: &str| {
        let (table, result) = compared(env, &[&program, mib]);
        assert!(table.contains("max RSS"), "{table}");
        peak_kib(&result)
    };
    let nothing = peak("0");
    // What refit itself has is more.
    assert!((300.0..3000.0).contains(&nothing), "{nothing} KiB");
    for mib in [1, 5, 50] {
        let expected = f64::from(mib) * 1024.0;
        let touched = peak(&mib.to_string()) - nothing;
        assert!(
            (touched - expected).abs() <= 0.05 * expected + 200.0,
            "{mib} MiB: {touched} KiB"
        );
    }
    for command in [&["true"][..], &["sh", "-c", ":"]] {
        let (table, result) = compared(env, command);
        assert!(table.contains("max RSS"), "{table}");
        peak_kib(&result);
    }
    Outcome::Pass
}

fn peak_memory_is_that_of_the_largest_process_of_a_tree(env: &TestEnv) -> Outcome {
    let program = env.program("touch_memory");
    let script = format!("{program} 5; {program} 20; {program} 5; :");
    let peak = peak_kib(&compared(env, &["sh", "-c", &script]).1);
    assert!((20.0..23.0).contains(&(peak / 1024.0)), "{peak} KiB");
    Outcome::Pass
}

fn a_measured_program_is_refits_child_in_a_session_of_its_own(env: &TestEnv) -> Outcome {
    let script = "read pid _ _ parent group session _ </proc/$$/stat
        read name </proc/$parent/comm
        test $pid = $$ && test $parent = $PPID && test $group = $$ && test $session = $$ || exit 3
        case $name in refit*) ;; *) exit 4 ;; esac
        set -- /proc/$$/fd/*; echo $# >>seen";
    compared(env, &["sh", "-c", script]);
    // As many descriptors as a program gets that is started otherwise.
    let descriptors = "set -- /proc/$$/fd/*; echo $# >>seen";
    expect_code(
        &env.refit(&["run", "--quiet", "--", "sh", "-c", descriptors]),
        0,
    );
    let seen = std::fs::read_to_string(env.path("seen")).expect("the runs wrote it");
    let mut lines: Vec<&str> = seen.lines().collect();
    assert!(lines.len() >= 19, "{seen}");
    lines.dedup();
    assert_eq!(lines.len(), 1, "{seen}");
    Outcome::Pass
}

/// The kernel keeps the switch with the memory, which refit's child has from refit until
/// its exec: it stayed on for all later runs.
fn thp_never_stays_with_its_variant(env: &TestEnv) -> Outcome {
    let script = "grep THP_enabled: /proc/self/status >>seen";
    let (output, result) = compare_shell(env, "--quiet --rounds 6 thp=never", script);
    expect_code(&output, 0);
    let (never, _) = variant(&result, "thp=never");
    assert!(runs_of(&result, "thp=never").len() >= 6);
    let seen = std::fs::read_to_string(env.path("seen")).expect("the runs wrote it");
    let enabled = seen.lines().map(|line| line.ends_with('1'));
    let runs = list(&result["runs"]).iter();
    let expected: Vec<bool> = runs.map(|run| run["variant"] != never).collect();
    assert_eq!(enabled.collect::<Vec<_>>(), expected, "{seen}");
    Outcome::Pass
}
