//! kill -9 of `refit apply` and `revert` on a Debian 12 that systemd boots, where services run: before and
//! after each system call that changes a file, and each that starts a process (systemctl). That
//! process goes on without refit.

use crate::live_kills::{Live, Subject, sweep};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(killed_while_sysctls_are_applied)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(killed_while_sysctls_are_reverted)
        .alone()
        .when_named()
        .limit_seconds(900),
];

/// In the kernel at once, without a process that would be restarted.
const SYSCTL: Subject = Subject {
    service: "sysctl",
    settings: &["conf.net.core.somaxconn=300"],
    files: &["/etc/sysctl.d/90-refit.conf"],
    before: "test $(sysctl -n net.core.somaxconn) = 4096",
    with: "test $(sysctl -n net.core.somaxconn) = 300",
};

fn killed_while_sysctls_are_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &SYSCTL, "apply")
}

fn killed_while_sysctls_are_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &SYSCTL, "revert")
}
