//! Real services of a Debian that systemd boots: `scripts/booted`. Only by `make test-services`.

use std::process::Output;

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(each_service_is_changed_verified_and_taken_back)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(what_a_sandbox_hides_is_taken_back_at_once)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(a_refused_check_leaves_the_service_running_as_it_is)
        .alone()
        .when_named()
        .limit_seconds(120),
    test!(a_service_that_failed_is_not_started)
        .alone()
        .when_named()
        .limit_seconds(120),
    test!(what_is_not_confirmed_takes_itself_back)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(a_service_that_stops_slowly_is_taken_back_too)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(a_reboot_keeps_a_change_and_takes_a_trial_back)
        .alone()
        .when_named()
        .limit_seconds(300),
];

pub const LIBRARY: &str = "preload=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

pub fn booted(env: &TestEnv, words: &[&str]) -> Output {
    let script = source_dir().join("scripts/booted");
    let mut command = env.command(&script.to_string_lossy());
    command.args(words).output().expect("scripts/booted runs")
}

/// Booted before the tests, since what a test starts ends with it.
pub fn up(env: &TestEnv) {
    inside(env, 0, &["true"]);
    let binary = refit_path();
    expect_code(&booted(env, &["put", &binary, "/usr/local/bin/refit"]), 0);
}

/// Runs a command inside; its output, where it ends with this code.
pub fn inside(env: &TestEnv, code: i32, words: &[&str]) -> String {
    let output = booted(env, &[&["x"], words].concat());
    expect_code(&output, code);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The number of a Debian: what it does otherwise is in docs/apply.md.
pub fn debian(env: &TestEnv) -> u32 {
    let words = ["sh", "-c", ". /etc/os-release; echo $VERSION_ID"];
    let number = inside(env, 0, &words);
    number.trim().parse().expect("a number")
}

/// Its cluster of PostgreSQL, such as `15-main`.
pub fn cluster(env: &TestEnv) -> String {
    let listed = inside(env, 0, &["pg_lsclusters", "--no-header"]);
    let mut words = listed.split_whitespace();
    let mut next = || words.next().expect("it has one");
    format!("{}-{}", next(), next())
}

/// The unit that starts Postfix.
pub fn postfix(env: &TestEnv) -> &'static str {
    match debian(env) {
        12 => "postfix@-",
        _ => "postfix",
    }
}

/// Each file below the places that refit writes to, with mode, owner and content.
pub fn files(env: &TestEnv) -> String {
    let list = "find /etc /usr/lib/refit /run/systemd/system -printf '%p %m %U:%G %y %l\\n' 2>/dev/null | sort; \
                find /etc -type f -print0 | sort -z | xargs -0 sha256sum";
    inside(env, 0, &["sh", "-c", list])
}

/// Those of [`files`] that a reboot keeps.
pub fn files_of_disk(env: &TestEnv) -> String {
    let all = files(env);
    let lines = all.lines().filter(|line| !line.starts_with("/run"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Fails with the lines of [`files`] that differ.
#[track_caller]
pub fn expect_same_files(env: &TestEnv, before: &str) {
    let now = files(env);
    let missing = |of: &str, from: &str| {
        let lines = of
            .lines()
            .filter(|line| !from.lines().any(|other| other == *line));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(
        now == before,
        "gone: {:?}, new: {:?}",
        missing(before, &now),
        missing(&now, before)
    );
}

fn each_service_is_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    for service in ["redis-server", "nginx", "rsyslog", "cron", "mariadb"] {
        let apply = [
            "refit",
            "apply",
            "--yes",
            service,
            LIBRARY,
            "env.WORD=a b%c",
        ];
        inside(env, 0, &apply);
        assert!(
            inside(env, 0, &apply).contains("nothing to do"),
            "{service}"
        );
        let status = inside(env, 0, &["refit", "status", "--exit-code", service]);
        assert!(
            status.contains("ok: executable mapping /usr/lib/refit/"),
            "{status}"
        );
        // What refit reports is so in the process itself.
        let maps = "cat /proc/$(systemctl show -p MainPID --value $0)/maps";
        let maps = inside(env, 0, &["sh", "-c", maps, service]);
        let is_mapped = |line: &str| line.contains("r-xp") && line.contains("/usr/lib/refit/");
        assert!(maps.lines().any(is_mapped), "{service}: {maps}");
        // An administrator takes the drop-in away, and its change stays loaded.
        let path = format!("/etc/systemd/system/{service}.service.d/90-refit.conf");
        inside(env, 0, &["mv", &path, "/root/kept"]);
        inside(env, 1, &["refit", "status", "--exit-code", service]);
        inside(env, 3, &apply);
        inside(env, 0, &["mv", "/root/kept", &path]);
        inside(env, 0, &["refit", "revert", service]);
        inside(env, 0, &["systemctl", "is-active", service]);
        let maps = "! grep /usr/lib/refit /proc/$(systemctl show -p MainPID --value $0)/maps";
        inside(env, 0, &["sh", "-c", maps, service]);
        println!("{service}: applied, applied again, drift seen, reverted");
    }
    assert_eq!(files(env), before);
    let none = cluster(env).replace("main", "none");
    for (words, named) in [
        (["nosuch", "tz=UTC"], "no service"),
        (["postfix@other", LIBRARY], "clears the environment"),
        ([&format!("postgresql@{none}"), LIBRARY], "pg_lsclusters"),
    ] {
        let all = [&["x", "refit", "apply", "--yes"], &words[..]].concat();
        let output = booted(env, &all);
        expect_code(&output, 2);
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(named),
            "{words:?}"
        );
    }
    let output = booted(
        env,
        &[
            "x", "-u", "nobody", "refit", "apply", "--yes", "cron", "tz=UTC",
        ],
    );
    expect_code(&output, 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs root"));
    assert_eq!(files(env), before);
    Outcome::Pass
}

/// ld.so refuses the library and the service runs on: only the mappings tell.
fn what_a_sandbox_hides_is_taken_back_at_once(env: &TestEnv) -> Outcome {
    up(env);
    let dir = "/etc/systemd/system/cron.service.d";
    let hides = "mkdir -p $0 && printf '[Service]\\nInaccessiblePaths=-/usr/lib/refit\\n' >$0/10-own.conf && \
                 systemctl daemon-reload";
    inside(env, 0, &["sh", "-c", hides, dir]);
    let before = files(env);
    let output = booted(env, &["x", "refit", "apply", "--yes", "cron", LIBRARY]);
    expect_code(&output, 1);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("not in effect: executable mapping"), "{text}");
    assert_eq!(files(env), before);
    inside(env, 0, &["systemctl", "is-active", "cron"]);
    assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
    inside(
        env,
        0,
        &[
            "sh",
            "-c",
            "rm -r $0 && systemctl daemon-reload && systemctl restart cron",
            dir,
        ],
    );
    Outcome::Pass
}

/// It was told nothing of the change: there is nothing to restart.
fn a_refused_check_leaves_the_service_running_as_it_is(env: &TestEnv) -> Outcome {
    up(env);
    // Of what it prints the lines that name the drop-in count.
    let refuses = "mkdir -p /root/first && \
                   printf '#!/bin/sh\\necho \"/etc/systemd/system/$2.d/90-refit.conf: refused\" >&2; exit 1\\n' \
                       >/root/first/systemd-analyze && chmod +x /root/first/systemd-analyze";
    inside(env, 0, &["sh", "-c", refuses]);
    let before = files(env);
    for service in ["cron", "redis-server"] {
        let pid = ["systemctl", "show", "-p", "MainPID", "--value", service];
        let main = inside(env, 0, &pid);
        let words = ["refit", "apply", "--yes", service, LIBRARY];
        let path = "PATH=/root/first:/usr/sbin:/usr/bin:/sbin:/bin";
        let first = [&["x", "env", path, "/usr/local/bin/refit"], &words[1..]].concat();
        let output = booted(env, &first);
        expect_code(&output, 1);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("90-refit.conf: refused"), "{text}");
        assert_eq!(inside(env, 0, &pid), main, "{service} was restarted");
        assert_eq!(files(env), before, "{service}");
        // The check alone decided: without it the same is applied.
        inside(env, 0, &words);
        assert_ne!(inside(env, 0, &pid), main, "{service} was not restarted");
        inside(env, 0, &["refit", "revert", service]);
        assert_eq!(files(env), before, "{service}");
    }
    inside(env, 0, &["rm", "-r", "/root/first"]);
    Outcome::Pass
}

fn a_service_that_failed_is_not_started(env: &TestEnv) -> Outcome {
    up(env);
    let unit = "printf '[Service]\nExecStart=/bin/sh -c \"echo >>/root/starts; exit 1\"\n' >$0 && \
                systemctl daemon-reload && systemctl start dies; \
                wait_for 'its failure' '[ $(systemctl is-active dies) = failed ]'";
    let unit = format!("{WAIT_FOR} {unit}");
    let path = "/etc/systemd/system/dies.service";
    inside(env, 0, &["sh", "-c", &unit, path]);
    inside(env, 0, &["refit", "apply", "--yes", "dies", "env.WORD=a"]);
    inside(env, 0, &["refit", "revert", "dies"]);
    assert_eq!(
        inside(env, 0, &["cat", "/root/starts"]),
        "\n",
        "once, by the test"
    );
    let remove = "rm /etc/systemd/system/dies.service /root/starts; systemctl reset-failed; systemctl daemon-reload";
    inside(env, 0, &["sh", "-c", remove]);
    Outcome::Pass
}

/// More slowly than DefaultTimeoutStartSec=, 90 s, which systemd gives a unit whose file is gone.
fn a_service_that_stops_slowly_is_taken_back_too(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let make = "printf '[Service]\\nExecStart=/bin/sleep infinity\\nExecStop=/root/stop\\nTimeoutStopSec=200\\n' \
                >/etc/systemd/system/slow.service; printf '#!/bin/sh\\ntest ! -e /root/slowly || sleep 100\\n' >/root/stop; \
                chmod +x /root/stop; systemctl daemon-reload; systemctl start slow";
    inside(env, 0, &["sh", "-c", make]);
    let apply = [
        "refit",
        "apply",
        "--yes",
        "--confirm-within=10s",
        "slow",
        "env.A=1",
    ];
    inside(env, 0, &apply);
    inside(env, 0, &["touch", "/root/slowly"]);
    wait_inside(env, "test $(systemctl is-active slow) = deactivating");
    // Two waits of 90 s and more.
    let is_over =
        "test $(systemctl show -p ActiveState --value refit-undo-slow.service) = inactive";
    let waiting = format!(
        "{WAIT_FOR} (wait_for once 'sleep 0.05; {is_over}') || wait_for \"$0\" '{is_over}'"
    );
    inside(env, 0, &["sh", "-c", &waiting, "the undo's end"]);
    assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
    assert_eq!(
        inside(env, 0, &["systemctl", "is-active", "slow"]),
        "active\n"
    );
    let remove = "rm /root/slowly; systemctl stop slow; rm /etc/systemd/system/slow.service /root/stop; systemctl daemon-reload";
    inside(env, 0, &["sh", "-c", remove]);
    assert_eq!(files(env), before);
    Outcome::Pass
}

fn a_reboot_keeps_a_change_and_takes_a_trial_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files_of_disk(env);
    inside(env, 0, &["refit", "apply", "--yes", "nginx", LIBRARY]);
    inside(
        env,
        0,
        &["refit", "apply", "--yes", "--trial", "cron", LIBRARY],
    );
    let trial = [
        "refit",
        "apply",
        "--yes",
        "--trial",
        "redis",
        "conf.maxmemory=1gb",
    ];
    inside(env, 0, &trial);
    let redis = ["redis-cli", "config", "get", "maxmemory"];
    assert_eq!(inside(env, 0, &redis), "maxmemory\n1073741824\n");
    let value = ["sysctl", "--values", "net.core.somaxconn"];
    let default = inside(env, 0, &value);
    let unconfirmed = [
        "refit",
        "apply",
        "--yes",
        "--confirm-within=1h",
        "sysctl",
        "conf.net.core.somaxconn=300",
    ];
    inside(env, 0, &unconfirmed);
    assert_eq!(inside(env, 0, &value), "300\n");
    inside(env, 0, &["refit", "status", "--exit-code"]);
    expect_code(&booted(env, &["reboot"]), 0);
    // systemd-sysctl comes before the units that take a change back.
    assert_eq!(inside(env, 0, &value), default);
    assert_eq!(inside(env, 0, &redis), "maxmemory\n0\n");
    inside(env, 0, &["refit", "status", "--exit-code", "nginx"]);
    let taken = inside(env, 1, &["refit", "status", "--exit-code", "cron"]);
    assert!(taken.contains("as before the change"), "{taken}");
    for service in ["nginx", "cron", "sysctl"] {
        inside(env, 0, &["refit", "revert", service]);
    }
    assert_eq!(files_of_disk(env), before);
    Outcome::Pass
}

/// A shell function, `wait_for WHAT CONDITION`: returns when the condition holds. After 900 tries it names what was waited for,
/// and the shell ends with 1.
pub const WAIT_FOR: &str = "wait_for() { for i in $(seq 900); do eval \"$2\" && return; sleep 0.1; done; \
                            echo \"waited for $1, 900 times\" >&2; exit 1; };";

/// Waits inside until this shell condition holds.
pub fn wait_inside(env: &TestEnv, condition: &str) {
    let wait = format!("{WAIT_FOR} wait_for \"$0\" \"$0\"");
    inside(env, 0, &["sh", "-c", &wait, condition]);
}

/// No process of refit waits for the time: systemd's timer does, also when systemd is reloaded meanwhile.
fn what_is_not_confirmed_takes_itself_back(env: &TestEnv) -> Outcome {
    up(env);
    let (before, on_disk) = (files(env), files_of_disk(env));
    let apply = |service, within| {
        let within = format!("--confirm-within={within}");
        let words = ["refit", "apply", "--yes", &within, service, LIBRARY];
        inside(env, 0, &words);
    };
    let is_mapped =
        "grep -q r-xp.*/usr/lib/refit/ /proc/$(systemctl show -p MainPID --value cron)/maps";
    apply("cron", "60s");
    let timer_at = "sed -n s/OnCalendar=@//p /run/systemd/system/refit-undo-cron.timer";
    let at = inside(env, 0, &["sh", "-c", timer_at]);
    inside(env, 0, &["sh", "-c", is_mapped]);
    inside(env, 0, &["refit", "status", "--exit-code", "cron"]);
    // The installed refit is not needed.
    inside(env, 0, &["mv", "/usr/local/bin/refit", "/root/refit"]);
    // A relative time would begin anew with each reload, and never end.
    wait_inside(env, "systemctl daemon-reload; test ! -e /usr/lib/refit");
    let late = inside(
        env,
        0,
        &["sh", "-c", "echo $(($(date +%s) - $0))", at.trim()],
    );
    let late: i64 = late.trim().parse().expect("seconds");
    assert!(late >= 0, "{late} s after its time");
    inside(env, 0, &["mv", "/root/refit", "/usr/local/bin/refit"]);
    inside(env, 0, &["sh", "-c", &format!("! {is_mapped}")]);
    inside(env, 0, &["systemctl", "is-active", "cron"]);
    wait_inside(
        env,
        "test $(systemctl show -p ActiveState --value refit-undo-cron.service) = inactive",
    );
    assert_eq!(files(env), before);
    assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
    println!(
        "counted: not confirmed: taken back {late} s after its time, with daemon-reloads all the while"
    );

    // Confirmed: its time passes, and a reboot.
    apply("cron", "45s");
    let until = inside(env, 0, &["sh", "-c", timer_at]);
    let pid = "systemctl show -p MainPID --value cron";
    let main = inside(env, 0, &["sh", "-c", pid]);
    inside(env, 0, &["systemctl", "daemon-reload"]);
    inside(env, 0, &["refit", "confirm", "cron"]);
    assert_eq!(
        inside(env, 0, &["sh", "-c", pid]),
        main,
        "it was not restarted"
    );
    apply("rsyslog", "1h");
    let is_over = format!("test $(date +%s) -gt $(({} + 2))", until.trim());
    wait_inside(env, &is_over);
    inside(env, 0, &["refit", "status", "--exit-code", "cron"]);
    expect_code(&booted(env, &["reboot"]), 0);
    inside(env, 0, &["refit", "status", "--exit-code", "cron"]);
    inside(env, 0, &["sh", "-c", is_mapped]);

    // Rebooted before it was confirmed.
    let gone = inside(env, 1, &["refit", "status", "--exit-code", "rsyslog"]);
    assert!(gone.contains("as after a reboot"), "{gone}");
    let maps = "! grep /usr/lib/refit /proc/$(systemctl show -p MainPID --value rsyslog)/maps";
    inside(env, 0, &["sh", "-c", maps]);
    inside(env, 2, &["refit", "confirm", "rsyslog"]);
    for service in ["cron", "rsyslog"] {
        inside(env, 0, &["refit", "revert", service]);
    }
    assert_eq!(files_of_disk(env), on_disk);
    Outcome::Pass
}
