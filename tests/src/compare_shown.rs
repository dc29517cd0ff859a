//! `refit compare` and `refit report`: what a person sees, at a terminal and elsewhere.

use std::fs;

use crate::compare_files::make;
use crate::compared::printed;
use crate::runner::{Outcome, Test};
use crate::terminal::Terminal;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(nobody_who_reads_is_no_trouble),
    test!(colours_are_for_terminals_that_want_them),
    test!(the_table_is_as_wide_as_the_terminal),
    test!(a_dumb_terminal_gets_no_colours),
    test!(progress_shows_estimates_and_never_a_verdict),
];

/// A command on a terminal of so many columns; what it showed.
fn on_terminal(env: &TestEnv, columns: u32, settings: &[(&str, &str)], args: &[&str]) -> String {
    env.require_command("stty");
    let mut command = env.command("sh");
    let script = format!("stty cols {columns} && exec \"$@\"");
    command
        .args(["-c", &script, "sh", &refit_path()])
        .args(args);
    command
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS")
        .env("TERM", "xterm")
        .envs(settings.iter().copied());
    let (status, shown) = Terminal::start(command).finish();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}: {shown}");
    shown
}

fn nobody_who_reads_is_no_trouble(env: &TestEnv) -> Outcome {
    make(env, &[]);
    for args in [
        &["report", "result.json"][..],
        &["report", "--history", "."],
        &[
            "compare", "--quiet", "--rounds", "12", "env.A=1", "--", "true",
        ],
    ] {
        let (reader, writer) = std::io::pipe().expect("descriptors are left");
        drop(reader);
        let output = env
            .refit_command(args)
            .stdout(writer)
            .output()
            .expect("refit starts");
        expect_code(&output, 0);
        assert!(output.stderr.is_empty(), "{args:?}: {}", described(&output));
    }
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("every Linux has it");
    let output = env
        .refit_command(&["report", "result.json"])
        .stdout(full)
        .output()
        .expect("refit starts");
    expect_code(&output, 2);
    assert!(
        described(&output).contains("cannot write to stdout"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}

fn colours_are_for_terminals_that_want_them(env: &TestEnv) -> Outcome {
    const ESCAPE: char = '\u{1b}';
    let output = make(env, &[]);
    assert!(!printed(&output).contains(ESCAPE) && !output.stderr.contains(&(ESCAPE as u8)));
    let args = ["report", "result.json"];
    assert!(on_terminal(env, 100, &[], &args).contains(ESCAPE));
    assert!(on_terminal(env, 100, &[("NO_COLOR", "")], &args).contains(ESCAPE));
    let plain = on_terminal(env, 100, &[("NO_COLOR", "1")], &args);
    assert_eq!(plain, printed(&output));
    Outcome::Pass
}

fn the_table_is_as_wide_as_the_terminal(env: &TestEnv) -> Outcome {
    make(env, &[]);
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
    let quiet = [("NO_COLOR", "1")];
    for columns in [60, 80, 140] {
        let shown = on_terminal(env, columns, &quiet, &["report", "result.json"]);
        let width = widest(&shown).expect("there are lines");
        assert!(width <= columns as usize, "{width} of {columns}:\n{shown}");
        assert!(
            columns < 140 || width > 80,
            "{width} of {columns}:\n{shown}"
        );
        for needed in ["disqualified", "slower", "95 % interval", "env.ODD"] {
            assert!(shown.contains(needed), "{needed} in\n{shown}");
        }
    }
    // What counts is the width at the end.
    let resize = "stty cols 80 </dev/tty";
    let args = [
        "compare",
        "--quiet",
        "--prepare",
        resize,
        "--rounds",
        "12",
        "env.A=1",
        "--",
        "true",
    ];
    let shown = on_terminal(env, 140, &quiet, &args);
    assert!(shown.contains("baseline"), "{shown}");
    assert!(
        widest(&shown).is_some_and(|width| width <= 80 && width > 60),
        "{shown}"
    );
    Outcome::Pass
}

fn a_dumb_terminal_gets_no_colours(env: &TestEnv) -> Outcome {
    let file = env.path("result.json");
    let rounds = ["--quiet", "--rounds", "2", "--json", &file];
    let output = env.refit(&[&["compare"], &rounds[..], &["env.A=1", "--", "true"]].concat());
    expect_code(&output, 0);
    for (term, is_coloured) in [("dumb", false), ("", false), ("xterm", true)] {
        let mut command = env.refit_command(&["report", &file]);
        command.env("TERM", term).env_remove("NO_COLOR");
        let (status, shown) = Terminal::start(command).finish();
        assert_eq!(status.code(), Some(0), "{shown}");
        assert_eq!(shown.contains('\u{1b}'), is_coloured, "{term:?}: {shown}");
    }
    Outcome::Pass
}

fn progress_shows_estimates_and_never_a_verdict(env: &TestEnv) -> Outcome {
    let script = format!(
        "exec {} compare --seed 5 --rounds 24 --precision 0.0001% env.SLOW=1 -- \
        sh -c 'test -z \"$SLOW\" || exec sleep 0.2' >out",
        refit_path()
    );
    let mut command = env.command("sh");
    command.args(["-c", &script]).env("TERM", "xterm");
    let (status, shown) = Terminal::start(command).finish();
    assert_eq!(status.code(), Some(0), "{shown}");
    let table = fs::read_to_string(env.path("out")).expect("the shell made it");
    let answer = table.lines().next().unwrap_or_default();
    assert!(answer.contains("`env.SLOW=1` is "), "{table}");
    assert!(answer.contains(" slower (wall +"), "{table}");
    assert!(
        table.contains("slower") && !table.contains('\u{1b}'),
        "{table}"
    );
    assert!(shown.contains("refit: plan: looks after"), "{shown}");
    // An estimate with its interval, and the time that is left.
    assert!(
        shown.contains("env.SLOW=1 +") && shown.contains(" % ["),
        "{shown}"
    );
    assert!(shown.contains(" left "), "{shown}");
    for verdict in ["faster", "slower", "same", "inconclusive", "baseline again"] {
        assert!(!shown.contains(verdict), "{verdict} in\n{shown}");
    }
    Outcome::Pass
}
