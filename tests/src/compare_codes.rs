//! `refit compare`: gates, exit codes, and sentences for words that are wrong.

use std::fs;

use serde_json::json;

use crate::compared::{compare, effect, list, messages, printed};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(gates_decide_the_exit_code),
    test!(strict_wants_an_answer),
    test!(each_wrong_word_gets_a_sentence_and_2),
];

fn gates_decide_the_exit_code(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("write_fsync"), env.path("file"));
    let gated = |gates: &[&str], code: i32, answers: &[&str]| {
        let mut args = vec!["--rounds", "40"];
        gates.iter().for_each(|gate| args.extend(["--gate", gate]));
        args.extend(["sync=off", "--", &program, "20", &file]);
        let (output, result) = compare(env, &args);
        expect_code(&output, code);
        let text = printed(&output);
        for ((gate, answer), record) in gates.iter().zip(answers).zip(list(&result["gates"])) {
            assert_eq!(
                record,
                &json!({"gate": gate, "variant": 1, "answer": answer})
            );
            assert!(
                text.contains(&format!("gate {gate}: sync=off {answer}")),
                "{text}"
            );
        }
    };
    gated(&["wall<+500%", "syncs<-50%"], 0, &["passed", "passed"]);
    gated(&["wall<+500%", "wall<-99.99%"], 1, &["passed", "failed"]);
    gated(&["wall>+1%"], 1, &["failed"]);
    Outcome::Pass
}

/// In turn the one and the other sleeps in a whole round pair: no verdict can come of that.
fn strict_wants_an_answer(env: &TestEnv) -> Outcome {
    let script = format!(
        "log={}.$WHO; echo >>$log; n=$(($(wc -l <$log) - 1)); each=${{WHO:+2}}
        test $((n / ${{each:-4}} % 2)) = ${{WHO:-0}} || exec sleep 0.1",
        env.path("log")
    );
    for (options, code) in [
        (&[][..], 0),
        (&["--strict"], 3),
        (&["--gate", "wall<+1%"], 0),
        (&["--gate", "wall<+1%", "--strict"], 3),
        // Who asks for a gate has asked for nothing else.
        (&["--gate", "wall<+900000%", "--strict"], 0),
    ] {
        for log in ["log.", "log.1"] {
            let _ = fs::remove_file(env.path(log));
        }
        let command = ["--rounds", "12", "env.WHO=1", "--", "sh", "-c", &script];
        let (output, result) = compare(env, &[options, &command].concat());
        assert_eq!(
            effect(&result, "env.WHO=1", "wall")["verdict"],
            "inconclusive"
        );
        expect_code(&output, code);
        let text = printed(&output);
        assert!(text.contains("inconclusive: env.WHO=1:"), "{text}");
    }
    Outcome::Pass
}

fn each_wrong_word_gets_a_sentence_and_2(env: &TestEnv) -> Outcome {
    let dir = env.subdir("dir");
    let to_command = ["--", "true"];
    for (words, sentence) in [
        (&["--gate", "wall", "sync=off"][..], "--gate 'wall<+2%'"),
        (
            &["--gate", "iowait<1%", "sync=off"],
            "the metrics are wall, cpu, user",
        ),
        (&["--gate", "wall<2", "sync=off"], "a change in percent"),
        (
            &["--budget", "5x", "sync=off"],
            "write a time as 90s, 3m or 500ms",
        ),
        (
            &["--budget", "0s", "sync=off"],
            "write a time as 90s, 3m or 500ms",
        ),
        (
            &["--timeout", "soon", "sync=off"],
            "write a time as 90s, 3m or 500ms",
        ),
        (&["--delta", "1", "sync=off"], "for example 1% or 0.5%"),
        (&["--precision=-1%", "sync=off"], "for example 1% or 0.5%"),
        (
            &["--seed", "lucky", "sync=off"],
            "write a number, as 7, 0x5eed or 7+1",
        ),
        (&["baseline"], "leave it out"),
        (&["bare"], "--bare"),
        (&["snyc=off"], "did you mean `sync=off`?"),
        (&["sync=off", "env.A=1", "sync=off"], "name it once"),
        (&["sync=off+tz=UTC", "sync=off+tz=UTC"], "name it once"),
        (&["env.A=1+env.A=2"], "keep one of them"),
        (&["--with", "sync=of", "env.A=1"], "did you mean"),
        (&[], "name a variant: refit compare sync=off -- COMMAND"),
        (
            &["--fresh-copy", "nowhere", "sync=off"],
            "cannot copy nowhere",
        ),
        (
            &["--json", "nowhere/a.json", "sync=off"],
            "there is no directory nowhere",
        ),
        (&["--svg", &dir, "sync=off"], "it is a directory"),
        (
            &["--prepare", "exit 7", "sync=off"],
            "--prepare 'exit 7' failed: exit status: 7",
        ),
        (
            &["--conclude", "exit 7", "sync=off"],
            "--conclude 'exit 7' failed: exit status: 7",
        ),
    ] {
        expect_sentence(env, &[words, &to_command].concat(), sentence);
    }
    expect_sentence(env, &["sync=off"], "refit compare sync=off -- COMMAND");
    expect_sentence(
        env,
        &["sync=off", "--"],
        "refit compare sync=off -- COMMAND",
    );
    expect_sentence(
        env,
        &["--shell", "sync=off", "--", "echo", "a"],
        "refit compare --shell",
    );
    Outcome::Pass
}

#[track_caller]
fn expect_sentence(env: &TestEnv, words: &[&str], sentence: &str) {
    let output = env.refit(&[&["compare"], words].concat());
    let text = messages(&output);
    assert!(
        text.contains(sentence) && output.stdout.is_empty(),
        "{words:?}: {}",
        described(&output)
    );
    expect_code(&output, 2);
}
