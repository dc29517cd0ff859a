//! `refit crash`: what real programs lose at simulated power cuts.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    // sync(2), which other tests call, writes every file system of the machine, the recorded one too.
    test!(a_synced_log_loses_nothing_and_without_syncs_everything)
        .limit_seconds(180)
        .alone(),
    test!(sqlite_loses_its_last_row_as_it_says),
    test!(a_flush_each_second_loses_what_was_safe).limit_seconds(300),
    test!(a_check_that_always_says_yes_is_found),
    test!(a_check_of_names_only_is_named),
    test!(checks_may_have_much_to_say),
    test!(a_slow_disk_s_flushes_take_their_time),
    test!(each_file_system_keeps_what_was_synced),
];

/// What simulated power cuts need, root included.
pub fn require_lab(env: &TestEnv) {
    env.require_root();
    for path in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = fs::File::options().read(true).write(true).open(path) {
            env.skip(&format!("simulated power cuts need {path}: {error}"));
        }
    }
    env.require_command("mkfs.ext4");
    env.require_namespaces(&["--mount", "--propagation", "unchanged", "--pid", "--fork"]);
}

/// A mode of a report, by its name.
pub fn mode<'a>(report: &'a Value, name: &str) -> &'a Value {
    let modes = report["modes"].as_array().expect("an array");
    let found = modes.iter().find(|mode| mode["name"] == name);
    found.unwrap_or_else(|| panic!("no mode {name}: {modes:?}"))
}

pub fn states(mode: &Value) -> &Vec<Value> {
    mode["states"].as_array().expect("an array")
}

pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is not a count"))
}

/// Before the first acknowledgement no promise can be broken.
fn is_bad(state: &Value) -> bool {
    number(&state["loss"]["acknowledged"]) > 0 && is_harmed(state)
}

fn is_harmed(state: &Value) -> bool {
    number(&state["loss"]["lost"]) > 0
        || !state["broken"].is_null()
        || !state["unmountable"].is_null()
}

pub fn bad(mode: &Value) -> usize {
    states(mode).iter().filter(|state| is_bad(state)).count()
}

fn images(mode: &Value) -> usize {
    let names = states(mode)
        .iter()
        .map(|state| state["image"].as_str().expect("a name"));
    names.collect::<HashSet<_>>().len()
}

fn suppressed(mode: &Value) -> u64 {
    let totals = mode["run"]["totals"].as_object().expect("counts");
    totals
        .values()
        .map(|calls| number(&calls["suppressed"]))
        .sum()
}

/// Runs the lab in the test's own directory; its report.
pub fn crash(env: &TestEnv, code: i32, words: &[&str]) -> Value {
    let json = env.path("crash.json");
    let record = env.path("records");
    let _ = fs::remove_dir_all(&record);
    let mut all = vec!["crash", "--quiet", "--json", &json, "--record", &record];
    // A command ends by itself, and the test's own limit knows how slow the machine is; a recipe's length ends it.
    if words.contains(&"--") && !words.contains(&"--for") {
        all.extend(["--for", "1h"]);
    }
    all.extend(words);
    let output = env.refit(&all);
    expect_code(&output, code);
    let text = fs::read_to_string(&json).expect("refit wrote it");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", described(&output)))
}

/// The same of a shell's command; the lab's words are parted by spaces.
pub fn crash_shell(env: &TestEnv, code: i32, words: &str, command: &str) -> Value {
    let words: Vec<&str> = words.split_whitespace().collect();
    crash(
        env,
        code,
        &[&words[..], &["--", "sh", "-c", command]].concat(),
    )
}

fn a_synced_log_loses_nothing_and_without_syncs_everything(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 1500 300");
    let report = crash_shell(
        env,
        0,
        "--check log:a.log --ack fd:1 --size 64M --cuts 310 sync=off",
        &command,
    );
    assert_eq!(report["sees_torn_blocks"], Value::Bool(true));
    let baseline = mode(&report, "baseline");
    assert_eq!(states(baseline).len(), 310);
    assert_eq!(bad(baseline), 0, "a synced log loses nothing");
    assert_eq!(suppressed(baseline), 0);
    assert!(
        images(baseline) >= 100,
        "{} different images",
        images(baseline)
    );
    let pending = states(baseline)
        .iter()
        .filter(|state| number(&state["pending"]) > 0)
        .count();
    assert!(pending >= 155, "{pending} cuts with something pending");
    let most = states(baseline)
        .iter()
        .map(|state| number(&state["loss"]["acknowledged"]))
        .max();
    assert!(most > Some(1000), "the cuts reach to the end: {most:?}");

    let off = mode(&report, "sync=off");
    assert_eq!(suppressed(off), 1500);
    assert_eq!(off["class"], "loses-on-crash");
    // How many cuts come before anything was acknowledged depends on how soon the program starts.
    let promised = states(off)
        .iter()
        .filter(|state| number(&state["loss"]["acknowledged"]) > 0)
        .count();
    let lost = bad(off);
    assert!(
        promised >= 155 && lost * 310 >= promised * 300,
        "{lost} lose of {promised} of {} that could",
        states(off).len()
    );
    let control = mode(&report, "control");
    assert!(
        bad(control) >= 10,
        "{} of {} lose",
        bad(control),
        states(control).len()
    );
    assert_eq!(
        report["modes"][0]["name"], "control",
        "the control comes first"
    );
    Outcome::Pass
}

/// SQLite's documentation says that in DELETE mode only EXTRA syncs the directory after its journal is unlinked.
fn sqlite_loses_its_last_row_as_it_says(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("sqlite3");
    let rows = |synchronous: &str| {
        let program = format!(
            "import os, sqlite3\n\
             db = sqlite3.connect(os.environ['REFIT_MOUNT'] + '/t.db', isolation_level=None)\n\
             db.execute('pragma journal_mode=delete')\n\
             db.execute('pragma synchronous={synchronous}')\n\
             db.execute('create table if not exists t(i integer primary key, s text)')\n\
             for i in range(1, 301):\n    \
                 db.execute('insert into t values(?, ?)', (i, 'x' * 100))\n    \
                 os.write(1, b'%d\\n' % i)\n"
        );
        let script = env.file("rows.py", &program);
        let code = if synchronous == "full" { 1 } else { 0 };
        let words = [
            "--check",
            "sqlite:t.db:SELECT i FROM t",
            "--ack",
            "fd:1",
            "--size",
            "64M",
            "--cuts",
            "120",
            "--",
            "python3",
            &script,
        ];
        crash(env, code, &words)
    };
    let full = rows("full");
    let baseline = mode(&full, "baseline");
    assert!(bad(baseline) > 0, "FULL loses");
    let worst = states(baseline)
        .iter()
        .max_by_key(|state| number(&state["loss"]["lost"]))
        .expect("there are cuts");
    assert_eq!(worst["loss"]["lost"], 1, "its last row: {worst}");
    let extra = rows("extra");
    assert_eq!(bad(mode(&extra, "baseline")), 0, "EXTRA loses nothing");
    assert!(images(mode(&extra, "baseline")) > 30);
    Outcome::Pass
}

/// Items that were durable for seconds are lost when they are moved on: whether a cut shows it is a race.
fn a_flush_each_second_loses_what_was_safe(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("store_and_forward");
    let check = "cd \"$REFIT_MOUNT\" && find spool box -name '[0-9]*' -size 6000c -printf '%f\\n'";
    let prepare = "cd $REFIT_MOUNT && mkdir spool box && \
                   python3 -c 'for n in range(1, 2001): open(f\"spool/{n}\", \"w\").write(\"item\\n\" * 1200)'";
    let command = format!("cd $REFIT_MOUNT && seq 2000 && exec {program} 2000 1000");
    let mut messages = String::new();
    for _ in 0..5 {
        let words = [
            "--check",
            check,
            "--ack",
            "fd:1",
            "--prepare",
            prepare,
            "--size",
            "128M",
            "--cuts",
            "60",
            "--background",
            "while sleep 1; do sync -f \"$REFIT_MOUNT\"; done",
            "sync=off",
            "--",
            "sh",
            "-c",
            &command,
        ];
        let report = crash(env, 0, &words);
        assert_eq!(
            bad(mode(&report, "baseline")),
            0,
            "with its syncs it loses nothing"
        );
        let off = mode(&report, "sync=off");
        assert!(suppressed(off) >= 4000);
        let lossy = bad(off);
        messages = format!("{lossy} of 60 cuts lose");
        if lossy > 0 {
            let oldest = states(off)
                .iter()
                .filter_map(|state| state["loss"]["oldest_ns"].as_u64())
                .max();
            assert!(oldest.is_some(), "a loss has an age");
            return Outcome::Pass;
        }
    }
    panic!("five runs, and none lost anything: {messages}");
}

fn a_check_that_always_says_yes_is_found(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 600 300");
    let words = [
        "--check",
        "cat \"$REFIT_ACKED\"",
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        "20",
        "sync=off",
        "--",
        "sh",
        "-c",
        &command,
    ];
    let report = crash(env, 2, &words);
    let why = report["invalid"].as_str().expect("a reason");
    assert!(why.contains("nothing was lost"), "{why}");
    let looked_at = states(mode(&report, "control")).len();
    assert_eq!(looked_at, 20, "at each cut, once ten had shown nothing");
    assert_eq!(
        report["modes"].as_array().map(Vec::len),
        Some(1),
        "no verdict on a mode"
    );
    Outcome::Pass
}

/// It would find every file after a disk had written half of each.
fn a_check_of_names_only_is_named(env: &TestEnv) -> Outcome {
    require_lab(env);
    let command =
        "for i in $(seq 40); do echo $i >$REFIT_MOUNT/$i; sync -f $REFIT_MOUNT; echo $i; done";
    let words = [
        "--check",
        "ls $REFIT_MOUNT",
        "--ack",
        "fd:1",
        "--size",
        "16M",
        "--cuts",
        "20",
        "--",
        "sh",
        "-c",
        command,
    ];
    let report = crash(env, 0, &words);
    assert_eq!(report["sees_torn_blocks"], Value::Bool(false));
    assert_eq!(bad(mode(&report, "baseline")), 0);
    let shown = env.refit(&["report", "crash.json"]);
    let text = String::from_utf8_lossy(&shown.stdout).replace("\n  ", " ");
    assert!(
        text.contains("warning: the check does not look into the files"),
        "{text}"
    );
    Outcome::Pass
}

/// Together more than a pipe holds, from each of two workers: 150 states of 1,200 bytes.
fn checks_may_have_much_to_say(env: &TestEnv) -> Outcome {
    require_lab(env);
    let command = format!("{} $REFIT_MOUNT/a.log 400", env.program("append_log"));
    let check = "cat $REFIT_MOUNT/a.log
        test $(wc -l <$REFIT_ACKED) = 400 && exit
        printf '😀%.0s' $(seq 300) >&2
        exit 1";
    let words = [
        "--check", check, "--ack", "fd:1", "--size", "16M", "--cuts", "300", "--", "sh", "-c",
        &command,
    ];
    let report = crash(env, 1, &words);
    let baseline = mode(&report, "baseline");
    let messages: usize = states(baseline)
        .iter()
        .filter_map(|state| state["broken"].as_str())
        .map(str::len)
        .sum();
    assert_eq!(states(baseline).len(), 300);
    assert!(messages > 4 * 65536, "{messages} bytes");
    Outcome::Pass
}

fn a_slow_disk_s_flushes_take_their_time(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 100");
    let report = crash_shell(
        env,
        0,
        "--check log:a.log --ack fd:1 --size 64M --cuts 20 --with disk=4ms",
        &command,
    );
    let record = &mode(&report, "baseline")["record"];
    let times = record["flushed_ns"].as_array().expect("times");
    let times: Vec<u64> = times.iter().map(number).collect();
    assert!(times.len() >= 200, "{} flushes", times.len());
    let fastest = times.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert!(fastest >= Some(2_000_000), "half of 4 ms each: {fastest:?}");
    Outcome::Pass
}

fn each_file_system_keeps_what_was_synced(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 300 500");
    for (kind, options, size) in [
        ("ext4", "data=journal", "64M"),
        ("xfs", "", "320M"),
        ("btrfs", "", "256M"),
    ] {
        env.require_command(&format!("mkfs.{kind}"));
        let words = [
            "--fs",
            kind,
            "--mount-options",
            options,
            "--check",
            "log:a.log",
            "--ack",
            "fd:1",
            "--size",
            size,
            "--cuts",
            "24",
            "sync=off",
            "--",
            "sh",
            "-c",
            &command,
        ];
        let report = crash(env, 0, &words);
        assert_eq!(report["filesystem"]["kind"], kind);
        assert_eq!(bad(mode(&report, "baseline")), 0, "{kind}");
        // How many depends on the machine: on when its processes run, and who else calls sync(2).
        assert!(bad(mode(&report, "sync=off")) > 0, "{kind}");
    }
    Outcome::Pass
}
