//! `run --heap --purge`: what the forked copy tells is what the allocator really gives back afterwards, and no program notices
//! that there was one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::memory_identity::{fresh_seed, wait_for_reading};
use crate::processes::{children, status_line};
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::sys::{has_clone3, send_signal};
use crate::test;
use crate::test_env::{TestEnv, refit_path, wait_for, wait_until};

pub const TESTS: &[Test] = &[
    test!(what_the_copy_gives_back_the_process_gives_back).limit_seconds(900),
    test!(where_nothing_can_be_given_back_it_is_nothing).limit_seconds(900),
    test!(a_program_that_counts_its_children_sees_no_copy).limit_seconds(300),
    test!(a_machine_that_stands_still_is_not_taken_for_an_idle_program),
    test!(who_cannot_have_a_copy_is_told_why).limit_seconds(300),
    test!(a_copy_that_hangs_or_crashes_ends_and_the_program_goes_on).limit_seconds(300),
    test!(no_copy_outlives_a_program_that_ends_at_any_moment).limit_seconds(300),
];

const MIB: f64 = 1_048_576.0;

/// `name=number` words that a program prints.
type Told = BTreeMap<String, f64>;

fn told(text: &str) -> Told {
    let words = text.split_whitespace();
    let words = words.filter_map(|word| word.split_once('='));
    let told = words.map(|(name, value)| (name.to_owned(), value.parse().expect("a number")));
    told.collect()
}

/// Skips the test where no process can be copied.
fn require_copies(env: &TestEnv) {
    if !has_clone3() {
        env.skip("a copy needs clone3(2), which is not allowed here");
    }
}

/// Runs a program beneath `refit run --heap --purge` until refit has read it after its first line, and then ends its input;
/// what it printed, and what refit measured.
fn purged(env: &TestEnv, settings: &[&str], words: &[&str]) -> (Told, Value) {
    purged_after(env, settings, words, wait_for_reading)
}

/// The same, and `act` is what happens between the first line and the end of the input; it gets the pid of refit.
fn purged_after(
    env: &TestEnv,
    settings: &[&str],
    words: &[&str],
    act: impl FnOnce(u32),
) -> (Told, Value) {
    require_copies(env);
    let json = env.path("run.json");
    let mut refit = Command::new(refit_path());
    refit.current_dir(env.dir());
    refit.args(["run", "--heap", "--purge", "--json", &json]);
    refit.args(settings).arg("--").args(words);
    refit.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut refit = refit.spawn().expect("refit starts");
    let mut text = String::new();
    let mut output = BufReader::new(refit.stdout.take().expect("it is piped"));
    output.read_line(&mut text).expect("it prints text");
    act(refit.id());
    drop(refit.stdin.take());
    output.read_to_string(&mut text).expect("it prints text");
    assert!(refit.wait().expect("it is our child").success());
    let report = fs::read(&json).expect("it was written");
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    (told(&text), report["purge"].clone())
}

/// Given back, by the copy and then by the process; kept in whole pages, and in fragments, before that.
fn given_back(env: &TestEnv, allocator: &str, seed: u64, how: &str) -> [f64; 4] {
    let setting = format!("malloc={allocator}");
    let program = env.program("heap_purge");
    let words = [&*program, &seed.to_string(), how];
    // After a delay mimalloc gives freed pages back by itself, or when it is asked the next time: without end, the answer
    // is the same at both times.
    let settings = match allocator {
        // Its name in mimalloc 2.0, and from 2.1 on.
        "mimalloc" => vec![
            &*setting,
            "env.MIMALLOC_DECOMMIT_DELAY=3600000",
            "env.MIMALLOC_PURGE_DELAY=3600000",
        ],
        _ => vec![&*setting],
    };
    let (told, purge) = purged(env, &settings, &words);
    println!("{allocator} {how}: seed {seed}, {told:?}");
    let of = |field: &str| number(&purge["measured"][field]) as f64;
    [
        of("given_back_bytes"),
        told["given_back"],
        of("retained_bytes"),
        of("fragments_bytes"),
    ]
}

fn what_the_copy_gives_back_the_process_gives_back(env: &TestEnv) -> Outcome {
    for allocator in ["glibc", "jemalloc", "mimalloc", "tcmalloc"] {
        // The most can also have been measured before the program had freed anything.
        let mut tries = (0..5).map(|_| given_back(env, allocator, fresh_seed(), "pages"));
        let found = tries.find(|[_, _, retained, _]| *retained > 60.0 * MIB);
        let [copy, process, ..] = found.expect("one of five is measured afterwards");
        assert!(
            (copy - process).abs() < 0.05 * process.abs() + MIB,
            "{allocator}"
        );
        // mimalloc 2.0 keeps free pages of a segment that has live ones.
        assert!(
            copy > 40.0 * MIB || allocator == "mimalloc",
            "{allocator}: {copy}"
        );
    }
    Outcome::Pass
}

fn where_nothing_can_be_given_back_it_is_nothing(env: &TestEnv) -> Outcome {
    for allocator in ["glibc", "jemalloc", "mimalloc", "tcmalloc"] {
        let [copy, process, _, fragments] = given_back(env, allocator, fresh_seed(), "pinned");
        assert!(copy < MIB && process < MIB, "{allocator}: {copy} {process}");
        assert!(fragments > 40.0 * MIB, "{allocator}: {fragments}");
    }
    Outcome::Pass
}

fn of_children(env: &TestEnv, settings: &[&str], how: &str) -> (Told, Value) {
    purged(env, settings, &[&env.program("heap_purge_children"), how])
}

fn expect_undisturbed(told: &Told) {
    assert!(told["started"] > 0.0, "{told:?}");
    assert_eq!(told["started"], told["reaped"], "{told:?}");
    assert_eq!(told["started"], told["signals"], "{told:?}");
    assert_eq!([told["strange"], told["descriptors"]], [0.0; 2], "{told:?}");
}

fn a_program_that_counts_its_children_sees_no_copy(env: &TestEnv) -> Outcome {
    for how in ["waits", "waits", "waits", "threads", "threads"] {
        let (told, purge) = of_children(env, &[], how);
        let given = purge["measured"]["given_back_bytes"].as_f64();
        assert!(given.is_some_and(|given| given > 30.0 * MIB), "{purge:#}");
        expect_undisturbed(&told);
    }
    Outcome::Pass
}

/// The thread of refit, not the first, that sleeps for a time: the one that reads memory does so only when it has asked for
/// a copy.
fn sleeping_thread(refit: u32) -> Option<String> {
    let sleeping = format!("{} ", libc::SYS_clock_nanosleep);
    let threads = fs::read_dir(format!("/proc/{refit}/task")).ok()?.flatten();
    let mut names = threads.filter_map(|thread| thread.file_name().into_string().ok());
    names.find(|name| {
        let call = fs::read_to_string(format!("/proc/{refit}/task/{name}/syscall"));
        *name != refit.to_string() && call.is_ok_and(|call| call.starts_with(&sleeping))
    })
}

/// How often a thread went to sleep; `None` when it has ended.
fn sleeps(refit: u32, thread: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{refit}/task/{thread}/status")).ok()?;
    let mut lines = status.lines();
    lines.find_map(|line| Some(line.strip_prefix("voluntary_ctxt_switches:")?.to_owned()))
}

/// Stops refit and its program for longer than refit waits for an answer; refit goes on first.
fn stand_still(refit: u32) {
    let named = |pid: &u32| status_line(*pid, "Name").is_some_and(|name| name == "heap_purge_chil");
    let program = children(refit).into_iter().find(named);
    let send = |pid: u32, signal| send_signal(pid.cast_signed(), signal);
    let program = program.expect("it has printed a line");
    send(program, libc::SIGSTOP);
    let reader = wait_for("refit waits for the copy", || sleeping_thread(refit));
    send(refit, libc::SIGSTOP);
    // Time is what is studied: it is longer than refit waits.
    sleep(Duration::from_millis(2500));
    let before = sleeps(refit, &reader);
    send(refit, libc::SIGCONT);
    wait_until("refit has looked again", || {
        sleeps(refit, &reader) != before
    });
    send(program, libc::SIGCONT);
    wait_for_reading(refit);
}

fn a_machine_that_stands_still_is_not_taken_for_an_idle_program(env: &TestEnv) -> Outcome {
    let words = [&*env.program("heap_purge_children"), "waits"];
    let (told, purge) = purged_after(env, &[], &words, stand_still);
    // The one during which it stood still, and the next.
    let measured = purge["measured"]["measured"].as_u64();
    assert!(measured.is_some_and(|times| times >= 2), "{purge:#}");
    expect_undisturbed(&told);
    Outcome::Pass
}

/// Why it is not known, or not any more: it may have been measured before the program's first line.
fn why(purge: &Value) -> &str {
    let later = &purge["measured"]["unknown_later"];
    let why = purge["unknown"].as_str().or(later.as_str());
    why.unwrap_or_default()
}

fn who_cannot_have_a_copy_is_told_why(env: &TestEnv) -> Outcome {
    for (how, allocator, reason) in [
        ("filter", "glibc", "a seccomp filter of its own"),
        ("threads", "jemalloc", "1,001 threads"),
        ("user", "glibc", "RLIMIT_NPROC"),
    ] {
        let setting = format!("malloc={allocator}");
        let (told, purge) = of_children(env, &[&setting], how);
        let why = why(&purge);
        assert!(why.contains(reason), "{how}: {purge:#}");
        // As a user it can start none.
        if how != "user" || told["started"] > 0.0 {
            expect_undisturbed(&told);
        }
    }
    Outcome::Pass
}

fn a_copy_that_hangs_or_crashes_ends_and_the_program_goes_on(env: &TestEnv) -> Outcome {
    let library = format!("malloc={}", env.program("stuck_trim"));
    for setting in ["env.NOTHING=1", "env.STUCK_TRIM=1"] {
        let (told, purge) = of_children(env, &[&library, setting], "waits");
        let why = why(&purge);
        assert!(
            why.contains("its forked copy ended"),
            "{setting}: {purge:#}"
        );
        expect_undisturbed(&told);
        wait_until("the copy has ended", || {
            copies_of(&env.program("heap_purge_children")) == 0
        });
    }
    Outcome::Pass
}

/// Processes of a program that are copies.
fn copies_of(program: &str) -> usize {
    let all = fs::read_dir("/proc").expect("it is mounted").flatten();
    let copies = all.filter(|process| {
        let is_its =
            fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe.ends_with(program));
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        is_its && name == "refit-purge\n"
    });
    copies.count()
}

fn no_copy_outlives_a_program_that_ends_at_any_moment(env: &TestEnv) -> Outcome {
    require_copies(env);
    // Of its own name, so that the copies of other tests are none of its.
    let program = env.path("ends");
    fs::copy(env.program("heap_purge_children"), &program).expect("both are ours");
    let mut measured = 0;
    for time in 0..30 {
        let json = env.path("ends.json");
        let time = (40 + 7 * time).to_string();
        let mut refit = Command::new(refit_path());
        refit.args([
            "run", "--heap", "--purge", "--json", &json, "--", &program, "ends", &time,
        ]);
        let mut refit = refit.stdin(Stdio::piped()).spawn().expect("refit starts");
        // Nothing is written, and it does not end.
        let input = refit.stdin.take();
        refit.wait().expect("it is our child");
        drop(input);
        let report: Value =
            serde_json::from_slice(&fs::read(&json).expect("it was written")).expect("JSON");
        assert_eq!(report["exit"]["signal"], 14, "{report:#}");
        let purge = &report["purge"];
        assert!(purge.is_object(), "{report:#}");
        measured += usize::from(purge["measured"].is_object());
        wait_until("the copy has ended", || copies_of(&program) == 0);
    }
    println!("{measured} of 30 were measured");
    assert!(measured > 0);
    Outcome::Pass
}
