//! A program cannot tell that refit is there: its streams, its descriptors, its end. (Signals and terminals:
//! signals.rs.) What is right is asked of the same command without refit, each time.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(a_cleared_environment_leaves_stderr_alone),
    test!(a_32_bit_program_leaves_stderr_alone),
    test!(a_chroot_leaves_stderr_alone),
    test!(a_noexec_cache_leaves_stderr_alone),
    test!(a_home_that_ld_so_cannot_name_leaves_stderr_alone),
    test!(stdin_and_stdout_pass_through),
    test!(every_exit_code_is_passed_on),
    test!(a_fatal_signal_is_passed_on),
    test!(a_closed_pipe_ends_the_program_as_it_does_without),
    test!(closed_descriptors_stay_closed_and_none_are_added),
    test!(quiet_runs_in_refits_own_process),
];

/// Without refit, without a supervisor, and with counters on; `JSON` is a file in the test's directory.
const MODES: &[&[&str]] = &[
    &[],
    &["REFIT", "run", "--quiet", "--"],
    &["REFIT", "run", "--quiet", "--json", "JSON", "--"],
    &[
        "REFIT", "run", "--quiet", "--json", "JSON", "sync=off", "--",
    ],
];

/// The command's words in each mode.
fn in_each_mode(env: &TestEnv, words: &[&str]) -> Vec<Vec<String>> {
    let (refit, json) = (refit_path(), env.path("report.json"));
    let resolve = |word: &&str| match *word {
        "REFIT" => refit.clone(),
        "JSON" => json.clone(),
        word => word.to_owned(),
    };
    let modes = MODES.iter();
    modes
        .map(|mode| mode.iter().chain(words).map(resolve).collect())
        .collect()
}

/// Runs a command in each mode, every other time the same; how it went without refit.
fn same_in_each_mode(env: &TestEnv, words: &[&str]) -> Output {
    let mut without: Option<Output> = None;
    for words in in_each_mode(env, words) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = env.run(&words);
        let expected = without.get_or_insert_with(|| output.clone());
        assert!(
            (output.status.code(), output.status.signal())
                == (expected.status.code(), expected.status.signal())
                && output.stdout == expected.stdout
                && output.stderr == expected.stderr,
            "{words:?}: {}\nwithout refit: {}",
            described(&output),
            described(expected)
        );
    }
    without.expect("the first mode is without refit")
}

/// The library that refit preloads.
fn library(env: &TestEnv) -> String {
    let output = env.refit(&["run", "--", "printenv", "LD_PRELOAD"]);
    expect_code(&output, 0);
    let value = String::from_utf8_lossy(&output.stdout).into_owned();
    value.lines().next().expect("it is set").to_owned()
}

/// The control: with the library simply in LD_PRELOAD, ld.so would complain here.
fn would_complain(env: &TestEnv, words: &[&str]) {
    let preload = format!("LD_PRELOAD={}", library(env));
    let output = env.run(&[&["env", &preload], words].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("ERROR: ld.so"), "{}", described(&output));
}

fn a_cleared_environment_leaves_stderr_alone(env: &TestEnv) -> Outcome {
    let script = "echo one >&2; env -i sh -c 'echo two >&2; ls /missing'";
    let output = same_in_each_mode(env, &["env", "-i", "sh", "-c", script]);
    assert!(output.stderr.starts_with(b"one\ntwo\n"));
    assert!(output.stderr.len() > 20, "ls had nothing to say");
    Outcome::Pass
}

fn a_32_bit_program_leaves_stderr_alone(env: &TestEnv) -> Outcome {
    if std::env::consts::ARCH != "x86_64" {
        env.skip("32-bit programs are built static here: no loader could complain");
    }
    let program = env.program("i386_fsync");
    would_complain(env, &[&program, "/missing/file"]);
    for words in [
        &[program.as_str(), "/missing/file"][..],
        &["sh", "-c", &format!("{program} /missing/file; ls /missing")],
        &["env", "-i", "sh", "-c", &format!("{program} /missing/file")],
    ] {
        let output = same_in_each_mode(env, words);
        assert!(output.stderr.starts_with(b"/missing/file: No such"));
    }
    Outcome::Pass
}

fn a_chroot_leaves_stderr_alone(env: &TestEnv) -> Outcome {
    let root = places::chroot(env, "root", &["/bin/sh", &env.program("fsync_once")]);
    let script = "echo inside >&2; /fsync_once /missing/file; exec /fsync_once /missing/other";
    let exec = env.program("chroot_exec");
    let words = [
        places::privileged(env),
        &[&exec, &root, "/sh", "-c", script],
    ]
    .concat();
    would_complain(env, &words);
    let output = same_in_each_mode(env, &words);
    assert!(output.stderr.starts_with(b"inside\n/missing/file: No such"));
    expect_code(&output, 1);
    Outcome::Pass
}

fn a_noexec_cache_leaves_stderr_alone(env: &TestEnv) -> Outcome {
    places::public(env, &refit_path());
    places::public(env, &library(env));
    let script = "
        mkdir cache
        mount -t tmpfs -o noexec,mode=1777 tmpfs cache
        mount -t tmpfs -o mode=1777 tmpfs /var/tmp
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        cp librefit-sync.so cache
        try() { name=$1; shift; nobody env XDG_CACHE_HOME=/mnt/cache \"$@\" \\
            sh -c 'echo out; echo err >&2; ls /missing >&2' >$name.out 2>$name.err || :; }
        try bare
        try naive env LD_PRELOAD=/mnt/cache/librefit-sync.so
        try quiet ./refit run --quiet --
        try counted ./refit run --quiet --json /var/tmp/json --
        cp /var/tmp/json counted.json";
    let output = places::in_own_mounts(env, script).output();
    expect_code(&output.expect("unshare is there"), 0);
    let read = |name: &str| fs::read(env.path(name)).expect("the script wrote it");
    assert!(read("bare.err").len() > 10 && read("bare.out") == b"out\n");
    assert_ne!(read("naive.err"), read("bare.err"));
    for mode in ["quiet", "counted"] {
        for stream in ["out", "err"] {
            let [without, with] = ["bare", mode].map(|name| read(&format!("{name}.{stream}")));
            assert_eq!(
                String::from_utf8_lossy(&with),
                String::from_utf8_lossy(&without)
            );
        }
    }
    let report: serde_json::Value =
        serde_json::from_slice(&read("counted.json")).expect("the report is JSON");
    assert_eq!(report["coverage"]["processes_reached"], 2, "{report:#}");
    Outcome::Pass
}

/// ld.so takes such a path apart (`LD_PRELOAD` has no quotes): the library has to lie elsewhere.
fn a_home_that_ld_so_cannot_name_leaves_stderr_alone(env: &TestEnv) -> Outcome {
    places::public(env, &refit_path());
    let script = "
        mount -t tmpfs -o mode=1777 tmpfs /var/tmp
        for home in plain 'a b' a:b 'a$LIB'; do
            mkdir -m 777 \"$home\"
            nobody env HOME=\"/mnt/$home\" ./refit run --json /var/tmp/json -- cat /mnt/absent >log 2>&1 || :
            grep -o '\"processes_reached\": *[0-9]*' /var/tmp/json
            cat log
            rm /var/tmp/json
        done
        ls -A 'a b' a:b 'a$LIB'
        ls -d plain/.cache/refit";
    let output = places::in_own_mounts(env, script).output();
    let output = output.expect("unshare is there");
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let runs = lines.iter().filter(|line| line.ends_with("reached\": 1"));
    assert_eq!(runs.count(), 4, "{text}");
    assert!(
        !text.contains("ld.so") && !text.contains("refit: no directory"),
        "{text}"
    );
    let tail = "a b:\n\na$LIB:\n\na:b:\nplain/.cache/refit\n";
    assert!(text.ends_with(tail), "{text}");
    Outcome::Pass
}

fn stdin_and_stdout_pass_through(env: &TestEnv) -> Outcome {
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    fs::write(env.path("input"), &bytes).expect("the test's directory is ours");
    for words in in_each_mode(env, &["cat"]) {
        let output = env
            .command(&words[0])
            .args(&words[1..])
            .stdin(File::open(env.path("input")).expect("it was just written"))
            .output()
            .expect("it starts");
        expect_code(&output, 0);
        assert!(output.stdout == bytes, "{words:?}");
        assert!(output.stderr.is_empty());
    }
    Outcome::Pass
}

fn every_exit_code_is_passed_on(env: &TestEnv) -> Outcome {
    for code in [0, 1, 2, 77, 125, 126, 127, 128, 143, 255] {
        let output = same_in_each_mode(env, &["sh", "-c", &format!("exit {code}")]);
        expect_code(&output, code);
    }
    Outcome::Pass
}

fn a_fatal_signal_is_passed_on(env: &TestEnv) -> Outcome {
    for signal in [1, 2, 3, 6, 9, 10, 11, 13, 14, 15, 25, 64] {
        let script = format!("kill -{signal} $$");
        let output = same_in_each_mode(env, &["sh", "-c", &script]);
        assert_eq!(output.status.signal(), Some(signal));
        let shell = ["sh", "-c", "\"$@\" 2>/dev/null; echo $?", "sh"];
        for words in in_each_mode(env, &["sh", "-c", &script]) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = env.run(&[&shell, &*words].concat());
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(seen, format!("{}\n", 128 + signal), "{words:?}");
        }
    }
    Outcome::Pass
}

fn a_closed_pipe_ends_the_program_as_it_does_without(env: &TestEnv) -> Outcome {
    for words in in_each_mode(env, &["yes"]) {
        let mut child = env
            .command(&words[0])
            .args(&words[1..])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let status = child.wait().expect("it is our child");
        assert_eq!(status.signal(), Some(libc::SIGPIPE), "{words:?}");
    }
    Outcome::Pass
}

fn closed_descriptors_stay_closed_and_none_are_added(env: &TestEnv) -> Outcome {
    let (program, listing) = (env.program("list_descriptors"), env.path("listing"));
    let mut all = None;
    for close in [
        "",
        "<&-",
        ">&-",
        "2>&-",
        "<&- >&-",
        "<&- 2>&-",
        "<&- >&- 2>&-",
    ] {
        let mut without = None;
        for words in in_each_mode(env, &[&program, &listing]) {
            let script = format!("exec \"$@\" 7</dev/null {close}");
            let mut shell = vec!["sh", "-c", script.as_str(), "sh"];
            shell.extend(words.iter().map(String::as_str));
            let output = env.run(&shell);
            expect_code(&output, 0);
            let seen = fs::read_to_string(&listing).expect("it was written");
            let expected = without.get_or_insert_with(|| seen.clone());
            assert_eq!(seen, *expected, "{words:?} {close}");
        }
        let open = without.expect("there are modes").lines().count();
        let all = *all.get_or_insert(open);
        assert_eq!(open, all - close.matches("&-").count(), "{close}");
    }
    Outcome::Pass
}

fn quiet_runs_in_refits_own_process(env: &TestEnv) -> Outcome {
    let pids = |options: &[&str]| {
        let child = env
            .refit_command(&[&["run"], options, &["--", "sh", "-c", "echo $$"]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("refit was built");
        let started = child.id();
        let output = child.wait_with_output().expect("it is our child");
        let stdout = String::from_utf8_lossy(&output.stdout);
        (
            started,
            stdout.trim().parse::<u32>().expect("sh says its pid"),
        )
    };
    let (started, program) = pids(&["--quiet"]);
    assert_eq!(started, program);
    let (started, program) = pids(&["--quiet", "sync=off"]);
    assert_eq!(started, program);
    let (started, program) = pids(&["sync=off"]);
    assert_ne!(started, program, "with counters there is a supervisor");
    Outcome::Pass
}
