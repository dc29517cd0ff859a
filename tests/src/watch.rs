//! `refit watch` on real processes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::database_counters::give_to;
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::sys::send_signal;
use crate::test;
use crate::test_env::{TestEnv, expect_code, wait_for_file, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_tree_has_its_memory_and_its_sync_calls),
    test!(words_that_name_nothing_are_refused),
    test!(the_end_of_what_is_watched_ends_the_watch),
    test!(a_leak_grows_at_its_rate).alone(),
    test!(a_thousand_threads_and_ten_forks_stay_within_the_budget).alone(),
    test!(a_command_keeps_its_output_and_its_end),
    test!(a_hostile_name_is_shown_and_not_obeyed),
    test!(a_zombie_has_no_memory),
    test!(fifty_connections_of_postgres_are_one_service).limit_seconds(120),
];

/// A program that waits for a line twice: at its start, and at its end.
pub struct Waiting(Child);

impl Waiting {
    pub fn start(mut command: Command) -> Waiting {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut ready = [0];
        let stdout = child.stdout.as_mut().expect("it is piped");
        stdout
            .read_exact(&mut ready)
            .expect("it prints a line when it is ready");
        Waiting(child)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn go_on(&mut self) {
        let stdin = self.0.stdin.as_mut().expect("it is piped");
        stdin.write_all(b"\n").expect("it reads");
    }

    pub fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("it is our child");
    }
}

pub fn shell(env: &TestEnv, script: &str) -> Waiting {
    let mut command = env.command("sh");
    command.args(["-c", script]);
    Waiting::start(command)
}

/// Watches, and has taken its first sample.
fn watch(env: &TestEnv, words: &[&str]) -> Child {
    let mut refit = env.refit_command(&[&["watch"], words].concat());
    let refit = refit.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut refit = refit.spawn().expect("refit starts");
    let stdout = refit.stdout.as_mut().expect("it is piped");
    stdout.read_exact(&mut [0]).expect("it prints a heading");
    refit
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn a_tree_has_its_memory_and_its_sync_calls(env: &TestEnv) -> Outcome {
    let script = format!(
        "echo; read x; {} 40 file; echo >done; read x",
        env.program("write_fsync")
    );
    let mut tree = shell(env, &script);
    let file = env.path("lines");
    let printed = || fs::read_to_string(&file).unwrap_or_default();
    let mut refit = env.refit_command(&["watch", "--batch", "--interval", "200ms", &tree.pid()]);
    let refit = refit.stdout(fs::File::create(&file).expect("the directory is ours"));
    let refit = refit.stderr(Stdio::piped()).spawn();
    let refit = refit.expect("refit starts");
    wait_until("a sample", || !printed().is_empty());
    tree.go_on();
    // A disk may take its time.
    wait_for_file(&env.path("done"));
    // One may be under way, and there may be a heading.
    let before = printed().lines().count();
    wait_until("a sample after that", || {
        printed().lines().count() >= before + 3
    });
    send_signal(refit.id().cast_signed(), libc::SIGINT);
    let output = refit.wait_with_output().expect("it is our child");
    expect_code(&output, 0);
    let (lines, (_, messages)) = (printed(), text(&output));
    let last = lines.lines().last().expect("lines");
    let words: Vec<&str> = last.split_whitespace().collect();
    assert_eq!((words[1], words[2]), ("sh", "1"), "{lines}");
    assert!(
        last.contains("KiB") && last.trim_end().ends_with("MiB"),
        "{last}"
    );
    assert!(messages.contains("% of a core"), "{messages}");
    if env.as_root() && !messages.contains("unknown") {
        assert!(messages.contains("sh: 40 sync calls waited"), "{messages}");
        assert!(messages.contains("all of write_fsync"), "{messages}");
    } else {
        assert!(messages.contains("sync calls are unknown: "), "{messages}");
        assert!(last.contains("unknown"), "{last}");
    }
    tree.end();
    Outcome::Pass
}

fn words_that_name_nothing_are_refused(env: &TestEnv) -> Outcome {
    for (words, expected) in [
        (&["0"][..], "there is no process 0"),
        (&["no-such-unit"], "no-such-unit"),
        (&["1", "x"], "`x` is not the number of a process"),
        (&["999999999"], "there is no process 999999999"),
        (&["--interval", "1ms"], "the shortest interval is 100ms"),
        (&["--for", "soon"], "write a time as"),
    ] {
        let output = env.refit(&[&["watch"], words].concat());
        expect_code(&output, 2);
        let (_, messages) = text(&output);
        assert!(messages.contains(expected), "{messages}");
    }
    Outcome::Pass
}

fn the_end_of_what_is_watched_ends_the_watch(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let refit = watch(env, &[&tree.pid(), "--interval", "100ms"]);
    tree.end();
    let output = refit.wait_with_output().expect("it is our child");
    expect_code(&output, 0);
    let (_, messages) = text(&output);
    assert!(
        messages.contains("all that was watched has ended"),
        "{messages}"
    );
    Outcome::Pass
}

/// Watches to the end; the series.
fn series(env: &TestEnv, words: &[&str]) -> Value {
    let json = env.path("series.json");
    let output = env.refit(&[&["watch", "--batch", "--json", &json], words].concat());
    expect_code(&output, 0);
    let text = fs::read_to_string(&json).expect("it was written");
    serde_json::from_str(&text).expect("it is JSON")
}

fn program(env: &TestEnv, name: &str, words: &[&str]) -> Waiting {
    let mut command = env.command(&env.program(name));
    command.args(words);
    Waiting::start(command)
}

/// Of the only group in each sample: when, and a value.
fn points(series: &Value, of: impl Fn(&Value) -> f64) -> Vec<(f64, f64)> {
    let samples = series["samples"].as_array().expect("a list").iter();
    samples
        .map(|sample| (number(&sample["at_ms"]) as f64, of(&sample["groups"][0])))
        .collect()
}

/// 64 KiB each 100 ms are 2250 MiB an hour; what the line at the end says has to be within 5 %.
fn a_leak_grows_at_its_rate(env: &TestEnv) -> Outcome {
    env.require_real_processor("1 % of it reads no memory");
    let leak = program(env, "steady_leak", &["65536"]);
    let output = env.refit(&[
        "watch",
        "--batch",
        "--interval",
        "500ms",
        "--for",
        "12s",
        &leak.pid(),
    ]);
    leak.end();
    expect_code(&output, 0);
    let (_, messages) = text(&output);
    let line = messages
        .lines()
        .find(|line| line.contains("PSS +"))
        .unwrap_or_else(|| panic!("no growth: {messages}"));
    let rate = line
        .split("PSS +")
        .nth(1)
        .and_then(|rest| rest.split(" GiB").next());
    let rate: f64 = rate
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{line}"));
    let truth = 65536.0 * 10.0 * 3600.0 / f64::from(1 << 30);
    assert!(
        (rate / truth - 1.0).abs() < 0.05,
        "{rate} GiB/h, and it leaks {truth}: {messages}"
    );
    Outcome::Pass
}

fn a_thousand_threads_and_ten_forks_stay_within_the_budget(env: &TestEnv) -> Outcome {
    env.require_real_processor("1 % of it reads no memory");
    let tree = program(env, "threads_and_forks", &["1000", "10"]);
    let series = series(env, &["--for", "10s", &tree.pid()]);
    tree.end();
    let last = &series["samples"]
        .as_array()
        .expect("a list")
        .last()
        .expect("samples")["groups"][0];
    assert_eq!(number(&last["processes"]), 11, "{last:#}");
    assert_eq!(number(&last["unread"]), 0, "{last:#}");
    // Each thread has a page of its stack.
    let pss = number(&last["memory"]["pss_bytes"]);
    assert!(pss > 1000 * 4096, "{last:#}");
    let part = |name: &str| number(&last["memory"][name]);
    let sum = part("pss_anonymous_bytes") + part("pss_file_bytes") + part("pss_shared_bytes");
    assert!(pss.abs_diff(sum) <= 11 * 4096, "{last:#}");
    let cost = &series["cost"];
    let share = number(&cost["cpu_us"]) as f64 / number(&cost["wall_us"]) as f64;
    // 1 % and what may be spent in advance, which is 30 ms of 10 s; the last reading and the
    // last sample may lie above it.
    assert!(share < 0.016, "{share} of a core: {cost}");
    Outcome::Pass
}

fn a_command_keeps_its_output_and_its_end(env: &TestEnv) -> Outcome {
    let script = "echo out; head -c 30000000 /dev/zero | tail -c 30000000 >/dev/null; exit 7";
    let output = env.refit(&["watch", "--", "sh", "-c", script]);
    expect_code(&output, 7);
    let (out, messages) = text(&output);
    assert_eq!(out, "out\n");
    // tail(1) keeps all of it, and ends before it can be sampled.
    let peak = messages
        .lines()
        .find(|line| line.contains("resident at its peak"));
    let peak = peak.unwrap_or_else(|| panic!("{messages}"));
    assert!(peak.contains(" had 3") && peak.contains("MiB"), "{peak}");
    let output = env.refit(&["watch", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&output.status),
        Some(15)
    );
    expect_code(&env.refit(&["watch", "--", "./no-such-program"]), 127);
    Outcome::Pass
}

fn a_hostile_name_is_shown_and_not_obeyed(env: &TestEnv) -> Outcome {
    let name = env.path("a\u{1b}[2J) S 1 (b");
    std::os::unix::fs::symlink("/bin/sh", &name).expect("the test's directory is ours");
    let mut command = env.command(&name);
    command.args(["-c", "echo; read x"]);
    let hostile = Waiting::start(command);
    let json = env.path("series.json");
    let html = env.path("page.html");
    let words = [
        "watch",
        "--for",
        "1s",
        "--json",
        &json,
        "--html",
        &html,
        &hostile.pid(),
    ];
    let output = env.refit(&words);
    hostile.end();
    expect_code(&output, 0);
    let (lines, messages) = text(&output);
    assert!(lines.contains("a\\u{1b}[2J) S 1 ("), "{lines}");
    let page = fs::read_to_string(&html).expect("it was written");
    for shown in [lines, messages, page] {
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    Outcome::Pass
}

fn a_zombie_has_no_memory(env: &TestEnv) -> Outcome {
    // The shell becomes a program that waits for none of its children.
    let tree = shell(env, "true & true & echo; exec cat");
    let series = series(env, &["--for", "1s", &tree.pid()]);
    tree.end();
    let processes = points(&series, |group| number(&group["processes"]) as f64);
    assert_eq!(
        processes.last().map(|(_, count)| *count),
        Some(1.0),
        "{series:#}"
    );
    assert_eq!(number(&series["samples"][0]["groups"][0]["unreadable"]), 0);
    Outcome::Pass
}

fn fifty_connections_of_postgres_are_one_service(env: &TestEnv) -> Outcome {
    let find = env.run(&[
        "sh",
        "-c",
        "ls /usr/lib/postgresql/*/bin/postgres 2>/dev/null | tail -1",
    ]);
    let postgres = String::from_utf8_lossy(&find.stdout).trim().to_owned();
    if postgres.is_empty() {
        env.skip("the server of PostgreSQL is not installed");
    }
    let bin = postgres.trim_end_matches("/postgres");
    let socket = env.subdir("server");
    // It refuses to run as root.
    let owner = env.as_root().then(|| give_to(env, "postgres", &socket));
    let as_owner = |program: &str, words: &[&str]| {
        let mut command = env.command(program);
        if let Some([uid, gid]) = owner {
            command.uid(uid).gid(gid);
        }
        command
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let data = format!("{socket}/data");
    let words = ["-U", "postgres", "-A", "trust", "-D", &data];
    let made = as_owner(&format!("{bin}/initdb"), &words).status();
    assert!(made.expect("it starts").success());
    let listen = ["-c", "listen_addresses=", "-c", "max_connections=60"];
    let mut server = as_owner(
        &postgres,
        &[&["-D", &data, "-k", &socket], &listen[..]].concat(),
    )
    .spawn()
    .expect("it starts");
    let psql = format!("{bin}/psql");
    let connect = ["-h", &*socket, "-U", "postgres", "-d", "postgres"];
    wait_until("PostgreSQL", || {
        env.run(&[&[&*psql], &connect[..], &["-c", "select 1"]].concat())
            .status
            .success()
    });
    let mut clients: Vec<Child> = (0..50)
        .map(|_| {
            let mut client = env.command(&psql);
            client
                .args(connect)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut client = client.spawn().expect("it starts");
            let query = b"select count(*) from pg_class;\n";
            client
                .stdin
                .as_mut()
                .expect("it is piped")
                .write_all(query)
                .expect("it reads");
            client
                .stdout
                .as_mut()
                .expect("it is piped")
                .read_exact(&mut [0])
                .expect("it answers");
            client
        })
        .collect();
    let series = series(env, &["--for", "8s", &server.id().to_string()]);
    for client in &mut clients {
        drop(client.stdin.take());
        client.wait().expect("it is our child");
    }
    expect_code(&env.run(&["kill", "-INT", &server.id().to_string()]), 0);
    server.wait().expect("it is our child");
    let last = &series["samples"]
        .as_array()
        .expect("a list")
        .last()
        .expect("samples")["groups"][0];
    // The postmaster, its helpers and fifty backends.
    assert!(number(&last["processes"]) > 50, "{last:#}");
    assert_eq!(number(&last["unreadable"]), 0, "{last:#}");
    let (pss, rss) = (
        number(&last["memory"]["pss_bytes"]),
        number(&last["rss_bytes"]),
    );
    assert!(
        pss > 0 && rss > 3 * pss,
        "what they share counts once: {last:#}"
    );
    Outcome::Pass
}
