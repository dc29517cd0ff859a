//! refit seen from outside: programs of every kind, alone and beneath what else may stand between a program and the
//! kernel. What the report says of syncs is what ext4's tracepoints say, or the report names what it does not know.

pub mod compare;
pub mod crash;
pub mod heap;

use std::process::Output;

use serde_json::Value;

use crate::containers::{container, require_containers, static_root};
use crate::points::all_points;
use crate::ran::number;
use crate::random::Random;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, finish, refit_path};
use crate::witness::seen;

pub const TESTS: &[Test] = &[
    test!(what_is_said_is_what_the_kernel_saw).limit_seconds(600),
    test!(a_container_s_syncs_are_those_that_the_kernel_saw).limit_seconds(120),
];

/// `F` is a file, `@name` another program.
const PROGRAMS: &[&[&str]] = &[
    &["fsync_once", "F"],
    &["write_fsync", "9", "F"],
    &["static_fsync", "F"],
    &["i386_fsync", "F"],
    &["musl_fsync", "F"],
    &["static_go", "F"],
    &["dynamic_go", "F"],
    &["cgo_fsync", "F"],
    &["static_rust", "F"],
    &["rust_syscalls", "F"],
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

/// What else stands between refit, its program and the kernel.
#[derive(Clone, Copy, Debug)]
struct World {
    name: &'static str,
    /// What runs refit.
    outer: &'static [&'static str],
    /// What refit runs, which runs the program.
    inner: &'static [&'static str],
}

/// In it every fsync fails, so that programs that look at what it returns fail too.
const FAILING: &str = "beneath a library's own fsync";

const WORLDS: [World; 6] = [
    World {
        name: "alone",
        outer: &[],
        inner: &[],
    },
    World {
        name: "beneath a bent clock",
        outer: &["env", "LD_PRELOAD=@bent_clock"],
        inner: &[],
    },
    World {
        name: FAILING,
        outer: &["env", "LD_PRELOAD=@hook"],
        inner: &[],
    },
    World {
        name: "with odd signals and limits",
        outer: &[
            "env",
            "--ignore-signal=CHLD",
            "--block-signal=USR1",
            "prlimit",
            "--nofile=64",
            "nice",
            "-n",
            "5",
        ],
        inner: &[],
    },
    World {
        name: "as another user",
        outer: &[],
        inner: &[
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ],
    },
    World {
        name: "without an environment",
        outer: &[],
        inner: &["env", "-i"],
    },
];

/// Words by which a report says that it does not know all.
const GAPS: [&str; 8] = [
    "more were counted than it saw",
    "not in effect",
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

/// Each program in one of the worlds, which a seed draws; with REFIT_POINTS=all in each of them.
fn drawn() -> Vec<(&'static [&'static str], World)> {
    let mut random = Random::of_now();
    let one = random.below(WORLDS.len() as u64) as usize;
    let worlds = |(at, program): (usize, &&'static [&'static str])| {
        let worlds = match all_points() {
            true => WORLDS.to_vec(),
            false => vec![WORLDS[(one + at) % WORLDS.len()]],
        };
        worlds
            .into_iter()
            .map(|world| (*program, world))
            .collect::<Vec<_>>()
    };
    PROGRAMS.iter().enumerate().flat_map(worlds).collect()
}

/// Real calls of a run: those that make the kernel write one file, and those of whole file systems or without a commit,
/// each of which may or may not be seen.
fn real_calls(run: &Value) -> [u64; 2] {
    let totals = run["totals"].as_object().expect("a table");
    [false, true].map(|is_wide| {
        let calls = totals.iter().filter(|(name, _)| {
            let name = name.as_str();
            !OPENING.contains(&name) && WIDE.contains(&name) == is_wide
        });
        calls.map(|(_, calls)| number(&calls["real"])).sum()
    })
}

/// How many worlds agreed with the kernel, and how many named what they do not know.
#[derive(Default)]
struct Judged {
    worlds: usize,
    agree: usize,
    named: usize,
    faults: Vec<String>,
}

impl Judged {
    /// `counted` and perhaps `wide` calls more are said to be real, and `reached` of them reached the disk.
    fn judge(&mut self, [counted, wide]: [u64; 2], reached: u64, said: &str, what: &str) {
        self.worlds += 1;
        let is_same = (counted..=counted + wide).contains(&reached);
        let is_named = GAPS.iter().any(|gap| said.contains(gap));
        self.agree += usize::from(is_same && reached > 0);
        self.named += usize::from(!is_same && is_named);
        if !is_same && !is_named {
            self.faults.push(format!(
                "{what}: {counted} real, {reached} reached the disk\n{said}"
            ));
        }
    }

    /// Fails where a world was wrong, or where one of the two ways of being right was hardly there.
    fn expect(&self, [agree, named]: [usize; 2]) {
        println!(
            "counted: {} worlds: {} with calls that are those of the kernel, {} with a gap that is named",
            self.worlds, self.agree, self.named
        );
        assert!(
            self.faults.is_empty(),
            "{} of {}:\n{}",
            self.faults.len(),
            self.worlds,
            self.faults.join("\n")
        );
        assert!(
            self.agree >= agree && self.named >= named,
            "{} {}",
            self.agree,
            self.named
        );
    }
}

fn what_is_said_is_what_the_kernel_saw(env: &TestEnv) -> Outcome {
    env.require_root();
    let mut judged = Judged::default();
    for world in WORLDS {
        for program in PROGRAMS {
            for settings in [&[][..], &["sync=off"]] {
                let (output, report) =
                    in_world(env, world, &[&["run"], settings].concat(), program);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let reached = number(&seen(env, &report)["calls"]);
                let what = format!("{program:?} {} {settings:?}", world.name);
                judged.judge(real_calls(&report), reached, &said, &what);
            }
        }
    }
    judged.expect([40, 10]);
    Outcome::Pass
}

fn a_container_s_syncs_are_those_that_the_kernel_saw(env: &TestEnv) -> Outcome {
    static_root(env);
    require_containers(env);
    let mut judged = Judged::default();
    for settings in [&[][..], &["sync=off"]] {
        for program in ["static_fsync", "static_i386_fsync", "static_sync_calls"] {
            let command = container(env, &[], &[&format!("/{program}"), "/tmp/file"]);
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let (output, report) =
                env.refit_json(&[&["run"], settings, &["--"], &command].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let reached = number(&seen(env, &report)["calls"]);
            let what = format!("{program} {settings:?}");
            // The runtime syncs too, by instructions of its own.
            assert_eq!(reached == 0, !settings.is_empty(), "{what}\n{said}");
            judged.judge(real_calls(&report), reached, &said, &what);
        }
    }
    judged.expect([0, 3]);
    Outcome::Pass
}

/// Whether the program succeeds in its world without refit.
fn succeeds(env: &TestEnv, world: World, program: &[&str]) -> bool {
    let words = words_of(env, world.outer, "");
    let words = [words, words_of_program(env, world, program)].concat();
    finish(env.command(&words[0]).args(&words[1..]))
        .status
        .success()
}

/// A verb of refit with a program in a world: what it printed, and its result.
fn in_world(env: &TestEnv, world: World, verb: &[&str], program: &[&str]) -> (Output, Value) {
    let json = env.path("report.json");
    let _ = std::fs::remove_file(&json);
    let command = words_of_program(env, world, program);
    let mut words = words_of(env, world.outer, "");
    words.push(refit_path());
    words.extend(
        [&verb[..1], &["--json", &json], &verb[1..], &["--"]]
            .concat()
            .iter()
            .map(|one| (*one).to_owned()),
    );
    words.extend(command);
    let output = finish(env.command(&words[0]).args(&words[1..]));
    let report = std::fs::read(&json)
        .unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", described(&output)));
    (output, serde_json::from_slice(&report).expect("it is JSON"))
}

/// What refit runs in a world: the program has a file that uid 65534 may write.
fn words_of_program(env: &TestEnv, world: World, program: &[&str]) -> Vec<String> {
    let file = env.file("file", "");
    for path in [env.dir(), file.as_ref()] {
        std::os::unix::fs::chown(path, Some(65534), None).expect("root may give files away");
    }
    let mut words = words_of(env, world.inner, &file);
    words.push(env.program(program[0]));
    words.extend(words_of(env, &program[1..], &file));
    words
}

/// Words, of which `F` is the file, and what follows `@` a program's name.
fn words_of(env: &TestEnv, words: &[&str], file: &str) -> Vec<String> {
    let word = |word: &&str| match word.split_once('@') {
        Some((before, program)) => format!("{before}{}", env.program(program)),
        None if *word == "F" => file.to_owned(),
        None => (*word).to_owned(),
    };
    words.iter().map(word).collect()
}
