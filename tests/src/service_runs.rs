//! Services that work: each way to be ready, what a run holds, where instances lie.

use std::collections::BTreeSet;
use std::fs;
use std::process::Child;

use serde_json::json;

use crate::compared::{effect, list, number, printed, runs_of, said, variant};
use crate::lab::{Lab, described, expect_code};
use crate::recipe_folder::{RecipeFolder, base, finish, refit};
use crate::runner::{Outcome, Test};
use crate::test;

pub const TESTS: &[Test] = &[
    test!(a_service_is_waited_for_in_each_way),
    test!(a_daemon_is_followed_and_ended),
    test!(a_run_holds_what_its_window_held),
    test!(operations_can_be_read_from_the_output),
    test!(instances_stay_until_the_end),
    test!(a_declared_knob_acts_on_its_variant_alone_and_shows_its_class),
    test!(a_check_takes_each_edit_back),
    test!(two_at_once_do_not_collide),
    test!(what_this_refit_cannot_try_is_listed_and_the_rest_is_tried),
    test!(as_root_every_command_runs_as_the_recipes_user),
    test!(a_recipe_without_a_server_measures_its_load),
];

/// The server comes late, and the load does not wait: to be ready too early would fail.
fn a_service_is_waited_for_in_each_way(lab: &Lab) -> Outcome {
    let program = lab.program("line_service");
    let at = |address: &str, ready: &str| {
        RecipeFolder::service(lab, "ready")
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

fn a_daemon_is_followed_and_ended(lab: &Lab) -> Outcome {
    let program = lab.program("line_service");
    let pids = lab.path("pids");
    let folder = RecipeFolder::service(lab, "daemon")
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
        let (output, result) = folder.compare(&["--rounds", "12"]);
        expect_code(&output, 0);
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
    assert!(pids.lines().count() >= 2 * 42);
    for pid in pids.lines() {
        let dir = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        assert!(!dir.ends_with("line_service"), "{pid} lives");
    }
    Outcome::Pass
}

/// Not the setup's syncs and not those of the warm-up: judged by the server's own count, and by the load's clock.
fn a_run_holds_what_its_window_held(lab: &Lab) -> Outcome {
    let program = lab.program("line_service");
    let (file, before) = (lab.program("fsync_once"), lab.path("before"));
    let folder = RecipeFolder::service(lab, "window")
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
            // The load's own start and end are in the window as well.
            assert!(window < own + 1e9, "{load}");
        }
    }
    let rate = |name: &str| {
        let mut rates: Vec<f64> = runs_of(&result, name)
            .iter()
            .map(|run| 50.0 / number(&run["load"]["window_ns"]))
            .collect();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let change = number(&effect(&result, "sync=off", "rate")["change"]);
    let expected = rate("sync=off") / rate("baseline") - 1.0;
    assert!(
        change > 0.0 && (change / expected - 1.0).abs() < 0.5,
        "{change} {expected}"
    );
    Outcome::Pass
}

/// Each program that synced: calls seen, real, suppressed.
fn list_of_calls(calls: &serde_json::Value) -> Vec<(String, u64, u64, u64)> {
    let programs = calls.as_object().expect("programs by name");
    let rows = programs.iter().map(|(path, calls)| {
        let of = |field: &str| calls["fsync"][field].as_u64().expect("a count");
        let name = path.rsplit('/').next().unwrap_or(path).to_owned();
        (name, of("seen"), of("real"), of("suppressed"))
    });
    rows.collect()
}

fn operations_can_be_read_from_the_output(lab: &Lab) -> Outcome {
    let folder = RecipeFolder::service(lab, "operations")
        .set("load.operations", "{ regex = '^([0-9]+) done' }")
        .text(
            "load.command",
            &format!("{} load $REFIT_PORT_LINE 17", lab.program("line_service")),
        );
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    for run in list(&result["runs"]) {
        assert_eq!(run["load"]["operations"], 17);
    }
    let silent = folder.text("load.command", "echo nothing was done");
    let said = silent.refused(&[]);
    for words in ["load.operations: `^([0-9]+) done`", ": nothing was done\n"] {
        assert!(said.contains(words), "{said}");
    }
    Outcome::Pass
}

fn instances_stay_until_the_end(lab: &Lab) -> Outcome {
    let log = lab.path("listed");
    let list_all = format!("ls $REFIT_DIR/../*/lines | wc -l >>{log}; wc -l <lines");
    let folder = RecipeFolder::service(lab, "stay").text("check.command", &list_all);
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

fn a_declared_knob_acts_on_its_variant_alone_and_shows_its_class(lab: &Lab) -> Outcome {
    let seen = lab.path("seen");
    let folder = RecipeFolder::command(lab, "conf")
        .text("service.setup", "echo \"dir = $REFIT_DIR/here\" >conf; echo last >>conf")
        .text(
            "load.command",
            &format!("seq 10 >numbers; echo $(sed s,$REFIT_DIR,D, conf) $(ls made) >>{seen}"),
        )
        .set(
            "conf.where.there",
            "{ class = 'bounded-loss', file = 'conf', from = 'dir = $REFIT_DIR/here', to = 'dir = there' }",
        )
        .set(
            "conf.index.on",
            "{ class = 'safe', command = 'touch made', inverse = 'rm made' }",
        )
        .variants(&["conf.where=there", "conf.index=on"]);
    let (output, result) = folder.compare(&["--rounds", "14"]);
    expect_code(&output, 0);
    let text = fs::read_to_string(&seen).expect("each run wrote there");
    for run in list(&result["runs"]).iter().zip(text.lines()) {
        let (run, line) = run;
        let name = &result["variants"][number(&run["variant"]) as usize]["name"];
        let expected = match name.as_str() {
            Some("conf.where=there") => "dir = there last",
            Some("conf.index=on") => "dir = D/here last made",
            _ => "dir = D/here last",
        };
        assert_eq!(line, expected, "{name}");
    }
    let shown = printed(&output);
    for (name, class) in [
        ("conf.where=there", "bounded-loss"),
        ("conf.index=on", "safe"),
    ] {
        let (_, record) = variant(&result, name);
        assert_eq!(record["class"], class);
        assert!(shown.contains(&format!("{class}: {name}")), "{shown}");
    }
    Outcome::Pass
}

fn a_check_takes_each_edit_back(lab: &Lab) -> Outcome {
    let log = lab.path("log");
    let folder = RecipeFolder::command(lab, "back")
        .text("service.setup", "printf 'a\\nb' >conf")
        .set(
            "conf.a.c",
            "{ class = 'safe', file = 'conf', from = 'a', to = 'c' }",
        )
        .set(
            "conf.made.yes",
            &format!("{{ class = 'safe', command = 'echo made >>{log}', inverse = 'echo back >>{log}; exit $(cat {log}.code)' }}"),
        )
        .variants(&["conf.a=c", "conf.made=yes"]);
    lab.file("log.code", "0");
    expect_code(&folder.check(), 0);
    assert_eq!(
        fs::read_to_string(&log).expect("it is there"),
        "made\nback\nmade\n"
    );
    // An inverse that fails is a failure.
    lab.file("log.code", "7");
    let output = folder.check();
    expect_code(&output, 1);
    let failed = "FAILED  back: conf.made=yes: the inverse of conf.made=yes failed, exit status: 7";
    assert!(printed(&output).contains(failed), "{}", described(&output));
    Outcome::Pass
}

fn two_at_once_do_not_collide(lab: &Lab) -> Outcome {
    let log = lab.path("ports");
    let folder = RecipeFolder::service(lab, "twice")
        .text("load.drain", &format!("echo $REFIT_PORT_LINE >>{log}"));
    let commands = [(); 2].map(|()| folder.comparison(&["--rounds", "12"]).spawn());
    for child in commands {
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

fn what_this_refit_cannot_try_is_listed_and_the_rest_is_tried(lab: &Lab) -> Outcome {
    let folder = RecipeFolder::command(lab, "later").variants(&[
        "future=8ms",
        "env.A=1",
        "malloc=/nowhere/lib.so",
    ]);
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    let settings: Vec<_> = list(&result["unavailable"])
        .iter()
        .map(|u| &u["settings"])
        .collect();
    assert_eq!(settings, ["future=8ms", "malloc=/nowhere/lib.so"]);
    let text = printed(&output);
    assert!(
        text.contains("unavailable: future=8ms: this refit has no knob `future`"),
        "{text}"
    );
    assert!(
        text.contains("unavailable: malloc=/nowhere/lib.so"),
        "{text}"
    );
    assert!(!effect(&result, "env.A=1", "rate")["verdict"].is_null());
    let output = folder.check();
    expect_code(&output, 0);
    let text = printed(&output);
    assert!(
        text.contains("skipped later: future=8ms: this refit has no knob"),
        "{text}"
    );
    // With nothing left to try there is nothing to compare; typed, it is a mistake.
    let said = folder.clone().variants(&["future=8ms"]).refused(&[]);
    assert!(
        said.contains("none of the recipe's variants can be tried here: future=8ms"),
        "{said}"
    );
    let dir = base(lab);
    let args = ["compare", "--yes", "--dir", &dir, "./later", "future=8ms"];
    let output = finish(&mut refit(lab, &args));
    expect_code(&output, 2);
    assert!(
        crate::compared::said(&output).contains("future"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}

fn as_root_every_command_runs_as_the_recipes_user(lab: &Lab) -> Outcome {
    let note = format!(
        "echo $(id -un) $(id -gn) $(stat -c %U . $REFIT_TMPFS) >>{}",
        lab.file("who", "")
    );
    expect_code(&lab.run(&["chmod", "666", "who"]), 0);
    let program = crate::places::public(lab, &lab.program("line_service"));
    let folder = RecipeFolder::service(lab, "user")
        .text("service.user", "nobody")
        .text("service.setup", &note)
        .text(
            "service.start",
            &format!("{note}; exec {program} serve $REFIT_PORT_LINE lines"),
        )
        .text("load.warmup", &note)
        .text(
            "load.command",
            &format!("{note}; {program} load $REFIT_PORT_LINE 10"),
        )
        .text("load.drain", &note)
        .text("check.command", &format!("{note}; wc -l <lines"))
        .variants(&["sync=off"]);
    let output = folder.check();
    expect_code(&output, 0);
    folder.nothing_left();
    let who = fs::read_to_string(lab.path("who")).expect("it is there");
    assert_eq!(who, "nobody nogroup nobody nobody\n".repeat(12));
    Outcome::Pass
}

fn a_recipe_without_a_server_measures_its_load(lab: &Lab) -> Outcome {
    let program = lab.program("write_fsync");
    let folder = RecipeFolder::command(lab, "load")
        .text("load.command", &format!("{program} $REFIT_OPERATIONS file"))
        .text("load.warmup", &format!("{program} 5 other"))
        .text("check.command", "test -s file")
        .text("main", "syncs")
        .variants(&["sync=off"]);
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    for run in runs_of(&result, "baseline") {
        assert_eq!(run["totals"]["fsync"]["real"], 10, "{run}");
        assert_eq!(run["load"]["operations"], 10);
    }
    assert_eq!(result["main"], "syncs");
    assert_eq!(effect(&result, "sync=off", "syncs")["verdict"], "less");
    assert!(
        said(&output).contains("runs these commands"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}
