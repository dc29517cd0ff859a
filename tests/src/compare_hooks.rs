//! `refit compare`: what is done around each run, and where it runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::compared::{compare, compare_shell, list, messages, number, printed, runs_of};
use crate::runner::{Outcome, Test};
use crate::terminal::Terminal;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(each_run_reads_the_input_from_its_beginning),
    test!(a_suggestion_carries_what_the_run_needs),
    test!(hooks_run_once_around_each_run),
    test!(a_slow_prepare_is_not_timed),
    test!(each_run_starts_in_a_fresh_copy),
    test!(copies_of_read_only_directories_go_as_well),
    test!(copies_that_would_not_fit_are_refused),
    test!(a_pipeline_is_one_word_for_the_shell),
    test!(a_program_gets_no_input_and_no_terminal),
    test!(a_program_cannot_wait_for_the_terminal),
    test!(programs_and_hooks_get_signals_as_refit_does),
];

fn hooks_run_once_around_each_run(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let note = |letter: &str| format!("printf {letter} >>{log}");
    let script = note("r");
    let args = [
        "--prepare",
        &note("p"),
        "--check",
        &note("k"),
        "--conclude",
        &note("c"),
    ];
    let rest = ["--rounds", "12", "env.A=1", "--", "sh", "-c", &script];
    let (output, result) = compare(env, &[&args[..], &rest].concat());
    expect_code(&output, 0);
    let runs = list(&result["runs"]).len();
    assert!(runs >= 42);
    let text = fs::read_to_string(&log).expect("all wrote there");
    assert_eq!(text, "prkc".repeat(runs));
    Outcome::Pass
}

fn a_slow_prepare_is_not_timed(env: &TestEnv) -> Outcome {
    const EACH_NS: f64 = 1e8;
    let sleeps = "sleep 0.1";
    let args = [
        "--prepare",
        sleeps,
        "--conclude",
        sleeps,
        "--rounds",
        "12",
        "env.A=1",
        "--",
        "true",
    ];
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    for name in ["baseline", "env.A=1"] {
        // A run may take any time; with a hook in it, none could take less than the hook.
        let runs = runs_of(&result, name);
        let walls = runs.iter().map(|run| number(&run["metrics"]["wall_ns"]));
        let least = walls.fold(f64::MAX, f64::min);
        assert!(least < EACH_NS, "{least} ns");
    }
    let took_ns = number(&result["plan"]["took_s"]) * 1e9;
    let runs = list(&result["runs"]).len() as f64;
    assert!(
        took_ns > 2.0 * runs * EACH_NS,
        "it was prepared and concluded, {took_ns} ns"
    );
    Outcome::Pass
}

fn each_run_starts_in_a_fresh_copy(env: &TestEnv) -> Outcome {
    let original = env.subdir("data");
    for name in ["value", "secret"] {
        fs::write(format!("{original}/{name}"), "first").expect("the directory is ours");
    }
    std::os::unix::fs::symlink("value", format!("{original}/link")).expect("likewise");
    let seen = env.path("seen");
    // Each run finds the original's content, the one before it still in its place, and then spoils its own.
    let script = format!(
        "set -e; test $(cat value link) = firstfirst; test ! -e new; test -e prepared
        test ! -e {seen} || test -e \"$(tail -n 1 {seen})/new\"
        pwd >>{seen}; echo spoilt >value; rm secret; echo >new"
    );
    let hooks = [
        "--prepare",
        "echo >prepared",
        "--check",
        "test -e new",
        "--conclude",
        "test -e new",
    ];
    let args = [
        "--fresh-copy",
        "data",
        "--rounds",
        "12",
        "env.A=1",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let (output, result) = compare(env, &[&hooks[..], &args].concat());
    expect_code(&output, 0);
    for run in list(&result["runs"]) {
        assert!(run["failure"].is_null(), "{run}");
    }
    let text = fs::read_to_string(&seen).expect("each run wrote there");
    let copies: BTreeSet<&str> = text.lines().collect();
    assert_eq!(copies.len(), list(&result["runs"]).len());
    for copy in copies {
        assert!(!Path::new(copy).exists() && copy != original, "{copy}");
    }
    for name in ["value", "secret", "link"] {
        let content = fs::read_to_string(format!("{original}/{name}")).expect("it is still there");
        assert_eq!(content, "first");
    }
    assert_eq!(fs::read_dir(&original).expect("likewise").count(), 3);
    assert_eq!(names(env), ["data", "seen"]);
    // Not even after a failure.
    let args = ["compare", "--fresh-copy", "data", "env.A=1", "--", "false"];
    expect_code(&env.refit(&args), 2);
    assert_eq!(names(env), ["data", "seen"]);
    Outcome::Pass
}

fn names(env: &TestEnv) -> Vec<String> {
    let entries = fs::read_dir(env.dir()).expect("the directory is ours");
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn copies_of_read_only_directories_go_as_well(env: &TestEnv) -> Outcome {
    let module = format!("{}/module", env.subdir("data"));
    let script = format!("mkdir {module} && echo >{module}/file && chmod 555 {module}");
    expect_code(&env.run(&["sh", "-c", &script]), 0);
    let args = [
        "compare",
        "--fresh-copy",
        "data",
        "--rounds",
        "12",
        "env.A=1",
        "--",
    ];
    let output = env.refit(&[&args[..], &["test", "-e", "module/file"]].concat());
    expect_code(&output, 0);
    expect_code(&env.run(&["chmod", "755", &module]), 0);
    assert_eq!(names(env), ["data"]);
    Outcome::Pass
}

fn copies_that_would_not_fit_are_refused(env: &TestEnv) -> Outcome {
    let data = env.subdir("data");
    let script =
        format!("truncate -s 20T {data}/sparse 2>/dev/null || truncate -s 1T {data}/sparse");
    if !env.run(&["sh", "-c", &script]).status.success() {
        env.skip("no sparse file of a terabyte can be made here");
    }
    let args = [
        "compare",
        "--fresh-copy",
        "data",
        "--rounds",
        "12",
        "env.A=1",
        "--",
        "true",
    ];
    let output = env.refit(&args);
    expect_code(&output, 2);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        messages.contains("--fresh-copy needs about"),
        "{}",
        described(&output)
    );
    assert_eq!(names(env), ["data"]);
    Outcome::Pass
}

fn a_pipeline_is_one_word_for_the_shell(env: &TestEnv) -> Outcome {
    let out = env.path("out");
    let pipeline = format!("printf 'a b' | wc -c | tr -d ' ' >{out}");
    let args = ["--shell", "--rounds", "12", "env.A=1", "--", &pipeline];
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    assert_eq!(
        fs::read_to_string(&out).expect("each run wrote there"),
        "3\n"
    );
    assert_eq!(list(&result["command"])[..2], ["sh", "-c"]);
    let run = &runs_of(&result, "env.A=1")[0];
    assert!(
        number(&run["coverage"]["processes_reached"]) >= 3.0,
        "{run}"
    );
    Outcome::Pass
}

fn a_program_gets_no_input_and_no_terminal(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let script = format!(
        "test -z \"$(cat)\" && test ! -t 0 -a ! -t 1 -a ! -t 2 && echo loud && echo loud >&2 && echo >>{log}"
    );
    let mut refit = env.refit_command(&["compare", "--quiet", "--rounds", "12", "env.A=1", "--"]);
    let input = fs::File::open("/proc/self/status").expect("/proc is mounted");
    let output = refit
        .args(["sh", "-c", &script])
        .stdin(input)
        .output()
        .expect("refit starts");
    expect_code(&output, 0);
    let text = fs::read_to_string(&log).expect("each run wrote there");
    assert!(text.lines().count() >= 42, "{text}");
    assert!(output.stderr.is_empty(), "{}", described(&output));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(!table.lines().any(|line| line == "loud"), "{table}");
    Outcome::Pass
}

/// It would be stopped by SIGTTIN, and nobody would ever continue it.
fn a_program_cannot_wait_for_the_terminal(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let script = format!("if read line </dev/tty; then exit 1; else echo >>{log}; fi");
    let args = [
        "compare", "--quiet", "--rounds", "12", "env.A=1", "--", "sh", "-c", &script,
    ];
    let (status, shown) = Terminal::start(env.refit_command(&args)).finish();
    assert_eq!(status.code(), Some(0), "{shown}");
    let text = fs::read_to_string(&log).expect("each run wrote there");
    assert!(text.lines().count() >= 42, "{shown}");
    Outcome::Pass
}

fn programs_and_hooks_get_signals_as_refit_does(env: &TestEnv) -> Outcome {
    let look = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let usual = env.run(&["sh", "-c", &format!("exec {look}")]);
    let log = format!("exec {look} >>{}", env.path("log"));
    env.subdir("data");
    let args = [
        "compare",
        "--quiet",
        "--rounds",
        "12",
        "--prepare",
        &log,
        "--conclude",
        &log,
    ];
    let rest = ["--fresh-copy", "data", "env.A=1", "--", "sh", "-c", &log];
    expect_code(&env.refit(&[&args[..], &rest].concat()), 0);
    let text = fs::read_to_string(env.path("log")).expect("all wrote there");
    let usual = printed(&usual);
    assert_eq!(usual.lines().count(), 2);
    assert_eq!(text, usual.repeat(3 * 6 * 7));
    Outcome::Pass
}

fn each_run_reads_the_input_from_its_beginning(env: &TestEnv) -> Outcome {
    let rows = env.file("rows", "one\ntwo\n");
    let seen = env.path("seen");
    let script = format!("cat >>{seen}; echo . >>{seen}");
    let (output, result) = compare_shell(env, "--input rows --rounds 12 env.A=1", &script);
    expect_code(&output, 0);
    assert_eq!(result["input"], "rows");
    let runs = list(&result["runs"]).len();
    let read = std::fs::read_to_string(&seen).expect("the command wrote it");
    assert_eq!(read, "one\ntwo\n.\n".repeat(runs));

    let output = env.refit(&["run", "--quiet", "--input", &rows, "--", "cat"]);
    expect_code(&output, 0);
    assert_eq!(output.stdout, b"one\ntwo\n");
    for (verb, code) in [("compare", 2), ("run", 125)] {
        for (path, why) in [
            ("nowhere", "cannot read nowhere"),
            (".", "not a regular file"),
        ] {
            let output = env.refit(&[verb, "--input", path, "env.A=1", "--", "true"]);
            expect_code(&output, code);
            let text = messages(&output);
            assert!(text.contains("--input: ") && text.contains(why), "{text}");
        }
    }
    Outcome::Pass
}

fn a_suggestion_carries_what_the_run_needs(env: &TestEnv) -> Outcome {
    let program = env.program("write_fsync");
    let rows = env.file("rows", "one\n");
    let inside = env.subdir("inside");
    let suggested = |script: &str, stdin: Stdio| {
        let output = env
            .refit_command(&["run", "--", "sh", "-c", script, "sh", "out"])
            .current_dir(&inside)
            .stdin(stdin)
            .output()
            .expect("refit starts");
        let _ = std::fs::remove_file(format!("{inside}/out"));
        messages(&output)
    };
    let busy = format!("{program} 50 out && cat");
    let file = || Stdio::from(std::fs::File::open(&rows).expect("it is there"));
    let text = suggested(&busy, file());
    let options = format!("--fresh-copy . --prepare 'rm -rf out' --input {rows} sync");
    assert!(
        text.contains(&format!("try   refit compare {options}")),
        "{text}"
    );
    let text = suggested(&busy, Stdio::piped());
    assert!(
        text.contains("--input FILE sync") && text.contains("store its standard input"),
        "{text}"
    );
    let text = suggested(&busy, Stdio::null());
    assert!(
        text.contains("try   refit compare") && !text.contains("--input"),
        "{text}"
    );
    let elsewhere = format!("{program} 50 {}", env.path("elsewhere"));
    let text = suggested(&elsewhere, Stdio::null());
    assert!(text.contains("try   refit compare sync"), "{text}");
    let text = suggested(&format!("{busy}; exit 3"), Stdio::null());
    let why = "is suggested: the command failed with exit code 3";
    assert!(text.contains(why) && !text.contains("try "), "{text}");

    let spent = env.file("spent", "x");
    let script = format!("{program} 50 {}; rm \"$1\"", env.path("elsewhere"));
    let output = env.refit(&["run", "--", "sh", "-c", &script, "sh", &spent]);
    let why = format!("the command removed {spent}");
    assert!(messages(&output).contains(&why), "{}", messages(&output));
    Outcome::Pass
}
