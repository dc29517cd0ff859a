//! `run --cpu`: where a program was on the processors, against programs that know it.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::Value;

use crate::locations::source_dir;
use crate::places;
use crate::ran::{base, number};
use crate::runner::{Outcome, Test};
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, refit_path, wait_for, wait_until,
};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(two_functions_have_their_shares_and_lines),
    test!(what_a_program_starts_is_sampled_too),
    test!(the_kernels_part_is_named_where_it_may_be_seen),
    test!(a_profile_is_written_as_the_name_of_its_file_asks_for),
    test!(what_already_runs_is_sampled),
    test!(where_it_cannot_act_it_is_refused),
    test!(a_killed_refit_leaves_nobody_behind),
    test!(what_a_user_may_lock_is_left_to_his_programs),
];

/// Samples by the innermost function that is not the kernel's, of one executable.
fn by_function(report: &Value, executable: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (frames, samples) in paths(report, executable) {
        let functions = frames.iter().map(|frame| frame["function"].as_str());
        let functions: Vec<&str> = functions.map(|name| name.expect("a name")).collect();
        let of_program = functions.iter().rfind(|name| !name.ends_with("[kernel]"));
        *all.entry((*of_program.unwrap_or(&"")).to_owned())
            .or_default() += samples;
    }
    all
}

/// The functions of each path, the outermost first, and its samples.
fn paths<'a>(report: &'a Value, executable: &str) -> Vec<(Vec<&'a Value>, u64)> {
    let all = report["cpu"]["executables"].as_array();
    let all = all.unwrap_or_else(|| panic!("no samples in {report:#}"));
    let found = all
        .iter()
        .find(|one| base(&one["executable"]) == executable);
    let found = found.unwrap_or_else(|| panic!("no {executable} in {report:#}"));
    let paths = found["paths"].as_array().expect("a list").iter();
    paths
        .map(|path| {
            let frames = path["frames"].as_array().expect("a list").iter();
            let frame = |place| &report["cpu"]["frames"][number(place) as usize];
            (frames.map(frame).collect(), number(&path["samples"]))
        })
        .collect()
}

/// The line of cpu_spins.c that is marked as this function's.
fn line_of(function: &str) -> u64 {
    let source = source_dir().join("tests/programs/cpu_spins.c");
    let source = std::fs::read_to_string(source).expect("it was compiled");
    let marked = format!("// line of {function}");
    let at = source.lines().position(|line| line.ends_with(&marked));
    at.expect("it has that line") as u64 + 1
}

/// The program knows how long it was in each of the two, by its threads' clocks. A sample is taken at each millisecond of a
/// thread's time, so that shares are as exact as that; 3 points are for other machines' timers.
fn two_functions_have_their_shares_and_lines(env: &TestEnv) -> Outcome {
    let program = env.program("cpu_spins");
    let (output, report) = env.refit_json(&["run", "--cpu", "--", &program, "1.2"]);
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let truth: Vec<f64> = text
        .split_whitespace()
        .map(|word| word.parse().expect("numbers"))
        .collect();
    let found = by_function(&report, "cpu_spins");
    let of = |function: &str| found.get(function).copied().unwrap_or_default() as f64;
    let (mostly, rarely) = (of("mostly"), of("rarely"));
    let all: u64 = found.values().sum();
    let share = mostly / (mostly + rarely);
    let true_share = truth[0] / (truth[0] + truth[1]);
    assert!((share - true_share).abs() < 0.03, "{share} {true_share}");
    let seconds = all as f64 * number(&report["cpu"]["period_ns"]) as f64 / 1e9;
    let used = truth[0] + truth[1];
    assert!((seconds / used - 1.0).abs() < 0.1, "{seconds} {used}");
    assert!(mostly + rarely > 0.9 * all as f64, "{found:?}");

    for (function, outer) in [("mostly", "main"), ("rarely", "thread")] {
        let all = paths(&report, "cpu_spins");
        let is_ours = |frames: &&(Vec<&Value>, u64)| {
            frames.0.iter().any(|frame| frame["function"] == function)
        };
        let (frames, _) = all
            .iter()
            .filter(is_ours)
            .max_by_key(|(_, samples)| *samples)
            .expect("it was sampled");
        let names: Vec<&str> = frames
            .iter()
            .map(|frame| frame["function"].as_str().expect("a name"))
            .skip_while(|name| *name != outer)
            .take(3)
            .collect();
        assert_eq!(names, [outer, "spend", function]);
        let place = |name: &str| {
            let frame = frames.iter().find(|frame| frame["function"] == name);
            let frame = frame.expect("it is there");
            let file = frame["file"].as_str().expect("a file");
            assert!(file.ends_with("cpu_spins.c"), "{file}");
            number(&frame["line"])
        };
        assert_eq!(place("spend"), line_of("spend"));
        // The head of the loop is the line before.
        let line = line_of(function);
        assert!((line - 1..=line).contains(&place(function)), "{frames:#?}");
    }
    let told = described(&output);
    assert!(told.contains("% mostly (cpu_spins.c:"), "{told}");
    assert!(told.contains("< spend (cpu_spins.c:"), "{told}");
    Outcome::Pass
}

/// A shell, its child that does an exec, and a child of that.
fn what_a_program_starts_is_sampled_too(env: &TestEnv) -> Outcome {
    let program = env.program("cpu_spins");
    let other = env.path("other_name");
    std::fs::copy(&program, &other).expect("the directory is ours");
    let script = format!("{program} 0.3; env {other} 0.3 & wait");
    let (output, report) = env.refit_json(&["run", "--cpu", "--", "sh", "-c", &script]);
    expect_code(&output, 0);
    for name in ["cpu_spins", "other_name"] {
        let found = by_function(&report, name);
        let of = |function: &str| found.get(function).copied().unwrap_or_default();
        assert!((150..=300).contains(&of("mostly")), "{name}: {found:?}");
        assert!((40..=100).contains(&of("rarely")), "{name}: {found:?}");
    }
    Outcome::Pass
}

/// Whether this user may see the kernel's part (perf_event_open(2)).
fn sees_kernel() -> bool {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let paranoid: i32 = paranoid
        .expect("perf events")
        .trim()
        .parse()
        .expect("a number");
    sys::euid() == 0 || paranoid <= 1
}

/// dd reads zeros: nearly all of its time is the kernel's.
fn the_kernels_part_is_named_where_it_may_be_seen(env: &TestEnv) -> Outcome {
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=20000"];
    let (output, report) = env.refit_json(&[&["run", "--cpu", "--"], &command[..]].concat());
    expect_code(&output, 0);
    assert_eq!(report["cpu"]["kernel"], sees_kernel());
    let told = described(&output);
    let without = "of the program's own code alone (the kernel's needs root, or kernel.perf_event_paranoid=1)";
    if sees_kernel() {
        let all = paths(&report, "dd");
        let is_named = |frames: &[&Value]| {
            let last = frames.last().and_then(|frame| frame["function"].as_str());
            last.is_some_and(|name| name.ends_with(" [kernel]"))
        };
        let named: u64 = all
            .iter()
            .filter(|(frames, _)| is_named(frames))
            .map(|(_, samples)| samples)
            .sum();
        let samples: u64 = all.iter().map(|(_, samples)| samples).sum();
        assert!(named * 10 > samples * 8, "{named} of {samples}: {report:#}");
        assert!(!told.contains(without), "{told}");
    } else {
        assert!(told.contains(without) || told.contains("none"), "{told}");
    }
    Outcome::Pass
}

fn a_profile_is_written_as_the_name_of_its_file_asks_for(env: &TestEnv) -> Outcome {
    let program = env.program("cpu_spins");
    let page = env.path("page.html");
    for (name, wanted) in [
        ("c.svg", "<title>mostly: "),
        ("c.folded", "cpu_spins;main;spend;mostly "),
        ("c.json", "\"unit\": \"nanoseconds\""),
    ] {
        let file = env.path(name);
        let args = ["run", "--cpu", "--cpu-stacks", &file, "--html", &page];
        let output = env.refit(&[&args[..], &["--", &program, "0.3"]].concat());
        expect_code(&output, 0);
        let text = std::fs::read_to_string(&file).expect("it was written");
        assert!(text.contains(wanted), "{text}");
    }
    let text = std::fs::read_to_string(&page).expect("it was written");
    assert!(text.contains("Where it was on the processors"), "{text}");
    assert!(text.contains(">mostly</span>"), "{text}");
    Outcome::Pass
}

/// By its shell, which has no time of its own; by its number, until it ends.
fn what_already_runs_is_sampled(env: &TestEnv) -> Outcome {
    let program = env.program("cpu_spins");
    let mut shell = env.command("sh");
    let script = format!("{program} 4 & wait");
    let mut shell = shell
        .args(["-c", &script])
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let spinning = wait_for("both threads", || {
        let pid = *crate::processes::children(shell.id()).first()?;
        let threads = crate::processes::status_line(pid, "Threads")?;
        (threads.trim() == "2").then_some(pid)
    });
    let (shell_pid, file) = (shell.id().to_string(), env.path("w.folded"));
    let words = [
        "watch",
        &shell_pid,
        "--cpu",
        "--for",
        "1s",
        "--cpu-stacks",
        &file,
    ];
    let watched = env.refit(&words);
    expect_code(&watched, 0);
    let told = described(&watched);
    for function in ["mostly", "rarely"] {
        assert!(
            told.contains(&format!("% {function} (cpu_spins.c:")),
            "{told}"
        );
    }
    let text = std::fs::read_to_string(&file).expect("it was written");
    let of = |function: &str| -> u64 {
        let lines = text
            .lines()
            .filter(|line| line.contains(&format!(";{function}")));
        let weights = lines.map(|line| line.rsplit(' ').next().expect("a weight"));
        weights
            .map(|weight| weight.parse::<u64>().expect("a number"))
            .sum()
    };
    // Two processors or one: both run at once, or in turn.
    let (mostly, rarely) = (of("mostly"), of("rarely"));
    assert!(
        mostly > 10_000_000 && rarely > 10_000_000,
        "{mostly} {rarely}"
    );
    assert!(mostly + rarely < 2_100_000_000, "{mostly} {rarely}");

    let watched = env.refit(&["watch", &spinning.to_string(), "--cpu"]);
    expect_code(&watched, 0);
    let told = described(&watched);
    assert!(told.contains("all that was watched has ended"), "{told}");
    assert!(told.contains("% mostly (cpu_spins.c:"), "{told}");
    shell.wait().expect("it is ours");
    Outcome::Pass
}

fn where_it_cannot_act_it_is_refused(env: &TestEnv) -> Outcome {
    let quiet = env.refit(&["run", "--cpu", "--quiet", "--", "true"]);
    expect_message(&quiet, 125, "--cpu has nowhere to report");
    let alone = env.refit(&["run", "--cpu-stacks", &env.path("g"), "--", "true"]);
    expect_code(&alone, 125);
    let refit = refit_path();
    let marker = env.path("ran");
    let denied = env.run(&[
        &env.program("refuses"),
        "perf",
        &refit,
        "run",
        "--cpu",
        "--",
        "touch",
        &marker,
    ]);
    expect_message(
        &denied,
        125,
        "--cpu: there are no samples: perf events are not permitted here",
    );
    assert!(!std::path::Path::new(&marker).exists());
    let machine = env.refit(&["watch", "--cpu"]);
    expect_message(
        &machine,
        2,
        "--cpu samples processes or a unit, not the whole machine",
    );
    let command = env.refit(&["watch", "--cpu", "--", "true"]);
    expect_code(&command, 2);
    if sys::euid() != 0 {
        let others = env.refit(&["watch", "1", "--cpu", "--for", "100ms"]);
        expect_message(&others, 2, "watch processes of your own, or as root");
    }
    Outcome::Pass
}

/// The process that reads the samples ends with refit; the program goes on.
fn a_killed_refit_leaves_nobody_behind(env: &TestEnv) -> Outcome {
    let mut command = env.refit_command(&["run", "--cpu", "--", "sleep", "5"]);
    let mut refit = command.stdin(Stdio::null()).spawn().expect("it starts");
    let named = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let of_name = |name: &str| {
        let children = crate::processes::children(refit.id()).into_iter();
        children
            .filter(|pid| named(*pid).trim() == name)
            .collect::<Vec<u32>>()
    };
    let (program, reader) = wait_for("the program and its reader", || {
        Some((
            *of_name("sleep").first()?,
            *of_name("refit-reader").first()?,
        ))
    });
    sys::kill_hard(refit.id().cast_signed());
    refit.wait().expect("it is ours");
    wait_until("the reader ends", || named(reader).trim() != "refit-reader");
    sys::kill_hard(program.cast_signed());
    Outcome::Pass
}

/// The kernel counts the rings of samples, and those of io_uring, against what a user may lock, but root's are not counted.
fn what_a_user_may_lock_is_left_to_his_programs(env: &TestEnv) -> Outcome {
    const TIMES: usize = 12;
    let (refit, ring) = match sys::euid() {
        0 => (
            places::public(env, &refit_path()),
            places::public(env, &env.program("io_uring_fsync")),
        ),
        _ => (refit_path(), env.program("io_uring_fsync")),
    };
    let script = format!(
        "d=$(mktemp -d) || exit; for i in $(seq {TIMES}); do {refit} run --cpu -- dd if=/dev/zero of=$d/F count=1 || break
        {ring} $d/F || break; echo sampled; done; rm -r $d"
    );
    let as_user = [
        "setpriv",
        "--reuid=64997",
        "--regid=64997",
        "--clear-groups",
        "--inh-caps=-all",
        "env",
        "HOME=/nonexistent",
        "TMPDIR=/var/tmp",
    ];
    let shell = ["sh", "-c", &script];
    let output = match sys::euid() {
        0 => env.run(&[&as_user[..], &shell].concat()),
        _ => env.run(&shell),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let sampled = text.lines().filter(|line| *line == "sampled").count();
    assert_eq!(sampled, TIMES, "{}", described(&output));
    let told = described(&output);
    assert_eq!(told.matches("on a processor").count(), TIMES, "{told}");
    Outcome::Pass
}
