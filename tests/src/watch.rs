//! `refit watch` on real processes.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_tree_has_its_memory_and_its_sync_calls),
    test!(words_that_name_nothing_are_refused),
    test!(the_end_of_what_is_watched_ends_the_watch),
];

/// A program that waits for a line twice: at its start, and at its end.
struct Waiting(Child);

impl Waiting {
    fn start(mut command: Command) -> Waiting {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut ready = [0];
        let stdout = child.stdout.as_mut().expect("it is piped");
        stdout
            .read_exact(&mut ready)
            .expect("it prints a line when it is ready");
        Waiting(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn go_on(&mut self) {
        let stdin = self.0.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"\n").expect("it reads");
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("it is our child");
    }
}

fn shell(env: &TestEnv, script: &str) -> Waiting {
    let mut command = env.command("sh");
    command.args(["-c", script]);
    Waiting::start(command)
}

/// Watches, and has taken its first sample.
fn watch(env: &TestEnv, words: &[&str]) -> Child {
    let mut refit = env.refit_command(&[&["watch"], words].concat());
    let refit = refit.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut refit = refit.spawn().expect("refit starts");
    let stdout = refit.stdout.as_mut().expect("it is piped");
    stdout.read_exact(&mut [0]).expect("it prints a heading");
    refit
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn a_tree_has_its_memory_and_its_sync_calls(env: &TestEnv) -> Outcome {
    let script = format!(
        "echo; read x; {} 40 file; read x",
        env.program("write_fsync")
    );
    let mut tree = shell(env, &script);
    let words = ["--batch", "--interval", "200ms", "--for", "3s"];
    let refit = watch(env, &[&[&*tree.pid()], &words[..]].concat());
    tree.go_on();
    let output = refit.wait_with_output().expect("it is our child");
    expect_code(&output, 0);
    let (lines, said) = text(&output);
    let last = lines.lines().last().expect("lines");
    let words: Vec<&str> = last.split_whitespace().collect();
    assert_eq!((words[1], words[2]), ("sh", "1"), "{}", described(&output));
    assert!(
        last.contains("KiB") && last.trim_end().ends_with("MiB"),
        "{last}"
    );
    assert!(said.contains("% of a core"), "{said}");
    if env.as_root() && !said.contains("unknown") {
        assert!(said.contains("sh: 40 sync calls waited"), "{said}");
        assert!(said.contains("all of write_fsync"), "{said}");
    } else {
        assert!(said.contains("sync calls are unknown: "), "{said}");
        assert!(last.contains("unknown"), "{last}");
    }
    tree.end();
    Outcome::Pass
}

fn words_that_name_nothing_are_refused(env: &TestEnv) -> Outcome {
    for (words, expected) in [
        (&["0"][..], "`0` is not the number of a process"),
        (&["999999999"], "there is no process 999999999"),
        (&["--interval", "1ms"], "the shortest interval is 100ms"),
        (&["--for", "soon"], "write a time as"),
    ] {
        let output = env.refit(&[&["watch"], words].concat());
        expect_code(&output, 2);
        let (_, said) = text(&output);
        assert!(said.contains(expected), "{said}");
    }
    Outcome::Pass
}

fn the_end_of_what_is_watched_ends_the_watch(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let refit = watch(env, &[&tree.pid(), "--interval", "100ms"]);
    tree.end();
    let output = refit.wait_with_output().expect("it is our child");
    expect_code(&output, 0);
    let (_, said) = text(&output);
    assert!(said.contains("all that was watched has ended"), "{said}");
    Outcome::Pass
}
