//! Postfix on a Debian that systemd boots: mail is delivered before, with and after each change.

use crate::apply_booted::{
    LIBRARY, WAIT_FOR, booted, debian, expect_same_files, files, inside, postfix, up, wait_inside,
};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(all_daemons_are_changed_verified_and_taken_back)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(one_daemon_is_changed_verified_and_taken_back)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(one_daemon_without_syncs_is_verified_and_taken_back)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(two_daemons_have_a_change_each)
        .alone()
        .when_named()
        .limit_seconds(600),
];

/// The daemons that execute the library, by name, of those that run.
fn loaded(env: &TestEnv) -> String {
    let list = "for pid in $(pgrep -P $(cat /var/spool/postfix/pid/master.pid)); do \
                grep -q r-xp.*/usr/lib/refit/ /proc/$pid/maps && basename $(readlink /proc/$pid/exe); \
                done | sort -u | tr '\\n' ' '";
    inside(env, 0, &["sh", "-c", list])
}

/// Sends a mail as a user, and waits until it is delivered.
pub fn mail(env: &TestEnv, subject: &str) {
    let send = "printf 'Subject: %s\\n\\nx\\n' $0 | su nobody -s /bin/sh -c 'sendmail -i root'";
    let printed = inside(env, 0, &["sh", "-c", &format!("{send} 2>&1"), subject]);
    assert_eq!(printed, "", "sendmail prints nothing");
    wait_inside(
        env,
        &format!("grep -q 'Subject: {subject}$' /var/mail/root"),
    );
}

fn all_daemons_are_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    inside(env, 0, &["systemctl", "restart", postfix(env)]);
    mail(env, "before-all");
    let before = files(env);
    let check = ["refit", "status", "--exit-code", "postfix"];
    let apply = [
        "refit",
        "apply",
        "--yes",
        "postfix",
        LIBRARY,
        "env.WORD=a, $b",
        "conf.maximal_queue_lifetime=2d",
    ];
    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    let status = inside(env, 0, &check);
    for line in [
        "ok: executable mapping /usr/lib/refit/",
        "ok: variable WORD=a, $b",
        "ok: postconf -h maximal_queue_lifetime 2d",
        "ok: daemons that do not start none",
    ] {
        assert!(status.contains(line), "{status}");
    }
    mail(env, "with-all");
    assert_eq!(loaded(env), "cleanup local pickup qmgr trivial-rewrite ");
    inside(env, 0, &check);
    let printed = inside(env, 0, &["sh", "-c", "postconf -n 2>&1 >/dev/null"]);
    assert_eq!(printed, "", "no warning");
    // A package's question, or an administrator.
    inside(env, 0, &["cp", "-p", "/etc/postfix/main.cf", "/root/kept"]);
    inside(env, 0, &["postconf", "-e", "maximal_queue_lifetime=3d"]);
    let drift = inside(env, 1, &check);
    assert!(drift.contains("expected 2d, found 3d"), "{drift}");
    inside(env, 3, &["refit", "revert", "postfix"]);
    inside(env, 0, &["mv", "/root/kept", "/etc/postfix/main.cf"]);
    inside(env, 0, &["refit", "revert", "postfix"]);
    assert_eq!(files(env), before);
    mail(env, "after-all");
    assert_eq!(loaded(env), "");

    // Without variables a reload is enough: master is the same.
    let master = inside(env, 0, &["cat", "/var/spool/postfix/pid/master.pid"]);
    let apply = [
        "refit",
        "apply",
        "--yes",
        "postfix",
        "conf.bounce_queue_lifetime=2d",
    ];
    inside(env, 0, &apply);
    inside(env, 0, &check);
    mail(env, "with-conf");
    inside(env, 0, &["refit", "revert", "postfix"]);
    assert_eq!(
        inside(env, 0, &["cat", "/var/spool/postfix/pid/master.pid"]),
        master
    );
    assert_eq!(files(env), before);

    // What Postfix refuses, or prints a warning for, is refused before anything is edited.
    for (setting, named) in [
        ("conf.nosuch=1", "unused parameter: nosuch=1"),
        ("conf.message_size_limit=abc", "its default is 10240000"),
        ("conf.smtpd_error_sleep_time=x", "its default is 1s"),
        ("conf.inet_protocols=ipv5", "unknown inet_protocols value"),
        ("conf.queue_directory=/tmp", "finds its files by it"),
    ] {
        let words = ["x", "refit", "apply", "--yes", "postfix", setting];
        expect_message(&booted(env, &words), 2, named);
    }
    // A value that one daemon alone refuses is seen when this daemon is needed.
    let apply = [
        "refit",
        "apply",
        "--yes",
        "postfix",
        "conf.smtpd_timeout=abc",
    ];
    inside(env, 0, &apply);
    inside(env, 0, &check);
    let connect =
        "exec 3<>/dev/tcp/127.0.0.1/25; wait_for 'drift' '! refit status --exit-code postfix'";
    let connect = format!("{WAIT_FOR} {connect}");
    let drift = inside(env, 0, &["bash", "-c", &connect]);
    assert!(drift.contains("sbin/smtpd: bad command startup"), "{drift}");
    inside(env, 0, &["refit", "revert", "postfix"]);
    assert_eq!(files(env), before);
    inside(env, 0, &["sh", "-c", "! ls -d /run/refit-postfix-*"]);
    Outcome::Pass
}

fn one_daemon_is_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    inside(env, 0, &["systemctl", "restart", postfix(env)]);
    mail(env, "before-one");
    let before = files(env);
    let check = ["refit", "status", "--exit-code", "postfix/cleanup"];
    let revert = ["refit", "revert", "postfix/cleanup"];
    let apply = [
        "refit",
        "apply",
        "--yes",
        "postfix/cleanup",
        LIBRARY,
        "env.WORD=it's",
    ];
    let master = inside(env, 0, &["cat", "/var/spool/postfix/pid/master.pid"]);
    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    // refit itself let it start, and left no mail.
    let status = inside(env, 0, &check);
    for line in [
        "ok: executable mapping /usr/lib/refit/",
        "ok: variable WORD=it's",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let left = "find /var/spool/postfix/incoming /var/spool/postfix/maildrop -type f; mailq";
    let none = "Mail queue is empty\n";
    assert_eq!(inside(env, 0, &["sh", "-c", left]), none);
    mail(env, "with-one");
    assert_eq!(loaded(env), "cleanup ");
    let is_chrooted =
        "test $(readlink /proc/$(pgrep -x cleanup | head -1)/root) = /var/spool/postfix";
    inside(env, 0, &["sh", "-c", is_chrooted]);
    // Where none runs, nothing is claimed.
    inside(env, 0, &["pkill", "-x", "cleanup"]);
    wait_inside(env, "! pgrep -x cleanup");
    let status = inside(env, 0, &check);
    assert!(
        status.contains("unknown: executable mapping: not observed"),
        "{status}"
    );
    // A script that is gone: mail is held, and status reports both.
    let script = inside(env, 0, &["sh", "-c", "echo /usr/lib/refit/*/cleanup"]);
    let script = script.trim();
    inside(env, 0, &["mv", script, "/root/kept"]);
    let send = "printf 'Subject: held\\n\\nx\\n' | sendmail root";
    inside(env, 0, &["sh", "-c", send]);
    let wait = "wait_for 'a bad start' \"refit status postfix/cleanup | grep 'bad command startup'\"; \
                refit status --exit-code postfix/cleanup";
    let wait = format!("{WAIT_FOR} {wait}");
    let status = inside(env, 1, &["sh", "-c", &wait]);
    assert!(
        status.contains("cleanup: expected as applied, found not there"),
        "{status}"
    );
    // What is taken back is so at once: not after the minute that master waits.
    inside(env, 0, &revert);
    let lines = |all: &str| all.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&files(env)), lines(&before));
    wait_inside(env, "grep -q 'Subject: held$' /var/mail/root");
    mail(env, "after-one");
    assert_eq!(loaded(env), "");
    inside(env, 0, &["rm", "/root/kept"]);

    // Reached by a reload, not by a restart.
    inside(env, 0, &["systemctl", "is-active", postfix(env)]);
    let now = inside(env, 0, &["cat", "/var/spool/postfix/pid/master.pid"]);
    assert_ne!(now, master, "master was restarted, since it waited");
    inside(env, 0, &apply);
    mail(env, "with-another");
    inside(env, 0, &revert);
    mail(env, "after-another");
    assert_eq!(
        inside(env, 0, &["cat", "/var/spool/postfix/pid/master.pid"]),
        now
    );
    assert_eq!(files(env), before);

    // Where the script cannot be executed, all is taken back.
    let unit = postfix(env);
    let dir = &*format!("/etc/systemd/system/{unit}.service.d");
    let hides = "mkdir -p $0 && printf '[Service]\\nInaccessiblePaths=-/usr/lib/refit\\n' >$0/10-own.conf && \
                 mkdir -p /usr/lib/refit && systemctl daemon-reload && systemctl restart $1";
    inside(env, 0, &["sh", "-c", hides, dir, unit]);
    let hidden = files(env);
    let words = [&["x"], &apply[..]].concat();
    expect_message(&booted(env, &words), 1, "all was taken back");
    mail(env, "not-applied");
    let shows = "rm -r $0; systemctl daemon-reload; systemctl restart $1";
    assert!(!files(env).contains("/cleanup") && hidden.contains("10-own"));
    inside(env, 0, &["sh", "-c", shows, dir, unit]);
    mail(env, "in-the-end");
    Outcome::Pass
}

/// How often cleanup asks the machine's file system for durability while a mail goes through: by the kernel's tracepoint, in
/// a buffer of its own, since the container has no programs for it.
fn durable_calls(env: &TestEnv, subject: &str) -> usize {
    let tracing = |script: &str| {
        let script = format!("mount -t tracefs none /mnt && cd /mnt/instances && {script}");
        let output = env.run(&["unshare", "--mount", "sh", "-c", &script]);
        expect_code(&output, 0);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let event = "events/ext4/ext4_sync_file_enter/enable";
    tracing(&format!("mkdir refit-test && echo 1 >refit-test/{event}"));
    mail(env, subject);
    let read = format!("echo 0 >refit-test/{event}; cat refit-test/trace; rmdir refit-test");
    let trace = tracing(&read);
    let of_cleanup = |line: &&str| line.trim_start().starts_with("cleanup-");
    trace.lines().filter(of_cleanup).count()
}

/// Words that apply a setting of syncs to Postfix.
fn without_syncs(setting: &str) -> [&str; 7] {
    [
        "refit",
        "apply",
        "--yes",
        "postfix",
        setting,
        "--accept=loses-on-crash",
        "--no-evidence",
    ]
}

/// The filter is installed as root, before the daemon becomes another user: what is verified is one filter more than
/// master has, which runs beneath the container's. That no call is left, the file system tells.
fn one_daemon_without_syncs_is_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let unit = postfix(env);
    inside(env, 0, &["systemctl", "restart", unit]);
    let untouched = files(env);
    // Debian 13's unit takes the right to a filter away, and its cleanup needs no_new_privs.
    no_syncs_are_left(env, debian(env) != 12);
    expect_same_files(env, &untouched);

    // The other way round, as an administrator may have it.
    let dir = format!("/etc/systemd/system/{unit}.service.d");
    let capabilities = match debian(env) {
        12 => "~CAP_SYS_ADMIN",
        _ => "CAP_SYS_ADMIN",
    };
    let edit = format!(
        "mkdir -p $0 && printf '[Service]\\nCapabilityBoundingSet={capabilities}\\n' >$0/10-own.conf && \
         systemctl daemon-reload && systemctl restart {unit}"
    );
    inside(env, 0, &["sh", "-c", &edit, &dir]);
    no_syncs_are_left(env, debian(env) == 12);
    inside(env, 0, &["rm", "-r", &dir]);
    inside(env, 0, &["systemctl", "daemon-reload"]);
    inside(env, 0, &["systemctl", "restart", unit]);
    expect_same_files(env, &untouched);
    Outcome::Pass
}

/// cleanup syncs each mail before the change and after it, and none with it. Where it needs no_new_privs, a daemon that
/// must not have it and a Postfix that does not run are tried first.
fn no_syncs_are_left(env: &TestEnv, no_new_privs: bool) {
    let unit = postfix(env);
    let apply = without_syncs("sync@exe:cleanup=off");
    let check = ["refit", "status", "--exit-code", "postfix/cleanup"];
    let revert = ["refit", "revert", "postfix/cleanup"];
    let before = files(env);
    if no_new_privs {
        // It starts programs, which may be set-id.
        let local = without_syncs("sync@exe:local=off");
        let refused = booted(env, &[&["x"], &local[..]].concat());
        expect_message(&refused, 2, "master has no CAP_SYS_ADMIN");
        assert_eq!(files(env), before);
        // A Postfix that does not run is not asked: it starts, delivers mail by real calls, and status says so.
        inside(env, 0, &["systemctl", "stop", unit]);
        inside(env, 0, &apply);
        inside(env, 0, &["systemctl", "start", unit]);
        mail(env, "without-right");
        let real = inside(env, 1, &check);
        assert!(
            real.contains(
                "DIFFERS: /proc/PID/status: expected Seccomp_filters: one more than master's"
            ),
            "{real}"
        );
        inside(env, 0, &revert);
        expect_same_files(env, &before);
    }

    let real = durable_calls(env, "synced");
    assert!(real > 0, "cleanup syncs each mail");
    let plan = inside(env, 2, &["refit", "plan", "postfix/cleanup", "sync=off"]);
    assert!(plan.contains("not covered: msync"), "{plan}");
    let says = plan.contains("cleanup gets no_new_privs, since");
    assert_eq!(says, no_new_privs, "{plan}");
    let bare = &[
        "x",
        "refit",
        "apply",
        "--yes",
        "postfix/cleanup",
        "sync=off",
    ];
    expect_message(&booted(env, bare), 2, "--accept loses-on-crash");
    assert_eq!(files(env), before);
    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    let status = inside(env, 0, &check);
    let variable = match no_new_privs {
        true => "ok: variable REFIT_APPLIED=no-new-privs sync=off",
        false => "ok: variable REFIT_APPLIED=sync=off",
    };
    for line in [
        variable,
        "ok: /proc/PID/status Seccomp_filters: one more than master's",
        "loses-on-crash, without evidence",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let says = status.contains("ok: /proc/PID/status NoNewPrivs: 1");
    assert_eq!(says, no_new_privs, "{status}");
    assert_eq!(durable_calls(env, "not-synced"), 0);
    let is_as_before = "pid=$(pgrep -x cleanup | head -1); test $(readlink /proc/$pid/root) = /var/spool/postfix && \
                        test $(stat -c %U /proc/$pid) = postfix && grep NoNewPrivs /proc/$pid/status";
    let rights = inside(env, 0, &["sh", "-c", is_as_before]);
    assert_eq!(rights, format!("NoNewPrivs:\t{}\n", u8::from(no_new_privs)));
    inside(env, 0, &check);
    // The others are as before.
    let of_each = "for pid in $(pgrep -P $(cat /var/spool/postfix/pid/master.pid)); do \
                   echo $(basename $(readlink /proc/$pid/exe)) \
                        $(grep -E 'Seccomp_filters|NoNewPrivs' /proc/$pid/status); done | sort -u";
    println!(
        "counted: {}",
        inside(env, 0, &["sh", "-c", of_each]).replace('\n', "; ")
    );

    // An administrator edits the line.
    inside(
        env,
        0,
        &["cp", "-p", "/etc/postfix/master.cf", "/root/kept"],
    );
    let edit = "sed -i 's,/refit/[^ ]*/cleanup$,& -v,' /etc/postfix/master.cf && postfix reload";
    inside(env, 0, &["sh", "-c", edit]);
    inside(env, 1, &check);
    inside(env, 3, &revert);
    inside(env, 0, &["mv", "/root/kept", "/etc/postfix/master.cf"]);
    inside(env, 0, &revert);
    expect_same_files(env, &before);
    let again = durable_calls(env, "synced-again");
    assert!(again > 0, "cleanup syncs again");
    println!("counted: durable calls of cleanup for a mail: {real}, then 0, then {again}");
}

/// Both are lines of one file; the one that came first goes first.
fn two_daemons_have_a_change_each(env: &TestEnv) -> Outcome {
    const DAEMONS: [&str; 2] = ["postfix/cleanup", "postfix/qmgr"];
    up(env);
    inside(env, 0, &["systemctl", "restart", postfix(env)]);
    mail(env, "before-two");
    let before = files(env);
    for daemon in DAEMONS {
        let apply = ["refit", "apply", "--yes", daemon, LIBRARY, "env.WORD=2"];
        inside(env, 0, &apply);
    }
    mail(env, "with-two");
    assert_eq!(loaded(env), "cleanup qmgr ");
    inside(env, 0, &["refit", "status", "--exit-code"]);
    inside(env, 0, &["refit", "revert", DAEMONS[0]]);
    mail(env, "with-qmgr");
    assert_eq!(loaded(env), "qmgr ");
    inside(env, 0, &["refit", "status", "--exit-code"]);
    inside(env, 0, &["refit", "revert", DAEMONS[1]]);
    mail(env, "after-two");
    assert_eq!(loaded(env), "");
    assert_eq!(files(env), before);
    Outcome::Pass
}
