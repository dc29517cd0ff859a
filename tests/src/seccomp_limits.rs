//! Where a filter cannot be installed, or could be in the way: that is reported, and the program goes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::seccomp::run;
use crate::test_env::{TestEnv, described, expect_code, refit_path, wait_for_file, wait_until};
use crate::{places, sys, test};

pub const TESTS: &[Test] = &[
    test!(without_the_right_to_a_filter_it_is_reported),
    test!(a_user_can_have_a_filter_for_the_privileges_of_others),
    test!(an_inner_refit_finds_the_listener_taken),
    test!(a_pipeline_ends_though_a_daemon_keeps_the_filter),
    test!(the_guardian_outlives_a_killed_refit),
    test!(the_program_sees_a_filter_and_no_new_descriptor),
    test!(a_program_that_cannot_start_leaves_no_guardian),
    test!(a_filter_around_refit_that_refuses_ioctls_is_reported),
    test!(a_question_about_listeners_is_no_listener),
];

fn json(path: &str) -> Value {
    let text = fs::read_to_string(path).expect("refit wrote it");
    serde_json::from_str(&text).expect("it is JSON")
}

/// refit as uid 65534, in a directory of its own.
fn as_nobody(env: &TestEnv, script: &str) -> std::process::Output {
    env.require_root();
    places::public(env, &env.program("static_fsync"));
    std::os::unix::fs::chown(env.dir(), Some(65534), Some(65534)).expect("root may");
    let refit = places::public(env, &refit_path());
    let script = format!(
        "mkdir home; chown 65534 home\nnobody sh -c 'HOME=/mnt/home; export HOME; REFIT={refit}; {script}'"
    );
    let output = places::in_own_mounts(env, &script).output();
    output.expect("unshare is there")
}

fn without_the_right_to_a_filter_it_is_reported(env: &TestEnv) -> Outcome {
    let output = as_nobody(
        env,
        "./refit run --json report.json sync=off -- ./static_fsync f",
    );
    expect_code(&output, 0);
    let messages = String::from_utf8_lossy(&output.stderr);
    for line in [
        "not reached, run as without refit: static_fsync (static)",
        "seccomp, which would reach them, is not available: no permission for seccomp; --no-new-privs would allow it",
    ] {
        assert!(messages.contains(line), "{messages}");
    }
    let report = json(&env.path("report.json"));
    assert_eq!(report["coverage"]["processes_reached"], 0);
    assert!(report["coverage"]["seccomp"]["refused"].is_string());
    Outcome::Pass
}

fn a_user_can_have_a_filter_for_the_privileges_of_others(env: &TestEnv) -> Outcome {
    let output = as_nobody(
        env,
        "for settings in sync=off sync@exe:static_fsync=off; do \
         ./refit run --no-new-privs --json report.json $settings -- ./static_fsync f || exit; done",
    );
    expect_code(&output, 0);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(messages.contains("no_new_privs is set: "), "{messages}");
    assert!(
        messages.contains("reached 1 of 1 process by seccomp"),
        "{messages}"
    );
    let report = json(&env.path("report.json"));
    assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    Outcome::Pass
}

fn an_inner_refit_finds_the_listener_taken(env: &TestEnv) -> Outcome {
    let (refit, inner) = (refit_path(), env.path("inner.json"));
    let (program, file) = (env.program("static_fsync"), env.path("file"));
    // The outer one is for nothing that runs here, and still has the only listener.
    let outer = run(
        env,
        &["sync@exe:nothing=off"],
        &[
            &refit,
            "run",
            "--quiet",
            "--json",
            &inner,
            "sync@exe:static_fsync=off",
            "--",
            &program,
            &file,
        ],
    );
    assert_eq!(outer.durable, 1, "{}", outer.messages);
    let refused = json(&inner)["coverage"]["seccomp"]["refused"].clone();
    assert!(
        refused.as_str().is_some_and(|why| why.contains("listener")),
        "{refused}"
    );

    // A plain off needs none.
    let outer = run(
        env,
        &["sync@exe:nothing=off"],
        &[
            &refit, "run", "--json", &inner, "sync=off", "--", &program, &file,
        ],
    );
    assert_eq!(outer.durable, 0, "{}", outer.messages);
    assert_eq!(
        json(&inner)["coverage"]["seccomp"]["installed"]["has_listener"],
        false
    );
    assert!(
        outer
            .messages
            .contains("another seccomp listener is installed"),
        "{}",
        outer.messages
    );
    Outcome::Pass
}

/// Starts a static daemon under refit; returns the words.
fn daemon<'a>(env: &TestEnv, setting: &'a str, paths: &'a [String; 3]) -> Vec<String> {
    let program = env.program("static_daemon");
    [
        &[
            refit_path(),
            "run".to_owned(),
            setting.to_owned(),
            "--".to_owned(),
            program,
        ][..],
        paths,
    ]
    .concat()
}

fn paths(env: &TestEnv) -> [String; 3] {
    ["go", "file", "done"].map(|name| env.path(name))
}

fn a_pipeline_ends_though_a_daemon_keeps_the_filter(env: &TestEnv) -> Outcome {
    env.require_root();
    let paths = paths(env);
    let words = daemon(env, "disk=fail:EIO", &paths).join(" ");
    let output = env.run(&["sh", "-c", &format!("{{ {words}; }} 2>&1 | cat")]);
    expect_code(&output, 0);
    // It still has what it had: the fsync fails.
    env.file("go", "");
    assert_eq!(wait_for_file(&paths[2]), "-1\n", "{}", described(&output));
    wait_until("the guardian to end", || guardians(env).is_empty());
    Outcome::Pass
}

/// Guardian processes of this test, told by its directory in refit's environment.
fn guardians(env: &TestEnv) -> Vec<u32> {
    let own = format!("REFIT_TEST_ENV_DIR={}", env.dir().display());
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries
        .filter_map(|entry| {
            let environ = fs::read(entry.path().join("environ")).ok()?;
            let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
            let ours = String::from_utf8_lossy(&environ).contains(&own);
            (ours && comm == "refit-guardian\n").then_some(())?;
            entry.file_name().to_str()?.parse().ok()
        })
        .collect()
}

fn the_guardian_outlives_a_killed_refit(env: &TestEnv) -> Outcome {
    env.require_root();
    let (program, file) = (env.program("static_errors"), env.path("file"));
    let script = format!("echo up; read go; {program} 2 {file}");
    let mut refit = env
        .refit_command(&["run", "disk=fail:EIO,every=2", "--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("refit was built");
    let mut stdout = BufReader::new(refit.stdout.take().expect("it is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it is text");
    assert_eq!(line, "up\n");
    wait_until("both processes of the guardian", || {
        guardians(env).len() == 2
    });
    // Or waiting for it would close the pipe.
    let mut input = refit.stdin.take().expect("it is piped");
    sys::kill_hard(refit.id().cast_signed());
    refit.wait().expect("it is our child");
    std::io::Write::write_all(&mut input, b"\n").expect("the shell reads it");
    line.clear();
    stdout.read_line(&mut line).expect("it is text");
    assert_eq!(line, "0 5 22 9 \n");
    wait_until("the guardian to end", || guardians(env).is_empty());
    Outcome::Pass
}

fn the_program_sees_a_filter_and_no_new_descriptor(env: &TestEnv) -> Outcome {
    let listed = [
        "sh",
        "-c",
        "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; ls /proc/self/fd",
    ];
    let bare = env.run(&listed);
    expect_code(&bare, 0);
    let bare = String::from_utf8_lossy(&bare.stdout).into_owned();
    for settings in [
        &["sync@exe:sh=off"][..],
        &["--backend", "seccomp", "sync=off"],
    ] {
        let seen = run(env, settings, &listed);
        assert_eq!(seen.stdout, bare.replace("Seccomp:\t0", "Seccomp:\t2"));
    }
    assert_eq!(run(env, &["sync=off"], &listed).stdout, bare);
    Outcome::Pass
}

fn a_program_that_cannot_start_leaves_no_guardian(env: &TestEnv) -> Outcome {
    env.require_root();
    for command in ["./missing", "/etc/passwd"] {
        let output = env.refit(&["run", "sync@exe:a=off", "--", command]);
        assert!(
            matches!(output.status.code(), Some(126 | 127)),
            "{}",
            described(&output)
        );
    }
    wait_until("no guardian to be left", || guardians(env).is_empty());
    Outcome::Pass
}

/// Calls that nobody can receive would wait for ever.
fn a_filter_around_refit_that_refuses_ioctls_is_reported(env: &TestEnv) -> Outcome {
    env.require_root();
    let (around, program) = (env.program("refuses"), env.program("static_fsync"));
    let (json_file, file) = (env.path("report.json"), env.path("file"));
    let settings = ["--backend", "seccomp", "sync=off"];
    let started = [
        &*around,
        "ioctl",
        &*refit_path(),
        "run",
        "--json",
        &json_file,
    ]
    .map(str::to_owned);
    let words = [&*program, &*file];
    let all: Vec<&str> = started
        .iter()
        .map(String::as_str)
        .chain(settings)
        .chain(["--"])
        .chain(words)
        .collect();
    let output = env.run(&all);
    expect_code(&output, 0);
    let refused = json(&json_file)["coverage"]["seccomp"]["refused"].clone();
    assert!(
        refused.as_str().is_some_and(|why| why.contains("ioctl")),
        "{refused}"
    );
    Outcome::Pass
}

/// libseccomp asks the kernel which flags it knows.
fn a_question_about_listeners_is_no_listener(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("seccomp_probe");
    expect_code(&env.run(&[&program]), 0);
    for settings in [&["disk=1us"][..], &["--backend", "seccomp", "sync=off"]] {
        let words = [&["run"][..], settings, &["--", &program]].concat();
        let (output, report) = env.refit_json(&words);
        expect_code(&output, 0);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(!messages.contains("listener"), "{messages}");
        let installed = &report["coverage"]["seccomp"]["installed"];
        assert_eq!(installed.get("listeners_refused"), None, "{report:#}");
    }
    Outcome::Pass
}
