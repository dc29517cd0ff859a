//! Random sequences of calls (tests/programs/call_sequences.c) answer beneath each way of refit what they answer without
//! it: each result, each errno, the content of every file.
//!
//! `REFIT_SEQUENCES` is the number of sequences beneath each way (`make test-sequences`: 5,000); each follows from its
//! number, which stands first in its lines. Where a way begins is drawn from the process, so that the suite's runs differ.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::places::public;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_printed, refit_path};

pub const TESTS: &[Test] = &[
    test!(a_program_answers_as_without_refit).limit_seconds(7200),
    test!(a_static_program_answers_as_without_refit).limit_seconds(7200),
    test!(a_program_of_32_bits_answers_as_without_refit).limit_seconds(7200),
    test!(a_program_with_musl_answers_as_without_refit).limit_seconds(7200),
    test!(a_static_program_with_musl_answers_as_without_refit).limit_seconds(7200),
    test!(another_user_s_program_answers_as_without_refit).limit_seconds(7200),
    test!(preloads_that_answer_wrongly_would_be_noticed).limit_seconds(7200),
    test!(a_file_that_is_open_for_nothing_can_be_synced_by_io_submit),
];

/// Words of `refit run`; DIR is where the program works.
type Way = &'static [&'static str];

const DYNAMIC: &[Way] = &[
    &[],
    &["sync=off"],
    &["odirect=off"],
    &["odirect=off+sync=off"],
    &["--heap"],
    &["--durability"],
    &["sync@DIR/=off"],
    &["sync@exe:PROGRAM=off"],
];
/// Of root alone: others give up set-id programs for a filter.
const FILTERED: &[Way] = &[
    &["--backend", "seccomp", "sync=off"],
    &["--backend", "seccomp", "sync=on"],
    &["sync@DIR/=off"],
];
const PRELOADED: &[Way] = &[
    &["sync=off"],
    &["--backend", "preload", "sync@DIR/=off"],
    &["odirect=off"],
    &["--durability"],
];

fn wanted() -> u64 {
    let wanted = std::env::var("REFIT_SEQUENCES").ok();
    wanted.map_or(40, |text| {
        text.parse().expect("REFIT_SEQUENCES is a number")
    })
}

/// Its output is in this file.
fn run(env: &TestEnv, before: &[&str], program: &str, first: u64, name: &str) -> String {
    let (place, out) = (env.subdir(&format!("{name}.dir")), env.path(name));
    fs::set_permissions(&place, Permissions::from_mode(0o777)).expect("it is ours");
    let before: Vec<String> = before
        .iter()
        .map(|word| word.replace("DIR", &place))
        .collect();
    let [from, count] = [first, wanted()].map(|number| number.to_string());
    let words = [program, &from, &count, &place];
    let words: Vec<&str> = before.iter().map(String::as_str).chain(words).collect();
    let file = File::create(&out).expect("it is ours");
    let mut command = Command::new(words[0]);
    let command = command
        .args(&words[1..])
        .current_dir(env.dir())
        .stdin(Stdio::null());
    let status = command
        .stdout(file)
        .stderr(Stdio::inherit())
        .status()
        .expect("it starts");
    assert!(
        status.success(),
        "{words:?}: {status}, after {}",
        last_line(&out)
    );
    let left: Vec<_> = fs::read_dir(&place)
        .expect("it is ours")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    out
}

fn lines(file: &str) -> impl Iterator<Item = String> {
    let file = File::open(file).expect("it was written");
    BufReader::new(file)
        .lines()
        .map(|line| line.expect("it is text"))
}

fn last_line(file: &str) -> String {
    lines(file).last().unwrap_or_default()
}

/// The first line that differs, and what came before it.
fn difference(bare: &str, beneath: &str) -> Option<String> {
    let (mut bare, mut beneath) = (lines(bare), lines(beneath));
    let mut before = Vec::new();
    loop {
        match (bare.next(), beneath.next()) {
            (None, None) => return None,
            (one, other) if one == other => before.extend(one),
            (one, other) => {
                let context = before[before.len().saturating_sub(30)..].join("\n");
                return Some(format!(
                    "after\n{context}\nwithout refit {one:?}\nbeneath it    {other:?}"
                ));
            }
        }
    }
}

/// The program bare and in each of the ways, after these words.
fn compare(env: &TestEnv, name: &str, user: &[&str], ways: &[&[Way]]) -> Outcome {
    let program = public(env, &env.program(name));
    let refit = public(env, &refit_path());
    // Another part of all sequences in each run of the suite, and the first ones in the full run.
    let first = match std::env::var_os("REFIT_SEQUENCES") {
        Some(_) => 1,
        None => 1 + u64::from(std::process::id()),
    };
    let bare = run(env, user, &program, first, "bare");
    let all: Vec<&Way> = ways.iter().copied().flatten().collect();
    for (n, way) in all.iter().enumerate() {
        let file = Path::new(&program)
            .file_name()
            .expect("a name")
            .to_string_lossy();
        let settings: Vec<String> = way
            .iter()
            .map(|word| word.replace("PROGRAM", &file))
            .collect();
        let mut words: Vec<&str> = user.to_vec();
        words.extend([refit.as_str(), "run", "--quiet", "--json", "run.json"]);
        words.extend(settings.iter().map(String::as_str));
        words.push("--");
        let beneath = run(env, &words, &program, first, &format!("beneath{n}"));
        let differs = difference(&bare, &beneath);
        assert!(
            differs.is_none(),
            "{}: {}",
            settings.join(" "),
            differs.unwrap_or_default()
        );
        fs::remove_file(&beneath).expect("it is ours");
    }
    println!(
        "counted: {name}: {} sequences from {first}, {} lines, in {} ways",
        wanted(),
        lines(&bare).count(),
        all.len()
    );
    Outcome::Pass
}

fn a_program_answers_as_without_refit(env: &TestEnv) -> Outcome {
    let filtered = if env.as_root() { FILTERED } else { &[] };
    compare(env, "call_sequences", &[], &[DYNAMIC, filtered])
}

fn a_static_program_answers_as_without_refit(env: &TestEnv) -> Outcome {
    env.require_root();
    compare(env, "static_call_sequences", &[], &[FILTERED])
}

/// Its calls have other numbers, and no preload reaches it.
fn a_program_of_32_bits_answers_as_without_refit(env: &TestEnv) -> Outcome {
    env.require_root();
    compare(env, "static_i386_call_sequences", &[], &[FILTERED])
}

fn a_program_with_musl_answers_as_without_refit(env: &TestEnv) -> Outcome {
    let filtered = if env.as_root() { FILTERED } else { &[] };
    compare(env, "musl_call_sequences", &[], &[PRELOADED, filtered])
}

fn a_static_program_with_musl_answers_as_without_refit(env: &TestEnv) -> Outcome {
    env.require_root();
    compare(env, "static_musl_call_sequences", &[], &[FILTERED])
}

/// refit is started by nobody.
fn another_user_s_program_answers_as_without_refit(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("setpriv");
    fs::set_permissions(env.dir(), Permissions::from_mode(0o777)).expect("it is ours");
    let user = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all";
    let user: Vec<&str> = user.split(' ').collect();
    compare(env, "call_sequences", &user, &[DYNAMIC, PRELOADED])
}

fn preloads_that_answer_wrongly_would_be_noticed(env: &TestEnv) -> Outcome {
    let program = env.program("call_sequences");
    let bare = run(env, &[], &program, 1, "bare");
    for mutant in ["always_zero", "zeroes_errno"] {
        let preload = format!("LD_PRELOAD={}", env.program(mutant));
        let beneath = run(env, &["env", &preload], &program, 1, mutant);
        let differs = difference(&bare, &beneath);
        println!("{mutant}: {differs:?}");
        assert!(differs.is_some(), "{mutant}");
    }
    Outcome::Pass
}

/// As sequence 2062 once found: the read or write of nothing in its place was refused.
fn a_file_that_is_open_for_nothing_can_be_synced_by_io_submit(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("aio_neither"), env.path("file"));
    let bare = env.run(&[&program, &file]);
    expect_printed(&bare, 0, "1 0 0\n");
    for settings in ["sync=on", "sync=off"] {
        let beneath = env.refit(&[
            "run", "--quiet", "--json", "run.json", settings, "--", &program, &file,
        ]);
        expect_printed(&beneath, 0, "1 0 0\n");
    }
    Outcome::Pass
}
