//! What a test works with: a directory of its own, the refit under test, compiled programs, strace, waiting.
//!
//! Paths are `String`s, because tests use them as words of a command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::deadline::{Deadline, emulated};
use crate::fixture::{self, Missing};
use crate::locations::{TEST_ENV_DIR, for_everybody, target_dir};
use crate::strace::Trace;
use crate::sys;

/// The exit code of a test's process that means "could not be tried here".
pub const SKIPPED: i32 = 77;

/// How long `wait_until` and the like wait before they fail the test.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The environment of one test.
pub struct TestEnv {
    dir: PathBuf,
    /// Only where no runner started this process, which would remove the directory.
    own: Option<tempfile::TempDir>,
}

#[allow(dead_code)] // a library for tests
impl TestEnv {
    pub fn open(root: &Path) -> Result<Self> {
        if let Some(dir) = std::env::var_os(TEST_ENV_DIR) {
            return Ok(Self {
                dir: dir.into(),
                own: None,
            });
        }
        let own = tempfile::Builder::new()
            .prefix("refit-test-")
            .tempdir_in(root)
            .context("make a directory")?;
        Ok(Self {
            dir: own.path().to_owned(),
            own: Some(own),
        })
    }

    /// The test's directory, on a real filesystem, removed after the test.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A path inside the test's directory; nothing is created.
    pub fn path(&self, name: &str) -> String {
        text_path(&self.dir.join(name))
    }

    /// A file inside the test's directory with this content; its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap_or_else(|error| panic!("write {path}: {error}"));
        path
    }

    /// A fresh directory inside the test's directory; its path.
    pub fn subdir(&self, name: &str) -> String {
        let path = self.path(name);
        fs::create_dir(&path).unwrap_or_else(|error| panic!("make {path}: {error}"));
        path
    }

    /// The compiled program of tests/programs, which every user may run; the test is skipped where its compiler is not
    /// installed.
    pub fn program(&self, name: &str) -> String {
        match fixture::program(name) {
            Ok(path) => text_path(&for_everybody(path)),
            Err(Missing::Compiler(reason)) => self.skip(&format!("{name}: {reason}")),
            Err(Missing::Broken(reason)) => panic!("program {name}: {reason}"),
        }
    }

    /// Any command, in the test's directory.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.dir);
        command
    }

    /// Runs any command to its end.
    pub fn run(&self, words: &[&str]) -> Output {
        let (program, args) = words.split_first().expect("a command has a first word");
        let mut command = self.command(program);
        command.args(args);
        finish(&mut command)
    }

    /// The refit under test, to be completed and started by the test itself.
    pub fn refit_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(refit_path());
        command.current_dir(&self.dir).args(args);
        command
    }

    /// Runs refit to its end.
    pub fn refit(&self, args: &[&str]) -> Output {
        finish(&mut self.refit_command(args))
    }

    /// Runs refit with `--json` after its verb; what it did, and what it wrote there.
    pub fn refit_json(&self, args: &[&str]) -> (Output, serde_json::Value) {
        let place = tempfile::Builder::new()
            .prefix("report-")
            .tempdir_in(&self.dir)
            .expect("the test's directory is ours");
        let file = text_path(&place.path().join("report.json"));
        let (verb, rest) = args.split_first().expect("refit is called with a verb");
        let output = self.refit(&[&[*verb, "--json", &file], rest].concat());
        let json = fs::read_to_string(&file).unwrap_or_else(|error| {
            panic!("{args:?} wrote no report: {error}\n{}", described(&output))
        });
        let value = serde_json::from_str(&json)
            .unwrap_or_else(|error| panic!("{args:?}: {error} in\n{json}"));
        (output, value)
    }

    /// The report of a run whose exit code must be 0.
    pub fn report(&self, args: &[&str]) -> serde_json::Value {
        let (output, value) = self.refit_json(args);
        expect_code(&output, 0);
        value
    }

    /// Runs a command (refit, by `refit_path()`, or any other) under `strace -f`, following these system
    /// calls (a `-e trace=` expression). Skips the test where there is no strace.
    pub fn strace(&self, calls: &str, words: &[&str]) -> (Output, Trace) {
        self.require_command("strace");
        let log = tempfile::NamedTempFile::new_in(&self.dir).expect("the test's directory is ours");
        let log_path = text_path(log.path());
        let trace = format!("trace={calls}");
        let output = self.run(
            &[
                &["strace", "-f", "-qq", "-o", &log_path, "-e", &trace, "--"],
                words,
            ]
            .concat(),
        );
        let text = fs::read(log.path()).expect("strace's log is ours");
        (output, Trace::parse(&String::from_utf8_lossy(&text)))
    }

    /// Whether the tests run as root.
    pub fn as_root(&self) -> bool {
        sys::euid() == 0
    }

    /// Skips the test unless it runs as root.
    pub fn require_root(&self) {
        if !self.as_root() {
            self.skip("needs root");
        }
    }

    /// Skips on an emulated processor (REFIT_TEST_SLOWER), and says what it cannot do.
    pub fn require_real_processor(&self, why: &str) {
        if emulated() > 1.0 {
            self.skip(&format!("needs a real processor: {why}"));
        }
    }

    /// Skips the test unless the command is on the PATH.
    pub fn require_command(&self, name: &str) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|dir| dir.join(name).is_file()) {
            self.skip(&format!("{name} is not installed"));
        }
    }

    /// Skips the test where this user cannot have namespaces of these options of unshare(1), with what it told.
    pub fn require_namespaces(&self, options: &[&str]) {
        self.require_command("unshare");
        let tried = self.run(&[&["unshare"], options, &["true"]].concat());
        if !tried.status.success() {
            let told = String::from_utf8_lossy(&tried.stderr);
            self.skip(&format!(
                "needs namespaces ({}): {}",
                options.join(" "),
                told.trim()
            ));
        }
    }

    /// Ends this test as skipped, from anywhere.
    pub fn skip(&self, reason: &str) -> ! {
        println!("skip: {reason}");
        if self.own.is_some() {
            // exit() drops nothing; where the directory cannot be removed, it stays.
            let _ = fs::remove_dir_all(&self.dir);
        }
        std::process::exit(SKIPPED)
    }
}

/// The refit under test, which every user may run.
pub fn refit_path() -> String {
    let path = std::env::var_os("REFIT_BIN")
        .map_or_else(|| target_dir().join("release/refit"), PathBuf::from);
    assert!(
        path.is_file(),
        "{} is not there; build it, or set REFIT_BIN",
        path.display()
    );
    text_path(&for_everybody(path))
}

/// Fails the test, with all that the command printed, unless it exited with this code.
#[track_caller]
pub fn expect_code(output: &Output, code: i32) {
    assert!(
        output.status.code() == Some(code),
        "expected exit code {code}: {}",
        described(output)
    );
}

/// Fails the test unless the command exited with this code and printed this text on stdout.
#[track_caller]
pub fn expect_printed(output: &Output, code: i32, text: &str) {
    expect_code(output, code);
    expect_text(output, &output.stdout, text);
}

/// Fails the test unless the command exited with this code and printed this text on stderr.
#[track_caller]
pub fn expect_message(output: &Output, code: i32, text: &str) {
    expect_code(output, code);
    expect_text(output, &output.stderr, text);
}

#[track_caller]
fn expect_text(output: &Output, stream: &[u8], text: &str) {
    assert!(
        String::from_utf8_lossy(stream).contains(text),
        "{text:?} is not in {}",
        described(output)
    );
}

/// Running refit with these words is a usage error: its message has each of the texts, and nothing is on stdout.
pub fn expect_refused(env: &TestEnv, words: &[&str], texts: &[&str]) {
    let output = env.refit(words);
    expect_code(&output, 2);
    for text in texts {
        expect_text(&output, &output.stderr, text);
    }
    assert!(output.stdout.is_empty(), "{}", described(&output));
}

/// The exit status and both streams, for a message.
pub fn described(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!(
        "{}\n--- stdout\n{stdout}--- stderr\n{stderr}---",
        output.status
    )
}

/// Asks again and again until there is an answer; fails the test, naming what was waited for, at the deadline.
#[track_caller]
#[allow(dead_code)]
pub fn wait_for<T>(what: &str, answer: impl FnMut() -> Option<T>) -> T {
    wait_within(TIMEOUT, what, answer)
}

/// The same with a deadline of its own.
#[track_caller]
pub fn wait_within<T>(limit: Duration, what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let mut deadline = Deadline::after(limit);
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(!deadline.is_over(), "waited {deadline} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a condition.
#[track_caller]
#[allow(dead_code)]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Waits for a file to appear, and reads it.
#[track_caller]
#[allow(dead_code)]
pub fn wait_for_file(path: &str) -> String {
    wait_for(path, || fs::read_to_string(path).ok())
}

pub fn finish(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("start {command:?}: {error}"))
}

fn text_path(path: &Path) -> String {
    path.to_str()
        .expect("the tests' own paths are text")
        .to_owned()
}
