//! Metrics over HTTP, as a scraper gets them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::locations::source_dir;
use crate::metrics::{by_python, expect_promtool_accepts};
use crate::runner::{Outcome, Test};
use crate::sys::send_signal;
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_refused, wait_for, wait_until};
use crate::watch::{Waiting, shell};

pub const TESTS: &[Test] = &[
    test!(both_formats_are_accepted),
    test!(prometheus_scrapes_a_watch_and_answers_the_dashboard).limit_seconds(120),
    test!(node_exporter_takes_the_files).limit_seconds(120),
    test!(a_page_that_rebinds_its_name_reads_nothing),
    test!(no_client_holds_up_another_or_the_watch),
    test!(a_port_is_taken_once_and_free_at_the_end),
    test!(words_that_are_no_address_are_refused),
];

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it with its messages in a file; what stands there after the marks, one after the other, to the end of the word.
fn started(env: &TestEnv, mut command: Command, log: &str, marks: &[&str]) -> (Ended, String) {
    let file = fs::File::create(env.path(log)).expect("the directory is ours");
    command.stdout(Stdio::null()).stderr(file);
    let mut child = Ended(command.spawn().expect("it starts"));
    let logged = || fs::read_to_string(env.path(log)).unwrap_or_default();
    let word = wait_for(&marks.concat(), || {
        let text = logged();
        let ended = child.0.try_wait().expect("it is our child");
        assert!(ended.is_none(), "{ended:?}: {text}");
        let mut rest = text.as_str();
        for mark in marks {
            (_, rest) = rest.split_once(mark)?;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '/')?;
        Some(rest[..end].to_owned())
    });
    (child, word)
}

/// A watch of this process, and where it listens.
fn listening(env: &TestEnv, target: &Waiting) -> (Ended, SocketAddr) {
    let words = ["watch", "--batch", "--interval", "100ms"];
    let listen = ["--listen", "127.0.0.1:0", &target.pid()];
    let refit = env.refit_command(&[&words[..], &listen].concat());
    let (refit, address) = started(env, refit, "refit.log", &["metrics are at http://"]);
    (refit, address.parse().expect("an address"))
}

/// The head and the body of the answer to a request.
fn asked(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

/// HTTP/1.0, so that no answer is cut into chunks.
fn get(address: SocketAddr, path: &str, headers: &str) -> (String, String) {
    asked(address, &format!("GET {path} HTTP/1.0\r\n{headers}\r\n"))
}

/// The metrics, when there is a sample.
fn metrics(address: SocketAddr, headers: &str) -> (String, String) {
    wait_for("a sample", || {
        let answer = get(address, "/metrics", headers);
        answer.1.contains("refit_processes{").then_some(answer)
    })
}

fn end(mut refit: Ended) {
    send_signal(refit.0.id().cast_signed(), libc::SIGINT);
    assert!(refit.0.wait().expect("it is our child").success());
}

fn both_formats_are_accepted(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let (refit, address) = listening(env, &tree);
    let (head, text) = metrics(address, "");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())));
    expect_promtool_accepts(env, &text);
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let (head, text) = metrics(address, accept);
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    let head_only = asked(address, "HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head_only.0.contains("200 OK") && head_only.1.is_empty());
    for (request, status) in [
        ("GET / HTTP/1.0\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.0\r\n\r\n", "405"),
        ("hello\r\n\r\n", "400"),
    ] {
        let (head, _) = asked(address, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    end(refit);
    tree.end();
    // It refuses what a strict reader has to: a counter without its suffix, a unit that is not in the name, …
    let script = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as families\n\
        assert len(list(families(sys.stdin.read()))) > 5";
    by_python(env, script, &text);
    Outcome::Pass
}

fn a_page_that_rebinds_its_name_reads_nothing(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let (refit, address) = listening(env, &tree);
    metrics(address, &format!("Host: {address}\r\n"));
    metrics(address, &format!("Host: localhost:{}\r\n", address.port()));
    let name = format!("rebound.example:{}", address.port());
    let (head, text) = get(address, "/metrics", &format!("Host: {name}\r\n"));
    assert!(head.starts_with("HTTP/1.1 421 "), "{head}");
    assert!(text.contains("ask by an IP address or localhost"), "{text}");
    assert!(!text.contains("refit_"), "{text}");
    end(refit);
    tree.end();
    Outcome::Pass
}

fn number_of_results(answer: &str) -> Option<usize> {
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(answer["status"], "success", "{answer:#}");
    answer["data"]["result"].as_array().map(Vec::len)
}

/// As a part of a URL.
fn encoded(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// The expressions of the dashboard, with its variables filled in.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(expression) = fields.get("expr").and_then(Value::as_str) {
                let filled = expression.replace("$instance", ".*");
                found.push(filled.replace("$__rate_interval", "1m"));
            }
            fields.values().for_each(|value| expressions(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

fn prometheus_scrapes_a_watch_and_answers_the_dashboard(env: &TestEnv) -> Outcome {
    env.require_command("prometheus");
    let tree = shell(env, "echo; read x");
    let (refit, address) = listening(env, &tree);
    let config = format!(
        "scrape_configs:\n- job_name: refit\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
         static_configs:\n  - targets: ['{address}']\n"
    );
    let config = env.file("prometheus.yml", &config);
    let mut prometheus = env.command("prometheus");
    prometheus.args([
        format!("--config.file={config}"),
        format!("--storage.tsdb.path={}", env.subdir("data")),
        "--web.listen-address=127.0.0.1:0".to_owned(),
    ]);
    // Newer ones name the component between the two.
    let marks = ["msg=\"Listening on\"", " address="];
    let (prometheus, api) = started(env, prometheus, "prometheus.log", &marks);
    let api: SocketAddr = api.parse().expect("an address");
    let query = |query: &str| {
        let (head, body) = get(api, &format!("/api/v1/query?query={}", encoded(query)), "");
        // It answers 503 until its storage is there.
        (!head.contains(" 503 ")).then(|| number_of_results(&body))?
    };
    wait_until("a sample", || {
        query("refit_processes{service=\"sh\"} == 1").is_some_and(|count| count == 1)
    });
    assert_eq!(query("up{job=\"refit\"} == 1"), Some(1));
    let dashboard =
        fs::read_to_string(source_dir().join("docs/grafana.json")).expect("it is there");
    let mut all = Vec::new();
    expressions(&serde_json::from_str(&dashboard).expect("JSON"), &mut all);
    assert!(all.len() >= 10, "{all:?}");
    for expression in &all {
        assert!(query(expression).is_some(), "{expression}");
    }
    send_signal(prometheus.0.id().cast_signed(), libc::SIGTERM);
    drop(prometheus);
    end(refit);
    tree.end();
    Outcome::Pass
}

fn node_exporter_takes_the_files(env: &TestEnv) -> Outcome {
    env.require_command("prometheus-node-exporter");
    let directory = env.subdir("textfile");
    let root = crate::apply::tree(env, "tree");
    let apply = crate::apply::words("apply", &root, &["a", "env.A=1", "--yes"]);
    expect_code(&env.refit(&apply), 0);
    let file = format!("{directory}/refit-status.prom");
    let status = crate::apply::words("status", &root, &["--openmetrics", &file]);
    expect_code(&env.refit(&status), 0);
    let tree = shell(env, "echo; read x");
    let file = format!("{directory}/refit-watch.prom");
    let words = [
        "watch",
        "--for",
        "300ms",
        "--openmetrics",
        &file,
        &tree.pid(),
    ];
    expect_code(&env.refit(&words), 0);
    tree.end();
    let mut exporter = env.command("prometheus-node-exporter");
    exporter.args([
        "--collector.disable-defaults",
        "--collector.textfile",
        &format!("--collector.textfile.directory={directory}"),
        "--web.listen-address=127.0.0.1:0",
    ]);
    // Newer ones name the component between the two.
    let marks = ["msg=\"Listening on\"", " address="];
    let (exporter, address) = started(env, exporter, "exporter.log", &marks);
    let address: SocketAddr = address.parse().expect("an address");
    let (_, text) = get(address, "/metrics", "");
    for sample in [
        "node_textfile_scrape_error 0\n",
        "refit_processes{service=\"sh\"} 1\n",
        "refit_drift{layer=\"file\",service=\"a.service\"} 0\n",
        "# TYPE refit_watch_cpu_seconds_total counter\n",
    ] {
        assert!(text.contains(sample), "{sample} is not in {text}");
    }
    drop(exporter);
    Outcome::Pass
}

fn no_client_holds_up_another_or_the_watch(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let (refit, address) = listening(env, &tree);
    let used = |(_, text): (String, String)| -> String {
        let mut lines = text.lines().map(str::to_owned);
        let line = lines.find(|line| line.starts_with("refit_watch_cpu_seconds_total "));
        line.expect("there was a sample")
    };
    let first = used(metrics(address, ""));
    let mut silent = TcpStream::connect(address).expect("it listens");
    let mut half = TcpStream::connect(address).expect("it listens");
    half.write_all(b"GET /metrics HT").expect("it reads");
    wait_until("a later sample", || used(metrics(address, "")) != first);
    // Their time is over before they have asked for anything.
    for stream in [&mut silent, &mut half] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
    // Refused as soon as it is too long: nobody waits for the rest.
    let mut long = TcpStream::connect(address).expect("it listens");
    let _ = long.write_all(&vec![b'x'; 1 << 20]);
    let mut answer = Vec::new();
    let _ = long.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
        "{answer}"
    );
    // More than are served at a time.
    let many: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).expect("it listens"))
        .collect();
    metrics(address, "");
    drop(many);
    metrics(address, "");
    end(refit);
    tree.end();
    Outcome::Pass
}

fn a_port_is_taken_once_and_free_at_the_end(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let (refit, address) = listening(env, &tree);
    let taken = address.to_string();
    let words = ["watch", "--for", "1s", "--listen", &taken, &tree.pid()];
    let texts = [&*taken, "the port is taken", "--listen 127.0.0.1:0"];
    expect_refused(env, &words, &texts);
    metrics(address, "");
    end(refit);
    TcpListener::bind(address).expect("it is free");
    tree.end();
    // What a command leaves running does not have it either.
    let script = "sleep 1000 >/dev/null 2>&1 & echo $! >left";
    let output = env.refit(&["watch", "--listen", &taken, "--", "sh", "-c", script]);
    let left = fs::read_to_string(env.path("left")).expect("it was written");
    let left: i32 = left.trim().parse().expect("a number");
    let bound = TcpListener::bind(address);
    send_signal(left, libc::SIGKILL);
    expect_message(&output, 0, &format!("http://{taken}/metrics"));
    bound.expect("it is free");
    Outcome::Pass
}

fn words_that_are_no_address_are_refused(env: &TestEnv) -> Outcome {
    for (word, next) in [
        ("9850", "--listen 127.0.0.1:9850"),
        (":9850", "--listen 127.0.0.1:9850"),
        ("localhost:9850", "--listen 127.0.0.1:9850"),
        ("127.0.0.1", "--listen 127.0.0.1:0"),
        ("127.0.0.1:99999", "--listen 127.0.0.1:0"),
        ("", "--listen 127.0.0.1:0"),
    ] {
        expect_refused(env, &["watch", "--listen", word, "--for", "1s"], &[next]);
    }
    // A documentation address (RFC 5737), which no machine has.
    let words = ["watch", "--listen", "192.0.2.1:9850", "--for", "1s"];
    expect_refused(env, &words, &["cannot listen on 192.0.2.1:9850"]);
    Outcome::Pass
}
