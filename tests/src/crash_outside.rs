//! `refit crash` where other processes of the machine reach the lab's disks.

use std::fs::{self, DirEntry, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::crash::{bad, crash, mode, number, require_lab, states};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(the_sync_calls_of_others_are_told).limit_seconds(180),
    test!(who_looks_into_the_recorded_disk_takes_nothing_from_the_record).limit_seconds(180),
    test!(who_maps_an_image_keeps_nothing_of_it_for_the_next).limit_seconds(180),
];

/// The name of each process that has the recorded file system mounted, and where it sees it.
fn recorded(mount: &str) -> Vec<(String, PathBuf)> {
    let processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let has_it = |process: &DirEntry| {
        let mounts = fs::read_to_string(process.path().join("mountinfo")).unwrap_or_default();
        mounts
            .lines()
            .any(|line| line.split(' ').nth(4) == Some(mount))
    };
    let seen = |process: DirEntry| {
        let root = process.path().join("root");
        let comm = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        (comm, root.join(mount.trim_start_matches('/')))
    };
    processes.filter(has_it).map(seen).collect()
}

/// Starts `refit crash` of a log in the directory `records`.
fn start(env: &TestEnv, records: &str, output: &str) -> Child {
    let command = format!("{} $REFIT_MOUNT/a.log 1500 300", env.program("append_log"));
    let words = format!(
        "crash --json crash.json --record {records} --check log:a.log --ack fd:1 --size 64M --cuts 20 --for 1h \
         sync=off -- sh -c"
    );
    let words: Vec<&str> = words.split(' ').chain([&*command]).collect();
    let output = File::create(output).expect("it can be made");
    let errors = output.try_clone().expect("a descriptor is free");
    let mut refit = env.refit_command(&words);
    refit
        .stdout(output)
        .stderr(errors)
        .spawn()
        .expect("refit starts")
}

fn the_sync_calls_of_others_are_told(env: &TestEnv) -> Outcome {
    require_lab(env);
    let records = env.path("records");
    let mut child = start(env, &records, &env.path("out"));
    let mount = format!("{records}/mount");
    let mut calls = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        // syncfs(2) of this disk alone; sync(2) would do the same with all.
        if let Some((_, directory)) = recorded(&mount).first() {
            let sync = Command::new("sync").arg("-f").arg(directory).status();
            calls += u64::from(sync.is_ok_and(|status| status.success()));
        }
    };
    let out = fs::read_to_string(env.path("out")).expect("it is text");
    assert_eq!(status.code(), Some(0), "{out}");
    let text = fs::read_to_string(env.path("crash.json")).expect("refit wrote it");
    let report = serde_json::from_str(&text).expect("it is JSON");
    for name in ["baseline", "sync=off"] {
        let seen = number(&mode(&report, name)["record"]["outside_syncs"]);
        // At least these; other processes of the machine may call sync(2) too.
        assert!(seen > 0 && calls > 0, "{name}: {seen}, ours {calls}");
    }
    assert!(
        out.contains("of other processes of this machine flushed the disk"),
        "{out}"
    );
    Outcome::Pass
}

/// Without syncs everything is written when the disk is unmounted: the record ends after that, although a process
/// outside still holds the mount of a namespace that has ended.
fn who_looks_into_the_recorded_disk_takes_nothing_from_the_record(env: &TestEnv) -> Outcome {
    require_lab(env);
    let records = env.path("records");
    let mut child = start(env, &records, &env.path("out"));
    let mount = format!("{records}/mount");
    let mut held: Vec<(Instant, File)> = Vec::new();
    let mut looks = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        // In the namespace of the program, which ends with it; whoever unmounts the disk is in another.
        for (comm, directory) in recorded(&mount) {
            if comm == "append_log\n"
                && let Ok(file) = File::open(directory)
            {
                held.push((Instant::now(), file));
                looks += 1;
            }
        }
        held.retain(|(since, _)| since.elapsed() < Duration::from_secs(1));
        sleep(Duration::from_millis(50));
    };
    let out = fs::read_to_string(env.path("out")).expect("it is text");
    assert_eq!(status.code(), Some(0), "{out}");
    assert!(looks > 0, "{out}");
    Outcome::Pass
}

/// The kernel leaves a page of a device in its cache while a process maps it or works with it, whoever asks it to drop
/// the device's pages.
fn who_maps_an_image_keeps_nothing_of_it_for_the_next(env: &TestEnv) -> Outcome {
    require_lab(env);
    let records = env.path("records");
    let mapped = env.file("mapped", "");
    let mut mapper = Command::new(env.program("map_disks"))
        .arg(format!("{records}/states-"))
        .stdin(Stdio::piped())
        .stdout(File::create(&mapped).expect("it is ours"))
        .spawn()
        .expect("it starts");
    let command = format!("{} $REFIT_MOUNT/a.log 600 300", env.program("append_log"));
    // The first image stays until one was mapped, and the test's own limit knows how slow the machine is. What the log
    // holds is told as by `log:`.
    let check = format!(
        "until [ -s {mapped} ]; do sleep 0.05; done
        cat $REFIT_MOUNT/a.log 2>/dev/null | grep -ax '[0-9]*'; true"
    );
    let words = "--ack fd:1 --size 64M --cuts 60 --check-timeout 1h -- sh -c";
    let words: Vec<&str> = ["--check", &*check]
        .into_iter()
        .chain(words.split(' '))
        .chain([&*command])
        .collect();
    let report = crash(env, 0, &words);
    drop(mapper.stdin.take());
    assert!(mapper.wait().expect("it is ours").success());
    let baseline = mode(&report, "baseline");
    assert_eq!(states(baseline).len(), 60);
    assert_eq!(bad(baseline), 0, "a synced log loses nothing: {report}");
    Outcome::Pass
}
