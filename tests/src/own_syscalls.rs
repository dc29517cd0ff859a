//! Dynamic programs that sync by system call instructions of their own, which no preload sees: what refit says of them,
//! held against the kernel's witness. What it does not know it calls neither real nor suppressed nor absent.

use serde_json::Value;

use crate::compared::{compare, printed, variant};
use crate::places;
use crate::ran::{Ran, number};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};
use crate::witness::{run, seen};

pub const TESTS: &[Test] = &[
    test!(what_is_said_is_what_the_kernel_saw).limit_seconds(120),
    test!(beneath_a_filter_the_kernel_answers_uncounted),
    test!(what_no_search_finds_the_witness_names),
    test!(without_root_nothing_is_called_absent),
    test!(a_comparison_judges_what_the_filter_reaches),
    test!(a_comparison_says_what_reached_the_disk),
    test!(a_helper_threads_sync_is_counted_as_it_is_answered),
];

/// Syncs of each program here.
const CALLS: u64 = 20;

/// The number after `before` in the messages, where there is one.
fn number_after(messages: &str, before: &str) -> Option<u64> {
    let (_, rest) = messages.split_once(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',');
    rest[..end.unwrap_or(rest.len())]
        .replace(',', "")
        .parse()
        .ok()
}

/// Each sentence about syncs, held against the kernel's count of a program that syncs [`CALLS`] times.
#[track_caller]
fn expect_truth(env: &TestEnv, ran: &Ran) {
    let reached = number(&seen(env, &ran.report)["calls"]);
    let said = &ran.messages;
    let total = |field: &str| -> u64 {
        let totals = ran.report["totals"].as_object().expect("a table");
        let syncs = totals.iter().filter(|(name, _)| *name != "open(O_SYNC)");
        syncs.map(|(_, calls)| number(&calls[field])).sum()
    };
    assert!(total("real") <= reached, "real, and not seen: {said}");
    assert!(total("suppressed") <= CALLS - reached, "suppressed: {said}");
    if let Some(of) = number_after(said, &format!("suppressed {} of ", total("suppressed")))
        && !said.contains("sync calls that were counted")
    {
        assert_eq!(of, CALLS, "{said}");
    }
    if said.contains("at least ") {
        assert_eq!(number_after(said, "at least "), Some(CALLS), "{said}");
    }
    if said.contains("no sync call was seen") || said.contains("no sync calls seen\n") {
        assert_eq!(reached, 0, "{said}");
    }
    if said.contains("is not in effect") {
        assert_eq!(reached, CALLS, "{said}");
    }
    // What was answered by the filter is told.
    if total("seen") + reached < CALLS {
        let told = "the kernel answers the syncs among them with 0, uncounted";
        assert!(said.contains(told), "{said}");
    }
}

fn what_is_said_is_what_the_kernel_saw(env: &TestEnv) -> Outcome {
    env.require_root();
    let (own, hidden) = (env.program("own_syscalls"), env.program("hidden_syscalls"));
    let scope = format!("sync@{}/=off", env.dir().display());
    let modes: [&[&str]; 9] = [
        &[],
        &["sync=on"],
        &["sync=off"],
        &["--backend", "preload", "sync=off"],
        &["--backend", "seccomp", "sync=off"],
        &["--backend", "seccomp", "sync=on"],
        &[&scope],
        &["disk=1us"],
        &["sync@/no/where/=off"],
    ];
    for mode in modes {
        for words in [
            [&own, "file", "20", "own"],
            [&own, "file", "20", "half"],
            [&own, "file", "20", "named"],
            [&hidden, "file", "20", ""],
        ] {
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let ran = run(env, &[mode, &["--"], &words].concat());
            if mode != ["sync@/no/where/=off"] {
                expect_truth(env, &ran);
            }
        }
    }
    Outcome::Pass
}

fn beneath_a_filter_the_kernel_answers_uncounted(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("own_syscalls");
    for (way, suppressed) in [("own", 0), ("half", 10)] {
        let ran = run(env, &["sync=off", "--", &program, "file", "20", way]);
        assert_eq!(seen(env, &ran.report)["calls"], 0, "{}", ran.messages);
        assert_eq!(ran.fsyncs("own_syscalls", "suppressed"), suppressed);
        assert!(ran.unknown("own_syscalls", "answered by the kernel"));
        for wrong in ["not in effect", "real:", "no sync calls seen", "nothing"] {
            assert!(!ran.messages.contains(wrong), "{way}: {}", ran.messages);
        }
        let effect = &ran.report["settings"][0]["in_effect"];
        let expected = if way == "own" {
            "unknown"
        } else {
            "everywhere"
        };
        assert_eq!(effect, expected, "{}", ran.messages);
    }
    let half = run(env, &["sync=off", "--", &program, "file", "20", "half"]);
    let text = "suppressed 10 of 10 sync calls that were counted: fsync 10";
    assert!(half.messages.contains(text), "{}", half.messages);
    Outcome::Pass
}

fn what_no_search_finds_the_witness_names(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("hidden_syscalls");
    let ran = run(env, &["sync=off", "--", &program, "file", "20"]);
    assert_eq!(seen(env, &ran.report)["calls"], CALLS);
    let reason = "sync=off is not in effect: 20 durable calls that refit did not count reached ";
    assert!(ran.messages.contains(reason), "{}", ran.messages);
    // Beside calls that were suppressed.
    let named = env.program("write_fsync");
    let script = format!("{named} 5 other; {program} file 20");
    let both = run(env, &["sync=off", "--", "sh", "-c", &script]);
    assert!(
        both.messages
            .contains("suppressed 5 of at least 25 sync calls: fsync 5"),
        "{}",
        both.messages
    );
    let reason =
        "sync=off is in effect in part: 20 durable calls that refit did not count reached ";
    assert!(both.messages.contains(reason), "{}", both.messages);
    Outcome::Pass
}

fn without_root_nothing_is_called_absent(env: &TestEnv) -> Outcome {
    let refit = places::public(env, &crate::test_env::refit_path());
    let program = places::public(env, &env.program("own_syscalls"));
    let mut words = Vec::new();
    if env.as_root() {
        env.require_command("setpriv");
        words.extend([
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]);
    }
    words.extend([
        "env",
        "-u",
        "XDG_RUNTIME_DIR",
        "-u",
        "XDG_CACHE_HOME",
        "HOME=/nonexistent",
    ]);
    words.extend([
        &refit,
        "run",
        "sync=off",
        "--",
        &program,
        "/dev/null",
        "20",
        "own",
    ]);
    let output = env.run(&words);
    // /dev/null refuses the sync.
    expect_code(&output, 1);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let named =
        "own_syscalls makes system calls by its own instructions; syncs among them are not seen";
    assert!(messages.contains(named), "{messages}");
    assert!(!messages.contains("not in effect"), "{messages}");
    Outcome::Pass
}

fn a_comparison_judges_what_the_filter_reaches(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("own_syscalls");
    let args = [
        "--rounds", "16", "sync=off", "--", &program, "file", "20", "own",
    ];
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    let (_, off) = variant(&result, "sync=off");
    assert_eq!(off["disqualified"], Value::Null, "{off:#}");
    assert_eq!(off["settings"][0]["in_effect"], "unknown");
    if off["witness"]["seen"].is_object() {
        assert_eq!(off["witness"]["seen"]["calls"], 0, "{off:#}");
        assert_eq!(result["variants"][0]["witness"]["seen"]["calls"], CALLS);
    }
    Outcome::Pass
}

fn a_comparison_says_what_reached_the_disk(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("hidden_syscalls");
    let args = ["--rounds", "16", "sync=off", "--", &program, "file", "20"];
    let (output, result) = compare(env, &args);
    expect_code(&output, 2);
    let (_, off) = variant(&result, "sync=off");
    seen(env, off);
    let uncounted = &off["disqualified"]["not_in_effect"][0]["uncounted"];
    assert_eq!(uncounted["calls"], 20, "{off:#}");
    let caller = &uncounted["callers"][0]["executable"];
    assert_eq!(caller.as_str(), Some(&*program), "{off:#}");
    let line = "not in effect: 20 durable calls that refit did not count reached ";
    assert!(printed(&output).contains(line), "{}", printed(&output));
    Outcome::Pass
}

/// The C library's helper thread makes the call of aio_fsync by its own instructions: the filter answers it.
fn a_helper_threads_sync_is_counted_as_it_is_answered(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("aio_dropped");
    let file = env.path("file");
    for (settings, field) in [
        (&["sync=off"][..], "suppressed"),
        (&["--backend", "preload", "sync=off"], "real"),
        (&["sync=on"], "real"),
    ] {
        let ran = run(env, &[settings, &["--", &program, &file, "20"]].concat());
        let calls = &ran.report["totals"]["aio_fsync"];
        assert_eq!(calls[field], CALLS, "{settings:?}: {}", ran.messages);
        expect_truth(env, &ran);
    }
    // Where refit is asked, it counts the helper thread's own call.
    for settings in [&["--backend", "seccomp", "sync=off"][..], &["disk=1us"]] {
        let ran = run(env, &[settings, &["--", &program, &file, "20"]].concat());
        expect_truth(env, &ran);
        assert_eq!(ran.fsyncs("aio_dropped", "seen"), CALLS, "{}", ran.messages);
    }
    Outcome::Pass
}
