//! What a setting asks for and this machine does not have is refused before anything starts.

use crate::compared::messages;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(a_zone_that_is_not_there_is_refused_with_those_of_a_similar_name),
    test!(an_option_that_the_allocator_refuses_is_refused),
    test!(a_program_that_is_not_there_is_named),
    test!(an_option_that_cannot_act_is_refused),
];

/// `run` and `compare` refuse the setting, with this sentence.
#[track_caller]
fn expect_refused(env: &TestEnv, args: &[&str], sentence: &str) {
    let proof = env.path("proof");
    for (verb, code) in [("run", 125), ("compare", 2)] {
        let output = env.refit(&[&[verb], args, &["--", "touch", &proof]].concat());
        expect_code(&output, code);
        assert!(
            messages(&output).contains(sentence),
            "{verb}: {}",
            messages(&output)
        );
        assert!(!std::path::Path::new(&proof).exists(), "{verb} {args:?}");
    }
}

fn a_zone_that_is_not_there_is_refused_with_those_of_a_similar_name(env: &TestEnv) -> Outcome {
    if !std::path::Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        env.skip("no tzdata");
    }
    expect_refused(env, &["tz=Mars"], "tz=Mars: there is no such time zone");
    expect_refused(env, &["tz=Asia/Tokio"], "did you mean `tz=Asia/Tokyo`");
    expect_refused(env, &["tz=tokyo"], "did you mean `tz=Asia/Tokyo`");
    expect_refused(
        env,
        &["tz=Qqqqqqqqqqq"],
        "write it as in `tz=Europe/Berlin`",
    );
    for (zone, hour) in [("Asia/Tokyo", "09"), (":Asia/Tokyo", "09"), ("XYZ-3", "03")] {
        let setting = format!("tz={zone}");
        let output = env.refit(&["run", "--quiet", &setting, "--", "date", "-d@0", "+%H"]);
        expect_code(&output, 0);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            hour,
            "{zone}"
        );
    }
    // Without the table of zones nobody knows.
    let output = env
        .refit_command(&["run", "--quiet", "tz=Mars", "--", "true"])
        .env("TZDIR", env.path("nowhere"))
        .output()
        .expect("refit starts");
    expect_code(&output, 0);
    Outcome::Pass
}

fn an_option_that_the_allocator_refuses_is_refused(env: &TestEnv) -> Outcome {
    let dir = env.subdir("allocators");
    let library = env.program("refusing_jemalloc");
    std::fs::copy(library, format!("{dir}/libjemalloc.so.2")).expect("the directory is ours");
    let setting = ["--allocator-dir", &dir, "malloc=jemalloc:narenas:2"];
    let complaint = "the installed jemalloc refuses it: Invalid conf pair: narenas:2";
    expect_refused(env, &setting, complaint);
    for setting in [
        "malloc=jemalloc:narenas:2",
        "malloc=mimalloc:show_errors=1",
        "malloc=glibc:arena_max=2",
    ] {
        expect_code(&env.refit(&["run", setting, "--", "true"]), 0);
    }
    Outcome::Pass
}

fn a_program_that_is_not_there_is_named(env: &TestEnv) -> Outcome {
    let output = env.refit(&["run", "program=./nowhere", "--", "true"]);
    expect_message(&output, 127, "cannot run ./nowhere");
    let output = env.refit(&["compare", "program=./nowhere", "--", "true"]);
    expect_message(&output, 2, "cannot run ./nowhere");
    Outcome::Pass
}

/// Each was accepted, and did nothing.
fn an_option_that_cannot_act_is_refused(env: &TestEnv) -> Outcome {
    let file = env.file("result.json", "{}");
    let cases: [(&[&str], u8); 6] = [
        (&["watch", "--heap", "1"], 2),
        (&["watch", "--heap", "--per", "echo 1", "1"], 2),
        (&["report", "--keep", "a", "env.A=1", &file], 2),
        (&["report", "--drop", "a", "env.A=1", &file], 2),
        (&["run", "--explain", "--json", "x.json", "sync=off"], 125),
        (&["run", "--explain", "--heap", "--purge", "sync=off"], 125),
    ];
    for (words, code) in cases {
        let output = env.refit(words);
        expect_code(&output, code.into());
        let text = messages(&output);
        assert!(text.contains(words[1]), "{words:?}: {text}");
        assert!(!std::path::Path::new(&env.path("x.json")).exists());
    }
    Outcome::Pass
}
