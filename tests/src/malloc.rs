//! malloc=: the allocator that was asked for serves the program, together with
//! the sync preload, however the program goes on.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::locations::system_library;
use crate::runner::{Outcome, Test};
use crate::sys::ended_within;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(the_named_allocator_is_mapped_and_reported),
    test!(options_reach_the_allocator_by_its_own_variable),
    test!(allocator_dir_comes_first),
    test!(an_own_malloc_is_told),
    test!(an_address_of_malloc_in_the_program_is_no_malloc_of_its_own),
    test!(two_hundred_starts_of_each_kind_neither_hang_nor_crash).limit_seconds(400),
];

/// Setting, and what its library is called in /proc/self/maps.
const ALLOCATORS: [(&str, &str); 4] = [
    ("glibc", "libc.so.6"),
    ("jemalloc", "libjemalloc"),
    ("mimalloc", "libmimalloc"),
    ("tcmalloc", "libtcmalloc"),
];

fn the_named_allocator_is_mapped_and_reported(env: &TestEnv) -> Outcome {
    for (name, library) in ALLOCATORS {
        let setting = format!("malloc={name}");
        let (output, report) = env.refit_json(&["run", &setting, "--", "cat", "/proc/self/maps"]);
        expect_code(&output, 0);
        let maps = String::from_utf8_lossy(&output.stdout);
        assert!(maps.contains(library), "{library} is not in {maps}");
        let object = report["executables"][0]["malloc_object"].to_string();
        assert!(object.contains(library), "{object}");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(messages.contains("in 1 of 1 process"), "{messages}");
    }
    Outcome::Pass
}

fn options_reach_the_allocator_by_its_own_variable(env: &TestEnv) -> Outcome {
    for (setting, variable) in [
        (
            "malloc=glibc:arena_max=2",
            "GLIBC_TUNABLES=glibc.malloc.check=0:glibc.malloc.arena_max=2",
        ),
        ("malloc=jemalloc:narenas:2", "MALLOC_CONF=narenas:2"),
        ("malloc=mimalloc:show_errors=0", "MIMALLOC_SHOW_ERRORS=0"),
        ("malloc=tcmalloc:release_rate=5", "TCMALLOC_RELEASE_RATE=5"),
    ] {
        let output = env
            .refit_command(&["run", "--quiet", setting, "--", "env"])
            .env("GLIBC_TUNABLES", "glibc.malloc.check=0")
            .output()
            .expect("refit starts");
        expect_code(&output, 0);
        let variables = String::from_utf8_lossy(&output.stdout);
        assert!(
            variables.lines().any(|line| line == variable),
            "{variable} is not in {variables}"
        );
        assert!(output.stderr.is_empty(), "{}", described(&output));
    }
    Outcome::Pass
}

fn allocator_dir_comes_first(env: &TestEnv) -> Outcome {
    let dir = env.subdir("allocators");
    let own = format!("{dir}/libjemalloc.so.2");
    std::fs::copy(system_library("libjemalloc.so.2"), &own).expect("jemalloc is installed");
    let report = env.report(&[
        "run",
        "--allocator-dir",
        &dir,
        "malloc=jemalloc",
        "--",
        "true",
    ]);
    assert_eq!(report["executables"][0]["malloc_object"], own.as_str());
    Outcome::Pass
}

fn an_own_malloc_is_told(env: &TestEnv) -> Outcome {
    let program = env.program("own_malloc");
    let file = env.path("file");
    let output = env.refit(&["run", "malloc=jemalloc", "--", &program, &file]);
    expect_code(&output, 0);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        messages.contains("own_malloc has a malloc of its own"),
        "{messages}"
    );
    let doctor = env.refit(&["doctor", &program]);
    expect_code(&doctor, 0);
    let messages = String::from_utf8_lossy(&doctor.stdout);
    assert!(messages.contains("a malloc of its own"), "{messages}");
    Outcome::Pass
}

/// As Debian's python3 has one.
fn an_address_of_malloc_in_the_program_is_no_malloc_of_its_own(env: &TestEnv) -> Outcome {
    let program = env.program("malloc_address");
    let address = env.run(&[&program]);
    expect_code(&address, 0);
    assert!(
        address.stdout.starts_with(b"0x4"),
        "not at a fixed address: {}",
        described(&address)
    );
    for (setting, library) in ALLOCATORS {
        let setting = format!("malloc={setting}");
        for words in [vec![program.as_str()], vec!["/usr/bin/python3", "-c", ""]] {
            let line = [vec!["run", &setting, "--"], words].concat();
            let (output, report) = env.refit_json(&line);
            expect_code(&output, 0);
            let object = report["executables"][0]["malloc_object"].to_string();
            assert!(object.contains(library), "{line:?}: {object}");
            let summary = String::from_utf8_lossy(&output.stderr);
            assert!(summary.contains("in 1 of 1 process"), "{summary}");
        }
    }
    Outcome::Pass
}

/// Starts × allocators × {plain, threads, fork, exec}, each with a time limit.
fn two_hundred_starts_of_each_kind_neither_hang_nor_crash(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    let once = env.program("fsync_once");
    let kinds: [Vec<String>; 4] = [
        vec![once.clone(), file.clone()],
        vec![
            env.program("threads_fsync"),
            "4".into(),
            "2".into(),
            file.clone(),
        ],
        vec![env.program("fork_storm"), "3".into(), file.clone()],
        vec![env.program("exec_storm"), "2".into(), once, file],
    ];
    for (name, _) in ALLOCATORS {
        for words in &kinds {
            for _ in 0..200 {
                start_once(env, name, words);
            }
        }
    }
    Outcome::Pass
}

fn start_once(env: &TestEnv, allocator: &str, words: &[String]) {
    let setting = format!("malloc={allocator}");
    let mut command: Command = env.refit_command(&["run", "--quiet", "sync=off", &setting, "--"]);
    let child = command
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("refit starts");
    let ended = ended_within(child.id(), Duration::from_secs(20)).expect("it is our child");
    assert!(ended, "{setting} {words:?} hangs");
    let output = child.wait_with_output().expect("it has ended");
    expect_code(&output, 0);
    assert!(output.stderr.is_empty(), "{}", described(&output));
}
