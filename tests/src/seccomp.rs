//! What only a seccomp filter reaches: static programs, Go, 32-bit and setgid ones, chroots, cleared environments.
//! The kernel's own tracepoints judge: strace sees a call at the door, whoever answers it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, expect_code};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(programs_that_no_preload_reaches_do_not_sync),
    test!(a_scope_is_for_its_program_alone),
    test!(a_path_scope_holds_in_static_programs_and_chroots),
    test!(a_setgid_program_keeps_its_group_and_does_not_sync),
    test!(a_child_without_privileges_or_environment_does_not_sync),
    test!(an_emulated_disk_delays_and_fails_static_programs),
    test!(by_seccomp_alone_calls_are_counted_and_stay),
    test!(a_program_counts_once_however_it_is_named),
    test!(rings_can_be_denied),
];

/// A program of tests/programs, and how it ends where nothing syncs.
const STATIC: &[&str] = &[
    "static_fsync",
    "static_musl_fsync",
    "static_go",
    "static_rust",
    "i386_fsync",
    "inline_asm_fsync",
];

/// A report, and how many durable calls the kernel saw.
pub struct Seen {
    pub report: Value,
    pub messages: String,
    pub stdout: String,
    pub durable: u64,
}

/// Runs refit, which must end with 0. Skips the test where the kernel cannot be asked.
pub fn run(env: &TestEnv, settings: &[&str], words: &[&str]) -> Seen {
    env.require_root();
    let json = env.path("seen.json");
    let args = [&["run", "--json", &json], settings, &["--"], words].concat();
    let output = env.refit(&args);
    expect_code(&output, 0);
    let text = fs::read_to_string(&json).expect("refit wrote it");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    let Some(durable) = report["witness"]["seen"]["calls"].as_u64() else {
        env.skip("the kernel cannot be asked here");
    };
    Seen {
        durable,
        messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        report,
    }
}

impl Seen {
    /// fsyncs of all executables that were `suppressed`, `real`, `injected`.
    pub fn fsyncs(&self, field: &str) -> u64 {
        let fsync = &self.report["totals"]["fsync"];
        fsync[field].as_u64().unwrap_or_default()
    }

    pub fn installed(&self, field: &str) -> &Value {
        &self.report["coverage"]["seccomp"]["installed"][field]
    }
}

fn programs_that_no_preload_reaches_do_not_sync(env: &TestEnv) -> Outcome {
    for name in STATIC {
        let (program, file) = (env.program(name), env.path("file"));
        let words = [&*program, &*file];
        // The control: without a swap the same program does sync.
        let real = run(env, &["tz=UTC"], &words);
        assert_eq!(real.durable, 1, "{name}: {}", real.messages);

        let off = run(env, &["sync=off"], &words);
        assert_eq!(off.durable, 0, "{name}: {}", off.messages);
        let coverage = &off.report["coverage"];
        assert_eq!(coverage["processes_reached"], coverage["processes_seen"]);
        assert_eq!(coverage["unreached"], Value::Array(Vec::new()));
        assert_eq!(*off.installed("answers"), "kernel", "{coverage:#}");

        let scope = format!("sync@exe:{name}=off");
        for settings in [&[&*scope][..], &["--backend", "seccomp", "sync=off"]] {
            let asked = run(env, settings, &words);
            assert_eq!(asked.durable, 0, "{name} {settings:?}: {}", asked.messages);
            // A program that the preload reaches too is counted there.
            assert_eq!(asked.fsyncs("suppressed"), 1, "{:#}", asked.report);
            assert_eq!(asked.fsyncs("real"), 0);
        }
    }
    Outcome::Pass
}

fn a_scope_is_for_its_program_alone(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("static_fsync"), env.path("file"));
    let other = run(env, &["sync@exe:another=off"], &[&program, &file]);
    assert_eq!((other.durable, other.fsyncs("real")), (1, 1));
    assert!(
        other.messages.contains("nothing matched sync@exe:another"),
        "{}",
        other.messages
    );
    let dynamic = env.program("fsync_once");
    let script = format!("{dynamic} {file}; {program} {file}");
    for (scoped, suppressed) in [("fsync_once", 1), ("static_fsync", 1), ("f", 0)] {
        let scope = format!("sync@exe:{scoped}=off");
        let seen = run(env, &[&scope], &["sh", "-c", &script]);
        assert_eq!(seen.fsyncs("suppressed"), suppressed, "{}", seen.messages);
        assert_eq!(seen.durable, 2 - suppressed, "{}", seen.messages);
    }
    Outcome::Pass
}

fn a_path_scope_holds_in_static_programs_and_chroots(env: &TestEnv) -> Outcome {
    let program = env.program("static_fsync");
    let [inside, outside] = ["in", "out"].map(|name| env.subdir(name));
    let scope = format!("sync@{inside}/=off");
    for (directory, durable) in [(&inside, 0), (&outside, 1)] {
        let seen = run(env, &[&scope], &[&program, &format!("{directory}/f")]);
        assert_eq!(seen.durable, durable, "{}", seen.messages);
        assert_eq!(seen.fsyncs("suppressed"), 1 - durable);
    }
    // What the program calls /f is another file outside.
    let root = env.subdir("root");
    let chroot = env.program("chroot_fsync");
    for (scope, durable) in [
        (format!("sync@{root}/f=off"), 0),
        ("sync@/f=off".to_owned(), 1),
    ] {
        let seen = run(env, &[&scope], &[&chroot, &root]);
        assert_eq!(seen.durable, durable, "{scope}: {}", seen.messages);
        assert_eq!(seen.report["coverage"].get("path_unknown"), None);
    }
    Outcome::Pass
}

fn a_setgid_program_keeps_its_group_and_does_not_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    for name in ["setgid_helper", "static_setgid"] {
        let program = places::public(env, &env.program(name));
        std::os::unix::fs::chown(&program, None, Some(50)).expect("root may");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o2755)).expect("root may");
        let file = env.path("file");
        let base = format!("sync@exe:{name}=off");
        for settings in ["sync=off", &base] {
            let seen = run(env, &[settings], &[&program, &file]);
            assert_eq!(seen.durable, 0, "{name} {settings}: {}", seen.messages);
            // Of a static program the C library does not say that it is secure.
            assert!(seen.stdout.ends_with("egid=50\n"), "{}", seen.stdout);
        }
    }
    Outcome::Pass
}

fn a_child_without_privileges_or_environment_does_not_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    std::os::unix::fs::chown(env.dir(), Some(65534), None).expect("root may");
    let child = places::public(env, &env.program("static_fsync"));
    let dropped = [
        env.program("drop_privileges"),
        env.path("dropped"),
        child.clone(),
        env.path("exec"),
    ];
    let cleared = [
        env.program("spawn_clearenv"),
        child.clone(),
        env.path("cleared"),
    ];
    let root = env.subdir("root");
    fs::copy(&child, format!("{root}/static_fsync")).expect("both are ours");
    let elsewhere = [
        env.program("chroot_exec"),
        root,
        "/static_fsync".to_owned(),
        "/f".to_owned(),
    ];
    for words in [&dropped[..], &cleared, &elsewhere] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for settings in [
            &["--no-follow-env", "sync=off"][..],
            &["sync@exe:static_fsync=off", "sync@exe:drop_privileges=off"],
        ] {
            let seen = run(env, settings, &words);
            assert_eq!(seen.durable, 0, "{words:?}: {}", seen.messages);
        }
    }
    Outcome::Pass
}

fn an_emulated_disk_delays_and_fails_static_programs(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("static_errors"), env.path("file"));
    // Two processes, each of two flushes; a pipe and a closed descriptor reach no disk.
    let words = [&*program, "2", &*file, "2"];
    let failed = run(env, &["disk=fail:EIO,every=2"], &words);
    assert_eq!(failed.stdout, "0 5 0 5 22 9 \n", "{}", failed.messages);
    assert_eq!((failed.fsyncs("injected"), failed.durable), (2, 2));
    let slow = run(env, &["disk=40ms"], &words);
    assert_eq!(slow.stdout, "0 0 0 0 22 9 \n", "{}", slow.messages);
    let waited = slow.fsyncs("waited_ns");
    assert!(
        (4 * 40_000_000..1_000_000_000).contains(&waited),
        "{waited}"
    );
    let wall = slow.report["metrics"]["wall_ns"].as_u64();
    assert!(wall.expect("it was measured") > 4 * 40_000_000);
    assert_eq!((slow.fsyncs("real"), slow.durable), (6, 4));
    Outcome::Pass
}

fn by_seccomp_alone_calls_are_counted_and_stay(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    for name in ["fsync_once", "static_fsync"] {
        let seen = run(env, &["--backend", "seccomp"], &[&env.program(name), &file]);
        assert_eq!(
            (seen.durable, seen.fsyncs("real")),
            (1, 1),
            "{}",
            seen.messages
        );
        assert_eq!(seen.report["coverage"]["backend"], "seccomp");
        assert_eq!(*seen.installed("unmeasured"), 1);
        assert!(
            seen.messages
                .contains("1 sync call waited for a time that seccomp cannot measure"),
            "{}",
            seen.messages
        );
    }
    Outcome::Pass
}

fn a_program_counts_once_however_it_is_named(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    fs::copy(env.program("static_fsync"), env.path("program")).expect("both are ours");
    std::os::unix::fs::symlink("program", env.path("link")).expect("the directory is ours");
    for name in ["./program", "./link", &env.path("link")] {
        let seen = run(env, &["--backend", "seccomp"], &[name, &file]);
        let coverage = &seen.report["coverage"];
        assert_eq!(coverage["processes_seen"], 1, "{name}: {coverage:#}");
        assert_eq!(coverage["processes_reached"], 1, "{name}: {coverage:#}");
    }
    Outcome::Pass
}

fn rings_can_be_denied(env: &TestEnv) -> Outcome {
    env.require_root();
    let (program, file) = (env.program("io_uring_fsync"), env.path("file"));
    if env.run(&[&program, &file]).status.code() == Some(3) {
        env.skip("no io_uring here");
    }
    for backend in ["auto", "preload", "seccomp"] {
        let args = ["run", "--backend", backend, "--io-uring", "deny", "--"];
        let output = env.refit(&[&args[..], &[&program, &file]].concat());
        expect_code(&output, 3);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(
            messages.contains("io_uring_setup: Function not implemented"),
            "{messages}"
        );
    }
    let counted = run(env, &["--backend", "seccomp"], &[&program, &file]);
    assert!(
        counted.messages.contains("1 io_uring ring"),
        "{}",
        counted.messages
    );
    Outcome::Pass
}
