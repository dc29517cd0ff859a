//! Comparisons of services that are interrupted once, twice, or killed: nothing of them goes on, nothing stays.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::compared::{list, printed};
use crate::processes::status_line;
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::{base, left_behind, started};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test_env::{TestEnv, described, expect_code, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(one_interruption_finishes_the_round_pair),
    test!(the_second_interruption_ends_the_window_at_once),
    test!(the_second_interruption_ends_every_phase_at_once),
    test!(a_process_whose_first_thread_has_ended_is_ended_too),
    test!(what_a_killed_comparison_left_is_ended_and_removed_by_the_next),
    test!(what_a_killed_check_left_is_ended_and_removed_by_the_next),
    test!(nobody_removes_what_is_still_used),
];

/// Nothing but a signal ends it soon.
const LONG: &[&str] = &["--rounds", "400", "--precision", "0.0001%"];

/// A service that no limit of its recipe ends within the test's own.
fn without_limits<'a>(env: &'a TestEnv, name: &str) -> RecipeFolder<'a> {
    [
        "service.ready-timeout",
        "service.stop-timeout",
        "load.timeout",
    ]
    .into_iter()
    .fold(RecipeFolder::service(env, name), |folder, key| {
        folder.set(key, "'2h'")
    })
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("refit starts")
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("it is our child")
}

/// The end of a comparison that SIGINT ends: nothing of it is left, and what was measured is stored.
fn interrupted(env: &TestEnv, folder: &RecipeFolder, child: Child) -> (Output, Value) {
    let output = end(child);
    expect_code(&output, 130);
    folder.nothing_left();
    let result = result(env);
    assert_eq!(result["interrupted"], true);
    (output, result)
}

/// Sends SIGINT, and waits until refit has taken it.
fn interrupt(child: &Child) {
    let pid = i32::try_from(child.id()).expect("process ids are ints");
    sys::send_signal(pid, libc::SIGINT);
    wait_until("the signal to be taken", || {
        status_line(child.id(), "ShdPnd").is_none_or(|mask| mask.bytes().all(|digit| digit == b'0'))
    });
}

fn result(env: &TestEnv) -> Value {
    let text = fs::read_to_string(env.path("result.json")).expect("there is a result");
    let result = serde_json::from_str(&text).expect("it is JSON");
    expect_valid(&result);
    result
}

fn lines(env: &TestEnv, name: &str) -> usize {
    fs::read_to_string(env.path(name)).map_or(0, |text| text.lines().count())
}

fn one_interruption_finishes_the_round_pair(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::service(env, "once").variants(&["sync=off"]);
    let child = start(folder.comparison(LONG));
    // However late it arrives, there are too few for a verdict.
    wait_until("the warm-up", || started(env, "once").len() >= 6);
    interrupt(&child);
    let (output, result) = interrupted(env, &folder, child);
    let runs = list(&result["runs"]);
    assert_eq!(
        (runs.len() % 6, runs.len()),
        (0, started(env, "once").len())
    );
    assert!(runs.len() < 6 * 12, "it went on for {} runs", runs.len());
    assert!(runs.iter().all(|run| run["failure"].is_null()));
    assert!(
        printed(&output).contains("interrupted:"),
        "{}",
        printed(&output)
    );
    Outcome::Pass
}

fn the_second_interruption_ends_the_window_at_once(env: &TestEnv) -> Outcome {
    let log = env.path("windows");
    let hangs = format!("echo >>{log}; test $(wc -l <{log}) -lt 15 || exec sleep 7200");
    let folder = without_limits(env, "twice").text("load.command", &hangs);
    let child = start(folder.comparison(LONG));
    wait_until("the run that hangs", || lines(env, "windows") == 15);
    interrupt(&child);
    let (server, ..) = started(env, "twice").pop().expect("it was started");
    let lives = || status_line(server, "State").is_some();
    assert!(lives(), "one interruption kills no run");
    interrupt(&child);
    let (_, result) = interrupted(env, &folder, child);
    let runs = list(&result["runs"]);
    let counted = runs.iter().filter(|run| run["failure"].is_null()).count();
    assert_eq!((runs.len(), counted), (15, 12));
    for variant in list(&result["variants"]) {
        assert!(variant["disqualified"].is_null(), "{variant}");
    }
    Outcome::Pass
}

fn the_second_interruption_ends_every_phase_at_once(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let hangs = format!("echo >>{log}; exec sleep 7200");
    for key in [
        "service.setup",
        "service.start",
        "service.ready",
        "load.warmup",
        "load.drain",
        "check.command",
        "service.stop",
    ] {
        let _ = fs::remove_file(&log);
        let folder = without_limits(env, "phases");
        let folder = if key == "service.ready" {
            folder.set(key, &format!("{{ command = '{hangs}' }}"))
        } else {
            folder.text(key, &hangs)
        };
        let (name, dir) = (folder.write(), base(env));
        let args = ["recipes", "check", &name, "--yes", "--dir", &dir];
        let child = start(refit(env, &args));
        wait_until(key, || lines(env, "log") == 1);
        interrupt(&child);
        interrupt(&child);
        let output = end(child);
        expect_code(&output, 1);
        // The variant that was under way, and no other.
        let text = printed(&output);
        assert!(
            !text.contains("env.A=1") && !text.contains("ok "),
            "{key}: {}",
            described(&output)
        );
        folder.nothing_left();
    }
    Outcome::Pass
}

/// Kills refit in the middle of a window; what it leaves is there.
fn kill_in_window(env: &TestEnv, folder: &RecipeFolder, name: &str, command: Command) {
    let mut child = start(command);
    wait_until("a window", || lines(env, "windows") > 0);
    child.kill().expect("it is our child");
    child.wait().expect("it is our child");
    let left = left_behind(env, name);
    for what in ["process", "/refit-lab-", "/dev/shm/refit-lab-"] {
        assert!(
            left.iter().any(|line| line.contains(what)),
            "no {what} in {left:?}"
        );
    }
    fs::remove_file(env.path("windows")).expect("it is there");
    assert!(!started(env, name).is_empty());
    // So that what comes next does not start it.
    folder.clone().text("load.command", "true").write();
}

fn hanging<'a>(env: &'a TestEnv, name: &str) -> RecipeFolder<'a> {
    let hangs = format!("echo >>{}; exec sleep 7200", env.path("windows"));
    RecipeFolder::service(env, name).text("load.command", &hangs)
}

/// exit(2) by number ends the first thread alone.
const FIRST_THREAD_ENDS: &str = "python3 -c 'import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall(60, 0)'";

fn a_process_whose_first_thread_has_ended_is_ended_too(env: &TestEnv) -> Outcome {
    let program = env.program("line_service");
    let start = format!(
        "{FIRST_THREAD_ENDS} & echo $! >>{}; exec {program} serve $REFIT_PORT_LINE lines",
        env.path("started")
    );
    let folder = RecipeFolder::service(env, "thread")
        .text("service.start", &start)
        .set("service.stop-timeout", "'2s'");
    let output = folder.check();
    folder.nothing_left();
    let started = fs::read_to_string(env.path("started")).expect("the service was started");
    assert!(!started.is_empty(), "{}", described(&output));
    for pid in started.lines() {
        wait_until(&described(&output), || {
            !Path::new("/proc").join(pid).exists()
        });
    }
    Outcome::Pass
}

fn what_a_killed_comparison_left_is_ended_and_removed_by_the_next(env: &TestEnv) -> Outcome {
    let next = RecipeFolder::command(env, "next");
    let program = env.program("line_service");
    for (name, start) in [
        (
            "plain",
            format!("exec {program} serve $REFIT_PORT_LINE lines"),
        ),
        // Several that end only by force, elsewhere at work.
        (
            "group",
            format!(
                "trap '' TERM; cd /; setsid sleep 600 & exec {program} serve $REFIT_PORT_LINE $REFIT_DIR/lines"
            ),
        ),
        (
            "daemon",
            format!("{program} daemon $REFIT_PORT_LINE lines; true"),
        ),
        // Its files and its environment are shown for its second thread only.
        (
            "thread",
            format!(
                "cd /; {FIRST_THREAD_ENDS} & exec {program} serve $REFIT_PORT_LINE $REFIT_DIR/lines"
            ),
        ),
    ] {
        let note = format!(
            "echo $$ $REFIT_DIR $REFIT_TMPFS >>{}",
            env.path(&format!("starts.{name}"))
        );
        let folder = hanging(env, name).text("service.start", &format!("{note}; {start}"));
        kill_in_window(env, &folder, name, folder.comparison(LONG));
        // Whichever command comes next.
        expect_code(&next.check(), 0);
        folder.nothing_left();
        kill_in_window(env, &folder, name, folder.comparison(LONG));
        let (name, dir) = (next.write(), base(env));
        let args = ["compare", "--yes", "--rounds", "12", "--dir", &dir, &name];
        expect_code(&finish(&mut refit(env, &args)), 0);
        folder.nothing_left();
    }
    Outcome::Pass
}

fn what_a_killed_check_left_is_ended_and_removed_by_the_next(env: &TestEnv) -> Outcome {
    let folder = hanging(env, "check");
    let (name, dir) = (folder.write(), base(env));
    let args = ["recipes", "check", &name, "--yes", "--dir", &dir];
    kill_in_window(env, &folder, "check", refit(env, &args));
    expect_code(&RecipeFolder::command(env, "next").check(), 0);
    folder.nothing_left();
    Outcome::Pass
}

/// The one that is under way is not the killed one.
fn nobody_removes_what_is_still_used(env: &TestEnv) -> Outcome {
    let log = env.path("windows");
    let go = env.path("go");
    let waits = format!("echo >>{log}; until test -e {go}; do sleep 0.01; done");
    let folder = RecipeFolder::service(env, "used").text("load.command", &waits);
    let (name, dir) = (folder.write(), base(env));
    let args = ["recipes", "check", &name, "--yes", "--dir", &dir];
    let child = start(refit(env, &args));
    wait_until("a window", || lines(env, "windows") == 1);
    expect_code(&RecipeFolder::command(env, "next").check(), 0);
    env.file("go", "");
    let output = end(child);
    expect_code(&output, 0);
    folder.nothing_left();
    Outcome::Pass
}
