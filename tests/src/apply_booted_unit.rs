//! What a drop-in does besides variables, on a Debian that systemd boots: a filter of system calls, and a program
//! without huge pages; and etckeeper, which keeps what was changed.

use crate::apply_booted::{booted, debian, expect_same_files, files, inside, up, wait_inside};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(a_filter_answers_syncs_of_static_programs_too)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(a_service_runs_without_huge_pages)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(variables_are_read_as_systemd_reads_them)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(etckeeper_commits_what_refit_changed)
        .alone()
        .when_named()
        .limit_seconds(300),
];

/// What a static program is told of two syncs of a file, one of a pipe and one of a closed descriptor (EINVAL, EBADF).
const REAL: &str = "0 0 22 9";
const DROPPED: &str = "0 0 0 0";

/// The answers, and whether the unit's processes can get rights that they do not have.
fn answers(env: &TestEnv) -> (String, String) {
    wait_inside(env, "test -e /run/syncs/answers");
    let text = inside(env, 0, &["cat", "/run/syncs/answers"]);
    let mut lines = text.lines().map(|line| line.trim().to_owned());
    let mut next = || lines.next().expect("two lines");
    (next(), next())
}

fn a_filter_answers_syncs_of_static_programs_too(env: &TestEnv) -> Outcome {
    up(env);
    let binary = env.program("static_errors");
    expect_code(&booted(env, &["put", &binary, "/opt/static_errors"]), 0);
    let apply = ["refit", "apply", "--yes", "syncs", "sync=off"];
    let accepted = [&apply[..], &["--accept", "loses-on-crash", "--no-evidence"]].concat();
    let path = "/etc/systemd/system/syncs.service";
    // systemd before 255 filters when it has changed the user.
    let of_a_user = match debian(env) {
        12 => "NoNewPrivs:\t1",
        _ => "NoNewPrivs:\t0",
    };
    for (lines, no_new_privileges) in [
        ("", "NoNewPrivs:\t0"),
        ("User=nobody\\n", of_a_user),
        ("SystemCallFilter=@system-service\\n", "NoNewPrivs:\t0"),
        (
            "SystemCallFilter=~@swap\\nUser=daemon\\nNoNewPrivileges=yes\\n",
            "NoNewPrivs:\t1",
        ),
    ] {
        // A new RuntimeDirectory= at each start.
        let unit = format!(
            "printf '[Service]\\nRuntimeDirectory=syncs\\n{lines}ExecStart=/bin/sh -c \"cd /run/syncs && \
             /opt/static_errors 2 file >new && grep NoNewPrivs /proc/self/status >>new && mv new answers && \
             exec sleep infinity\"\\n' >$0 && systemctl daemon-reload && systemctl start syncs"
        );
        inside(env, 0, &["sh", "-c", &unit, path]);
        let (before, _) = answers(env);
        assert_eq!(before, REAL, "{lines}");
        let as_it_was = files(env);
        let refused = booted(env, &[&["x"], &apply[..]].concat());
        expect_message(&refused, 2, "--accept loses-on-crash");
        let plan = inside(env, 2, &["refit", "plan", "syncs", "sync=off"]);
        assert_eq!(
            plan.contains("NoNewPrivileges"),
            lines.contains("User=") && debian(env) == 12,
            "{plan}"
        );
        assert_eq!(files(env), as_it_was);
        inside(env, 0, &accepted);
        assert_eq!(
            answers(env),
            (DROPPED.to_owned(), no_new_privileges.to_owned()),
            "{lines}"
        );
        let status = inside(env, 0, &["refit", "status", "--exit-code", "syncs"]);
        assert!(
            status.contains("ok: /proc/PID/status Seccomp: 2"),
            "{status}"
        );
        assert!(inside(env, 0, &accepted).contains("nothing to do"));
        inside(env, 0, &["refit", "revert", "syncs"]);
        assert_eq!(answers(env).0, REAL, "{lines}");
        expect_same_files(env, &as_it_was);
        inside(
            env,
            0,
            &[
                "sh",
                "-c",
                "systemctl stop syncs; rm $0; systemctl daemon-reload",
                path,
            ],
        );
        println!(
            "counted: with [{}]: {REAL}, then {DROPPED}, then {REAL}",
            lines.replace("\\n", " ")
        );
    }
    for setting in [
        "sync=on",
        "sync@exe:cron=off",
        "sync@/var/=off",
        "thp=always",
        "thp=madvise",
        "odirect=off",
    ] {
        let output = booted(env, &["x", "refit", "plan", "cron", setting]);
        expect_message(
            &output,
            2,
            "what can: sync=off, malloc=, thp=never, tz=, env.NAME=, preload=",
        );
    }
    inside(env, 0, &["rm", "/opt/static_errors"]);
    Outcome::Pass
}

fn a_service_runs_without_huge_pages(env: &TestEnv) -> Outcome {
    up(env);
    let allowed = |service: &str| {
        let asks = "grep THP_enabled /proc/$(systemctl show -p MainPID --value $0)/status | cut -f 2; \
                    tr '\\0' ' ' </proc/$(systemctl show -p MainPID --value $0)/cmdline";
        inside(env, 0, &["sh", "-c", asks, service])
    };
    for service in ["cron", "nginx", "redis-server", "rsyslog"] {
        let before = files(env);
        let as_it_was = allowed(service);
        assert!(as_it_was.starts_with("1\n"), "{service}: {as_it_was}");
        inside(
            env,
            0,
            &[
                "refit",
                "apply",
                "--yes",
                "--confirm-within=5m",
                service,
                "thp=never",
            ],
        );
        // The same words, but for the kernel's answer.
        assert_eq!(
            allowed(service),
            as_it_was.replacen('1', "0", 1),
            "{service}"
        );
        inside(env, 0, &["refit", "confirm", service]);
        let status = inside(env, 0, &["refit", "status", "--exit-code", service]);
        assert!(
            status.contains("ok: /proc/PID/status THP_enabled: 0"),
            "{status}"
        );
        inside(env, 0, &["systemctl", "restart", service]);
        assert!(allowed(service).starts_with("0\n"), "{service}");
        // An upgrade changes what the unit starts.
        let dir = format!("/etc/systemd/system/{service}.service.d");
        let other = "printf '[Service]\\nExecStart=\\nExecStart=/bin/sleep infinity\\n' >$0/10-own.conf; \
                     systemctl daemon-reload";
        inside(env, 0, &["sh", "-c", other, &dir]);
        let status = inside(env, 1, &["refit", "status", "--exit-code", service]);
        assert!(
            status.contains("DIFFERS: the unit's own ExecStart="),
            "{status}"
        );
        inside(
            env,
            0,
            &[
                "sh",
                "-c",
                "rm $0/10-own.conf; systemctl daemon-reload",
                &dir,
            ],
        );
        inside(env, 0, &["refit", "status", "--exit-code", service]);
        inside(env, 0, &["refit", "revert", service]);
        assert_eq!(allowed(service), as_it_was, "{service}");
        expect_same_files(env, &before);
        println!("counted: {service}: huge pages allowed, not allowed, allowed");
    }
    // It does without by itself.
    let plan = inside(env, 0, &["refit", "plan", "mariadb", "thp=never"]);
    assert!(
        plan.contains("has no transparent huge pages already"),
        "{plan}"
    );
    let plan = inside(env, 0, &["refit", "plan", "cron", "thp=never"]);
    assert!(
        !plan.contains("has no transparent huge pages already"),
        "{plan}"
    );
    Outcome::Pass
}

fn etckeeper_commits_what_refit_changed(env: &TestEnv) -> Outcome {
    up(env);
    let begin = "cd /etc && etckeeper init && git config user.name root && git config user.email root@booted.test && \
                 etckeeper commit first";
    inside(env, 0, &["sh", "-c", begin]);
    let last = || inside(env, 0, &["git", "-C", "/etc", "log", "-1", "--format=%s"]);
    let is_clean = || inside(env, 0, &["git", "-C", "/etc", "status", "--porcelain"]).is_empty();
    let apply = ["refit", "apply", "--yes", "cron", "tz=UTC"];
    assert_eq!(last(), "first\n");
    inside(env, 0, &apply);
    assert_eq!(last(), "refit apply cron.service tz=UTC\n");
    assert!(is_clean());
    inside(env, 0, &["refit", "revert", "cron"]);
    assert_eq!(last(), "refit revert cron\n");
    assert!(is_clean());

    // What somebody else began is not committed.
    inside(env, 0, &["touch", "/etc/begun"]);
    let output = booted(env, &[&["x"], &apply[..]].concat());
    expect_message(&output, 0, "/etc had other changes before");
    inside(env, 0, &["refit", "revert", "cron"]);
    assert_eq!(last(), "refit revert cron\n");
    inside(env, 0, &["rm", "/etc/begun"]);
    assert!(is_clean());

    let by_hand = "echo AVOID_DAILY_AUTOCOMMITS=1 >>/etc/etckeeper/etckeeper.conf && etckeeper commit by-hand";
    inside(env, 0, &["sh", "-c", by_hand]);
    let output = booted(env, &[&["x"], &apply[..]].concat());
    expect_message(&output, 0, "AVOID_DAILY_AUTOCOMMITS=1");
    assert_eq!(last(), "by-hand\n");
    inside(env, 0, &["refit", "revert", "cron"]);
    let end = "cd /etc && sed -i /^AVOID_DAILY_AUTOCOMMITS=1/d etckeeper/etckeeper.conf && etckeeper uninit -f";
    inside(env, 0, &["sh", "-c", end]);
    Outcome::Pass
}

/// Lines of a unit and of its drop-ins. A change of each of the variables is planned: it would be refused where systemd has
/// another value than refit read.
const ODD: &str = r#"
mkdir -p /etc/systemd/system/odd@.service.d /etc/systemd/system/odd-.service.d
cd /etc/systemd/system
cat >odd@.service <<'END'
[Service]
ExecStart=/bin/true
Environment=A=1 "B=two words" 'C=it"s' D="a b"c
Environment=E=a\x20b F=%n G=%% H= I=a\\b \
# a comment within
  J=é K=$X L=a;b
Environment=A=2 "M=\"q\" `x` \\$"
END
cat >odd@.service.d/10-one.conf <<'END'
[Service]
Environment=N=%i-%p "O='single'"
END
cat >odd@.service.d/20-two.conf <<'END'
[Service]
Environment=
Environment=A=3 P=%j-%J-%P-%I-%f-%t "Q=a=b" B=again R=%v
END
cat >other.service <<'END'
[Service]
ExecStart=/bin/sleep 1000
Environment=A=1
END
systemctl daemon-reload
systemctl start other # one that does not run is read anew
"#;

/// Its prefix and its instance have escapes.
const UNIT: &str = "odd@x-a\\x2db.service";

fn variables_are_read_as_systemd_reads_them(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    inside(env, 0, &["sh", "-c", ODD]);
    let plan = |unit: &str| {
        let words = [
            "x", "refit", "plan", unit, "env.A=9", "env.B=9", "env.N=9", "env.P=9", "env.Q=9",
        ];
        booted(env, &words)
    };
    let names = |unit: &str| inside(env, 0, &["systemctl", "show", "-p", "Environment", unit]);
    let mut compared = 0;
    for take_out in ["20-two.conf", "10-one.conf", "none"] {
        let output = plan(UNIT);
        expect_code(&output, 0);
        let shown = names(UNIT);
        compared += shown.matches('=').count();
        // Each name, whatever its line is.
        let letters = 'A'..='R';
        let all: Vec<String> = letters.map(|name| format!("env.{name}=9")).collect();
        let mut words = vec!["x", "refit", "plan", UNIT];
        words.extend(all.iter().map(String::as_str));
        expect_code(&booted(env, &words), 0);
        let remove =
            format!("rm -f /etc/systemd/system/odd@.service.d/{take_out}; systemctl daemon-reload");
        inside(env, 0, &["sh", "-c", &remove]);
    }
    assert!(compared > 20, "{compared}");
    // Another value that systemd did not read, with the time that it knows: nothing tells but the comparison.
    let edit = "cd /etc/systemd/system; touch -r other.service time; sed -i s/A=1/A=2/ other.service; \
                touch -r time other.service; rm time";
    inside(env, 0, &["sh", "-c", edit]);
    let refused = booted(env, &["x", "refit", "plan", "other", "env.A=9"]);
    expect_message(&refused, 2, "systemd has A=`1` and refit read `2`");
    // One that it knows of is loaded by the change, which says so.
    inside(env, 0, &["touch", "/etc/systemd/system/other.service"]);
    let told = inside(env, 0, &["refit", "plan", "other", "env.A=9"]);
    assert!(told.contains("takes these edits up too"), "{told}");
    let remove = "systemctl stop other; cd /etc/systemd/system; rm -r odd@.service.d odd-.service.d odd@.service other.service; \
                  systemctl daemon-reload";
    inside(env, 0, &["sh", "-c", remove]);
    expect_same_files(env, &before);
    Outcome::Pass
}
