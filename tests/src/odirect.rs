//! odirect=: O_DIRECT goes from regular files, and from nothing else.

use std::fs;

use crate::cells::Program;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};
use crate::traced::{self, Counts};

pub const TESTS: &[Test] = &[
    test!(off_takes_o_direct_from_regular_files_only),
    test!(it_stays_unless_it_is_off),
];

fn lines(stdout: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stdout);
    text.lines().map(str::to_owned).collect()
}

fn off_takes_o_direct_from_regular_files_only(env: &TestEnv) -> Outcome {
    let bare = direct_lines(env);
    let words = [env.program("direct_write"), env.path("buffered")];
    let traced = traced::run(env, &["odirect=off"], &words.each_ref().map(String::as_str));
    traced.all_reached();
    let buffered: Vec<String> = bare
        .iter()
        .map(|line| {
            let (how, _) = line.split_once(' ').expect("lines begin with how");
            // Through the page cache any alignment will do.
            format!("{how} buffered aligned=4096 misaligned=4096")
        })
        .collect();
    assert_eq!(lines(&traced.output.stdout), buffered);
    // The kernel still judges the open and the F_SETFL; the flag goes afterwards.
    assert_eq!(traced.refit("suppressed"), traced.straced());
    assert_eq!(traced.refit("real"), Counts::new());
    let taken = traced.trace.calls.iter().filter(|call| {
        call.name == "fcntl" && call.args.contains("F_SETFL") && !call.args.contains("O_DIRECT")
    });
    assert_eq!(taken.count(), 2);

    // What is done is what is explained.
    assert!(
        traced.refit("suppressed").contains_key("fcntl(O_DIRECT)"),
        "{:?}",
        traced.refit("suppressed")
    );
    let explained = env.refit(&["run", "--explain", "odirect=off"]);
    expect_code(&explained, 0);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    let (covered, not_covered) = text.split_once("not covered").expect("both are listed");
    assert!(covered.contains("fcntl(F_SETFL)"), "{text}");
    assert!(!not_covered.contains("fcntl(F_SETFL)"), "{text}");

    // Neither a FIFO's packets nor a device's answer, nor any sync bit, is touched.
    let cells = |place| Program::named("glibc").words(env, "odd_opens", place);
    let [bare, words] = [cells("bare"), cells("off")];
    let bare = env.run(&bare.iter().map(String::as_str).collect::<Vec<_>>());
    expect_code(&bare, 0);
    let bare = lines(&bare.stdout);
    let is_kept = |line: &&String| {
        line.starts_with("fcntl_setfl fifo_packets 0 kept ") && line.ends_with("+O_DIRECT")
    };
    assert!(bare.iter().any(|line| is_kept(&line)), "{bare:?}");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let odd = traced::run(env, &["odirect=off"], &words);
    assert!(odd.output.stderr.is_empty(), "{}", described(&odd.output));
    assert_eq!(lines(&odd.output.stdout), bare);
    assert_eq!(odd.refit("suppressed"), Counts::new(), "refit took away");
    Outcome::Pass
}

fn it_stays_unless_it_is_off(env: &TestEnv) -> Outcome {
    let bare = direct_lines(env);
    for settings in [
        &["sync=on"][..],
        &["odirect=on"],
        &["sync=off", "odirect=on"],
    ] {
        let words = [env.program("direct_write"), env.path("file")];
        let traced = traced::run(env, settings, &words.each_ref().map(String::as_str));
        traced.all_reached();
        assert_eq!(lines(&traced.output.stdout), bare, "{settings:?}");
        traced.seen_is_what_strace_saw();
        fs::remove_file(env.path("file")).expect("the program made it");
    }
    Outcome::Pass
}

/// What direct_write prints on the bare kernel; skips the test where that has no O_DIRECT.
fn direct_lines(env: &TestEnv) -> Vec<String> {
    let output = env.run(&[&env.program("direct_write"), &env.file("bare", "")]);
    if output.status.code() == Some(3) {
        env.skip("the filesystem of the tests has no O_DIRECT");
    }
    expect_code(&output, 0);
    let bare = lines(&output.stdout);
    assert_eq!(bare.len(), 2);
    assert!(
        bare.iter().all(|line| line.contains(" direct ")),
        "{bare:?}"
    );
    bare
}
