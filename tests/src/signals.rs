//! refit is a parent that nobody notices at a terminal: a key pressed once is one signal, jobs stop and go on,
//! loops end, and a program has the dispositions and the mask that it would have had without refit.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::processes::{children, status_line};
use crate::runner::{Outcome, Test};
use crate::terminal::{CTRL_C, CTRL_D, CTRL_Z, Terminal};
use crate::test_env::{TestEnv, expect_code, refit_path, wait_for, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(one_ctrl_c_arrives_exactly_once),
    test!(refit_sends_no_ctrl_c_on),
    test!(ctrl_z_stops_the_job_and_fg_continues_it),
    test!(a_signal_sent_to_refit_alone_arrives_once),
    test!(a_shell_loop_ends_at_ctrl_c_as_it_does_without),
    test!(dispositions_and_mask_are_inherited),
    test!(ignored_child_signals_hide_no_exit_code),
];

/// How often a signal is repeated: two that arrive at once merge into one, and a fault with them.
const TIMES: usize = 10;

/// Waits until refit, and the program beneath it, have taken every signal that they were sent, and have done with
/// it what they do.
fn settled(refit: u32, program: u32) {
    let none = |mask: String| mask.bytes().all(|digit| digit == b'0');
    for pid in [refit, program] {
        wait_until("no signal to be pending and nothing to do", || {
            status_line(pid, "ShdPnd").is_some_and(none)
                && status_line(pid, "SigPnd").is_some_and(none)
                && status_line(pid, "State").is_some_and(|state| state.starts_with('S'))
        });
    }
}

fn one_ctrl_c_arrives_exactly_once(env: &TestEnv) -> Outcome {
    let program = env.program("count_sigint");
    for options in [&["run", "--"][..], &["run", "--quiet", "--"]] {
        let mut terminal =
            Terminal::start(env.refit_command(&[options, &[program.as_str()]].concat()));
        terminal.wait_for("ready");
        let refit = terminal.pid();
        let runs_program = !options.contains(&"--quiet");
        let below = if runs_program { child_of(refit) } else { refit };
        for _ in 0..TIMES {
            terminal.type_in(CTRL_C);
            // The terminal echoes a key after it has sent its signal to the whole group.
            terminal.wait_for("^C");
            settled(refit, below);
        }
        terminal.type_in(CTRL_D);
        let (status, shown) = terminal.finish();
        assert!(status.success(), "{status}: {shown}");
        let mut lines = shown.lines().map(|line| line.trim_start_matches("^C"));
        let count = lines.find_map(|line| line.parse::<usize>().ok());
        assert_eq!(count, Some(TIMES), "{options:?}: {shown}");
    }
    Outcome::Pass
}

/// What merged above is seen here: strace shows each signal that refit sends.
fn refit_sends_no_ctrl_c_on(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let log = env.path("log");
    let mut strace = env.command("strace");
    strace.args(["-f", "-qq", "-o", &log]);
    strace.args(["-e", "trace=kill,tkill,tgkill,pidfd_send_signal", "--"]);
    strace.args([&refit_path(), "run", "--", &env.program("count_sigint")]);
    let mut terminal = Terminal::start(strace);
    terminal.wait_for("ready");
    for _ in 0..TIMES {
        terminal.type_in(CTRL_C);
        terminal.wait_for("^C");
    }
    terminal.type_in(CTRL_D);
    let (status, shown) = terminal.finish();
    assert!(status.success(), "{status}: {shown}");
    let log = std::fs::read_to_string(&log).expect("strace wrote it");
    let came = "--- SIGINT {si_signo=SIGINT, si_code=SI_KERNEL";
    assert!(log.contains(came), "{log}");
    let sent = log
        .lines()
        .find(|line| line.contains("kill(") && line.contains("SIGINT"));
    assert_eq!(sent, None, "{log}");
    Outcome::Pass
}

/// The child of a process that runs something else than it does itself.
fn child_of(pid: u32) -> u32 {
    let runs = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    wait_for("a child", || {
        let mut all = children(pid).into_iter();
        all.find(|child| runs(*child).is_some_and(|file| Some(file) != runs(pid)))
    })
}

fn ctrl_z_stops_the_job_and_fg_continues_it(env: &TestEnv) -> Outcome {
    env.require_command("bash");
    let mut bash = env.command("bash");
    bash.args(["--norc", "--noprofile", "--noediting", "-i"]);
    bash.env("PS1", "prompt:").env("TERM", "dumb");
    bash.env("HISTFILE", "/dev/null");
    let mut terminal = Terminal::start(bash);
    terminal.wait_for("prompt:");
    let program = env.program("count_sigint");
    terminal.type_in(&format!("{} run -- {program}\n", refit_path()));
    terminal.wait_for("ready");
    let refit = child_of(terminal.pid());
    let job = [refit, child_of(refit)];
    let all_are = |states: &str| {
        let state = |pid: &u32| status_line(*pid, "State")?.chars().next();
        job.iter()
            .all(|pid| state(pid).is_some_and(|state| states.contains(state)))
    };
    for _ in 0..3 {
        terminal.type_in(CTRL_Z);
        terminal.wait_for("Stopped");
        terminal.wait_for("prompt:");
        wait_until("both to be stopped", || all_are("T"));
        terminal.type_in("fg\n");
        wait_until("both to go on", || all_are("S"));
        terminal.type_in(CTRL_C);
        terminal.wait_for("^C");
        settled(job[0], job[1]);
    }
    terminal.type_in(CTRL_D);
    terminal.wait_for("3\n");
    terminal.wait_for("prompt:");
    terminal.type_in("echo code $?; exit 7\n");
    terminal.wait_for("\ncode 0\n");
    let (status, shown) = terminal.finish();
    assert_eq!(status.code(), Some(7), "{shown}");
    Outcome::Pass
}

fn a_signal_sent_to_refit_alone_arrives_once(env: &TestEnv) -> Outcome {
    // Each line of input ends one round; a duplicate would print a line too many.
    let script = "trap 'echo term' TERM; trap 'echo usr1' USR1; echo ready; \
                  while ! read line || [ \"$line\" != end ]; do :; done";
    let mut child = env
        .refit_command(&["run", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("refit was built");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = move || {
        let line = lines.next().expect("it goes on");
        line.expect("its output is text")
    };
    assert_eq!(next(), "ready");
    let program = child_of(child.id());
    for _ in 0..TIMES {
        for (signal, word) in [(libc::SIGTERM, "term"), (libc::SIGUSR1, "usr1")] {
            // A shell that is about to read misses a signal until it has read.
            wait_until("the shell to read", || {
                status_line(program, "State").is_some_and(|state| state.starts_with('S'))
            });
            let pid = i32::try_from(child.id()).expect("process ids are ints");
            sys::send_signal(pid, signal);
            assert_eq!(next(), word);
            settled(child.id(), program);
        }
    }
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(b"end\n").expect("sh reads it");
    assert!(child.wait().expect("it is our child").success());

    // And where the program does not catch it, refit ends as the program does.
    let mut child = env
        .refit_command(&["run", "--", "sh", "-c", "echo up; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("refit was built");
    let mut out = child.stdout.take().expect("it is piped");
    out.read_exact(&mut [0; 3]).expect("sh says that it is up");
    let pid = i32::try_from(child.id()).expect("process ids are ints");
    // Waiting would close it, and cat would end by itself.
    let input = child.stdin.take();
    sys::send_signal(pid, libc::SIGTERM);
    let status = child.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    drop(input);
    Outcome::Pass
}

fn catches_interruptions(pid: u32) -> bool {
    let mask = status_line(pid, "SigCgt").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask & 1 << (libc::SIGINT - 1) != 0)
}

fn a_shell_loop_ends_at_ctrl_c_as_it_does_without(env: &TestEnv) -> Outcome {
    env.require_command("bash");
    // One program that the signal kills, and one that catches it: the loop ends, and it goes on.
    let killed = ["sh", "-c", "echo ready; exec cat"];
    let catching = env.program("count_sigint");
    let catches = [catching.as_str()];
    let in_loop = |prefix: &[&str], program: &[&str]| {
        let script = "for i in 1 2; do echo round $i; \"$@\"; echo code $?; done; echo after";
        let mut bash: Command = env.command("bash");
        bash.args(["--norc", "-c", script, "bash"]);
        bash.args(prefix).args(program);
        let mut terminal = Terminal::start(bash);
        terminal.wait_for("ready");
        // It leaves the signal to its child only once it waits for it; before that, the signal ends it.
        let bash = terminal.pid();
        wait_until("bash to wait for its child", || {
            catches_interruptions(bash)
                && status_line(bash, "State").is_some_and(|state| state.starts_with('S'))
        });
        terminal.type_in(CTRL_C);
        if program == catches {
            terminal.wait_for("^C");
            terminal.type_in(CTRL_D);
            terminal.wait_for("ready");
            terminal.type_in(CTRL_D);
        }
        let (status, shown) = terminal.finish();
        // Echoed after the signal (n_tty.c), when nobody may be left who has the terminal open.
        (status.code(), status.signal(), shown.replace("^C", ""))
    };
    let (refit, json) = (refit_path(), env.path("report.json"));
    let beneath = [refit.as_str(), "run", "--quiet", "--json", &json, "--"];
    let (without, with) = (in_loop(&[], &killed), in_loop(&beneath, &killed));
    assert_eq!(with, without);
    assert_eq!(without.1, Some(libc::SIGINT));
    assert!(!without.2.contains("after"), "{without:?}");

    let (without, with) = (in_loop(&[], &catches), in_loop(&beneath, &catches));
    assert_eq!(with, without);
    assert!(without.2.contains("1\ncode 0\nround 2\n"), "{without:?}");
    Outcome::Pass
}

fn dispositions_and_mask_are_inherited(env: &TestEnv) -> Outcome {
    if !env
        .run(&["env", "--block-signal=USR1", "true"])
        .status
        .success()
    {
        env.skip("env has no --block-signal");
    }
    let (refit, json) = (refit_path(), env.path("report.json"));
    let modes: [&[&str]; 3] = [
        &[],
        &[&refit, "run", "--quiet", "--"],
        &[&refit, "run", "--quiet", "--json", &json, "sync=off", "--"],
    ];
    let every = "--ignore-signal=PIPE,INT,QUIT,HUP,TERM,CHLD,TSTP,XFSZ,USR2";
    let mut usual = None;
    for given in [
        &[][..],
        &["--ignore-signal=PIPE"],
        &["--ignore-signal=CHLD"],
        &["--ignore-signal=XFSZ"],
        &[every],
        &["--block-signal=INT,TERM,CHLD,PIPE,USR1,WINCH"],
        &["--block-signal=XFSZ,TSTP", every],
    ] {
        let seen = modes.map(|mode| {
            let grep = ["grep", "-E", "^Sig(Ign|Blk|Cgt)", "/proc/self/status"];
            let output = env.run(&[&["env"], given, mode, &grep].concat());
            expect_code(&output, 0);
            String::from_utf8_lossy(&output.stdout).into_owned()
        });
        assert_eq!(seen[1], seen[0], "{given:?}, in refit's own process");
        assert_eq!(seen[2], seen[0], "{given:?}, beneath a supervisor");
        let usual = usual.get_or_insert_with(|| seen[0].clone());
        assert_eq!(seen[0] != *usual, !given.is_empty(), "{given:?}");
    }
    Outcome::Pass
}

fn ignored_child_signals_hide_no_exit_code(env: &TestEnv) -> Outcome {
    let refit = refit_path();
    let ignoring = ["env", "--ignore-signal=CHLD"];
    for (script, code, signal) in [("exit 7", Some(7), None), ("kill -9 $$", None, Some(9))] {
        let words = [refit.as_str(), "run", "--", "sh", "-c", script];
        let output = env.run(&[&ignoring, &words[..]].concat());
        assert_eq!(output.status.code(), code, "{output:?}");
        assert_eq!(output.status.signal(), signal, "{output:?}");
    }
    Outcome::Pass
}
