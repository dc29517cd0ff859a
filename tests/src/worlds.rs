//! refit seen from outside: programs of every kind, alone and beneath what else may stand between a program and the
//! kernel. What the report says of syncs is what ext4's tracepoints say, or the report names what it does not know.

use serde_json::Value;

use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, finish, refit_path};
use crate::witness::seen;

pub const TESTS: &[Test] = &[test!(what_is_said_is_what_the_kernel_saw).limit_seconds(600)];

/// `F` is a file, `@name` another program.
const PROGRAMS: &[&[&str]] = &[
    &["fsync_once", "F"],
    &["write_fsync", "9", "F"],
    &["static_fsync", "F"],
    &["i386_fsync", "F"],
    &["musl_fsync", "F"],
    &["static_go", "F"],
    &["static_rust", "F"],
    &["inline_asm_fsync", "F"],
    &["own_syscalls", "F", "8", "half"],
    &["hidden_syscalls", "F", "8"],
    &["setgid_helper", "F"],
    &["own_malloc", "F"],
    &["deepbind", "F"],
    &["closefrom", "F"],
    &["static_true"],
    &["io_uring_fsync", "F"],
    &["fork_storm", "5", "F"],
    &["exec_storm", "5", "@fsync_once", "F"],
    &["vfork_exec", "@fsync_once", "F"],
    &["spawn_clearenv", "@fsync_once", "F"],
    &["execve_clearenv", "@static_fsync", "F"],
    &["threads_fsync", "4", "10", "F"],
    &["signal_handler_fsync", "20", "F"],
    &["msync_write", "7", "F"],
    &["hooked", "F"],
    &["aio_dropped", "F"],
];

/// A name, and what stands before refit and before the program.
const WORLDS: [(&str, &[&str], &[&str]); 6] = [
    ("alone", &[], &[]),
    (
        "beneath a bent clock",
        &["env", "LD_PRELOAD=@bent_clock"],
        &[],
    ),
    (
        "beneath a library's own fsync",
        &["env", "LD_PRELOAD=@hook"],
        &[],
    ),
    (
        "with odd signals and limits",
        &[
            "env",
            "--ignore-signal=CHLD",
            "--block-signal=USR1",
            "prlimit",
            "--nofile=64",
            "nice",
            "-n",
            "5",
        ],
        &[],
    ),
    (
        "as another user",
        &[],
        &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ],
    ),
    ("without an environment", &[], &["env", "-i"]),
];

/// Words by which a report says that it does not know all.
const GAPS: [&str; 6] = [
    "did not count",
    "unknown:",
    "not reached",
    "not counted",
    "uncounted",
    "defines fsync",
];

/// Calls that open, and make nothing durable by themselves.
const OPENING: [&str; 4] = [
    "open(O_SYNC)",
    "open(O_DIRECT)",
    "fcntl(O_DIRECT)",
    "io_uring_setup",
];

/// Syncs of whole file systems, or without a commit: the kernel need not make anything durable for one.
const WIDE: [&str; 3] = ["sync", "syncfs", "sync_file_range"];

fn what_is_said_is_what_the_kernel_saw(env: &TestEnv) -> Outcome {
    env.require_root();
    // Where uid 65534 may write.
    std::os::unix::fs::chown(env.dir(), Some(65534), None).expect("root may give files away");
    let mut faults = Vec::new();
    let [mut worlds, mut agree, mut named] = [0; 3];
    for (world, outer, inner) in WORLDS {
        for program in PROGRAMS {
            for settings in [&[][..], &["sync=off"]] {
                worlds += 1;
                let (said, report) = run(env, outer, settings, &[inner, *program]);
                let reached = number(&seen(env, &report)["calls"]);
                let totals = report["totals"].as_object().expect("a table");
                let real = |is_wide: bool| -> u64 {
                    let calls = totals.iter().filter(|(name, _)| {
                        let name = name.as_str();
                        !OPENING.contains(&name) && WIDE.contains(&name) == is_wide
                    });
                    calls.map(|(_, calls)| number(&calls["real"])).sum()
                };
                let (real, wide) = (real(false), real(true));
                let is_same = (real..=real + wide).contains(&reached);
                let is_named = GAPS.iter().any(|gap| said.contains(gap));
                agree += u32::from(is_same && reached > 0);
                named += u32::from(!is_same && is_named);
                if !is_same && !is_named {
                    faults.push(format!(
                        "{program:?} {world} {settings:?}: {real} real, {reached} reached the disk\n{said}"
                    ));
                }
            }
        }
    }
    println!(
        "counted: {worlds} worlds: {agree} with syncs that are those of the kernel, {named} with a gap that is named"
    );
    assert!(
        faults.is_empty(),
        "{} of {worlds}:\n{}",
        faults.len(),
        faults.join("\n")
    );
    // Neither way of being right is the only one.
    assert!(agree >= 40 && named >= 10, "{agree} {named}");
    Outcome::Pass
}

/// What refit says on stderr, and its report.
fn run(env: &TestEnv, outer: &[&str], settings: &[&str], inner: &[&[&str]]) -> (String, Value) {
    let word = |word: &str| match word.split_once('@') {
        Some((before, program)) => format!("{before}{}", env.program(program)),
        None => word.to_owned(),
    };
    let file = env.file("file", "");
    std::os::unix::fs::chown(&file, Some(65534), None).expect("root may give files away");
    let json = env.path("report.json");
    let [before, program] = inner else {
        panic!("two parts");
    };
    let refit = refit_path();
    let mut words: Vec<String> = outer.iter().map(|one| word(one)).collect();
    words.extend([&*refit, "run", "--json", &json].map(str::to_owned));
    words.extend(
        settings
            .iter()
            .chain(&["--"])
            .chain(*before)
            .map(|one| (*one).to_owned()),
    );
    words.push(env.program(program[0]));
    words.extend(
        program[1..]
            .iter()
            .map(|one| if *one == "F" { file.clone() } else { word(one) }),
    );
    let output = finish(env.command(&words[0]).args(&words[1..]));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = std::fs::read(&json).unwrap_or_else(|error| panic!("{words:?}: {error}\n{said}"));
    (said, serde_json::from_slice(&report).expect("it is JSON"))
}
