//! mapd, the server of scripts of the recipe postfix-tables: a script that fails is a lookup to be tried again, and its
//! memory stays flat.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::processes::{children, status_line};
use crate::recipes::folder;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, wait_for, wait_until};

pub const TESTS: &[Test] = &[
    test!(only_nil_is_not_found_and_a_script_that_fails_is_asked_again),
    test!(a_script_that_cannot_be_used_is_refused_at_once),
    test!(its_memory_stays_flat).limit_seconds(120),
];

/// For a script: what hangs longer is ended by the test's own limit.
const NO_LIMIT_MS: &str = "3600000";

const FAILING: &str = r#"
def lookup(key)
  case key
  when "loop" then loop {}
  when "eat" then all = []; loop { all << "x" * 1000 + all.size.to_s }
  when "raise" then raise "on\npurpose"
  when "deep" then lookup(key) + "x"
  when "number" then 3
  when "empty" then ""
  when "nul" then "a\0b"
  when "long" then "x" * 100_000
  when "longest" then "x" * 99_997
  when "nil" then nil
  else key.upcase
  end
end
"#;

/// The recipe's server of scripts, built by the recipe's own line.
struct Mapd {
    child: Child,
    port: u16,
}

impl Mapd {
    fn build(env: &TestEnv) -> String {
        env.require_command("gcc");
        if !fs::exists("/usr/include/mruby.h").unwrap_or(false) {
            env.skip("/usr/include/mruby.h is missing: apt install libmruby-dev");
        }
        let program = env.path("mapd");
        let sources = ["mapd.c", "worker.c"].map(|name| folder("postfix-tables").join(name));
        let [server, worker] = sources.map(|path| path.display().to_string());
        let words = [
            "-std=c11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ];
        let gcc = [
            &["gcc"],
            &words[..],
            &["-o", &program, &server, &worker, "-lmruby", "-lm"],
        ];
        expect_code(&env.run(&gcc.concat()), 0);
        program
    }

    fn start(env: &TestEnv, program: &str, options: &[&str], script: &str) -> Self {
        let port = free_port();
        let script = readable(env, "table.rb", script);
        let mut command = Command::new(program);
        command
            .args(options)
            .args([&port.to_string(), "table", &script]);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was built");
        let mut ready = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut ready)
            .expect("it says a word");
        assert_eq!(ready, "ready\n");
        Mapd { child, port }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("it listens")
    }

    /// The process that runs the script.
    fn worker(&self) -> u32 {
        wait_for("the script's process", || {
            children(self.child.id()).first().copied()
        })
    }
}

impl Drop for Mapd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("some port is free");
    listener.local_addr().expect("it is bound").port()
}

/// The server is nobody when it reads its script.
pub fn readable(env: &TestEnv, name: &str, text: &str) -> String {
    fs::set_permissions(env.dir(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    env.file(name, text)
}

fn netstring(text: &str) -> String {
    format!("{}:{text},", text.len())
}

fn read_netstring(stream: &mut impl Read) -> String {
    let mut byte = [0];
    let mut length = 0;
    loop {
        stream.read_exact(&mut byte).expect("an answer");
        match byte[0] {
            b':' => break,
            digit => length = length * 10 + usize::from(digit - b'0'),
        }
    }
    let mut text = vec![0; length + 1];
    stream.read_exact(&mut text).expect("the whole answer");
    assert_eq!(text.pop(), Some(b','));
    String::from_utf8(text).expect("answers are text")
}

fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream
        .write_all(netstring(request).as_bytes())
        .expect("it reads");
    read_netstring(stream)
}

fn only_nil_is_not_found_and_a_script_that_fails_is_asked_again(env: &TestEnv) -> Outcome {
    let program = Mapd::build(env);
    let mapd = Mapd::start(env, &program, &["-t", "300"], FAILING);
    let mut stream = mapd.connect();
    let too_long = "TEMP the script took too long";
    assert_eq!(ask(&mut stream, "table loop"), too_long);
    // On a busy machine another lookup may take as long.
    wait_until("an answer after one that took too long", || {
        ask(&mut stream, "table a b") == "OK A B"
    });
    drop(mapd);

    let options = ["-t", NO_LIMIT_MS, "-m", "8", "-n", "1000"];
    let mapd = Mapd::start(env, &program, &options, FAILING);
    let mut stream = mapd.connect();
    let longest = format!("OK {}", "x".repeat(99_997));
    for (key, expected) in [
        ("nil", "NOTFOUND "),
        ("hello", "OK HELLO"),
        ("a b", "OK A B"),
        (
            "eat",
            // As mruby 3.1 shows it, and 3.3.
            "TEMP the script raised Out of memory (NoMemoryError)|TEMP the script raised NoMemoryError",
        ),
        ("hello", "OK HELLO"),
        ("raise", "TEMP the script raised on purpose (RuntimeError)"),
        (
            "deep",
            // Likewise.
            "TEMP the script raised stack level too deep (SystemStackError)|TEMP the script raised SystemStackError",
        ),
        (
            "number",
            "TEMP the script returned neither a String nor nil, but a Integer",
        ),
        (
            "empty",
            "TEMP the script returned an empty String; nil means not found",
        ),
        ("nul", "TEMP the script returned a String with a NUL in it"),
        (
            "long",
            "TEMP the script returned a String that is too long for Postfix",
        ),
        ("longest", &longest),
        ("a\0b", "PERM a key is 1 to 8192 bytes without NUL"),
        ("", "PERM a key is 1 to 8192 bytes without NUL"),
    ] {
        let answer = ask(&mut stream, &format!("table {key}"));
        let expected = expected.split('|').find(|one| *one == answer);
        assert_eq!(Some(&*answer), expected, "{key:?}");
    }
    assert_eq!(
        ask(&mut stream, "other key"),
        "PERM there is no table of this name"
    );

    // Killed from outside, it is one lookup that failed; or none, if the server saw it in time.
    let before = mapd.worker();
    let killed = env.run(&["kill", "-KILL", &before.to_string()]);
    expect_code(&killed, 0);
    let answer = ask(&mut stream, "table hello");
    assert!(
        ["TEMP the script ended its process", "OK HELLO"].contains(&answer.as_str()),
        "{answer}"
    );
    assert_eq!(ask(&mut stream, "table hello"), "OK HELLO");
    let second = mapd.worker();
    assert_ne!(second, before);
    // It starts anew from time to time, and nobody who asks can tell.
    for _ in 0..1000 {
        assert_eq!(ask(&mut stream, "table hello"), "OK HELLO");
    }
    assert_ne!(mapd.worker(), second);

    // What is not a request ends that connection, and no other.
    let mut other = mapd.connect();
    other.write_all(b"what?").expect("it reads");
    assert_eq!(other.read(&mut [0]).expect("it was closed"), 0);
    assert_eq!(ask(&mut stream, "table hello"), "OK HELLO");

    let worker = mapd.worker();
    drop(mapd);
    wait_until("the script's process to end with its server", || {
        status_line(worker, "State").is_none_or(|state| state.contains('Z'))
    });
    Outcome::Pass
}

fn a_script_that_cannot_be_used_is_refused_at_once(env: &TestEnv) -> Outcome {
    let program = Mapd::build(env);
    for (script, limit_ms, expected) in [
        ("def lookup(key", NO_LIMIT_MS, "(SyntaxError)"),
        (
            "raise 'no'",
            NO_LIMIT_MS,
            "the script raised no (RuntimeError)",
        ),
        ("loop {}", "300", "the script takes too long to load"),
        ("1", NO_LIMIT_MS, "the script defines no method lookup(key)"),
    ] {
        let path = readable(env, "bad.rb", script);
        let port = free_port().to_string();
        let output = env.run(&[&program, "-t", limit_ms, &port, "table", &path]);
        expect_code(&output, 1);
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            messages.contains(expected) && messages.contains("bad.rb"),
            "{script}: {messages}"
        );
    }
    let output = env.run(&[&program, "-m", "much", "1", "table", "x.rb"]);
    expect_code(&output, 2);
    assert!(
        described(&output).contains("much is not a number"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}

/// With no restart in between, and against operations: what comes at first are caches that fill.
fn its_memory_stays_flat(env: &TestEnv) -> Outcome {
    const LOOKUPS: usize = 200_000;
    /// So many are under way at once.
    const BATCH: usize = 500;
    let program = Mapd::build(env);
    let script = fs::read_to_string(folder("postfix-tables").join("users.rb"));
    let script = script.expect("the recipe has it");
    let options = ["-n", "1000000000", "-t", NO_LIMIT_MS];
    let mapd = Mapd::start(env, &program, &options, &script);
    let worker = mapd.worker();
    let rss_kib = || -> u64 {
        let line = status_line(worker, "VmRSS").expect("the first process is still there");
        let number = line.split_whitespace().find_map(|word| word.parse().ok());
        number.expect("a number of KiB")
    };
    let mut stream = mapd.connect();
    let mut answers = BufReader::new(stream.try_clone().expect("it is open"));
    let mut first = 0;
    for batch in 0..LOOKUPS / BATCH {
        let keys = (0..BATCH).map(|i| batch * BATCH + i);
        let requests: String = keys
            .clone()
            .map(|key| netstring(&format!("table {key}@{}.test", domain(key))))
            .collect();
        stream.write_all(requests.as_bytes()).expect("it reads");
        for key in keys {
            let expected = match domain(key) {
                "load" => format!("OK box{key}@box.test"),
                _ => "NOTFOUND ".to_owned(),
            };
            assert_eq!(read_netstring(&mut answers), expected);
        }
        if batch == LOOKUPS / BATCH / 5 {
            first = rss_kib();
        }
    }
    let last = rss_kib();
    assert_eq!(mapd.worker(), worker, "it was not to start anew");
    // A leak of one mruby object (40 bytes) a lookup would be 6 MiB.
    assert!(last <= first + 256, "{first} KiB became {last} KiB");
    Outcome::Pass
}

/// Every third key is unknown.
fn domain(key: usize) -> &'static str {
    if key % 3 == 2 { "gone" } else { "load" }
}
