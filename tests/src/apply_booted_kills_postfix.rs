//! As `apply_booted_kills`, of Postfix: mail is delivered after each kill.

use crate::live::Live;
use crate::live_kills::{Subject, sweep, sweep_of_confirm, sweep_of_timer};
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::Calls;
use crate::test;
use crate::test_env::TestEnv;

/// Sends a mail, and waits until it is delivered.
macro_rules! mail {
    () => {
        "n=mail-$$-$(date +%s%N); \
         printf 'Subject: %s\\n\\nx\\n' $n | \
             setpriv --reuid=65534 --regid=65534 --clear-groups sendmail -i root; \
         for i in $(seq 900); do grep -qs \"Subject: $n\" /var/mail/root && exit 0; sleep 0.1; done; exit 1"
    };
}

pub const TESTS: &[Test] = &[
    test!(killed_while_postfix_is_applied_until_confirmed)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_postfix_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_postfix_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_postfix_takes_itself_back)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_a_daemon_of_postfix_is_applied)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_a_daemon_of_postfix_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_a_daemon_of_postfix_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(3600),
];

/// By a restart; a mail is delivered each time.
const POSTFIX: Subject = Subject {
    service: "postfix",
    settings: &["malloc=jemalloc", "conf.maximal_queue_lifetime=2d"],
    within: None,
    files: &["/etc/postfix/main.cf"],
    runs: "postfix status",
    // A plan removes the directory of the refit that was killed: an apply that is not killed makes no more calls than one
    // that strace counted.
    before: concat!(
        "test $(postconf -h maximal_queue_lifetime) = 5d && refit plan postfix conf.maximal_queue_lifetime=2d && ",
        mail!()
    ),
    with: concat!(
        "test $(postconf -h maximal_queue_lifetime) = 2d && ",
        mail!()
    ),
};

fn killed_while_postfix_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    sweep(
        &Live::up(env),
        &POSTFIX_UNTIL_CONFIRMED,
        "apply",
        Calls::Files,
    )
}

fn killed_while_postfix_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &POSTFIX, "revert", Calls::Files)
}

/// main.cf is as it will stay, and a unit of the next start takes it back too.
const POSTFIX_UNTIL_CONFIRMED: Subject = Subject {
    within: Some("1h"),
    ..POSTFIX
};

fn killed_while_postfix_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), &POSTFIX_UNTIL_CONFIRMED, Calls::Files)
}

fn killed_while_postfix_takes_itself_back(env: &TestEnv) -> Outcome {
    sweep_of_timer(&Live::up(env), &POSTFIX_UNTIL_CONFIRMED, Calls::Files)
}

/// By a reload. The master starts a new cleanup, by the script of refit's.
const DAEMON: Subject = Subject {
    service: "postfix/cleanup",
    settings: &["malloc=jemalloc"],
    within: None,
    files: &["/etc/postfix/master.cf"],
    runs: "postfix status",
    before: concat!("! grep refit /etc/postfix/master.cf && ", mail!()),
    with: concat!(
        "grep -q r-xp.*/usr/lib/refit/ /proc/$(pgrep -n -x cleanup)/maps && ",
        mail!()
    ),
};

fn killed_while_a_daemon_of_postfix_is_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &DAEMON, "apply", Calls::Files)
}

fn killed_while_a_daemon_of_postfix_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &DAEMON, "revert", Calls::Files)
}

/// Its line lies in master.cf from the beginning, and a unit of the next start takes it back.
const DAEMON_UNTIL_CONFIRMED: Subject = Subject {
    within: Some("1h"),
    ..DAEMON
};

fn killed_while_a_daemon_of_postfix_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), &DAEMON_UNTIL_CONFIRMED, Calls::Files)
}
