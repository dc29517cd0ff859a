//! rsyslog on a Debian that systemd boots: lines are logged, and looked for in the files; its syncs are
//! counted by strace from outside.

use std::fs;

use crate::apply_booted::{LIBRARY, booted, files, inside, up};
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, expect_message, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(rsyslog_is_changed_verified_and_taken_back)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(a_restart_that_stops_the_log_is_taken_back)
        .alone()
        .when_named()
        .limit_seconds(300),
];

const APPLY: &str = "refit apply --yes rsyslog --accept=loses-on-crash --no-evidence";
const CHECK: &str = "refit status --exit-code rsyslog";
const REVERT: &str = "refit revert rsyslog";
const OWN: &str = "/etc/rsyslog.d/99-own.conf";

fn shell(env: &TestEnv, code: i32, script: &str) -> String {
    inside(env, code, &["sh", "-c", script])
}

fn refused(env: &TestEnv, code: i32, script: &str, named: &str) {
    expect_message(&booted(env, &["x", "sh", "-c", script]), code, named);
}

/// Logs a line, and waits until it is in the file.
fn log(env: &TestEnv, facility: &str, line: &str) {
    let script = format!(
        "logger -p {facility}.info '{line}'; for i in $(seq 200); do \
         grep -q '{line}' /var/log/{facility}.log && exit 0; sleep 0.05; done; exit 1"
    );
    shell(env, 0, &script);
}

/// The service's main process, as this machine numbers it.
fn main_process(env: &TestEnv) -> String {
    let asked = "systemctl show -p MainPID --value rsyslog; readlink /proc/self/ns/pid";
    let told = shell(env, 0, asked);
    let (number, namespace) = told.trim().split_once('\n').expect("two lines");
    let is_meant = |pid: &String| {
        let of = fs::read_link(format!("/proc/{pid}/ns/pid"));
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mut lines = status.lines().filter(|line| line.starts_with("NSpid:"));
        of.is_ok_and(|of| of.as_os_str() == namespace)
            && lines.any(|line| line.split_whitespace().last() == Some(number))
    };
    let all = fs::read_dir("/proc").expect("it is there").flatten();
    let mut pids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    pids.find(is_meant).expect("it runs")
}

/// Syncs of rsyslogd while five lines are logged, one after the other.
fn syncs(env: &TestEnv, facility: &str) -> usize {
    env.require_command("strace");
    let (out, told) = (env.path("out"), env.path("told"));
    let calls = "trace=fsync,fdatasync,write";
    let mut command = env.command("strace");
    command.args([
        "-f",
        "-s200",
        "-e",
        calls,
        "-o",
        &out,
        "-p",
        &main_process(env),
    ]);
    let told_to = fs::File::create(&told).expect("ours");
    let mut strace = command.stderr(told_to).spawn().expect("it is there");
    wait_until("strace has it", || {
        fs::read_to_string(&told).is_ok_and(|text| text.contains("attached"))
    });
    for number in 0..5 {
        log(env, facility, &format!("counted {} {number}", strace.id()));
    }
    sys::send_signal(strace.id() as i32, libc::SIGINT);
    strace.wait().expect("it is ours");
    let text = fs::read_to_string(&out).expect("written");
    assert!(text.matches("counted ").count() >= 5, "{text}");
    text.matches(" fsync(").count() + text.matches(" fdatasync(").count()
}

fn rsyslog_is_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    assert_eq!(syncs(env, "mail"), 0);
    // Lines are logged all the while, from before the change until after it is taken back.
    let flow = "systemd-run -q --unit=flow sh -c 'i=0; while :; do i=$((i+1)); logger -p mail.info RUN $i.; sleep 0.02; done'";
    let run = format!("flow{}", std::process::id());
    shell(env, 0, &flow.replace("RUN", &run));
    log(env, "mail", &format!("{run} 1[.]"));
    let on = format!("{APPLY} conf.sync=on");
    shell(env, 0, &on);
    assert!(shell(env, 0, &on).contains("nothing to do"));
    assert!(shell(env, 0, CHECK).contains("ok: rules that sync all"));
    shell(env, 0, REVERT);
    assert_eq!(files(env), before);
    log(env, "mail", "the end");
    shell(env, 0, "systemctl stop flow");
    log(env, "mail", "after the end");
    let count = "grep -o 'RUN [0-9]*[.]' /var/log/mail.log | sort -u -k2n | awk '{last = $2} END {print NR, last + 0}'";
    let count = shell(env, 0, &count.replace("RUN", &run));
    let (arrived, last) = count.trim().split_once(' ').expect("two numbers");
    println!("counted: {arrived} of {last} lines arrived, logged during apply and revert");
    assert!(arrived == last && last.len() > 1);

    // The kernel sees what it says.
    shell(env, 0, &on);
    let synced = syncs(env, "mail");
    println!("counted: {synced} syncs for 5 lines in two files with conf.sync=on");
    assert!(synced >= 10);
    // An administrator takes syncs out again: not loaded yet, and drift.
    shell(env, 0, &format!("echo '$ActionFileEnableSync off' >{OWN}"));
    let drift = shell(env, 1, CHECK);
    assert!(drift.contains("99-own.conf changed since"), "{drift}");
    assert!(
        drift.contains("99-own.conf:1 sets $ActionFileEnableSync"),
        "{drift}"
    );
    // What rsyslogd would refuse is not taken up by a revert.
    shell(env, 0, &format!("echo 'mail.nosuch /x' >{OWN}"));
    refused(env, 2, REVERT, "unknown priority name");
    log(env, "mail", "line meanwhile");
    shell(env, 0, &format!("rm {OWN}; {REVERT}"));
    assert_eq!(syncs(env, "mail"), 0);
    assert_eq!(files(env), before);

    // Where an administrator has syncs, `off` takes them out, and not where theirs comes later.
    let (early, restart) = ("/etc/rsyslog.d/00-a.conf", "systemctl restart rsyslog");
    shell(
        env,
        0,
        &format!("echo '$ActionFileEnableSync on' >{early}; {restart}"),
    );
    let theirs = syncs(env, "auth");
    assert!(theirs >= 10);
    shell(env, 0, &format!("{APPLY} conf.sync=off"));
    let off = syncs(env, "auth");
    println!(
        "counted: {theirs} syncs for 5 lines by an administrator's setting, and {off} with conf.sync=off"
    );
    assert_eq!(off, 0);
    shell(env, 0, &format!("{REVERT}; mv {early} {OWN}; {restart}"));
    let off = format!("{APPLY} conf.sync=off");
    refused(
        env,
        2,
        &off,
        "99-own.conf:1 sets $ActionFileEnableSync to `on`",
    );
    shell(env, 0, &format!("rm {OWN}; {restart}"));

    // With a library, and the main queue.
    shell(
        env,
        0,
        &format!("{APPLY} conf.sync=each conf.queue=direct {LIBRARY}"),
    );
    assert!(shell(env, 0, CHECK).contains("ok: executable mapping /usr/lib/refit/"));
    shell(env, 0, REVERT);
    assert_eq!(files(env), before);
    Outcome::Pass
}

/// rsyslogd is active, and writes to no file.
fn a_restart_that_stops_the_log_is_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let unit = "d=/etc/systemd/system/rsyslog.service.d";
    let hide = "mkdir -p $d; printf '[Service]\\nReadOnlyPaths=/var/log\\n' >$d/10-own.conf; systemctl daemon-reload";
    shell(env, 0, &format!("{unit}; {hide}"));
    log(env, "mail", "line before");
    let before = files(env);
    let on = format!("{APPLY} conf.sync=on");
    refused(env, 1, &on, "mail.info in /var/log/mail.log");
    assert_eq!(files(env), before);
    shell(env, 0, "systemctl is-active rsyslog");
    shell(
        env,
        0,
        &format!("{unit}; rm -r $d; systemctl daemon-reload; systemctl restart rsyslog"),
    );
    log(env, "mail", "line again");
    // What rsyslogd would refuse, and what it has not read yet.
    for (text, named) in [
        ("mail.nosuch /x", "unknown priority name"),
        (
            "mail.* stop",
            "99-own.conf changed after rsyslog.service was started",
        ),
    ] {
        shell(env, 0, &format!("echo '{text}' >{OWN}"));
        refused(env, 2, &on, named);
        log(env, "mail", &format!("line {}", text.len()));
    }
    shell(env, 0, &format!("rm {OWN}"));
    Outcome::Pass
}
