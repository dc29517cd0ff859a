//! Services that work: each way to be ready, what a run holds, where instances lie.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

use serde_json::{Value, json};

use crate::compared::{effect, list, number, printed, ratios, runs_of, variant};
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::sys::set_umask;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_service_is_waited_for_in_each_way),
    test!(a_daemon_is_followed_and_ended),
    test!(a_run_holds_what_its_window_held),
    test!(copies_after_a_fork_are_those_that_were_written),
    test!(operations_can_be_read_from_the_output),
    test!(instances_stay_until_the_end),
    test!(two_at_once_do_not_collide),
    test!(the_user_of_a_service_reads_the_recipe_whatever_the_umask),
];

/// The server comes late, and the load does not wait: to be ready too early would fail.
fn a_service_is_waited_for_in_each_way(env: &TestEnv) -> Outcome {
    let program = env.program("line_service");
    let at = |address: &str, ready: &str| {
        RecipeFolder::service(env, "ready")
            .text(
                "service.start",
                &format!("sleep 0.15; exec {program} serve {address} lines >listening.log"),
            )
            .set("service.ready", ready)
            .text("load.warmup", "true")
            .text("load.command", &format!("{program} load {address} 10"))
    };
    let port = "$REFIT_PORT_LINE";
    for folder in [
        at(port, "{ tcp = 'line' }"),
        at("socket", "{ unix = 'socket' }"),
        at(
            port,
            "{ log = '^listening on [0-9]+$', file = 'listening.log' }",
        ),
        at(port, "{ command = 'grep -q listening listening.log' }"),
        at(port, "{ log = 'listening on' }").text(
            "service.start",
            &format!("sleep 0.15; exec {program} serve {port} lines"),
        ),
    ] {
        let output = folder.check();
        expect_code(&output, 0);
        for line in [
            "ok      ready: baseline: 10 (",
            "ok      ready: env.A=1: 10 (",
        ] {
            assert!(printed(&output).contains(line), "{}", described(&output));
        }
        folder.nothing_left();
    }
    Outcome::Pass
}

fn a_daemon_is_followed_and_ended(env: &TestEnv) -> Outcome {
    let program = env.program("line_service");
    let pids = env.path("pids");
    let mut made = 0;
    let folder = RecipeFolder::service(env, "daemon")
        .text(
            "service.start",
            &format!("{program} daemon $REFIT_PORT_LINE lines"),
        )
        .text("check.command", &format!("wc -l <lines; cat pid >>{pids}"))
        .variants(&["sync=off"]);
    // By its own means, and by SIGTERM, of which its parents know nothing any more.
    for folder in [
        folder.clone().text("service.stop", "kill $(cat pid)"),
        folder.set("service.stop-timeout", "'5s'"),
    ] {
        let (output, result) = folder.compare(&["--rounds", "6"]);
        expect_code(&output, 0);
        made += list(&result["runs"]).len();
        for run in list(&result["runs"]) {
            assert!(run["failure"].is_null(), "{run}");
            // What it used is known, although what was started has ended long ago.
            let service = &run["load"]["service"];
            assert!(number(&service["end"]["processes"]) == 1.0, "{service}");
        }
        assert_eq!(
            number(&effect(&result, "sync=off", "syncs")["change"]),
            -0.9
        );
    }
    let pids = fs::read_to_string(pids).expect("each run wrote there");
    assert!(made >= 2 * 24, "{made} runs");
    assert!(pids.lines().count() >= made);
    for pid in pids.lines() {
        let dir = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        assert!(!dir.ends_with("line_service"), "{pid} lives");
    }
    Outcome::Pass
}

/// Not the setup's syncs and not those of the warm-up: judged by the server's own count, and by the load's clock.
fn a_run_holds_what_its_window_held(env: &TestEnv) -> Outcome {
    let program = env.program("line_service");
    let (file, before) = (env.program("fsync_once"), env.path("before"));
    let folder = RecipeFolder::service(env, "window")
        .text("service.setup", &format!("{file} one && {file} two"))
        .text(
            "load.warmup",
            &format!("{program} load $REFIT_PORT_LINE 10"),
        )
        .text("load.drain", &format!("{program} load $REFIT_PORT_LINE 5"))
        .set("load.operations", "50")
        .set(
            "load.metrics.own-syncs",
            "{ regex = '([0-9]+) syncs', unit = 'count' }",
        )
        .set(
            "load.metrics.own-time",
            "{ regex = 'in ([0-9.]+) s', unit = 's' }",
        )
        .starting_with(&format!("{file} {before}"))
        .variants(&["sync=off"]);
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    for (name, real) in [("baseline", 50), ("sync=off", 0)] {
        for run in runs_of(&result, name) {
            let load = &run["load"];
            assert_eq!(
                (&load["operations"], &load["outcome"]),
                (&json!(50), &json!("65"))
            );
            assert_eq!(load["values"]["own-syncs"], 50.0);
            let calls = list_of_calls(&load["service"]["calls"]);
            assert_eq!(
                calls,
                [("line_service".to_owned(), 50, real, 50 - real)],
                "{run}"
            );
            let (window, own) = (
                number(&load["window_ns"]),
                number(&load["values"]["own-time"]),
            );
            assert!(own > 0.0 && window >= own, "{load}");
        }
    }
    let (index, _) = variant(&result, "sync=off");
    let rate = |run: &Value| 1.0 / number(&run["load"]["window_ns"]);
    let [least, most] = ratios(&result, index, rate).map(|ratio| ratio - 1.0);
    let change = number(&effect(&result, "sync=off", "rate")["change"]);
    assert!(
        least - 1e-9 <= change && change <= most + 1e-9,
        "{change} is not between {least} and {most}"
    );
    Outcome::Pass
}

/// Each program that synced: calls seen, real, suppressed.
fn list_of_calls(calls: &Value) -> Vec<(String, u64, u64, u64)> {
    let programs = calls.as_object().expect("programs by name");
    let rows = programs.iter().map(|(path, calls)| {
        let of = |field: &str| calls["fsync"][field].as_u64().expect("a count");
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        (name, of("seen"), of("real"), of("suppressed"))
    });
    rows.collect()
}

/// Of 4000 pages each of two children writes to 600 and the parent to 800 others: 2000 are there twice.
fn copies_after_a_fork_are_those_that_were_written(env: &TestEnv) -> Outcome {
    let program = env.program("fork_copies");
    let folder = |forks: &str| {
        RecipeFolder::service(env, "forks")
            .text("service.start", &format!("exec {program} {forks}"))
            .set("service.ready", "{ log = 'forked' }")
            .text("load.warmup", "true")
            .text("load.command", "seq 10 >lines")
    };
    for (forks, pages) in [("4000 800 600", 2000.0), ("4000 0 0", 0.0)] {
        let (output, result) = folder(forks).compare(&["--rounds", "6", "--html", "forks.html"]);
        expect_code(&output, 0);
        let runs = list(&result["runs"]);
        assert!(runs.len() >= 18);
        for run in runs {
            let service = &run["load"]["service"];
            let copied = service["fork_copies_bytes"].as_f64().expect("a number") / 4096.0;
            // And the pages of stack and libraries that fork and write(2) need.
            assert!(
                (pages..pages + 100.0).contains(&copied),
                "{copied} pages: {service:#}"
            );
        }
        let page = fs::read_to_string(env.path("forks.html")).expect("it was written");
        assert!(page.contains("Copied after fork"));
    }
    let (_, result) = RecipeFolder::service(env, "no-forks").compare(&["--rounds", "6"]);
    for run in list(&result["runs"]) {
        assert_eq!(run["load"]["service"]["fork_copies_bytes"], 0, "{run:#}");
    }
    Outcome::Pass
}

fn operations_can_be_read_from_the_output(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::service(env, "operations")
        .set("load.operations", "{ regex = '^([0-9]+) done' }")
        .text(
            "load.command",
            &format!("{} load $REFIT_PORT_LINE 17", env.program("line_service")),
        );
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    for run in list(&result["runs"]) {
        assert_eq!(run["load"]["operations"], 17);
    }
    let silent = folder.text("load.command", "echo nothing was done");
    let messages = silent.refused(&[]);
    for words in ["load.operations: `^([0-9]+) done`", ": nothing was done\n"] {
        assert!(messages.contains(words), "{messages}");
    }
    Outcome::Pass
}

fn instances_stay_until_the_end(env: &TestEnv) -> Outcome {
    let log = env.path("listed");
    let list_all = format!("ls $REFIT_DIR/../*/lines | wc -l >>{log}; wc -l <lines");
    let folder = RecipeFolder::service(env, "stay").text("check.command", &list_all);
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    let seen = fs::read_to_string(&log).expect("each run wrote there");
    let seen: Vec<usize> = seen
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    let expected: Vec<usize> = (1..=list(&result["runs"]).len()).collect();
    assert_eq!(seen, expected);
    Outcome::Pass
}

fn two_at_once_do_not_collide(env: &TestEnv) -> Outcome {
    let log = env.path("ports");
    let folder = RecipeFolder::service(env, "twice")
        .text("load.drain", &format!("echo $REFIT_PORT_LINE >>{log}"));
    // As many runs as that, whatever they show.
    let length = ["--rounds", "12", "--precision", "0.0001%"];
    // Each writes the recipe: both are written before one reads it.
    let commands = [(); 2].map(|()| folder.comparison(&length));
    for child in commands.map(|mut command| command.spawn()) {
        expect_code(
            &child
                .and_then(Child::wait_with_output)
                .expect("refit starts"),
            0,
        );
    }
    folder.nothing_left();
    let ports = fs::read_to_string(&log).expect("each run wrote there");
    assert_eq!(ports.lines().count(), 2 * 42);
    assert!(ports.lines().collect::<BTreeSet<_>>().len() > 1);
    Outcome::Pass
}

/// Root's umask of 077 would keep a server that drops its privileges out; and others stay out whatever it is, unless the
/// recipe lets them in.
fn the_user_of_a_service_reads_the_recipe_whatever_the_umask(env: &TestEnv) -> Outcome {
    let base = base(env);
    let before = set_umask(0);
    for (mask, others_enter, mode) in [
        (0o077, "true", "711"),
        (0o077, "false", "710"),
        (0, "false", "710"),
    ] {
        set_umask(before);
        let folder = RecipeFolder::command(env, "umask")
            .set("service.others-enter", others_enter)
            .set("service.user", "'nobody'")
            .text("service.setup", "$REFIT_RECIPE/words/say")
            .text("check.command", "stat -c 'as %a' $REFIT_RECIPE/..; id -un");
        let folder = folder.write();
        fs::create_dir_all(env.path("umask/words")).expect("the test's directory is ours");
        let script = env.path("umask/words/say");
        fs::write(&script, "#!/bin/sh\n").expect("likewise");
        fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("likewise");
        let args = ["recipes", "check", &folder, "--yes", "--dir", &base];
        let mut check = refit(env, &args);
        set_umask(mask);
        let output = finish(&mut check);
        expect_code(&output, 0);
        let text = printed(&output);
        assert_eq!(
            text.matches(&format!("as {mode} nobody")).count(),
            2,
            "{text}"
        );
    }
    Outcome::Pass
}
