//! Names that a program, or another user, gives refit to look at: what lies there may be a FIFO that waits for its other
//! end or a device that acts when it is opened.

use std::path::Path;

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(what_a_script_names_is_opened_only_if_it_is_a_file),
    test!(who_waits_at_a_pipe_is_not_woken),
    test!(a_pipe_in_place_of_the_session_holds_nobody_up),
];

/// A script with this first line, which may be executed or not; its path.
fn script(env: &TestEnv, name: &str, interpreter: &str, mode: &str) -> String {
    let path = env.file(name, &format!("#!{interpreter}\n"));
    expect_code(&env.run(&["chmod", mode, &path]), 0);
    path
}

fn what_a_script_names_is_opened_only_if_it_is_a_file(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let fifo = env.path("fifo");
    expect_code(&env.run(&["mkfifo", &fifo]), 0);
    // /dev/ptmx makes a terminal when it is opened. The last one is a file, which no exec of this script comes to.
    let interpreter = env.file("interpreter", "");
    expect_code(&env.run(&["chmod", "755", &interpreter]), 0);
    let named = [&*fifo, "/dev/ptmx", "/dev/tty", &*interpreter];
    let mut scripts: Vec<String> = named
        .iter()
        .enumerate()
        .map(|(n, named)| script(env, &format!("script{n}"), named, "755"))
        .collect();
    expect_code(&env.run(&["chmod", "644", &scripts[3]]), 0);
    scripts.push(fifo.clone());
    let commands: Vec<String> = scripts.iter().map(|script| format!("{script};")).collect();
    let in_shell = format!("{} :", commands.concat());
    let refit = refit_path();
    let mut runs: Vec<Vec<&str>> = scripts.iter().map(|script| vec![&**script]).collect();
    runs.push(vec!["sh", "-c", &in_shell]);
    for words in runs {
        for settings in [&[][..], &["sync=off"]] {
            let words = [&[&*refit, "run"], settings, &["--"], &words[..]].concat();
            let (output, trace) = env.strace("open,openat,execve", &words);
            assert_ne!(output.status.code(), Some(125), "{}", described(&output));
            let named = |args: &str| named.iter().any(|name| args.contains(&format!("{name:?}")));
            let opened: Vec<_> = trace
                .calls
                .iter()
                .filter(|call| call.name != "execve" && named(&call.args))
                .filter(|call| !call.args.contains("O_PATH"))
                .collect();
            assert!(opened.is_empty(), "{words:?}: {opened:#?}");
            let tried = trace.calls.iter().filter(|call| call.name == "execve");
            assert!(tried.count() > 1, "{}", described(&output));
        }
    }
    Outcome::Pass
}

fn who_waits_at_a_pipe_is_not_woken(env: &TestEnv) -> Outcome {
    let fifo = env.path("fifo");
    expect_code(&env.run(&["mkfifo", &fifo]), 0);
    let script = script(env, "script", &fifo, "755");
    // The writer gets a signal where the other end came and went. Asleep it can only be where it opens the pipe.
    let waits = format!(
        "(trap '' PIPE; echo kept >{fifo}; echo $? >written) & until grep -q '^State:.S' /proc/$!/status; do :; done
        {refit} run -- {script} 2>/dev/null; {refit} run -- sh -c '{script}; {fifo}; :' 2>/dev/null
        {refit} run malloc=glibc -- sh -c '{script}; :' 2>/dev/null
        timeout 10 {refit} doctor {script} >/dev/null 2>&1; test $? -ne 124 || echo doctor hangs
        timeout 10 cat {fifo}; wait; cat written",
        refit = refit_path()
    );
    let output = env.run(&["sh", "-c", &waits]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "kept\n0\n");
    Outcome::Pass
}

/// A daemon outlives its run; where its session was, in a directory that everybody can write to, may then be another.
fn a_pipe_in_place_of_the_session_holds_nobody_up(env: &TestEnv) -> Outcome {
    let library = env.refit(&["run", "--quiet", "--", "printenv", "LD_PRELOAD"]);
    expect_code(&library, 0);
    let library = String::from_utf8_lossy(&library.stdout).trim().to_owned();
    assert!(Path::new(&library).is_file(), "{library}");
    let session = env.subdir("session");
    expect_code(&env.run(&["mkfifo", &format!("{session}/policy")]), 0);
    let variables = [
        format!("LD_PRELOAD={library}"),
        format!("REFIT_SESSION={session}"),
    ];
    let filtered = env.program("static_filtered_start");
    let (program, file) = (env.program("fsync_once"), env.path("file"));
    for words in [&["true"][..], &[&*filtered, &*program, &*file]] {
        let before = ["timeout", "10", "env", &variables[0], &variables[1]];
        let output = env.run(&[&before[..], words].concat());
        expect_code(&output, 0);
    }
    Outcome::Pass
}
