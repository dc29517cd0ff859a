//! One change of each kind of service on a Debian that systemd boots: over a reboot, and where the service does not come
//! back with it.

use crate::apply_booted::{
    LIBRARY, booted, expect_same_files, files, files_of_disk, inside, postfix, up, wait_inside,
};
use crate::apply_booted_postfix::mail;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(each_kind_outlasts_a_reboot)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(a_service_that_does_not_come_back_is_as_before)
        .alone()
        .when_named()
        .limit_seconds(900),
];

struct Subject {
    service: &'static str,
    settings: &'static [&'static str],
    /// A shell command that asks the service itself, and what it prints before and with the change.
    asks: &'static str,
    before: &'static str,
    after: &'static str,
}

/// Whether a unit's main process executes a library of refit's.
const MAPPED: &str = "mapped() { grep -q 'r-xp.*/usr/lib/refit/' /proc/$(systemctl show -p MainPID --value $1)/maps && echo yes || echo no; };";

const SUBJECTS: [Subject; 9] = [
    Subject {
        service: "nginx",
        settings: &[LIBRARY],
        asks: "mapped nginx",
        before: "no",
        after: "yes",
    },
    Subject {
        service: "rsyslog",
        settings: &[LIBRARY, "conf.sync=on"],
        asks: "logger -p mail.info asked && mapped rsyslog",
        before: "no",
        after: "yes",
    },
    Subject {
        service: "redis-server",
        settings: &[LIBRARY, "conf.maxmemory=1gb"],
        asks: "redis-cli CONFIG GET maxmemory | tail -n 1",
        before: "0",
        after: "1073741824",
    },
    Subject {
        service: "postgresql",
        settings: &[LIBRARY, "conf.work_mem=8MB"],
        asks: "cd / && setpriv --reuid=postgres --clear-groups psql -XAtqc 'SHOW work_mem'",
        before: "4MB",
        after: "8MB",
    },
    Subject {
        service: "mariadb",
        settings: &[LIBRARY, "conf.max_connections=200"],
        asks: "mariadb -BNe 'SELECT @@GLOBAL.max_connections'",
        before: "151",
        after: "200",
    },
    Subject {
        service: "postfix",
        settings: &["conf.maximal_queue_lifetime=2d"],
        asks: "postconf -h maximal_queue_lifetime",
        before: "5d",
        after: "2d",
    },
    Subject {
        service: "postfix/cleanup",
        settings: &[LIBRARY],
        asks: "grep -c refit /etc/postfix/master.cf",
        before: "0",
        after: "1",
    },
    Subject {
        service: "sysctl",
        settings: &["conf.net.core.somaxconn=300"],
        asks: "sysctl -n net.core.somaxconn",
        before: "4096",
        after: "300",
    },
    // By its name, as a user starts it.
    Subject {
        service: "wrapper:/usr/local/bin/printenv",
        settings: &["env.WORD=it's"],
        asks: "printenv WORD || echo none",
        before: "none",
        after: "it's",
    },
];

fn asked(env: &TestEnv, subject: &Subject) -> String {
    let line = format!("{MAPPED} {}", subject.asks);
    // grep -c ends with 1 where it counts none.
    let printed = inside(env, 0, &["sh", "-c", &format!("{line}; true")]);
    printed.trim().to_owned()
}

fn apply(subject: &Subject) -> Vec<&'static str> {
    let begin = ["refit", "apply", "--yes", subject.service];
    [&begin, subject.settings].concat()
}

fn each_kind_outlasts_a_reboot(env: &TestEnv) -> Outcome {
    up(env);
    inside(env, 0, &["systemctl", "restart", postfix(env)]);
    let before = files_of_disk(env);
    for subject in &SUBJECTS {
        assert_eq!(asked(env, subject), subject.before, "{}", subject.service);
        inside(env, 0, &apply(subject));
    }
    inside(env, 0, &["refit", "status", "--exit-code"]);
    expect_code(&booted(env, &["reboot"]), 0);
    mail(env, "after-the-reboot");
    // rsyslog wrote what Postfix logged.
    wait_inside(
        env,
        "grep -q 'refit/.*cleanup\\|cleanup.*message-id' /var/log/mail.log",
    );
    for subject in &SUBJECTS {
        let service = subject.service;
        assert_eq!(asked(env, subject), subject.after, "{service}");
        inside(env, 0, &["refit", "status", "--exit-code", service]);
        let again = inside(env, 0, &apply(subject));
        assert!(again.contains("nothing to do"), "{service}: {again}");
    }
    for subject in &SUBJECTS {
        inside(env, 0, &["refit", "revert", subject.service]);
        assert_eq!(asked(env, subject), subject.before, "{}", subject.service);
    }
    mail(env, "after-the-revert");
    assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
    assert_eq!(files_of_disk(env), before);
    println!(
        "counted: {} kinds, each in effect after a reboot",
        SUBJECTS.len()
    );
    Outcome::Pass
}

/// Ends each program that loads it, before main().
const ENDS: &str =
    "#include <unistd.h>\n__attribute__((constructor)) static void end(void) { _exit(3); }\n";

/// Restarted by systemd until it gives up, or by a master that throttles.
fn a_service_that_does_not_come_back_is_as_before(env: &TestEnv) -> Outcome {
    env.require_command("cc");
    up(env);
    inside(env, 0, &["systemctl", "restart", postfix(env)]);
    let source = env.file("ends.c", ENDS);
    let library = env.path("ends.so");
    let built = env.run(&["cc", "-shared", "-fPIC", "-o", &library, &source]);
    expect_code(&built, 0);
    expect_code(&booted(env, &["put", &library, "/root/ends.so"]), 0);
    let before = files(env);
    let services = SUBJECTS
        .iter()
        .filter(|subject| subject.service != "sysctl" && !subject.service.starts_with("wrapper:"));
    for subject in services {
        let service = subject.service;
        let words = [
            "x",
            "refit",
            "apply",
            "--yes",
            service,
            "preload=/root/ends.so",
        ];
        expect_message(&booted(env, &words), 1, "all was taken back");
        expect_same_files(env, &before);
        assert_eq!(
            inside(env, 0, &["refit", "status"]),
            "nothing is applied\n",
            "{service}"
        );
        assert_eq!(asked(env, subject), subject.before, "{service}");
        mail(env, &format!("with-{}", service.replace('/', "-")));
        println!("{service}: did not come back, and does its work as before");
    }
    inside(env, 0, &["rm", "/root/ends.so"]);
    Outcome::Pass
}
