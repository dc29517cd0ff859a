//! kill -9 before and after each system call of `refit apply`, `confirm` and `revert` that changes a file.

mod sweep;

use self::sweep::{Subject, sweep, sweep_of_confirm, sweep_of_second};
use crate::apply::{DROP_IN, SETTINGS, UNTIL_CONFIRMED, tree};
use crate::apply_mariadb;
use crate::apply_postfix;
use crate::apply_postgresql;
use crate::apply_redis;
use crate::apply_rsyslog;
use crate::apply_sysctl;
use crate::apply_wrapper;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(killed_while_it_is_applied).limit_seconds(300),
    test!(killed_while_it_is_applied_until_confirmed).limit_seconds(300),
    test!(killed_while_it_is_confirmed).limit_seconds(300),
    test!(killed_while_it_is_reverted).limit_seconds(300),
    test!(killed_while_mariadb_is_changed).limit_seconds(300),
    test!(killed_while_postfix_is_changed).limit_seconds(300),
    test!(killed_while_postfix_is_reverted).limit_seconds(300),
    test!(killed_while_a_postfix_daemon_is_changed).limit_seconds(300),
    test!(killed_while_a_postfix_daemon_is_reverted).limit_seconds(300),
    test!(killed_while_a_daemon_without_syncs_is_changed).limit_seconds(300),
    test!(killed_while_a_daemon_without_syncs_is_reverted).limit_seconds(300),
    test!(killed_while_redis_is_changed).limit_seconds(300),
    test!(killed_while_redis_is_reverted).limit_seconds(300),
    test!(killed_while_a_command_moves).limit_seconds(300),
    test!(killed_while_a_command_moves_back).limit_seconds(300),
    test!(killed_while_a_command_is_wrapped).limit_seconds(300),
    test!(killed_while_a_wrapper_is_removed).limit_seconds(300),
    test!(killed_while_rsyslog_is_changed).limit_seconds(300),
    test!(killed_while_rsyslog_is_reverted).limit_seconds(300),
    test!(killed_while_sysctls_are_set).limit_seconds(300),
    test!(killed_while_a_cluster_is_changed).limit_seconds(300),
    test!(killed_while_a_cluster_is_reverted).limit_seconds(300),
    test!(killed_while_a_cluster_is_changed_until_confirmed).limit_seconds(300),
    test!(killed_while_a_cluster_is_confirmed).limit_seconds(300),
    test!(killed_while_a_unit_gets_more).limit_seconds(300),
    test!(killed_while_a_daemon_gets_more).limit_seconds(300),
    test!(killed_while_a_moved_command_gets_more).limit_seconds(300),
    test!(killed_while_a_setting_of_redis_goes).limit_seconds(300),
];

const APPLY: [&str; 4] = ["--yes", "a", SETTINGS[0], SETTINGS[1]];

const UNIT: Subject = Subject {
    tree,
    apply: &APPLY,
    service: "a",
    files: &[DROP_IN],
    always: |_| (),
};

fn killed_while_it_is_applied(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &UNIT)
}

fn killed_while_it_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    let subject = Subject {
        apply: &UNTIL_CONFIRMED,
        ..UNIT
    };
    sweep(env, "apply", &subject)
}

fn killed_while_it_is_confirmed(env: &TestEnv) -> Outcome {
    let subject = Subject {
        apply: &UNTIL_CONFIRMED,
        ..UNIT
    };
    sweep_of_confirm(env, &subject)
}

fn killed_while_it_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &UNIT)
}

/// Two files, of which one was there, with a mode of its own.
const CLUSTER: Subject = Subject {
    tree: apply_postgresql::tree,
    apply: &apply_postgresql::APPLY,
    service: "postgresql",
    files: &[apply_postgresql::ENVIRONMENT, apply_postgresql::CONF],
    always: |_| (),
};

/// The administrator's file, an included one, and a drop-in.
const REDIS: Subject = Subject {
    tree: apply_redis::tree,
    apply: &apply_redis::APPLY,
    service: "redis-server@one",
    files: &[apply_redis::OWN, apply_redis::CONFIG, apply_redis::UNIT],
    always: |_| (),
};

fn killed_while_redis_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &REDIS)
}

fn killed_while_redis_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &REDIS)
}

/// A file and a drop-in.
const MARIADB: Subject = Subject {
    tree: apply_mariadb::tree,
    apply: &apply_mariadb::APPLY,
    service: "mariadb",
    files: &[apply_mariadb::FILE, apply_mariadb::UNIT],
    always: |_| (),
};

fn killed_while_mariadb_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &MARIADB)
}

/// A file of refit's own, and two of others.
const RSYSLOG: Subject = Subject {
    tree: apply_rsyslog::tree,
    apply: &apply_rsyslog::APPLY,
    service: "rsyslog",
    files: &[
        apply_rsyslog::OWN,
        apply_rsyslog::CONFIG,
        apply_rsyslog::MORE,
    ],
    always: |_| (),
};

fn killed_while_rsyslog_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &RSYSLOG)
}

fn killed_while_rsyslog_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &RSYSLOG)
}

/// Files of other programs that are read, and none that is edited.
const SYSCTL: Subject = Subject {
    tree: apply_sysctl::tree,
    apply: &apply_sysctl::APPLY,
    service: "sysctl",
    files: &[apply_sysctl::FILE],
    always: |_| (),
};

fn killed_while_sysctls_are_set(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &SYSCTL)
}

fn killed_while_a_cluster_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &CLUSTER)
}

fn killed_while_a_cluster_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &CLUSTER)
}

/// A file with a mode of its own, and a library.
const POSTFIX: Subject = Subject {
    tree: apply_postfix::tree,
    apply: &apply_postfix::ALL,
    service: "postfix",
    files: &[apply_postfix::MAIN],
    always: |_| (),
};

/// A file, a library and a script, which has to be there as long as the file names it.
const POSTFIX_DAEMON: Subject = Subject {
    tree: apply_postfix::tree,
    apply: &apply_postfix::ONE,
    service: "postfix/cleanup",
    files: &[apply_postfix::MASTER],
    always: apply_postfix::script_is_there,
};

fn killed_while_postfix_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &POSTFIX)
}

fn killed_while_postfix_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &POSTFIX)
}

fn killed_while_a_postfix_daemon_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &POSTFIX_DAEMON)
}

/// With a launcher between the script and the daemon.
const DAEMON_WITHOUT_SYNCS: Subject = Subject {
    apply: &apply_postfix::WITHOUT_SYNCS,
    ..POSTFIX_DAEMON
};

fn killed_while_a_daemon_without_syncs_is_changed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &DAEMON_WITHOUT_SYNCS)
}

fn killed_while_a_daemon_without_syncs_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &DAEMON_WITHOUT_SYNCS)
}

fn killed_while_a_postfix_daemon_is_reverted(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &POSTFIX_DAEMON)
}

/// Its files stay where they are: a unit of the next start takes them back.
const CLUSTER_UNTIL_CONFIRMED: Subject = Subject {
    apply: &apply_postgresql::UNTIL_CONFIRMED,
    ..CLUSTER
};

fn killed_while_a_cluster_is_changed_until_confirmed(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &CLUSTER_UNTIL_CONFIRMED)
}

fn killed_while_a_cluster_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(env, &CLUSTER_UNTIL_CONFIRMED)
}

/// A program, which has to be there by its name at every point.
const MOVED: Subject = Subject {
    tree: apply_wrapper::tree,
    apply: &apply_wrapper::IN_PLACE,
    service: apply_wrapper::MOVED,
    files: &[apply_wrapper::PLACE],
    always: apply_wrapper::command_is_there,
};

/// A script that stands before a program.
const SHADOW: Subject = Subject {
    apply: &apply_wrapper::IN_PATH,
    service: apply_wrapper::BEFORE,
    files: &[apply_wrapper::SHADOW],
    ..MOVED
};

fn killed_while_a_command_moves(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &MOVED)
}

fn killed_while_a_command_moves_back(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &MOVED)
}

fn killed_while_a_command_is_wrapped(env: &TestEnv) -> Outcome {
    sweep(env, "apply", &SHADOW)
}

fn killed_while_a_wrapper_is_removed(env: &TestEnv) -> Outcome {
    sweep(env, "revert", &SHADOW)
}

/// A program of refit's is placed beside the library of the first one.
fn killed_while_a_unit_gets_more(env: &TestEnv) -> Outcome {
    let subject = Subject {
        apply: &["--yes", "a", "thp=never", "env.WORD=2"],
        ..UNIT
    };
    sweep_of_second(env, "apply", &subject, &APPLY)
}

/// Another script takes the place of the first one.
fn killed_while_a_daemon_gets_more(env: &TestEnv) -> Outcome {
    let subject = Subject {
        apply: &["--yes", "postfix/cleanup", "env.OTHER=2"],
        ..POSTFIX_DAEMON
    };
    sweep_of_second(env, "apply", &subject, &apply_postfix::ONE)
}

fn killed_while_a_moved_command_gets_more(env: &TestEnv) -> Outcome {
    let subject = Subject {
        apply: &["--yes", apply_wrapper::IN_PLACE[1], "env.OTHER=2"],
        ..MOVED
    };
    sweep_of_second(env, "apply", &subject, &apply_wrapper::IN_PLACE)
}

/// The file that redis.conf includes goes after the line that includes it: without it redis does not start.
fn killed_while_a_setting_of_redis_goes(env: &TestEnv) -> Outcome {
    let subject = Subject {
        apply: &["redis-server@one", "conf.maxmemory"],
        always: apply_redis::what_is_included_is_there,
        ..REDIS
    };
    sweep_of_second(env, "revert", &subject, &apply_redis::APPLY)
}
