//! Where a filter cannot be had, or could be in the way: it is said, and the program goes on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::lab::{Lab, described, expect_code, refit_path, wait_for_file, wait_until};
use crate::runner::{Outcome, Test};
use crate::seccomp::run;
use crate::{places, sys, test};

pub const TESTS: &[Test] = &[
    test!(without_the_right_to_a_filter_it_is_said),
    test!(a_user_can_have_a_filter_for_the_privileges_of_others),
    test!(an_inner_refit_finds_the_listener_taken),
    test!(a_pipeline_ends_though_a_daemon_keeps_the_filter),
    test!(the_guardian_outlives_a_killed_refit),
    test!(the_program_sees_a_filter_and_no_new_descriptor),
    test!(a_program_that_cannot_start_leaves_no_guardian),
];

fn json(path: &str) -> Value {
    let text = fs::read_to_string(path).expect("refit wrote it");
    serde_json::from_str(&text).expect("it is JSON")
}

/// refit as uid 65534, in a directory of its own.
fn as_nobody(lab: &Lab, script: &str) -> std::process::Output {
    lab.require_root();
    places::public(lab, &lab.program("static_fsync"));
    std::os::unix::fs::chown(lab.dir(), Some(65534), Some(65534)).expect("root may");
    let refit = places::public(lab, &refit_path());
    let script = format!(
        "mkdir home; chown 65534 home\nnobody sh -c 'HOME=/mnt/home; export HOME; REFIT={refit}; {script}'"
    );
    let output = places::in_own_mounts(lab, &script).output();
    output.expect("unshare is there")
}

fn without_the_right_to_a_filter_it_is_said(lab: &Lab) -> Outcome {
    let output = as_nobody(
        lab,
        "./refit run --json report.json sync=off -- ./static_fsync f",
    );
    expect_code(&output, 0);
    let said = String::from_utf8_lossy(&output.stderr);
    for line in [
        "not reached, so as without refit: static_fsync (static)",
        "seccomp would reach them: no permission for seccomp; --no-new-privs would allow it",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let report = json(&lab.path("report.json"));
    assert_eq!(report["coverage"]["processes_reached"], 0);
    assert!(report["coverage"]["seccomp"]["refused"].is_string());
    Outcome::Pass
}

fn a_user_can_have_a_filter_for_the_privileges_of_others(lab: &Lab) -> Outcome {
    let output = as_nobody(
        lab,
        "for settings in sync=off sync@exe:static_fsync=off; do \
         ./refit run --no-new-privs --json report.json $settings -- ./static_fsync f || exit; done",
    );
    expect_code(&output, 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no_new_privs is set: "), "{said}");
    assert!(said.contains("reached 1 of 1 process by seccomp"), "{said}");
    let report = json(&lab.path("report.json"));
    assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    Outcome::Pass
}

fn an_inner_refit_finds_the_listener_taken(lab: &Lab) -> Outcome {
    let (refit, inner) = (refit_path(), lab.path("inner.json"));
    let (program, file) = (lab.program("static_fsync"), lab.path("file"));
    // The outer one is for nothing that runs here, and still has the only listener.
    let outer = run(
        lab,
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
    assert_eq!(outer.durable, 1, "{}", outer.said);
    let refused = json(&inner)["coverage"]["seccomp"]["refused"].clone();
    assert!(
        refused.as_str().is_some_and(|why| why.contains("listener")),
        "{refused}"
    );

    // A plain off needs none.
    let outer = run(
        lab,
        &["sync@exe:nothing=off"],
        &[
            &refit, "run", "--json", &inner, "sync=off", "--", &program, &file,
        ],
    );
    assert_eq!(outer.durable, 0, "{}", outer.said);
    assert_eq!(
        json(&inner)["coverage"]["seccomp"]["installed"]["heard"],
        false
    );
    assert!(
        outer.said.contains("a seccomp listener is there already"),
        "{}",
        outer.said
    );
    Outcome::Pass
}

/// Starts a static daemon under refit; returns the words.
fn daemon<'a>(lab: &Lab, setting: &'a str, paths: &'a [String; 3]) -> Vec<String> {
    let program = lab.program("static_daemon");
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

fn paths(lab: &Lab) -> [String; 3] {
    ["go", "file", "done"].map(|name| lab.path(name))
}

fn a_pipeline_ends_though_a_daemon_keeps_the_filter(lab: &Lab) -> Outcome {
    lab.require_root();
    let paths = paths(lab);
    let words = daemon(lab, "disk=fail:EIO", &paths).join(" ");
    let output = lab.run(&["sh", "-c", &format!("{{ {words}; }} 2>&1 | cat")]);
    expect_code(&output, 0);
    // It still has what it had: the fsync fails.
    lab.file("go", "");
    assert_eq!(wait_for_file(&paths[2]), "-1\n", "{}", described(&output));
    wait_until("the guardian to end", || guardians(lab).is_empty());
    Outcome::Pass
}

/// Guardian processes of this test, told by its directory in refit's environment.
fn guardians(lab: &Lab) -> Vec<u32> {
    let own = format!("REFIT_LAB_DIR={}", lab.dir().display());
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

fn the_guardian_outlives_a_killed_refit(lab: &Lab) -> Outcome {
    lab.require_root();
    let (program, file) = (lab.program("static_errors"), lab.path("file"));
    let script = format!("echo up; read go; {program} 2 {file}");
    let mut refit = lab
        .refit_command(&["run", "disk=fail:EIO,every=2", "--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("refit was built");
    let mut said = BufReader::new(refit.stdout.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it is text");
    assert_eq!(line, "up\n");
    wait_until("both processes of the guardian", || {
        guardians(lab).len() == 2
    });
    // Or waiting for it would close the pipe.
    let mut input = refit.stdin.take().expect("it is piped");
    sys::kill_hard(refit.id().cast_signed());
    refit.wait().expect("it is our child");
    std::io::Write::write_all(&mut input, b"\n").expect("the shell reads it");
    line.clear();
    said.read_line(&mut line).expect("it is text");
    assert_eq!(line, "0 5 22 9 \n");
    wait_until("the guardian to end", || guardians(lab).is_empty());
    Outcome::Pass
}

fn the_program_sees_a_filter_and_no_new_descriptor(lab: &Lab) -> Outcome {
    let listed = [
        "sh",
        "-c",
        "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status; ls /proc/self/fd",
    ];
    let bare = lab.run(&listed);
    expect_code(&bare, 0);
    let bare = String::from_utf8_lossy(&bare.stdout).into_owned();
    for setting in ["sync=off", "sync@exe:sh=off"] {
        let seen = run(lab, &[setting], &listed);
        assert_eq!(seen.stdout, bare.replace("Seccomp:\t0", "Seccomp:\t2"));
    }
    Outcome::Pass
}

fn a_program_that_cannot_start_leaves_no_guardian(lab: &Lab) -> Outcome {
    lab.require_root();
    for command in ["./missing", "/etc/passwd"] {
        let output = lab.refit(&["run", "sync@exe:a=off", "--", command]);
        assert!(
            matches!(output.status.code(), Some(126 | 127)),
            "{}",
            described(&output)
        );
    }
    wait_until("no guardian to be left", || guardians(lab).is_empty());
    Outcome::Pass
}
