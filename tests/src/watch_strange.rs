//! `refit watch` where what is watched is large, short-lived or hidden.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(a_million_mappings_stay_within_the_budget)
        .alone()
        .limit_seconds(180),
    test!(processes_that_end_while_they_are_read_are_not_called_unreadable),
    test!(a_thousand_zombies_have_no_memory),
    test!(as_root_what_proc_hides_is_told),
];

/// A program that prints a line when it is ready, and ends with its input.
pub fn start(env: &TestEnv, words: &[&str]) -> (Child, String) {
    let mut command = env.command(words[0]);
    let command = command.args(&words[1..]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("it is piped"))
        .read_line(&mut line)
        .expect("it prints text");
    (child, line)
}

pub fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().expect("it is our child");
}

/// The samples of the only group, and the whole series.
fn watched(env: &TestEnv, child: &Child, time: &str) -> (Vec<Value>, Value) {
    let json = env.path("series.json");
    let words = ["watch", "--batch", "--interval", "200ms", "--for", time];
    let pid = child.id().to_string();
    let output = env.refit(&[&words[..], &["--json", &json, &pid]].concat());
    expect_code(&output, 0);
    let text = std::fs::read_to_string(&json).expect("it was written");
    let series: Value = serde_json::from_str(&text).expect("it is JSON");
    let samples = series["samples"].as_array().expect("a list").iter();
    let groups = samples.map(|sample| sample["groups"][0].clone());
    (groups.collect(), series)
}

/// What a reading costs grows with the mappings: most of them are not read in this time, and that is told.
fn a_million_mappings_stay_within_the_budget(env: &TestEnv) -> Outcome {
    env.require_real_processor("1 % of it reads no memory");
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("Linux has it");
    let each = limit.trim().parse::<u64>().expect("a number").min(1 << 20) - 500;
    let processes = 1_000_000_u64.div_ceil(each).min(32).to_string();
    let program = env.program("many_mappings");
    let (tree, made) = start(env, &[&program, &each.to_string(), &processes]);
    let made: u64 = made.trim().parse().expect("it prints a number");
    assert!(made + 10 > each, "{made} of {each} mappings");
    let (samples, series) = watched(env, &tree, "10s");
    end(tree);
    let last = samples.last().expect("samples");
    assert_eq!(
        number(&last["processes"]).to_string(),
        processes,
        "{last:#}"
    );
    assert_eq!(number(&last["unreadable"]), 0, "{last:#}");
    let (cpu, wall) = (
        number(&series["cost"]["cpu_us"]),
        number(&series["cost"]["wall_us"]),
    );
    // 1 % and what may be spent in advance, 30 ms; and the last reading may lie above it.
    assert!(
        cpu as f64 <= 0.012 * wall as f64 + 80_000.0,
        "{cpu} of {wall} µs"
    );
    Outcome::Pass
}

fn processes_that_end_while_they_are_read_are_not_called_unreadable(env: &TestEnv) -> Outcome {
    let stop = env.path("stop");
    let script = format!(
        "ends() {{ while ! [ -e {stop} ]; do head -c 9999 /dev/zero | tail -c 9999 >/dev/null; done; }}
        ends & ends & ends & echo; wait"
    );
    let (tree, _) = start(env, &["sh", "-c", &script]);
    let (samples, _) = watched(env, &tree, "5s");
    std::fs::write(&stop, "").expect("the test's directory is ours");
    end(tree);
    let most = samples.iter().map(|one| number(&one["processes"])).max();
    assert!(most >= Some(4), "{samples:#?}");
    for sample in &samples {
        assert_eq!(number(&sample["unreadable"]), 0, "{sample:#}");
    }
    Outcome::Pass
}

fn a_thousand_zombies_have_no_memory(env: &TestEnv) -> Outcome {
    // A shell would reap them. The pipe ends when all have exited.
    let script =
        "pipe R, W; for (1..1000) { fork or exit } close W; <R>; $| = 1; print qq(\\n); <STDIN>";
    let (tree, _) = start(env, &["perl", "-e", script]);
    let (samples, series) = watched(env, &tree, "1s");
    let children = format!("/proc/{0}/task/{0}/children", tree.id());
    let zombies = std::fs::read_to_string(children).expect("it runs");
    end(tree);
    assert_eq!(zombies.split_whitespace().count(), 1000);
    let last = samples.last().expect("samples");
    assert_eq!(number(&last["processes"]), 1, "{last:#}");
    if last["memory"].is_null() {
        // Where the look at so many processes takes what may be spent in advance, no memory is read, and that is told.
        assert_eq!(number(&last["unread"]), 1, "{last:#}");
        let cost = &series["cost"];
        assert!(number(&cost["cpu_us"]) >= 30_000, "{cost}");
    } else {
        assert!(number(&last["memory"]["pss_bytes"]) < 32 << 20, "{last:#}");
    }
    Outcome::Pass
}

/// In a namespace of its own, which no other process sees.
fn as_root_what_proc_hides_is_told(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_namespaces(&["--mount", "--pid", "--fork"]);
    for hidepid in ["1", "2"] {
        let script = format!(
            "mount -t proc -o hidepid={hidepid} proc /proc || exit 9; sleep 100 &
            setpriv --reuid 65534 --regid 65534 --clear-groups {0} watch --batch --for 500ms
            echo machine $?
            setpriv --reuid 65534 --regid 65534 --clear-groups {0} watch --batch --for 500ms 1
            echo hidden $?
            {0} watch --batch --for 500ms 1; echo root $?",
            refit_path()
        );
        let output = env.run(&["unshare", "-m", "-p", "-f", "sh", "-c", &script]);
        let told = described(&output);
        for words in ["machine 0\n", "hidden 2\n", "root 0\n", "hidepid, proc(5)"] {
            assert!(told.contains(words), "{hidepid}, {words}: {told}");
        }
    }
    Outcome::Pass
}
