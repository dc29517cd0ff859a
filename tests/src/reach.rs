//! Where a seccomp filter goes with a plain `sync=off`: beneath what the preload cannot reach, from its exec on, and
//! beneath nothing else. /proc/self/status says who has one; the kernel's own tracepoints say what synced.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::seccomp::{Seen, run};
use crate::test_env::{TestEnv, expect_code};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(what_the_preload_reaches_has_no_filter),
    test!(a_comparison_puts_no_filter_beneath_what_is_reached),
    test!(a_filter_goes_beneath_what_is_not_reached_alone),
    test!(every_way_to_start_a_program_is_seen),
    test!(what_a_filtered_program_starts_is_reached_by_both),
    test!(a_shell_without_our_variables_is_reached),
    test!(an_exec_that_cannot_succeed_leaves_no_filter),
    test!(privileges_are_given_up_with_a_filter),
    test!(a_call_by_an_instruction_is_named_with_what_helps),
];

/// Prints the number of filters of the process that runs it, and starts nothing.
const FILTERS: &str = "while read -r name count; do case $name in Seccomp_filters:) echo $count;; esac; done \
                       </proc/self/status";

/// What is reached by the filter, by name, in the order of names.
fn filtered(seen: &Seen) -> Vec<&str> {
    let programs = seen.installed("programs").as_array();
    let names = programs.into_iter().flatten();
    names
        .filter_map(|program| program["name"].as_str()?.rsplit('/').next())
        .collect()
}

/// All processes are known and reached.
fn expect_all_reached(seen: &Seen) {
    let coverage = &seen.report["coverage"];
    assert_eq!(coverage["processes_reached"], coverage["processes_seen"]);
    assert_eq!(coverage["unreached"], Value::Array(Vec::new()));
    assert_eq!(seen.durable, 0, "{}", seen.messages);
}

fn what_the_preload_reaches_has_no_filter(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("fsync_once"), env.path("file"));
    let script = format!("{FILTERS}; {program} {file}; sh -c '{FILTERS}'");
    for settings in [
        &["sync=off"][..],
        &["sync=off", "odirect=off"],
        &["odirect=off"],
    ] {
        let seen = run(env, settings, &["sh", "-c", &script]);
        assert_eq!(seen.stdout, "0\n0\n", "{settings:?}");
        assert_eq!(seen.report["coverage"]["backend"], "preload");
        assert_eq!(seen.report["coverage"].get("seccomp"), None);
    }
    Outcome::Pass
}

fn a_comparison_puts_no_filter_beneath_what_is_reached(env: &TestEnv) -> Outcome {
    env.require_root();
    let (script, log) = (env.path("script"), env.path("log"));
    fs::write(&script, format!("( {FILTERS} ) >>{log}\n")).expect("the directory is ours");
    let output = env.refit(&["compare", "--rounds", "12", "sync=off", "--", "sh", &script]);
    assert!(output.status.code().is_some(), "it ended");
    let log = fs::read_to_string(log).expect("the runs wrote it");
    assert!(log.lines().count() >= 4, "{log}");
    assert!(log.lines().all(|line| line == "0"), "{log}");
    Outcome::Pass
}

fn a_filter_goes_beneath_what_is_not_reached_alone(env: &TestEnv) -> Outcome {
    env.require_root();
    let setgid = places::public(env, &env.program("setgid_helper"));
    std::os::unix::fs::chown(&setgid, None, Some(50)).expect("root may");
    fs::set_permissions(&setgid, fs::Permissions::from_mode(0o2755)).expect("root may");
    let file = env.path("file");
    let named = ["static_fsync", "static_go", "i386_fsync", "static_rust"];
    let mut commands: Vec<String> = named
        .iter()
        .map(|name| format!("{} {file}", env.program(name)))
        .collect();
    commands.push(format!("{setgid} {file}"));
    let script = format!("set -e; {}; {FILTERS}", commands.join("; "));
    let seen = run(env, &["sync=off"], &["sh", "-c", &script]);
    expect_all_reached(&seen);
    assert!(seen.stdout.ends_with("\n0\n"), "{}", seen.stdout);
    let mut expected = [&named[..], &["setgid_helper"]].concat();
    expected.sort_unstable();
    let mut names = filtered(&seen);
    names.sort_unstable();
    assert_eq!(names, expected);
    assert!(
        seen.messages
            .contains("their opens with O_SYNC are real, and not counted"),
        "{}",
        seen.messages
    );
    // Dynamic: the preload is there, and Go makes its system calls by itself.
    let go = format!("{} {file}; {FILTERS}", env.program("dynamic_go"));
    for words in [&["sh", "-c", &go][..], &[&env.program("dynamic_go"), &file]] {
        expect_all_reached(&run(env, &["sync=off"], words));
    }
    Outcome::Pass
}

fn every_way_to_start_a_program_is_seen(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("static_fsync"), env.path("file"));
    let ways = env.program("exec_ways");
    let [vfork, spawn, cleared] =
        ["vfork_exec", "spawn_clearenv", "execve_clearenv"].map(|name| env.program(name));
    let wrapper = |word: &'static str| [word.to_owned()];
    for start in [
        &[ways.clone(), "execveat".to_owned()][..],
        &[ways.clone(), "fexecve".to_owned()],
        &[ways, "syscall".to_owned()],
        &[vfork],
        &[spawn],
        &[cleared],
        &wrapper("env"),
        &wrapper("nice"),
    ] {
        let words: Vec<&str> = start
            .iter()
            .map(String::as_str)
            .chain([&*program, &*file])
            .collect();
        let seen = run(env, &["sync=off"], &words);
        expect_all_reached(&seen);
        assert_eq!(
            seen.installed("processes"),
            1,
            "{words:?}: {}",
            seen.messages
        );
    }
    Outcome::Pass
}

fn what_a_filtered_program_starts_is_reached_by_both(env: &TestEnv) -> Outcome {
    // A static program that starts a dynamic one; what it adds is a filter of its own.
    let (dynamic, file) = (env.program("fsync_once"), env.path("file"));
    let launcher = env.program("static_exec");
    let script = format!("{launcher} {dynamic} {file}; {launcher} /bin/sh -c '{FILTERS}'");
    let seen = run(env, &["sync=off"], &["sh", "-c", &script]);
    expect_all_reached(&seen);
    assert_eq!(seen.fsyncs("suppressed"), 1, "counted by the preload");
    assert_eq!(seen.stdout, "1\n", "one filter, not two");
    Outcome::Pass
}

fn a_shell_without_our_variables_is_reached(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("fsync_once"), env.path("file"));
    let command = format!("{program} {file}");
    let words = [&*env.program("clearenv_shell"), &*command];
    let seen = run(env, &["sync=off"], &words);
    expect_all_reached(&seen);
    // The same with the preload alone.
    let alone = run(env, &["--backend", "preload", "sync=off"], &words);
    assert_eq!(alone.durable, 2, "{}", alone.messages);
    Outcome::Pass
}

fn an_exec_that_cannot_succeed_leaves_no_filter(env: &TestEnv) -> Outcome {
    env.require_root();
    let closed = env.path("closed");
    fs::copy(env.program("static_fsync"), &closed).expect("both are ours");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let words = [&*env.program("exec_ways"), "failing", &*closed];
    let seen = run(env, &["sync=off"], &words);
    assert_eq!(
        seen.stdout, "1 1\nSeccomp_filters:\t0\n",
        "{}",
        seen.messages
    );
    expect_all_reached(&seen);
    Outcome::Pass
}

fn privileges_are_given_up_with_a_filter(env: &TestEnv) -> Outcome {
    env.require_root();
    std::os::unix::fs::chown(env.dir(), Some(65534), Some(65534)).expect("root may");
    let child = places::public(env, &env.program("static_fsync"));
    let file = env.path("dropped");
    let command = format!("{child} {file}");
    let ways: [&[&str]; 4] = [
        &[
            "setpriv",
            "--reuid=65534",
            "--clear-groups",
            "sh",
            "-c",
            &command,
        ],
        &["runuser", "-u", "nobody", "--", "sh", "-c", &command],
        &["su", "-s", "/bin/sh", "nobody", "-c", &command],
        &["setpriv", "--bounding-set=-sys_admin", "sh", "-c", &command],
    ];
    for words in ways {
        let seen = run(env, &["sync=off"], words);
        expect_all_reached(&seen);
        let _ = fs::remove_file(&file);
    }
    // Who stays root gets none.
    let words = ["setpriv", "--reuid=0", "sh", "-c", FILTERS];
    assert_eq!(run(env, &["sync=off"], &words).stdout, "0\n");
    Outcome::Pass
}

fn a_call_by_an_instruction_is_named_with_what_helps(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("inline_asm_fsync"), env.path("file"));
    // As the first program it is known in time.
    assert_eq!(run(env, &["sync=off"], &[&program, &file]).durable, 0);
    let script = format!("{program} {file}; :");
    let words = ["sh", "-c", &*script];
    let seen = run(env, &["sync=off"], &words);
    assert_eq!(seen.durable, 1, "{}", seen.messages);
    assert!(
        seen.messages.contains("inline_asm_fsync"),
        "{}",
        seen.messages
    );
    assert!(
        seen.messages.contains("--backend seccomp"),
        "{}",
        seen.messages
    );
    let helped = run(env, &["--backend", "seccomp", "sync=off"], &words);
    assert_eq!(helped.durable, 0, "{}", helped.messages);
    let output = env.refit(&[&["run", "--quiet", "sync=off", "--"], &words[..]].concat());
    expect_code(&output, 0);
    Outcome::Pass
}
