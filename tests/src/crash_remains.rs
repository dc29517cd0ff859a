//! `refit crash open`, and that the lab leaves nothing behind.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::crash::{crash_shell, mode, number, require_lab, states};
use crate::deadline::Deadline;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_state_opens_again),
    test!(a_hostile_record_reaches_nothing_else),
    test!(a_killed_lab_leaves_nothing),
];

fn a_state_opens_again(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 400 300");
    let report = crash_shell(
        env,
        0,
        "--check log:a.log --ack fd:1 --size 64M --cuts 20",
        &command,
    );
    let state = states(mode(&report, "baseline")).last().expect("cuts");
    let name = format!(
        "{}/baseline/{}",
        env.path("records"),
        state["name"].as_str().expect("a name")
    );
    let wanted = number(&state["loss"]["acknowledged"]);
    let output = env.refit(&[
        "crash",
        "open",
        &name,
        "--",
        "sh",
        "-c",
        "wc -l <a.log; touch new; exit 7",
    ]);
    expect_code(&output, 7);
    let lines: u64 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .expect("a number");
    // Each acknowledgement is stamped by its receiver, later than the program gave it: some lines more may be there.
    assert!(
        wanted > 0 && lines >= wanted && lines <= 400,
        "{lines} lines, {wanted} acknowledged"
    );
    // A server that drops root reaches its data there.
    let script = "mkdir data; chown nobody data
        setpriv --reuid=65534 --regid=65534 --clear-groups sh -c 'cd $REFIT_MOUNT/data && echo x >new && cat new'";
    let output = env.refit(&["crash", "open", &name, "--", "sh", "-c", script]);
    expect_code(&output, 0);
    assert_eq!(output.stdout, b"x\n");
    let reach = |name: &str| fs::metadata(name).expect("it is there").mode() & 0o7777;
    let kept = env.path("records");
    assert_eq!(reach(&kept), 0o700);
    assert_eq!(reach(&format!("{kept}/report.json")), 0o600);
    // What was done to a state is forgotten.
    let output = env.refit(&["crash", "open", &name, "--", "ls"]);
    expect_code(&output, 0);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("new"));
    nothing_is_left(&env.path("records"));
    Outcome::Pass
}

/// A record may come from somebody else: its report names a mount point, mount options and a shell's surroundings.
fn a_hostile_record_reaches_nothing_else(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command =
        format!("cp /bin/true $REFIT_MOUNT/ls; sync; {program} $REFIT_MOUNT/a.log 400 300");
    let report = crash_shell(
        env,
        0,
        "--check log:a.log --ack fd:1 --size 64M --cuts 4",
        &command,
    );
    let records = env.path("records");
    let last = states(mode(&report, "baseline")).last().expect("cuts");
    let name = format!(
        "{records}/baseline/{}",
        last["name"].as_str().expect("a name")
    );
    let open = |script: &str| env.refit(&["crash", "open", &name, "--", "sh", "-c", script]);
    let stored = Path::new(&records).join("report.json");
    let change = |path: &[&str], value: &str| {
        let mut hostile = report.clone();
        let mut at = &mut hostile;
        for key in path {
            at = &mut at[*key];
        }
        *at = value.into();
        fs::write(&stored, hostile.to_string()).expect("writable");
    };
    // Their file system over ours, and a link out of the directory.
    change(&["mount"], "/bin");
    let elsewhere = env.subdir("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, Path::new(&records).join("open")).expect("writable");
    let output =
        open("pwd; ls -d /bin/sh; ./ls; PATH=.:/bin ls a.log; findmnt -no OPTIONS --target .");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    expect_code(&output, 0);
    let lines: Vec<&str> = text.lines().collect();
    let [place, shell, log, options] = lines[..] else {
        panic!("{text}");
    };
    assert!(place.starts_with("/var/tmp/refit-crash-"), "{place}");
    assert!(!Path::new(place).exists(), "{place} is left");
    assert_eq!((shell, log), ("/bin/sh", "a.log"), "ours, not theirs");
    for option in ["nosuid", "nodev", "noexec"] {
        assert!(options.contains(option), "{options}");
    }
    assert_eq!(fs::read_dir(&elsewhere).expect("ours").count(), 0);
    // A mount option that would make the kernel write to another device.
    change(&["filesystem", "options"], "noatime,journal_path=/dev/vda");
    refused(&open("true"), "journal_path=/dev/vda");
    // What another user may have written is not mounted at all.
    change(&["mount"], "/mnt");
    let mode = Path::new(&records).join("baseline");
    for (path, owner) in [
        (Path::new(&records), 65534),
        (&stored, 65534),
        (&mode, 65534),
        (&mode.join("record"), 65534),
    ] {
        std::os::unix::fs::chown(path, Some(owner), None).expect("root may");
        refused(&open("true"), path.to_str().expect("text"));
        std::os::unix::fs::chown(path, Some(0), None).expect("root may");
    }
    // A link or a FIFO in place of the record.
    let record = mode.join("record");
    let real = mode.join("real");
    fs::rename(&record, &real).expect("ours");
    std::os::unix::fs::symlink(&real, &record).expect("writable");
    refused(&open("true"), "record");
    fs::remove_file(&record).expect("ours");
    env.run(&["mkfifo", record.to_str().expect("text")]);
    refused(&open("true"), "record");
    fs::remove_file(&record).expect("ours");
    fs::rename(&real, &record).expect("ours");
    expect_code(&open("true"), 0);
    nothing_is_left(&records);
    Outcome::Pass
}

fn refused(output: &std::process::Output, named: &str) {
    expect_code(output, 2);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(named), "{text} does not name {named}");
}

/// No mount and no loop device of the lab whose records are here.
pub fn remains(records: &str) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("/proc is mounted");
    let mounts = mounts
        .lines()
        .filter(|line| line.contains(records))
        .map(str::to_owned);
    let loops = fs::read_dir("/sys/block").expect("/sys is mounted");
    let backing = loops.filter_map(|entry| {
        let path = entry.expect("readable").path().join("loop/backing_file");
        fs::read_to_string(path).ok()
    });
    mounts
        .chain(backing.filter(|file| file.contains(records)))
        .collect()
}

/// Processes that were started with this path.
pub fn processes_of(records: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("/proc is mounted");
    let commands = all.filter_map(|entry| {
        let path = entry.expect("readable").path().join("cmdline");
        fs::read_to_string(path).ok()
    });
    commands
        .filter(|command| command.contains(records))
        .collect()
}

fn nothing_is_left(records: &str) {
    wait_until("mounts and loop devices are gone", || {
        remains(records).is_empty()
    });
}

fn a_killed_lab_leaves_nothing(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 2000 300");
    let records = env.path("records");
    // What is not yet written is the hardest to let go of: it would go to a disk that nobody serves any more.
    let dirty = "i=0; while :; do i=$((i + 1)); head -c 4M /dev/urandom >$REFIT_MOUNT/f$((i % 20)); echo $i; done";
    // In the middle of the recording, and of the cuts.
    for (step, command) in [
        ("baseline/record", command.as_str()),
        ("baseline/record", dirty),
        ("acked-1", command.as_str()),
    ] {
        let _ = fs::remove_dir_all(&records);
        let words = format!(
            "crash --quiet --record {records} --check log:a.log --ack fd:1 --size 64M --cuts 2000 --for 10s --stop -- sh -c"
        );
        let words: Vec<&str> = words.split(' ').chain([command]).collect();
        let mut refit: Child = env
            .refit_command(&words)
            .stdin(Stdio::null())
            .spawn()
            .expect("refit starts");
        let acknowledged = Path::new(&records).join("baseline/acknowledged");
        wait_until(step, || Path::new(&records).join(step).exists());
        // It has written and acknowledged.
        wait_until("the program works", || {
            fs::metadata(&acknowledged).is_ok_and(|about| about.len() > 10)
        });
        refit.kill().expect("it runs");
        refit.wait().expect("it ended");
        nothing_is_left(&records);
        wait_until("its processes are gone", || {
            processes_of(&records).is_empty()
        });
    }
    // Their programs lived in pid namespaces that have ended with them.
    // Another lab of root may end meanwhile.
    let mut deadline = Deadline::after(Duration::from_secs(20));
    loop {
        expect_code(&env.refit(&["run", "--quiet", "--", "true"]), 0);
        let dead = dead_sessions();
        if dead.is_empty() {
            return Outcome::Pass;
        }
        assert!(!deadline.is_over(), "after {deadline}: {dead:?}");
    }
}

/// Sessions of root whose first process was in a pid namespace that is gone.
fn dead_sessions() -> Vec<PathBuf> {
    let alive: HashSet<u64> = fs::read_dir("/proc")
        .expect("/proc is mounted")
        .filter_map(|entry| fs::metadata(entry.ok()?.path().join("ns/pid")).ok())
        .map(|about| about.ino())
        .collect();
    let is_dead = |path: &PathBuf| {
        let noted = fs::read_to_string(path.join("lock")).unwrap_or_default();
        let namespace = noted.split_whitespace().nth(1);
        namespace.is_some_and(|number| !alive.contains(&number.parse().expect("a number")))
    };
    ["/run/refit", "/dev/shm/refit"]
        .into_iter()
        .filter_map(|base| fs::read_dir(base).ok())
        .flatten()
        .map(|entry| entry.expect("readable").path())
        .filter(is_dead)
        .collect()
}
