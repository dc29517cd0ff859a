//! `refit compare`: interrupted once, twice, and beyond remedy; by each signal that asks it to end.

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::compared::{effect, list, messages, pairs, printed, undecided};
use crate::deadline::Deadline;
use crate::processes::status_line;
use crate::remains::users_of_session;
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::terminal::{CTRL_C, Terminal};
use crate::test_env::{TestEnv, expect_code, wait_for, wait_for_file, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(one_interruption_finishes_the_round_pair),
    test!(each_signal_prints_what_there_is_and_has_its_code),
    test!(a_signal_that_it_was_started_to_ignore_interrupts_nothing),
    test!(an_interruption_of_the_warm_up_shows_its_runs),
    test!(the_second_interruption_ends_it_at_once),
    test!(ctrl_c_in_a_hook_ends_it_with_a_result),
    test!(ctrl_c_before_the_first_run_leaves_no_copies),
    test!(killed_it_leaves_the_run_under_way_to_end_by_itself),
];

/// Starts a comparison of this shell script that nothing but a signal ends soon.
fn start(env: &TestEnv, options: &[&str], script: &str) -> Child {
    let args = [
        "compare",
        "--json",
        "result.json",
        "--rounds",
        "400",
        "--precision",
        "0.0001%",
    ];
    let mut refit =
        env.refit_command(&[&args, options, &["env.A=1", "--", "sh", "-c", script]].concat());
    refit.stdout(Stdio::piped()).stderr(Stdio::piped());
    refit.spawn().expect("refit starts")
}

fn interrupt(child: &Child) {
    send(child, libc::SIGINT);
}

fn send(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).expect("process ids are ints");
    sys::send_signal(pid, signal);
}

fn lines(env: &TestEnv, name: &str) -> usize {
    fs::read_to_string(env.path(name)).map_or(0, |text| text.lines().count())
}

fn result(env: &TestEnv) -> Value {
    let text = fs::read_to_string(env.path("result.json")).expect("there is a result");
    let result = serde_json::from_str(&text).expect("it is JSON");
    expect_valid(&result);
    result
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("it is our child")
}

fn one_interruption_finishes_the_round_pair(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let script = format!("echo >>{log}; {}", undecided(env, 40));
    let child = start(env, &[], &script);
    // What was measured is stored all the time, as it will be at the end.
    wait_until("a stored round pair", || {
        Path::new(&env.path("result.json")).exists()
    });
    let stored = result(env);
    assert!(
        stored["plan"]["pairs"].as_u64() >= Some(1),
        "{}",
        stored["plan"]
    );
    assert_eq!(stored["interrupted"], false);
    wait_until("six round pairs and a half", || {
        lines(env, "log") >= 6 * 7 + 3
    });
    interrupt(&child);
    let output = end(child);
    expect_code(&output, 130);
    let words = "interrupted: this round pair is finished first; once more ends it at once";
    assert_eq!(
        messages(&output).matches(words).count(),
        1,
        "{}",
        messages(&output)
    );
    let result = result(env);
    assert_eq!(result["interrupted"], true);
    let runs = list(&result["runs"]);
    assert_eq!((runs.len() % 6, runs.len()), (0, lines(env, "log")));
    assert!(runs.len() < 6 * 20, "it went on for {} runs", runs.len());
    assert!(
        runs.iter()
            .all(|run| run["exit"] == json!({"code": 0}) && run["failure"].is_null())
    );
    assert_eq!(
        effect(&result, "env.A=1", "wall")["pairs"],
        runs.len() / 6 - 1
    );
    let text = printed(&output);
    assert!(
        text.contains("interrupted:") && text.contains("inconclusive"),
        "{text}"
    );
    Outcome::Pass
}

fn each_signal_prints_what_there_is_and_has_its_code(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    // The candidate is far away from the baseline only in the second script, which earns it a verdict by ranks.
    let equal = format!("echo >>{log}; {}", undecided(env, 40));
    let apart = format!("echo >>{log}; exec sleep 0.${{A:+2}}01");
    let stops = |signal, options: &[&str], script: &str, made: usize, code| {
        let _ = (
            fs::remove_file(&log),
            fs::remove_file(env.path("result.json")),
        );
        let child = start(env, options, script);
        let enough = format!("{made} round pairs");
        wait_until(&enough, || lines(env, "log") >= 6 * (made + 1));
        send(&child, signal);
        let output = end(child);
        expect_code(&output, code);
        let result = result(env);
        assert_eq!(result["interrupted"], true);
        let pairs = effect(&result, "env.A=1", "wall")["pairs"].as_u64();
        assert!(pairs >= Some(made as u64), "{pairs:?}");
        let text = printed(&output);
        assert!(
            text.contains("interrupted:") && text.contains("env.A=1"),
            "{text}"
        );
    };
    stops(libc::SIGTERM, &[], &equal, 4, 143);
    stops(libc::SIGHUP, &["--strict"], &equal, 4, 129);
    stops(libc::SIGINT, &["--gate", "wall<+1%"], &equal, 4, 3);
    // What is settled is an answer.
    stops(libc::SIGTERM, &[], &apart, 10, 0);
    stops(libc::SIGTERM, &["--gate", "wall<+50%"], &apart, 10, 1);
    Outcome::Pass
}

/// As nohup(1) starts it. Its budget is long: on a slow machine the usual one ends it before its rounds.
fn a_signal_that_it_was_started_to_ignore_interrupts_nothing(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let script = format!(
        "trap '' HUP; exec {} compare --json result.json --rounds 12 --budget 1h --precision 0.0001% env.A=1 -- sh -c 'echo >>{log}; sleep 0.02'",
        crate::test_env::refit_path()
    );
    let mut shell = env.command("sh");
    shell.args(["-c", &script]);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = shell.spawn().expect("there is a shell");
    wait_until("a run", || lines(env, "log") >= 8);
    send(&child, libc::SIGHUP);
    let output = end(child);
    expect_code(&output, 0);
    let result = result(env);
    assert_eq!(
        (&result["interrupted"], &result["plan"]["pairs"]),
        (&json!(false), &json!(6))
    );
    Outcome::Pass
}

fn an_interruption_of_the_warm_up_shows_its_runs(env: &TestEnv) -> Outcome {
    let [log, go] = ["log", "go"].map(|name| env.path(name));
    for (options, code) in [
        (&["--budget", "90s"][..], 130),
        (&["--strict"], 130),
        (&["--gate", "wall<+1%"], 3),
    ] {
        let _ = (fs::remove_file(&log), fs::remove_file(&go));
        // The warm-up cannot be over before it is interrupted.
        let waits = format!("echo >>{log}; until test -e {go}; do sleep 0.01; done");
        let child = start(env, options, &waits);
        wait_until("the first run", || lines(env, "log") > 0);
        interrupt(&child);
        env.file("go", "");
        let output = end(child);
        expect_code(&output, code);
        let result = result(env);
        assert_eq!(result["interrupted"], true);
        let runs = list(&result["runs"]);
        assert_eq!((runs.len(), &result["plan"]["pairs"]), (6, &json!(1)));
        assert!(runs.iter().all(|run| run["warmup"] == false));
        let wall = effect(&result, "env.A=1", "wall");
        assert_eq!(
            (&wall["interval"], &wall["pairs"]),
            (&json!(null), &json!(1))
        );
        let text = printed(&output);
        assert!(
            text.contains("interrupted:") && text.contains("wall ranged: baseline"),
            "{text}"
        );
    }
    Outcome::Pass
}

fn the_second_interruption_ends_it_at_once(env: &TestEnv) -> Outcome {
    for hangs_at in [1, 6 * 2 + 3] {
        let log = env.path("log");
        let _ = fs::remove_file(&log);
        let script = format!(
            "echo $$ >>{log}; test $(wc -l <{log}) -lt {hangs_at} || exec tail -f /dev/null"
        );
        let child = start(env, &[], &script);
        wait_until("the run that hangs", || lines(env, "log") == hangs_at);
        let text = fs::read_to_string(&log).expect("it is there");
        let pid = text
            .lines()
            .last()
            .and_then(|line| line.parse().ok())
            .expect("a number");
        wait_until("tail", || {
            status_line(pid, "Name").is_some_and(|name| name == "tail")
        });
        interrupt(&child);
        wait_until("the signal to be taken", || {
            status_line(child.id(), "ShdPnd")
                .is_some_and(|mask| mask.bytes().all(|digit| digit == b'0'))
        });
        assert!(
            status_line(pid, "State").is_some(),
            "one interruption kills no run"
        );
        interrupt(&child);
        let output = end(child);
        expect_code(&output, 130);
        assert!(messages(&output).contains("interrupted again: it ends now"));
        assert!(status_line(pid, "State").is_none());
        let result = result(env);
        assert_eq!(result["interrupted"], true);
        let runs = list(&result["runs"]);
        assert_eq!(
            (runs.len(), &runs[hangs_at - 1]["exit"]),
            (hangs_at, &json!({"signal": 9}))
        );
        // What is left of its round pair counts for nothing.
        let counted = runs.iter().filter(|run| run["failure"].is_null()).count();
        assert_eq!(counted, (hangs_at - 1) / 6 * 6);
        for variant in list(&result["variants"]) {
            assert!(variant["disqualified"].is_null(), "{variant}");
        }
        assert!(
            printed(&output).contains("interrupted:"),
            "{}",
            printed(&output)
        );
    }
    Outcome::Pass
}

/// A hook has the terminal, and so Ctrl-C ends it too; that is not a failure of the hook.
fn ctrl_c_in_a_hook_ends_it_with_a_result(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let hook = format!("echo >>{log}; test $(wc -l <{log}) -lt 22 || exec tail -f /dev/null");
    let mut terminal = Terminal::start(env.refit_command(&[
        "compare",
        "--json",
        "result.json",
        "--prepare",
        &hook,
        "--precision",
        "0.0001%",
        "env.A=1",
        "--",
        "true",
    ]));
    wait_until("the hook that hangs", || lines(env, "log") == 22);
    let tails = || children_named(terminal.pid(), "tail");
    wait_until("tail", || tails() == 1);
    terminal.type_in(CTRL_C);
    let (status, shown) = terminal.finish();
    assert_eq!(status.code(), Some(130), "{shown}");
    let result = result(env);
    assert_eq!(
        (&result["interrupted"], &result["plan"]["pairs"]),
        (&json!(true), &json!(2))
    );
    let sizes: Vec<usize> = pairs(&result).iter().map(|pair| pair.len()).collect();
    assert_eq!(sizes, [6, 6, 6, 3]);
    assert_eq!(effect(&result, "env.A=1", "wall")["pairs"], 2);
    assert!(shown.contains("interrupted:"), "{shown}");
    Outcome::Pass
}

fn children_named(parent: u32, name: &str) -> usize {
    let children = crate::processes::children(parent).into_iter();
    children
        .filter(|pid| status_line(*pid, "Name").is_some_and(|is| is == name))
        .count()
}

fn ctrl_c_before_the_first_run_leaves_no_copies(env: &TestEnv) -> Outcome {
    env.subdir("data");
    let ready = env.path("ready");
    let hook = format!("echo >{ready}; exec tail -f /dev/null");
    let mut terminal = Terminal::start(env.refit_command(&[
        "compare",
        "--json",
        "result.json",
        "--fresh-copy",
        "data",
        "--prepare",
        &hook,
        "env.A=1",
        "--",
        "true",
    ]));
    wait_for_file(&ready);
    wait_until("tail", || children_named(terminal.pid(), "tail") == 1);
    terminal.type_in(CTRL_C);
    let (status, shown) = terminal.finish();
    assert_eq!(status.code(), Some(130), "{shown}");
    assert_eq!(list(&result(env)["runs"]).len(), 0);
    let entries = fs::read_dir(env.dir())
        .expect("the directory is ours")
        .flatten();
    let copies = entries.filter(|entry| entry.file_name().to_string_lossy().contains("copies"));
    assert_eq!(copies.count(), 0);
    Outcome::Pass
}

/// Nobody is left to end it: the run under way goes on as it would have, and no other starts.
fn killed_it_leaves_the_run_under_way_to_end_by_itself(env: &TestEnv) -> Outcome {
    let [log, go, done, session] = ["log", "go", "done", "session"].map(|name| env.path(name));
    let script = format!(
        "test $(wc -l <{log}) -lt 14 || echo $REFIT_SESSION >{session}; echo $$ >>{log}; test $(wc -l <{log}) -lt 15 || {{ until test -e {go}; do sleep 0.01; done; echo done >>{done}; }}"
    );
    let mut child = start(env, &["--timeout", "50s"], &script);
    wait_until("a run after the warm-up", || lines(env, "log") == 15);
    let text = fs::read_to_string(&log).expect("it is there");
    let pid = text
        .lines()
        .last()
        .and_then(|line| line.parse().ok())
        .expect("a number");
    child.kill().expect("it is our child");
    child.wait().expect("it is our child");
    assert!(
        status_line(pid, "State").is_some(),
        "the run under way goes on"
    );
    // Its session stays as long as it runs, whoever else uses refit meanwhile.
    let session = wait_for_file(&session);
    let session = Path::new(session.trim());
    let args = ["compare", "--rounds", "12", "env.A=1", "--", "true"];
    expect_code(&env.refit(&args), 0);
    assert!(
        session.is_absolute() && session.exists(),
        "{}",
        session.display()
    );
    env.file("go", "");
    wait_for("its end", || {
        status_line(pid, "State").is_none().then_some(())
    });
    assert_eq!((lines(env, "done"), lines(env, "log")), (1, 15));
    // Only whole round pairs had been stored.
    assert_eq!(list(&result(env)["runs"]).len() % 6, 0);
    // Now whoever uses refit removes it, unless another test's refit looks at it for too long.
    let mut deadline = Deadline::after(Duration::from_secs(20));
    loop {
        expect_code(&env.refit(&args), 0);
        if !session.exists() {
            return Outcome::Pass;
        }
        assert!(
            !deadline.is_over(),
            "after {deadline} the session is there: {}",
            users_of_session(session)
        );
    }
}
