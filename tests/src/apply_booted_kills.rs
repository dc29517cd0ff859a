//! kill -9 of `refit apply`, `confirm` and `revert` on a Debian that systemd boots, where services run: before and
//! after each system call that changes a file, and each that starts a process (systemctl, postconf, psql …). That
//! process goes on without refit.

use crate::live::Live;
use crate::live_kills::{Subject, sweep, sweep_of_confirm, sweep_of_timer};
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::Calls;
use crate::test;
use crate::test_env::{TestEnv, expect_code, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_restart_goes_on_with_the_lock_of_a_killed_refit)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(killed_while_a_unit_is_applied_until_confirmed)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_unit_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_unit_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_unit_takes_itself_back)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_launcher_is_applied_until_confirmed)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_launcher_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_script_before_a_command_is_applied)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_script_before_a_command_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_wrapper_is_applied)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_a_wrapper_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_sysctls_are_applied)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_sysctls_are_reverted)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_sysctls_are_confirmed)
        .alone()
        .when_named()
        .limit_seconds(900),
];

/// Its files lie below /run, and those of a timer with them.
pub const UNIT: Subject = Subject {
    service: "cron",
    settings: &["malloc=jemalloc"],
    within: Some("1h"),
    files: &[
        "/etc/systemd/system/cron.service.d/90-refit.conf",
        "/run/systemd/system/cron.service.d/90-refit.conf",
        "/run/systemd/system/refit-undo-cron.service",
    ],
    runs: "systemctl -q is-active cron",
    before: "systemctl -q is-active cron && \
             ! grep /usr/lib/refit/ /proc/$(systemctl show -p MainPID --value cron)/maps",
    with: "grep -q r-xp.*/usr/lib/refit/.*jemalloc /proc/$(systemctl show -p MainPID --value cron)/maps",
};

fn killed_while_a_unit_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &UNIT, "apply", Calls::Files)
}

fn killed_while_a_unit_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), &UNIT, Calls::Files)
}

fn killed_while_a_unit_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &UNIT, "revert", Calls::Files)
}

fn killed_while_a_unit_takes_itself_back(env: &TestEnv) -> Outcome {
    sweep_of_timer(&Live::up(env), &UNIT, Calls::Files)
}

/// refit is killed while systemd starts the service again: `status` waits for that, and then reports it.
fn a_restart_goes_on_with_the_lock_of_a_killed_refit(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell(UNIT.before);
    live.shell(
        "d=/etc/systemd/system/cron.service.d; mkdir $d && cat >$d/10-slow.conf <<'END' && systemctl daemon-reload\n\
         [Service]\n\
         TimeoutStartSec=infinity\n\
         ExecStartPre=/bin/sh -c 'until test -e /run/go; do sleep 0.1; done'\n\
         END",
    );
    let before = live.files();
    let mut refit = live.start(&["apply", "--yes", "cron", "malloc=jemalloc"]);
    wait_until("systemd starts cron", || {
        live.holds("test $(systemctl show -p SubState --value cron) = start-pre")
    });
    refit.kill().expect("it waits for systemctl");
    refit.wait().expect("it is ours");
    live.shell("! flock -n /var/lib/refit/changes/lock true");
    let mut status = live.start(&["status", "--exit-code", "cron"]);
    let its_files = format!("/proc/{}/fd", status.id());
    wait_until("status asks for the lock", || {
        let opened = std::fs::read_dir(&its_files)
            .into_iter()
            .flatten()
            .flatten();
        let links = opened.filter_map(|file| std::fs::read_link(file.path()).ok());
        let mut links = links.map(|link| link.ends_with("var/lib/refit/changes/lock"));
        links.any(|is_lock| is_lock)
    });
    assert!(status.try_wait().expect("it is ours").is_none());
    live.shell("touch /run/go");
    let output = status.wait_with_output().expect("it is ours");
    expect_code(&output, 1);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.contains("interrupted while it was applied"),
        "{printed}"
    );
    // It is the process of the restart that status looked at.
    assert!(
        printed.contains("ok: executable mapping /usr/lib/refit/"),
        "{printed}"
    );
    expect_code(&live.refit(&["revert", "cron"]), 0);
    assert_eq!(live.files(), before);
    live.shell(UNIT.before);
    live.shell("rm -r /etc/systemd/system/cron.service.d /run/go && systemctl daemon-reload");
    Outcome::Pass
}

/// In the kernel at once, without a process that would be restarted.
const SYSCTL: Subject = Subject {
    service: "sysctl",
    settings: &["conf.net.core.somaxconn=300"],
    within: None,
    files: &["/etc/sysctl.d/90-refit.conf"],
    runs: "true",
    before: "test $(sysctl -n net.core.somaxconn) = 4096",
    with: "test $(sysctl -n net.core.somaxconn) = 300",
};

fn killed_while_sysctls_are_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &SYSCTL, "apply", Calls::FilesAndStarts)
}

fn killed_while_sysctls_are_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &SYSCTL, "revert", Calls::FilesAndStarts)
}

/// Its file lies in /run until then, where nothing reads it at a boot.
const SYSCTL_UNTIL_CONFIRMED: Subject = Subject {
    within: Some("1h"),
    files: &["/run/sysctl.d/90-refit.conf", "/etc/sysctl.d/90-refit.conf"],
    ..SYSCTL
};

fn killed_while_sysctls_are_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(
        &Live::up(env),
        &SYSCTL_UNTIL_CONFIRMED,
        Calls::FilesAndStarts,
    )
}

/// A program that another one takes the place of, which starts it.
const WRAPPER: Subject = Subject {
    service: "wrapper:/usr/local/bin/own",
    settings: &["malloc=jemalloc"],
    within: None,
    files: &["/usr/local/bin/own"],
    runs: "own /proc/self/maps | grep -q 'r-xp.*/bin/own'",
    before: "cmp /usr/local/bin/own /usr/bin/cat && ! ls /usr/local/bin/own.refit-real",
    with: "own /proc/self/maps | grep -q r-xp.*/usr/lib/refit/",
};

fn with_command<'a>(env: &'a TestEnv) -> Live<'a> {
    let live = Live::up(env);
    live.shell("cp /usr/bin/cat /usr/local/bin/own");
    live
}

fn killed_while_a_wrapper_is_applied(env: &TestEnv) -> Outcome {
    sweep(&with_command(env), &WRAPPER, "apply", Calls::FilesAndStarts)
}

fn killed_while_a_wrapper_is_reverted(env: &TestEnv) -> Outcome {
    sweep(
        &with_command(env),
        &WRAPPER,
        "revert",
        Calls::FilesAndStarts,
    )
}

/// A script that stands before the program in PATH.
const SCRIPT: Subject = Subject {
    service: "wrapper:/usr/local/bin/printenv",
    settings: &["env.WORD=kept"],
    within: None,
    files: &["/usr/local/bin/printenv"],
    runs: "printenv PATH",
    before: "! ls /usr/local/bin/printenv && ! printenv WORD",
    with: "test $(printenv WORD) = kept",
};

fn killed_while_a_script_before_a_command_is_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &SCRIPT, "apply", Calls::FilesAndStarts)
}

fn killed_while_a_script_before_a_command_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &SCRIPT, "revert", Calls::FilesAndStarts)
}

/// A program of refit's starts the unit's own, and a copy of refit takes that back.
const LAUNCHED: Subject = Subject {
    service: "cron",
    settings: &["thp=never"],
    within: Some("1h"),
    files: UNIT.files,
    runs: "systemctl -q is-active cron",
    before: "grep -q 'THP_enabled:.1' /proc/$(systemctl show -p MainPID --value cron)/status",
    with: "grep -q 'THP_enabled:.0' /proc/$(systemctl show -p MainPID --value cron)/status",
};

fn killed_while_a_launcher_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &LAUNCHED, "apply", Calls::Files)
}

fn killed_while_a_launcher_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), &LAUNCHED, Calls::Files)
}
