//! The programs of tests/programs without refit: what the other tests take for granted about them, strace,
//! and the kernel.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::locations::{TEST_ENV_DIR, source_dir};
use crate::runner::{Outcome, Test};
use crate::test_env::{
    TestEnv, expect_code, expect_message, expect_printed, refit_path, wait_for_file,
};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(each_makes_the_syncs_it_promises),
    test!(a_daemon_syncs_after_its_parent_ended),
    test!(a_sigint_is_counted_once),
    test!(as_root_each_makes_the_syncs_it_promises),
    test!(as_root_they_are_where_everybody_may_run_them),
    test!(one_that_does_not_compile_fails_its_own_tests),
];

const SYNC_CALLS: &str =
    "fsync,fdatasync,sync,syncfs,sync_file_range,msync,open,openat,openat2,pwritev2,io_uring_enter";

/// Program and arguments (`F` is a file, `@name` another program), and the syncs that strace must see.
const PROMISES: &[(&[&str], usize)] = &[
    (&["fsync_once", "F"], 1),
    (&["static_fsync", "F"], 1),
    (&["i386_fsync", "F"], 1),
    (&["musl_fsync", "F"], 1),
    (&["asan_fsync", "F"], 1),
    (&["static_go", "F"], 1),
    (&["static_rust", "F"], 1),
    (&["inline_asm_fsync", "F"], 1),
    (&["setgid_helper", "F"], 1),
    (&["own_malloc", "F"], 1),
    (&["deepbind", "F"], 1),
    (&["closefrom", "F"], 1),
    (&["static_true"], 0),
    // Not one that strace could see: that is the point of it.
    (&["io_uring_fsync", "F"], 0),
    (&["fork_storm", "5", "F"], 5),
    (&["exec_storm", "5", "@fsync_once", "F"], 5),
    (&["vfork_exec", "@fsync_once", "F"], 1),
    (&["spawn_clearenv", "@fsync_once", "F"], 1),
    (&["execve_clearenv", "@fsync_once", "F"], 1),
    (&["threads_fsync", "4", "10", "F"], 40),
    (&["signal_handler_fsync", "20", "F"], 20),
    (&["msync_write", "7", "F"], 7),
    // Also the one with a flag that the kernel refuses.
    (&["pwritev2_dsync", "F"], 4),
    (&["direct_write", "F"], 0),
];

fn each_makes_the_syncs_it_promises(env: &TestEnv) -> Outcome {
    hold(env, PROMISES)
}

fn as_root_each_makes_the_syncs_it_promises(env: &TestEnv) -> Outcome {
    env.require_root();
    // Where uid 65534 may write, and what a chroot needs.
    std::os::unix::fs::chown(env.dir(), Some(65534), None).expect("root may give files away");
    let root = env.subdir("root");
    std::fs::copy(env.program("static_true"), format!("{root}/true")).expect("both are ours");
    hold(
        env,
        &[
            (
                &["drop_privileges", "dropped", "@fsync_once", "also-dropped"],
                2,
            ),
            (&["chroot_fsync", &root], 1),
            (&["chroot_exec", &root, "/true"], 0),
        ],
    )
}

fn hold(env: &TestEnv, promises: &[(&[&str], usize)]) -> Outcome {
    for (words, expected) in promises {
        let file = env.file("file", "");
        let words: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(at, word)| match word.strip_prefix('@') {
                Some(program) => env.program(program),
                None if at == 0 => env.program(word),
                None if *word == "F" => file.clone(),
                None => (*word).to_owned(),
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (output, trace) = env.strace(SYNC_CALLS, &words);
        expect_code(&output, 0);
        let seen = trace.syncs();
        assert_eq!(
            seen.values().sum::<usize>(),
            *expected,
            "{words:?} made {seen:?}"
        );
    }
    Outcome::Pass
}

fn a_daemon_syncs_after_its_parent_ended(env: &TestEnv) -> Outcome {
    let (go, done) = (env.path("go"), env.path("done"));
    let output = env.run(&[&env.program("daemonize"), &go, &env.path("file"), &done]);
    expect_code(&output, 0);
    assert!(!std::path::Path::new(&done).exists());
    env.file("go", "");
    assert_eq!(wait_for_file(&done), "0\n");
    Outcome::Pass
}

fn a_sigint_is_counted_once(env: &TestEnv) -> Outcome {
    let mut child = env
        .command(&env.program("count_sigint"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was just compiled");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("its output is text");
    assert_eq!(line, "ready\n");
    sys::send_signal(
        i32::try_from(child.id()).expect("process ids are ints"),
        libc::SIGINT,
    );
    drop(child.stdin.take());
    let mut count = String::new();
    lines
        .read_to_string(&mut count)
        .expect("its output is text");
    assert_eq!(count, "1\n");
    assert!(child.wait().expect("it is our child").success());
    Outcome::Pass
}

/// The tests themselves, with programs and refit below a directory that only root may enter.
fn as_root_they_are_where_everybody_may_run_them(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("strace");
    let closed = env.subdir("closed");
    std::fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("it is ours");
    let refit = format!("{closed}/refit");
    std::fs::copy(refit_path(), &refit).expect("both are ours");
    let output = tests_of(env, &source_dir(), &format!("{closed}/fixtures"))
        .env("REFIT_BIN", refit)
        .arg("programs::as_root_each_makes_the_syncs_it_promises")
        .output();
    expect_printed(
        &output.expect("this program starts"),
        0,
        "1 passed, 0 failed",
    );
    Outcome::Pass
}

fn one_that_does_not_compile_fails_its_own_tests(env: &TestEnv) -> Outcome {
    env.require_command("gcc");
    let source = env.subdir("source");
    std::fs::create_dir_all(format!("{source}/tests/programs")).expect("it is ours");
    for (name, before) in [
        ("daemonize", ""),
        ("count_sigint", "#include <no/such.h>\n"),
    ] {
        let file = format!("tests/programs/{name}.c");
        let text = std::fs::read_to_string(source_dir().join(&file)).expect("it is there");
        std::fs::write(format!("{source}/{file}"), before.to_owned() + &text).expect("it is ours");
    }
    let source = Path::new(&source);
    let told = "no/such.h: No such file or directory";
    let fixtures = env.path("fixtures");
    let all = tests_of(env, source, &fixtures).arg("--programs").output();
    let all = all.expect("this program starts");
    expect_message(&all, 1, told);
    assert!(String::from_utf8_lossy(&all.stdout).contains("/daemonize\n"));

    let tests = ["programs::a_daemon_syncs", "programs::a_sigint"];
    let output = tests_of(env, source, &fixtures).args(tests).output();
    let output = output.expect("this program starts");
    for text in [
        "ok programs::a_daemon_syncs_after_its_parent_ended",
        "FAILED programs::a_sigint_is_counted_once",
        told,
        "1 passed, 1 failed, 0 skipped",
    ] {
        expect_printed(&output, 1, text);
    }
    Outcome::Pass
}

/// The command that runs tests with these sources and compiled programs.
fn tests_of(env: &TestEnv, source: &Path, fixtures: &str) -> Command {
    let own = std::env::current_exe().expect("/proc is mounted");
    let mut command = env.command(&own.to_string_lossy());
    command
        .env_remove(TEST_ENV_DIR)
        .env("REFIT_SOURCE", source)
        .env("REFIT_FIXTURES", fixtures)
        .env("REFIT_TEST_DIR", env.dir());
    command
}
