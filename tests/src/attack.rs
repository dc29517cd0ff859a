//! Another user at the session directory of a root's run, whose path he knows: he can harm neither the program
//! nor refit, nor make refit say what is not so. All of it on small file systems that nobody else sees.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(another_user_changes_nothing_in_a_session),
    test!(a_forged_report_counts_only_from_a_user_of_the_tree),
    test!(another_user_reaches_no_process),
    test!(many_files_hide_no_report),
    test!(a_full_session_is_unknown_and_not_wrong),
];

/// The program beneath refit: says that it is up and where its session is, waits, then fsyncs three times.
const PROGRAM: &str = "echo $REFIT_SESSION >up; read line <go; \
                       ./fsync_once a; ./fsync_once b; ./fsync_once c; :";

/// Runs PROGRAM as root, and `attack` (shell lines, in which `$session` is set) while it waits; each line with a
/// `try NAME COMMAND…` leaves `NAME 0` or `NAME 1` in the file `tried`.
fn attacked(env: &TestEnv, mounts: &str, words: &str, attack: &str) -> (Output, Value, String) {
    places::public(env, &env.program("fsync_once"));
    env.file(
        "attack",
        &format!(
            "session=$1; shift; images=$*
            try() {{ name=$1; shift; \"$@\" >/dev/null 2>&1; echo $name $(($? != 0)); }}
            {attack}"
        ),
    );
    let script = format!(
        "{mounts}
        rm -f up go; mkfifo up go
        {} run --quiet --json report.json -- {words} sh -c '{PROGRAM}' &
        refit=$!
        read session <up
        echo $refit $(pgrep -P $refit) >pids
        nobody sh attack $session $session/images/* >tried || echo $? >>tried
        echo >go
        wait $refit
        {} run --quiet -- true",
        refit_path(),
        refit_path()
    );
    let output = places::in_own_mounts(env, &script).output();
    let output = output.expect("unshare is there");
    expect_code(&output, 0);
    let read = |name: &str| fs::read_to_string(env.path(name)).expect("the script wrote it");
    let report = serde_json::from_str(&read("report.json")).expect("the report is JSON");
    (output, report, read("tried"))
}

/// Both places that a session can be in.
const ON_RUN: &str = "mount -t tmpfs -o mode=755,size=4m tmpfs /run; mount -t tmpfs -o mode=1777,size=4m tmpfs /dev/shm";
const ON_SHM: &str =
    "mount -t ramfs ramfs /run; mount -t tmpfs -o mode=1777,size=4m tmpfs /dev/shm";

fn fsyncs(report: &Value) -> u64 {
    report["totals"]["fsync"]["seen"].as_u64().unwrap_or(0)
}

fn unknown(report: &Value) -> Vec<(String, u64)> {
    let list = report["coverage"]["unknown"].as_array();
    let list = list.expect("a report says what is unknown").iter();
    list.map(|entry| {
        let what = entry["what"].as_str().expect("it has a name").to_owned();
        (what, entry["count"].as_u64().expect("it is counted"))
    })
    .collect()
}

fn another_user_changes_nothing_in_a_session(env: &TestEnv) -> Outcome {
    // Each of the first kind must be refused; the second he may do, and it must not matter.
    let attack = "
        for file in $session/policy $session/lock $images; do
            try refused.truncate truncate -s 0 $file
            try refused.scribble dd if=/dev/zero of=$file bs=4k count=1 conv=notrunc
            try refused.remove rm -f $file
            try refused.rename mv $file $file.gone
            try refused.replace ln -sf /etc/passwd $file
            try refused.mode chmod 666 $file
        done
        for file in $images; do try refused.read cat $file; done
        try refused.list ls $session/images
        try refused.move mv $session/images $session/gone
        try refused.create touch $session/new
        cd $session/images
        try done.link ln -s /etc/shadow link
        try done.policy ln -s ../policy other
        try done.fifo mkfifo fifo
        try done.directory mkdir directory
        try done.inside touch directory/file
        size=$(stat -c %s $images | head -n 1)
        for i in $(seq 300); do truncate -s $size zero$i; done
        try done.garbage dd if=/dev/urandom of=garbage bs=$size count=1
        try done.size test $size -gt 4096";
    for mounts in [ON_RUN, ON_SHM] {
        let (output, report, tried) = attacked(env, mounts, "", attack);
        assert!(output.stderr.is_empty(), "{}", described(&output));
        let mut refused = 0;
        for line in tried.lines() {
            let as_it_must = match line.split_once('.').map(|(kind, _)| kind) {
                Some("refused") => line.ends_with(" 1"),
                _ => line.ends_with(" 0"),
            };
            assert!(as_it_must, "{line}, of:\n{tried}");
            refused += usize::from(line.starts_with("refused"));
        }
        // policy, lock, and the shell's image.
        assert_eq!(refused, 3 * 6 + 1 + 3, "{tried}");
        assert_eq!(fsyncs(&report), 3, "{report:#}");
        assert_eq!(report["coverage"]["processes_reached"], 4, "{report:#}");
        assert_eq!(unknown(&report), []);
    }
    Outcome::Pass
}

/// All that begins a valid report (the session page's magic and version), and then the largest numbers.
fn forge() -> String {
    let header = source_dir().join("crates/refit-preload/sync/session.h");
    let header = fs::read_to_string(header).expect("it is part of the source");
    let version: u32 = header
        .lines()
        .find_map(|line| {
            line.strip_prefix("#define REFIT_VERSION ")?
                .trim_end_matches('u')
                .parse()
                .ok()
        })
        .expect("the page has a version");
    format!(
        "size=$(stat -c %s $images | head -n 1)
        {{ printf '!refit01\\{version:03o}\\000\\000\\000'; head -c $((size - 12)) /dev/zero | tr '\\000' '\\377'; }} \\
            >$session/images/forged"
    )
}

fn a_forged_report_counts_only_from_a_user_of_the_tree(env: &TestEnv) -> Outcome {
    let (_, report, _) = attacked(env, ON_RUN, "", &forge());
    assert_eq!(fsyncs(&report), 3, "{report:#}");
    assert_eq!(report["coverage"]["processes_seen"], 4, "{report:#}");
    assert_eq!(unknown(&report), [("foreign report".to_owned(), 1)]);

    // The control: the same file is taken for true where a program of the tree became that user.
    let dropped = "sh -c 'setpriv --reuid=65534 --clear-groups true; exec \"$@\"' sh";
    let (_, report, _) = attacked(env, ON_RUN, dropped, &forge());
    assert!(fsyncs(&report) > 1 << 60, "{report:#}");
    Outcome::Pass
}

/// By signals, and by what /proc shows of a process.
fn another_user_reaches_no_process(env: &TestEnv) -> Outcome {
    let attack = "
        for pid in $(cat pids); do
            for signal in STOP TERM KILL; do try $signal kill -$signal $pid; done
            for file in mem environ maps fd/0 stack syscall root/run; do
                try $file head -c 1 /proc/$pid/$file
            done
            try fds ls /proc/$pid/fd
            try oom sh -c \"echo 1000 >/proc/$pid/oom_score_adj\"
            try limits prlimit --pid $pid --nofile=0
            try priority renice 19 $pid
        done";
    let (output, report, tried) = attacked(env, ON_RUN, "", attack);
    assert!(output.stderr.is_empty(), "{}", described(&output));
    let tried: Vec<&str> = tried.lines().collect();
    // refit, and the shell beneath it.
    assert!(tried.len() >= 2 * 14, "{tried:?}");
    let done: Vec<_> = tried.iter().filter(|line| line.ends_with(" 0")).collect();
    assert!(done.is_empty(), "{done:?}");
    assert_eq!(fsyncs(&report), 3, "{report:#}");
    Outcome::Pass
}

fn many_files_hide_no_report(env: &TestEnv) -> Outcome {
    // The newest come first when the directory is read.
    let attack = "cd $session/images; seq 120000 | xargs touch; try made test -e 120000";
    let (_, report, tried) = attacked(env, ON_RUN, "", attack);
    assert_eq!(tried, "made 0\n");
    // The shell's report is older than the files, those of its commands are newer.
    assert_eq!(report["coverage"]["processes_reached"], 4, "{report:#}");
    assert_eq!(fsyncs(&report), 3, "{report:#}");
    Outcome::Pass
}

fn a_full_session_is_unknown_and_not_wrong(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let strace = "strace -f -qq -o log -e trace=fsync --";
    for (mounts, attack) in [
        (
            ON_RUN,
            "cat /dev/zero >$session/images/fill 2>/dev/null
            try more dd if=/dev/zero of=$session/images/more bs=4k count=1",
        ),
        (
            "mount -t tmpfs -o mode=755 tmpfs /run; mount -t tmpfs -o mode=1777,nr_inodes=100 tmpfs /dev/shm",
            "cd $session/images; for i in $(seq 100); do touch $i; done 2>/dev/null
            try more touch more",
        ),
    ] {
        let (output, report, tried) = attacked(env, mounts, strace, attack);
        assert_eq!(tried, "more 1\n", "it was not full");
        assert!(output.stderr.is_empty(), "{}", described(&output));
        let log = fs::read_to_string(env.path("log")).expect("strace wrote it");
        assert_eq!(log.matches("fsync(").count(), 3, "{log}");
        assert_eq!(unknown(&report), [("never reported".to_owned(), 3)]);
        assert_eq!(fsyncs(&report), 0, "{report:#}");
    }
    Outcome::Pass
}
