//! A second change of a service that has one, on a Debian that systemd boots: the running service has both, what fails
//! leaves the first one in effect, and each goes back.

use crate::apply_booted::{LIBRARY, booted, expect_same_files, files, inside, up, wait_inside};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message};

pub const TESTS: &[Test] = &[
    test!(each_kind_has_both_and_goes_back)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(what_is_not_confirmed_goes_back_to_the_first)
        .alone()
        .when_named()
        .limit_seconds(300),
];

struct Subject {
    service: &'static str,
    first: &'static [&'static str],
    second: &'static [&'static str],
    /// One that is taken back at once.
    third: &'static str,
    /// A shell command that prints what is in effect.
    ask: &'static str,
}

const CRON: &str = "tr '\\0' '\\n' </proc/$(systemctl show -p MainPID --value cron)/environ | \
                    grep -E '^(TZ|WORD|THIRD)=' | sort";

const SUBJECTS: [Subject; 8] = [
    Subject {
        service: "cron",
        first: &["tz=UTC"],
        second: &["env.WORD=1", "sync=off"],
        third: "env.THIRD=1",
        ask: CRON,
    },
    // Two by CONFIG SET, one by a restart.
    Subject {
        service: "redis-server",
        first: &["conf.maxmemory=1gb"],
        second: &["conf.databases=4", "conf.hz=20", LIBRARY],
        third: "conf.maxmemory=2gb",
        ask: "redis-cli CONFIG GET maxmemory; redis-cli CONFIG GET databases; redis-cli CONFIG GET hz",
    },
    Subject {
        service: "mariadb",
        first: &["conf.max_connections=99"],
        second: &["conf.sort_buffer_size=1048576", "env.WORD=1"],
        third: "conf.max_connections=98",
        ask: "mariadb -NBe 'SELECT @@GLOBAL.max_connections, @@GLOBAL.sort_buffer_size'",
    },
    Subject {
        service: "postgresql",
        first: &["conf.work_mem=8MB", "env.WORD=1"],
        second: &["conf.max_connections=50", "conf.vacuum_cost_delay=1"],
        third: "conf.work_mem=9MB",
        ask: "su postgres -c \"psql -XAtqc 'SHOW work_mem' -c 'SHOW max_connections' -c 'SHOW vacuum_cost_delay'\"",
    },
    Subject {
        service: "postfix",
        first: &["env.WORD=1"],
        second: &["env.OTHER=2", "conf.maximal_queue_lifetime=1h"],
        third: "env.THIRD=3",
        ask: "postconf -h maximal_queue_lifetime import_environment",
    },
    Subject {
        service: "postfix/cleanup",
        first: &["env.WORD=1"],
        second: &["sync=off"],
        third: "env.THIRD=3",
        ask: "postconf -M cleanup/unix",
    },
    Subject {
        service: "rsyslog",
        first: &["conf.sync=on"],
        second: &["env.WORD=1"],
        third: "env.THIRD=1",
        ask: "cat /etc/rsyslog.d/00-refit.conf 2>/dev/null || echo none",
    },
    Subject {
        service: "sysctl",
        first: &["conf.net.ipv4.tcp_fin_timeout=33"],
        second: &["conf.net.ipv4.tcp_keepalive_intvl=44"],
        third: "conf.net.ipv4.tcp_fin_timeout=34",
        ask: "sysctl -n net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl",
    },
];

const APPLY: [&str; 5] = [
    "refit",
    "apply",
    "--yes",
    "--accept=loses-on-crash",
    "--no-evidence",
];

fn each_kind_has_both_and_goes_back(env: &TestEnv) -> Outcome {
    up(env);
    for subject in &SUBJECTS {
        let service = subject.service;
        let asked = || inside(env, 0, &["sh", "-c", subject.ask]);
        // As after any restart.
        let state = || (files(env), asked());
        let holds = || inside(env, 0, &["refit", "status", "--exit-code", service]);
        let apply = |settings: &[&str]| {
            inside(env, 0, &[&APPLY[..], &[service], settings].concat());
            holds();
        };
        let before = state();
        apply(subject.first);
        let first = state();
        apply(subject.second);
        let both = state();
        assert!(both != first && first != before, "{service}");

        // It does its work before the third one, and not with it.
        let once = "! test -e /root/asked && touch /root/asked";
        let third = ["--health", once, service, subject.third];
        let failed = booted(env, &[&["x"], &APPLY[..], &third].concat());
        expect_message(&failed, 1, "ended with 1 with the change");
        inside(env, 0, &["rm", "/root/asked"]);
        expect_same_files(env, &both.0);
        assert_eq!(asked(), both.1, "{service}: after the third");
        holds();

        let revert = ["refit", "revert", service];
        inside(env, 0, &[&revert[..], subject.second].concat());
        expect_same_files(env, &first.0);
        assert_eq!(asked(), first.1, "{service}: without the second");
        holds();
        apply(subject.second);
        assert_eq!(asked(), both.1, "{service}: with both again");
        inside(env, 0, &revert);
        expect_same_files(env, &before.0);
        assert_eq!(asked(), before.1, "{service}: as before");
        println!(
            "counted: {service}: {:?} -> {:?} -> {:?}",
            before.1, first.1, both.1
        );
    }
    Outcome::Pass
}

fn what_is_not_confirmed_goes_back_to_the_first(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let asked = || inside(env, 0, &["sh", "-c", CRON]);
    let apply = |words: &[&str]| inside(env, 0, &[&APPLY[..], words].concat());
    apply(&["cron", "tz=UTC"]);
    let first = files(env);
    apply(&["--confirm-within=15s", "cron", "env.WORD=1"]);
    assert_eq!(asked(), "TZ=UTC\nWORD=1\n");
    wait_inside(env, "refit status cron | grep -q '^cron.service: applied$'");
    expect_same_files(env, &first);
    assert_eq!(asked(), "TZ=UTC\n");
    inside(env, 0, &["refit", "status", "--exit-code", "cron"]);

    // At the next start of the machine, before any service starts.
    apply(&["--confirm-within=1h", "cron", "env.WORD=1"]);
    assert_eq!(booted(env, &["reboot"]).status.code(), Some(0));
    assert_eq!(asked(), "TZ=UTC\n");
    inside(env, 0, &["refit", "status", "--exit-code", "cron"]);

    apply(&["--trial", "cron", "env.WORD=1"]);
    let trial = inside(env, 0, &["refit", "status", "--exit-code", "cron"]);
    assert!(
        trial.contains("cron.service: applied, until a reboot"),
        "{trial}"
    );
    assert_eq!(asked(), "TZ=UTC\nWORD=1\n");
    assert_eq!(booted(env, &["reboot"]).status.code(), Some(0));
    assert_eq!(asked(), "TZ=UTC\n");
    expect_same_files(env, &first);

    apply(&["--trial", "cron", "env.WORD=1"]);
    inside(env, 0, &["refit", "confirm", "cron"]);
    inside(env, 0, &["refit", "status", "--exit-code", "cron"]);
    assert_eq!(asked(), "TZ=UTC\nWORD=1\n");
    inside(env, 0, &["refit", "revert", "cron"]);
    assert_eq!(asked(), "");
    expect_same_files(env, &before);
    Outcome::Pass
}
