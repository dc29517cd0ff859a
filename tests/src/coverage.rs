//! What refit reached of a tree, and that it names what it did not reach: in the run summary and in
//! the JSON alike. strace, around each run, is the judge of which syncs really happened.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Stdio;

use serde_json::Value;

use crate::ran::{Ran, base, run};
use crate::runner::{Outcome, Test};
use crate::strace::Trace;
use crate::test_env::{TestEnv, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(what_is_not_seen_is_named_or_unknown),
    test!(a_setgid_program_on_a_nosuid_mount_is_reached),
    test!(a_static_program_is_named),
    test!(a_static_go_program_is_named),
    test!(a_32_bit_program_is_named),
    test!(a_sanitized_program_is_named_and_unharmed),
    test!(a_musl_program_is_reached_and_given_no_allocator),
    test!(fakeroot_works_and_syncs_are_suppressed),
    test!(a_cleared_environment_is_followed_or_named),
    test!(vfork_and_closefrom_change_nothing),
    test!(a_child_that_dropped_its_privileges_is_reached),
    test!(a_chroot_keeps_what_is_mapped_and_names_what_is_not),
    test!(another_malloc_is_told),
    test!(each_of_many_living_children_counts_once),
];

/// setgid_helper as an administrator would install it, with a group that is not root's; as another user only
/// the own group can be had, which changes nothing.
fn install_setgid(env: &TestEnv, name: &str) -> String {
    let helper = env.path(name);
    fs::copy(env.program("setgid_helper"), &helper).expect("the test's directory is ours");
    if env.as_root() {
        chown(&helper, None, Some(65534)).expect("root may give files away");
    }
    fs::set_permissions(&helper, Permissions::from_mode(0o2755)).expect("it is ours");
    helper
}

fn what_is_not_seen_is_named_or_unknown(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    let (ring, inline, stream) = (
        env.program("io_uring_fsync"),
        env.program("inline_asm_fsync"),
        env.program("fopen_fsync"),
    );
    let helper = install_setgid(env, "helper");
    if env.run(&[&ring, &file]).status.code() == Some(3) {
        env.skip("no io_uring here");
    }
    let children = format!(
        "i=0; while [ $i -lt 50 ]; do {}; i=$((i+1)); done",
        env.program("static_true")
    );
    let five = format!("{ring} {file}; {inline} {file}; {helper} {file}; {stream} {file}");
    let ran = run(env, &[], &["sh", "-ec", &format!("{children}\n{five}\n:")]);
    let secure = ran.stdout.contains("secure=1");
    assert_eq!(secure, env.as_root(), "{}", ran.stdout);
    // The judge: all of them happened.
    assert_eq!(ran.real_fsyncs(), 3, "{:?}", ran.trace);
    let entered = ran
        .trace
        .calls
        .iter()
        .filter(|c| c.name == "io_uring_enter");
    assert_eq!(entered.filter(|call| call.result == "1").count(), 1);
    assert!(ran.stdout.starts_with("0\n"), "the ring's own answer");

    assert_eq!(ran.unreached("static_true", "static"), 50);
    assert!(ran.unknown("io_uring_fsync", "io_uring"));
    assert!(ran.unknown("inline_asm_fsync", "own syscall instructions"));
    assert_eq!(ran.fsyncs("fopen_fsync", "seen"), 1);
    assert_eq!(ran.unreached("helper", "setgid"), u64::from(secure));
    assert_eq!(ran.fsyncs("helper", "seen"), u64::from(!secure));
    let counted = if secure {
        "1 sync call "
    } else {
        "2 sync calls "
    };
    assert!(ran.messages.contains(counted), "{}", ran.messages);

    let control = run(env, &[], &["sh", "-ec", &format!("{children}\n:")]);
    assert_eq!(control.real_fsyncs(), 0);
    assert_eq!(control.unreached("static_true", "static"), 50);
    assert_eq!(control.list("/coverage/unreached").len(), 1);
    assert!(
        control.list("/coverage/unknown").is_empty(),
        "{:#}",
        control.report
    );
    for word in ["unknown:", "io_uring", "inline", "helper", "fopen", "fsync"] {
        assert!(!control.messages.contains(word), "{}", control.messages);
    }
    assert!(control.messages.contains("no sync calls seen"));
    Outcome::Pass
}

fn a_setgid_program_on_a_nosuid_mount_is_reached(env: &TestEnv) -> Outcome {
    install_setgid(env, "helper");
    let script = format!(
        "mkdir nosuid; mount -t tmpfs -o nosuid tmpfs nosuid; cp -p helper nosuid\n\
         exec {} run --json report.json -- nosuid/helper file",
        refit_path()
    );
    let output = places::in_own_mounts(env, &script)
        .output()
        .expect("unshare is there");
    expect_code(&output, 0);
    let ran = Ran::new(&output, Trace::default(), &env.path("report.json"));
    assert!(ran.stdout.contains("secure=0"), "{}", ran.stdout);
    assert_eq!(ran.unreached("helper", "setgid"), 0);
    assert_eq!(ran.fsyncs("helper", "seen"), 1);
    Outcome::Pass
}

/// What the preload alone reaches, as for everybody but root.
const PRELOAD: [&str; 3] = ["--backend", "preload", "sync=off"];

/// As the first program, and as a shell's child: its sync is real, it is named, and nothing is counted for it.
fn is_named(env: &TestEnv, name: &str, reason: &str) -> Outcome {
    let (program, file) = (env.program(name), env.path("file"));
    let bare = env.run(&[&program, &file]);
    expect_code(&bare, 0);
    for words in [
        &[program.as_str(), &file][..],
        &["sh", "-c", &format!("{program} {file}; :")],
    ] {
        let ran = run(env, &PRELOAD, words);
        assert_eq!(ran.real_fsyncs(), 1, "{words:?}");
        assert_eq!(ran.unreached(name, reason), 1);
        assert!(ran.executable(name).is_none(), "{:#}", ran.report);
        let nowhere = format!("sync=off is not in effect: not reached: {name} ({reason})");
        assert!(ran.messages.contains(&nowhere), "{}", ran.messages);
        assert_eq!(ran.stdout.as_bytes(), bare.stdout);
    }
    Outcome::Pass
}

fn a_static_program_is_named(env: &TestEnv) -> Outcome {
    is_named(env, "static_fsync", "static")
}

fn a_static_go_program_is_named(env: &TestEnv) -> Outcome {
    is_named(env, "static_go", "static")
}

fn a_32_bit_program_is_named(env: &TestEnv) -> Outcome {
    is_named(env, "i386_fsync", "32-bit or other architecture")
}

fn a_sanitized_program_is_named_and_unharmed(env: &TestEnv) -> Outcome {
    is_named(env, "asan_fsync", "sanitizer runtime must come first")
}

/// The settings, with an allocator among them; skips the test where that is not installed.
fn with_jemalloc(env: &TestEnv) -> [&'static str; 2] {
    let output = env.refit(&["run", "malloc=jemalloc", "--", "true"]);
    if output.status.code() == Some(125) {
        env.skip("libjemalloc is not installed");
    }
    ["sync=off", "malloc=jemalloc"]
}

fn a_musl_program_is_reached_and_given_no_allocator(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("musl_fsync"), env.path("file"));
    let settings = with_jemalloc(env);
    for words in [
        &[program.as_str(), &file][..],
        &["sh", "-c", &format!("{program} {file}; :")],
    ] {
        let ran = run(env, &settings, words);
        assert_eq!(ran.real_fsyncs(), 0, "{words:?}");
        assert_eq!(ran.fsyncs("musl_fsync", "suppressed"), 1);
        let other = "malloc is served by musl in musl_fsync";
        assert!(ran.messages.contains(other), "{}", ran.messages);
    }
    Outcome::Pass
}

fn fakeroot_works_and_syncs_are_suppressed(env: &TestEnv) -> Outcome {
    env.require_command("fakeroot");
    let (owned, synced) = (env.file("owned", ""), env.path("synced"));
    let script = format!(
        "chown 5:6 {owned} && stat -c %u:%g {owned} && {} {synced}",
        env.program("fsync_once")
    );
    let ran = run(env, &["sync=off"], &["fakeroot", "sh", "-c", &script]);
    assert_eq!(ran.stdout, "5:6\n");
    assert_eq!(ran.real_fsyncs(), 0);
    assert_eq!(ran.fsyncs("fsync_once", "suppressed"), 1);
    Outcome::Pass
}

fn a_cleared_environment_is_followed_or_named(env: &TestEnv) -> Outcome {
    let (child, file) = (env.program("fsync_once"), env.path("file"));
    for parent in ["spawn_clearenv", "execve_clearenv"] {
        let words = [env.program(parent), child.clone(), file.clone()];
        let words = [&*words[0], &words[1], &words[2]];
        let followed = run(env, &["sync=off"], &words);
        assert_eq!(followed.real_fsyncs(), 0, "{parent}");
        assert_eq!(followed.fsyncs("fsync_once", "suppressed"), 1);
        assert!(
            followed.list("/coverage/unreached").is_empty(),
            "{:#}",
            followed.report
        );

        let left = run(env, &[&PRELOAD[..], &["--no-follow-env"]].concat(), &words);
        assert_eq!(left.real_fsyncs(), 1, "{parent}");
        assert_eq!(left.unreached("fsync_once", "environment cleared"), 1);
        assert!(left.executable("fsync_once").is_none());
    }
    Outcome::Pass
}

fn vfork_and_closefrom_change_nothing(env: &TestEnv) -> Outcome {
    let (child, file) = (env.program("fsync_once"), env.path("file"));
    let forked = run(
        env,
        &["sync=off"],
        &[&env.program("vfork_exec"), &child, &file],
    );
    let closed = run(env, &["sync=off"], &[&env.program("closefrom"), &file]);
    for (ran, program, processes) in [(forked, "fsync_once", 2), (closed, "closefrom", 1)] {
        assert_eq!(ran.real_fsyncs(), 0, "{program}");
        assert_eq!(ran.fsyncs(program, "suppressed"), 1);
        let coverage = &ran.report["coverage"];
        assert_eq!(coverage["processes_seen"], processes, "{coverage:#}");
        assert_eq!(coverage["processes_reached"], processes, "{coverage:#}");
    }
    Outcome::Pass
}

fn a_child_that_dropped_its_privileges_is_reached(env: &TestEnv) -> Outcome {
    env.require_root();
    chown(env.dir(), Some(65534), None).expect("root may give files away");
    let child = places::public(env, &env.program("fsync_once"));
    let words = [
        &env.program("drop_privileges"),
        &env.path("dropped"),
        &child,
        &env.path("exec"),
    ];
    let ran = run(env, &["sync=off"], &words.map(String::as_str));
    for file in ["dropped", "exec"] {
        let owner = fs::metadata(env.path(file)).expect("it was written");
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&owner), 65534);
    }
    assert_eq!(ran.real_fsyncs(), 0);
    for program in ["drop_privileges", "fsync_once"] {
        assert_eq!(ran.fsyncs(program, "suppressed"), 1, "{program}");
    }
    assert!(ran.list("/coverage/unknown").is_empty(), "{:#}", ran.report);
    Outcome::Pass
}

fn a_chroot_keeps_what_is_mapped_and_names_what_is_not(env: &TestEnv) -> Outcome {
    let root = places::chroot(env, "root", &[&env.program("fsync_once")]);
    let privileged = places::privileged(env);
    let go_on = env.program("chroot_fsync");
    let ran = run(env, &["sync=off"], &[privileged, &[&go_on, &root]].concat());
    assert_eq!(ran.real_fsyncs(), 0);
    assert_eq!(ran.fsyncs("chroot_fsync", "suppressed"), 1);

    let exec = env.program("chroot_exec");
    let words = [privileged, &[&exec, &root, "/fsync_once", "/g"]].concat();
    let ran = run(env, &PRELOAD, &words);
    assert_eq!(ran.real_fsyncs(), 1);
    let reason = "library not visible in its root";
    assert_eq!(ran.unreached("fsync_once", reason), 1);
    assert!(ran.executable("fsync_once").is_none());
    Outcome::Pass
}

fn another_malloc_is_told(env: &TestEnv) -> Outcome {
    let (settings, file) = (with_jemalloc(env), env.path("file"));
    let told = |program: &str| run(env, &settings, &[&env.program(program), &file]);
    let object = |ran: &Ran, program: &str| {
        let entry = ran.executable(program).expect("it was reached");
        base(&entry["malloc_object"]).to_owned()
    };
    let plain = told("fsync_once");
    assert!(object(&plain, "fsync_once").starts_with("libjemalloc"));
    assert!(!plain.messages.contains("otherwise"), "{}", plain.messages);
    assert!(!plain.messages.contains("DEEPBIND"), "{}", plain.messages);

    let own = told("own_malloc");
    assert!(!own.stdout.contains("served 0"), "{}", own.stdout);
    assert_eq!(object(&own, "own_malloc"), "own_malloc");
    assert!(own.messages.contains("own_malloc has a malloc of its own"));

    let deep = told("deepbind");
    assert_eq!(
        deep.executable("deepbind").expect("reached")["deepbind"],
        true
    );
    assert!(
        deep.messages
            .contains("deepbind opened a library with RTLD_DEEPBIND")
    );
    Outcome::Pass
}

/// More children at once than an image has slots: none is lost, and none counts twice when it execs.
fn each_of_many_living_children_counts_once(env: &TestEnv) -> Outcome {
    let json = env.path("report.json");
    let script =
        "exec 3<&0; i=0; while [ $i -lt 45 ]; do cat <&3 & i=$((i+1)); done; echo up; wait";
    let mut refit = env
        .refit_command(&["run", "--quiet", "--json", &json, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("refit was built");
    let mut line = String::new();
    BufReader::new(refit.stdout.take().expect("it is piped"))
        .read_line(&mut line)
        .expect("its output is text");
    assert_eq!(line, "up\n");
    drop(refit.stdin.take()); // each cat lived until here
    assert!(refit.wait().expect("it is our child").success());
    let text = fs::read_to_string(&json).expect("refit wrote its report");
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    assert_eq!(report["coverage"]["processes_seen"], 46, "{report:#}");
    assert_eq!(report["coverage"]["processes_reached"], 46, "{report:#}");
    Outcome::Pass
}
