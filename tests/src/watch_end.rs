//! What the end of `refit watch` tells, and `refit report` of it later.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::deadline::Deadline;
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::sys::{ended_within, pty, send_signal};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message};
use crate::watch_strange::{end, start};

pub const TESTS: &[Test] = &[
    test!(what_huge_pages_would_add_is_told),
    test!(a_stored_watch_is_drawn_again),
    test!(it_ends_when_nobody_reads_it),
    test!(it_ends_when_its_terminal_is_gone),
    test!(a_pipe_that_nobody_reads_holds_it_up_until_a_signal),
    test!(without_proc_it_says_so),
];

/// Windows of 2 MiB of which one page is touched, and what the rest of them is.
const WINDOWS: u64 = 37;
const REST: u64 = WINDOWS * ((2 << 20) - 4096);
/// Of the program's other mappings.
const OTHERS: u64 = 4 << 20;

fn json(env: &TestEnv, name: &str) -> Value {
    let text = fs::read_to_string(env.path(name)).expect("it was written");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Runs the program under --heap, and ends it by its input after so long: what huge pages would add, if it was read.
fn run_for(env: &TestEnv, program: &str, seconds: u64) -> Option<(Output, u64)> {
    let (windows, file) = (WINDOWS.to_string(), env.path("run.json"));
    let mut run = env.refit_command(&["run", "--heap", "--json", &file, "--", program, &windows]);
    let run = run.stdin(Stdio::piped()).stdout(Stdio::piped());
    let run = run.stderr(Stdio::piped()).spawn().expect("refit starts");
    sleep(Duration::from_secs(seconds));
    let output = run.wait_with_output().expect("it is our child");
    expect_code(&output, 0);
    let added = json(env, "run.json")["memory"]["huge_pages_could_add_bytes"].as_u64();
    added.map(|added| (output, added))
}

fn what_huge_pages_would_add_is_told(env: &TestEnv) -> Outcome {
    let program = env.program("sparse_pages");
    let windows = WINDOWS.to_string();
    let (child, _) = start(env, &[&program, &windows]);
    let (pid, file) = (child.id().to_string(), env.path("series.json"));
    let output = env.refit(&["watch", "--batch", "--for", "1s", "--json", &file, &pid]);
    end(child);
    expect_code(&output, 0);
    let found = &json(env, "series.json")["huge_pages"][0];
    assert_eq!(found["pid"].to_string(), pid);
    let added = number(&found["could_add_bytes"]);
    assert!(
        (REST..REST + OTHERS).contains(&added),
        "{added} and not {REST}"
    );
    let text = String::from_utf8_lossy(&output.stderr);
    let told = format!("sparse_pages ({pid}): with transparent huge pages wherever they fit");
    assert!(text.contains(&told), "{}", described(&output));

    // Memory is read while the program runs, and rarely on a machine that has no time.
    let (output, added) = [1, 4, 16]
        .into_iter()
        .find_map(|seconds| run_for(env, &program, seconds))
        .expect("it is read within 16 seconds");
    assert!(
        (REST..REST + OTHERS).contains(&added),
        "{added} and not {REST}"
    );
    let text = String::from_utf8_lossy(&output.stderr);
    let told = "with transparent huge pages wherever they fit (`always`) up to 7";
    assert!(text.contains(told), "{}", described(&output));
    Outcome::Pass
}

fn a_stored_watch_is_drawn_again(env: &TestEnv) -> Outcome {
    let (child, _) = start(env, &[&env.program("sparse_pages"), "1"]);
    let (pid, file, page) = (
        child.id().to_string(),
        env.path("a.json"),
        env.path("a.html"),
    );
    let words = ["watch", "--batch", "--for", "1s", "--interval", "200ms"];
    let output = env.refit(&[&words[..], &["--json", &file, "--html", &page, &pid]].concat());
    end(child);
    expect_code(&output, 0);
    let again = env.refit(&["report", &file]);
    expect_code(&again, 0);
    let text = String::from_utf8_lossy(&again.stdout);
    let title = format!("refit watch: sparse_pages ({pid})");
    assert!(text.starts_with(&title), "{}", described(&again));
    let live = String::from_utf8_lossy(&output.stdout);
    let last = live.lines().last().expect("lines");
    assert!(text.contains(last), "{last}: {}", described(&again));
    let told = String::from_utf8_lossy(&output.stderr);
    for line in told.lines().filter_map(|line| line.strip_prefix("refit: ")) {
        assert!(text.contains(line), "{line}: {}", described(&again));
    }
    let (drawn, chart) = (env.path("b.html"), env.path("b.svg"));
    let output = env.refit(&["report", "--html", &drawn, "--svg", &chart, &file]);
    expect_code(&output, 0);
    let read = |path: &str| fs::read_to_string(path).expect("it was written");
    assert_eq!(read(&drawn), read(&page));
    assert!(read(&chart).starts_with("<svg"));
    let refused = env.refit(&["report", "--md", &env.path("b.md"), &file]);
    expect_code(&refused, 2);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        text.contains("--md: a watch is drawn as --html or --svg"),
        "{text}"
    );
    // A file may hold anything.
    let broken = read(&file).replace("\"group\":0", "\"group\":7");
    let broken = env.file("broken.json", &broken);
    let refused = env.refit(&["report", &broken]);
    expect_code(&refused, 2);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        text.contains("is damaged: a sample is of a group"),
        "{text}"
    );
    Outcome::Pass
}

fn it_ends_when_nobody_reads_it(env: &TestEnv) -> Outcome {
    let pid = std::process::id().to_string();
    let refit = crate::test_env::refit_path();
    let read_one = |options: &str| {
        let script = format!("timeout 20 {refit} watch {options} {pid} 2>err | head -n 1");
        let output = env.run(&["bash", "-c", &format!("{script}; echo ${{PIPESTATUS[0]}}")]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for options in ["", "--interval 300s", "--per 'echo 1'"] {
        let text = read_one(options);
        assert!(text.ends_with("\n0\n"), "{options}: {text}");
    }
    // What is kept in a file is not cut short by it.
    let text = read_one("--for 2s --interval 500ms --json kept.json");
    assert!(text.ends_with("\n0\n"), "{text}");
    let samples = json(env, "kept.json")["samples"].clone();
    let last = samples.as_array().and_then(|samples| samples.last());
    let at_ms = last.and_then(|last| last["at_ms"].as_u64());
    assert!(at_ms.is_some_and(|at_ms| at_ms >= 1_500), "{samples}");
    Outcome::Pass
}

/// How long it may take to end, on a machine with a hundred other things to do.
const SOON: Duration = Duration::from_secs(20);

fn it_ends_when_its_terminal_is_gone(env: &TestEnv) -> Outcome {
    let refit = crate::test_env::refit_path();
    for signal in ["", "trap '' HUP; "] {
        let own = std::process::id();
        let script = format!("stty rows 40 cols 100; {signal}exec {refit} watch {own}");
        let mut shell = env.command("sh");
        // What a terminal has that the tests may be run without.
        shell.args(["-c", &script]).env("TERM", "xterm");
        let (mut child, mut person) = pty::spawn(shell).expect("a terminal can be had");
        let mut shown = Vec::new();
        // Until the whole of its first screen is there, it has not come to reading keys.
        while !String::from_utf8_lossy(&shown).contains("\x1b[?1049h") || shown.len() < 500 {
            let mut bytes = [0; 1024];
            let count = person.read(&mut bytes).expect("it is there");
            assert!(count > 0, "{}", String::from_utf8_lossy(&shown));
            shown.extend_from_slice(&bytes[..count]);
        }
        drop(person);
        let has_ended = ended_within(child.id(), SOON).expect("it is our child");
        let _ = child.kill();
        child.wait().expect("it is our child");
        assert!(has_ended, "without a terminal it goes on, with `{signal}`");
    }
    Outcome::Pass
}

fn a_pipe_that_nobody_reads_holds_it_up_until_a_signal(env: &TestEnv) -> Outcome {
    let fifo = env.path("fifo");
    expect_code(&env.run(&["mkfifo", &fifo]), 0);
    let pid = std::process::id().to_string();
    let words = [
        "watch",
        "--batch",
        "--for",
        "60s",
        "--openmetrics",
        &fifo,
        &pid,
    ];
    expect_message(&env.refit(&words), 2, "nobody reads this pipe");
    if env.as_root() {
        // As in /tmp: another user made it.
        let shared = env.path("shared");
        fs::create_dir(&shared).expect("ours");
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("ours");
        let theirs = format!("{shared}/fifo");
        expect_code(&env.run(&["mkfifo", &theirs]), 0);
        chown(&theirs, Some(65534), None).expect("root may");
        let _reader = opened(&theirs);
        let words = ["watch", "--batch", "--openmetrics", &theirs, &pid];
        expect_message(&env.refit(&words), 2, "it belongs to another user");
    }
    // One that reads nothing, and whose pipe is full.
    let _reader = opened(&fifo);
    let mut writer = opened(&fifo);
    while writer.write(&[b'x'; 4096]).is_ok() {}
    let mut watch = env.refit_command(&words);
    let watch = watch.stdin(Stdio::null()).stdout(Stdio::null());
    let mut watch = watch.stderr(Stdio::null()).spawn().expect("refit starts");
    // It has come to the pipe, which has no room, when it holds it open.
    let of_watch = format!("/proc/{}/fd", watch.id());
    let holds =
        |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to == Path::new(&fifo));
    let mut deadline = Deadline::after(SOON);
    while !fs::read_dir(&of_watch)
        .expect("it runs")
        .flatten()
        .any(holds)
    {
        assert!(
            !deadline.is_over(),
            "it did not open the pipe within {deadline}"
        );
        sleep(Duration::from_millis(5));
    }
    send_signal(watch.id().cast_signed(), libc::SIGTERM);
    let has_ended = ended_within(watch.id(), SOON).expect("it is our child");
    let _ = watch.kill();
    watch.wait().expect("it is our child");
    assert!(has_ended, "SIGTERM did not end it");
    Outcome::Pass
}

/// A pipe by its name, for both directions: neither waits for the other (fifo(7)).
fn opened(fifo: &str) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true);
    let options = options.custom_flags(libc::O_NONBLOCK);
    options.open(fifo).expect("ours")
}

fn without_proc_it_says_so(env: &TestEnv) -> Outcome {
    let refit = crate::test_env::refit_path();
    for (words, code) in [("1", 2), ("--per 'echo 1' 1", 2), ("-- sleep 1", 125)] {
        let script = format!("umount -l /proc; exec {refit} watch {words}");
        let output = crate::places::in_own_mounts(env, &script).output();
        let output = output.expect("unshare is there");
        expect_code(&output, code);
        let text = described(&output);
        assert!(text.contains("/proc is not mounted here"), "{text}");
        assert!(output.stdout.is_empty(), "{text}");
    }
    Outcome::Pass
}
