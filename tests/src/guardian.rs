//! The guardian, two processes of refit's that answer for what no preload reaches: killed at random moments, one and
//! the other, they never cost the program a call; nor does a stopped one.
//!
//! `REFIT_GUARDIAN_KILLS` is the number of kills (`make test-guardian`: 10,000).

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, expect_code, refit_path, wait_for, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(killed_again_and_again_it_never_costs_a_call).limit_seconds(3600),
    test!(a_stopped_one_is_replaced),
    test!(it_is_not_all_in_one_session),
    test!(memory_that_does_not_answer_holds_up_its_own_call_alone),
];

/// Calls under way at any time.
const THREADS: &str = "24";

pub fn kills_wanted() -> u64 {
    let wanted = std::env::var("REFIT_GUARDIAN_KILLS").ok();
    wanted.map_or(150, |text| {
        text.parse().expect("REFIT_GUARDIAN_KILLS is a number")
    })
}

/// The living guardian processes of this copy of refit, oldest first.
fn guardians(refit: &Path) -> Vec<u32> {
    named(refit, "refit-guardian")
}

/// The living processes of that name of this copy of refit, oldest first.
pub fn named(refit: &Path, name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            // First, since most differ in it and the next two are slower.
            let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
            if comm.trim_end() != name {
                return None;
            }
            let exe = fs::read_link(entry.path().join("exe")).ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let is_alive = !stat.rsplit(')').next()?.trim_start().starts_with('Z');
            (exe == *refit && is_alive).then_some(pid)
        })
        .collect();
    pids.sort_unstable();
    pids
}

/// A number anywhere in a report.
fn find(value: &Value, name: &str) -> Option<u64> {
    match value {
        Value::Object(fields) => fields
            .get(name)
            .and_then(Value::as_u64)
            .or_else(|| fields.values().find_map(|value| find(value, name))),
        Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

fn killed_again_and_again_it_never_costs_a_call(env: &TestEnv) -> Outcome {
    env.require_root();
    let stress = env.program("guardian_stress");
    // A copy, so that no other test's guardian is taken for this one's.
    let refit = PathBuf::from(env.path("refit"));
    fs::copy(refit_path(), &refit).expect("the directory is ours");
    let (json, file) = (env.path("report.json"), env.path("f"));
    let mut command = env.command(refit.to_str().expect("it is text"));
    // The emulated disk holds each call for a while, so that some are under way at each kill.
    command.args(["run", "--quiet", "--json", &json, "disk=1ms", "--"]);
    command.args([&stress, THREADS, &file]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("refit starts");
    let mut output = BufReader::new(run.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output
        .read_line(&mut line)
        .expect("the program prints that it is ready");
    assert_eq!(line, "ready\n");

    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(std::process::id());
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let kills = kills_wanted();
    for _ in 0..kills {
        let both = wait_for("both processes of the guardian", || {
            let pids = guardians(&refit);
            (pids.len() == 2).then_some(pids)
        });
        // Waits for nothing: it chooses the moment of the kill.
        sleep(Duration::from_micros(draw(2000)));
        let victim = both[usize::try_from(draw(2)).expect("0 or 1")];
        sys::kill_hard(victim.cast_signed());
        wait_until("the killed one to be gone", || {
            !guardians(&refit).contains(&victim)
        });
    }
    drop(run.stdin.take());
    let mut counts = String::new();
    output.read_to_string(&mut counts).expect("it is text");
    let status = run.wait().expect("it is our child");
    assert!(status.success(), "{status}");
    let numbers: Vec<u64> = counts
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [calls, enosys, eintr, other] = numbers[..] else {
        panic!("{counts:?}")
    };
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).expect("refit wrote it"))
        .expect("it is JSON");
    let of = |name| find(&report, name).unwrap_or_default();
    let (takeovers, released) = (of("takeovers"), of("released"));
    println!(
        "counted: {kills} kills: {takeovers} of the active process, {released} calls under way then; {calls} calls, \
         {eintr} EINTR"
    );
    assert!(calls > kills, "{counts}");
    assert_eq!((enosys, other), (0, 0), "{counts}");
    assert!(
        takeovers > kills / 5,
        "{takeovers} of {kills} kills hit the active one"
    );
    assert!(
        released * 100 >= kills,
        "{released} calls were under way at {kills} kills"
    );
    wait_until("the guardian to end", || guardians(&refit).is_empty());
    Outcome::Pass
}

/// A shell beneath refit that waits for a line and then becomes a static program.
pub struct Waiting {
    refit: PathBuf,
    json: String,
    run: std::process::Child,
}

impl Waiting {
    /// The words are a line of shell.
    pub fn start(env: &TestEnv, words: &str) -> Waiting {
        env.require_root();
        let refit = PathBuf::from(env.path("refit"));
        fs::copy(refit_path(), &refit).expect("the directory is ours");
        let json = env.path("report.json");
        let mut command = env.command(refit.to_str().expect("it is text"));
        command.args(["run", "--quiet", "--json", &json, "--backend", "seccomp"]);
        let script = format!("read line; exec {words}");
        command.args(["sync=off", "--", "/bin/sh", "-c", &script]);
        let run = command.stdin(Stdio::piped()).spawn().expect("refit starts");
        Waiting { refit, json, run }
    }

    /// A program which calls fsync once.
    fn to_sync(env: &TestEnv) -> Waiting {
        let words = [env.program("static_fsync"), env.path("f")].join(" ");
        Waiting::start(env, &words)
    }

    /// Lets the program begin.
    pub fn begin(&mut self) {
        drop(self.run.stdin.take());
    }

    /// The process that answers, and the one that watches it: its child.
    pub fn guardians(&self) -> [u32; 2] {
        wait_for("both processes of the guardian", || {
            let pids = guardians(&self.refit);
            let [first, second] = pids[..] else {
                return None;
            };
            if stat_field(second, PARENT)? == first {
                Some([first, second])
            } else {
                Some([second, first])
            }
        })
    }

    /// Lets the program go on; what was counted.
    pub fn finish(mut self) -> Value {
        self.begin();
        let status = self.run.wait().expect("it is our child");
        assert!(status.success(), "{status}");
        let text = fs::read_to_string(&self.json).expect("refit wrote it");
        serde_json::from_str(&text).expect("it is JSON")
    }
}

/// Numbers of the fields that follow the name in /proc/PID/stat.
pub const PARENT: usize = 1;
pub const SESSION: usize = 3;

pub fn stat_field(pid: u32, field: usize) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(") ")?.1;
    fields.split(' ').nth(field)?.parse().ok()
}

fn a_stopped_one_is_replaced(env: &TestEnv) -> Outcome {
    let waiting = Waiting::to_sync(env);
    let [active, _] = waiting.guardians();
    sys::send_signal(active.cast_signed(), libc::SIGSTOP);
    let report = waiting.finish();
    assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    assert_eq!(find(&report, "takeovers"), Some(1), "{report:#}");
    Outcome::Pass
}

/// The answering one is in the program's session, so that the kernel schedules them together; the other is not, so
/// that whoever kills that session leaves it.
fn it_is_not_all_in_one_session(env: &TestEnv) -> Outcome {
    let waiting = Waiting::to_sync(env);
    let session = |pid| stat_field(pid, SESSION);
    let own = session(waiting.run.id());
    let [active, standby] = waiting.guardians();
    assert_eq!(session(active), own);
    wait_until("the standby to leave the session", || {
        session(standby).is_some_and(|of_standby| Some(of_standby) != own)
    });
    let report = waiting.finish();
    assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    Outcome::Pass
}

/// An openat2 whose flags are in a page of a file whose server does not answer: it waits while others are answered.
fn memory_that_does_not_answer_holds_up_its_own_call_alone(env: &TestEnv) -> Outcome {
    env.require_root();
    let (program, json) = (env.program("stuck_memory"), env.path("report.json"));
    let place = env.subdir("place");
    let settings = ["run", "--json", &json, "--backend", "seccomp", "sync=off"];
    let output = env.refit(&[&settings[..], &["--", &program, &place]].concat());
    if output.status.code() == Some(77) {
        env.skip("FUSE is not allowed here");
    }
    expect_code(&output, 0);
    let text = fs::read_to_string(&json).expect("refit wrote it");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(report["totals"]["fsync"]["suppressed"], 100, "{report:#}");
    assert_eq!(find(&report, "takeovers").unwrap_or_default(), 0);
    Outcome::Pass
}
