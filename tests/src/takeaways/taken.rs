//! A verb at work, and what is taken from it: what comes of it is what its table expects, and nothing is left of it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::processes::status_line;
use crate::remains::base;
use crate::sys::{pty, send_signal, set_nonblocking};
use crate::test_env::{TestEnv, expect_code, wait_until, wait_within};

/// How long an end may take, on a machine with a hundred other things to do; what it took is printed.
pub const SOON: Duration = Duration::from_secs(20);
/// So long at least the processor time of what goes on is looked at.
pub const LOOK: Duration = Duration::from_secs(1);

/// What is taken.
#[derive(Clone, Copy, Debug)]
pub enum Taken {
    /// The terminal hangs up, and SIGHUP tells so.
    Terminal,
    /// The same where SIGHUP was ignored from the start: only reads and writes tell.
    TerminalQuietly,
    /// What reads stdout and stderr, as `2>&1 | head` does.
    Reader,
    /// The shell that started it dies of SIGKILL.
    Parent,
}

/// What comes of it.
#[derive(Clone, Copy)]
pub enum Then {
    /// It ends soon with this code: 128 and the number of a signal that ends it.
    Ends(i32),
    /// It comes on as before.
    GoesOn,
    /// It cannot have such a thing.
    HasNone,
}
pub use Then::{Ends, GoesOn, HasNone};

/// How what went on comes to an end.
pub enum End {
    /// By itself with this code, once the file `go` is there.
    ByItself(i32),
    /// By SIGTERM, with this code.
    ByTerm(i32),
}
pub use End::{ByItself, ByTerm};

pub struct Verb {
    pub command: fn(&TestEnv) -> Command,
    /// How far it has come: 0 before it works, then more and more.
    pub progress: fn(&mut Running) -> u64,
    /// What is expected, and why.
    pub expected: [(Taken, Then, &'static str); 4],
    pub end: End,
}

/// refit at work.
pub struct Running<'a> {
    pub env: &'a TestEnv,
    pub child: Child,
    /// refit's own, which is not the child's where a shell stands between them.
    pub pid: u32,
    /// The other side of its terminal or its pipe.
    pub person: Option<File>,
    pub printed: Vec<u8>,
    pub answers: u64,
}

impl Running<'_> {
    /// Bytes that it printed so far.
    pub fn printed(&mut self) -> u64 {
        let mut bytes = [0; 4096];
        while let Some(count @ 1..) = self
            .person
            .as_mut()
            .and_then(|from| from.read(&mut bytes).ok())
        {
            self.printed.extend_from_slice(&bytes[..count]);
        }
        let out = fs::metadata(self.env.path("out")).map_or(0, |file| file.len());
        self.printed.len() as u64 + out
    }

    /// Lines that the test's commands wrote there.
    pub fn lines(&self, name: &str) -> u64 {
        let text = fs::read(self.env.path(name)).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    pub fn is_alive(&self) -> bool {
        status_line(self.pid, "State").is_some_and(|state| !state.starts_with(['Z', 'X']))
    }

    /// Processor time of all its threads; that of children which it waits for is not in it.
    pub fn used(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
        // USER_HZ, which is 100 wherever refit runs (proc(5)).
        Some(Duration::from_millis(ticks * 10))
    }
}

pub fn code(status: ExitStatus) -> i32 {
    let of_signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(of_signal).expect("it ended")
}

pub fn own_pid() -> String {
    std::process::id().to_string()
}

/// The same command as words of a shell that does this first.
fn in_shell(env: &TestEnv, script: &str, command: &Command) -> Command {
    let mut shell = env.command("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    // What a terminal has that the tests may be run without.
    shell.env("TERM", "xterm");
    shell
}

/// Starts it with what will be taken.
pub fn start<'a>(env: &'a TestEnv, verb: &Verb, taken: Taken) -> Running<'a> {
    let command = (verb.command)(env);
    let (child, person) = match taken {
        Taken::Terminal | Taken::TerminalQuietly => {
            let ignores = matches!(taken, Taken::TerminalQuietly);
            let trap = if ignores { "trap '' HUP; " } else { "" };
            let script = format!("stty rows 40 cols 100; {trap}exec \"$@\"");
            let (child, person) =
                pty::spawn(in_shell(env, &script, &command)).expect("a terminal can be had");
            set_nonblocking(&person).expect("it is ours");
            (child, Some(person))
        }
        Taken::Reader => {
            let fifo = env.path("fifo");
            let _ = fs::remove_file(&fifo);
            expect_code(&env.run(&["mkfifo", &fifo]), 0);
            let mut options = File::options();
            let reader = options
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(&fifo)
                .expect("ours");
            let writer = File::options()
                .write(true)
                .open(&fifo)
                .expect("it has a reader");
            let mut command = command;
            command
                .stdin(Stdio::null())
                .stdout(writer.try_clone().expect("descriptors are left"));
            let child = command.stderr(writer).spawn().expect("refit starts");
            (child, Some(reader))
        }
        Taken::Parent => {
            let script = "\"$@\" >out 2>&1 </dev/null & echo $! >pid.new; mv pid.new pid; wait";
            (
                in_shell(env, script, &command).spawn().expect("sh starts"),
                None,
            )
        }
    };
    let pid = match taken {
        Taken::Parent => wait_within(SOON, "the shell's child", || {
            fs::read_to_string(env.path("pid")).ok()
        })
        .trim()
        .parse()
        .expect("a shell's pid"),
        _ => child.id(),
    };
    Running {
        env,
        child,
        pid,
        person,
        printed: Vec::new(),
        answers: 0,
    }
}

/// What this test started and what still runs of it.
fn left_running(env: &TestEnv) -> Vec<String> {
    let mark = format!("REFIT_TEST_ENV_DIR={}", env.dir().display());
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        *pid != std::process::id()
            && environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
    };
    let described = |pid: u32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("{pid} {}", words.replace('\0', " "))
    };
    pids.filter(is_ours).map(described).collect()
}

/// The sessions of what runs below this test now.
pub fn sessions(env: &TestEnv) -> Vec<PathBuf> {
    let variables = left_running(env).into_iter().flat_map(|line| {
        let pid = line.split(' ').next().unwrap_or_default();
        let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap_or_default();
        let named = |entry: &str| entry.strip_prefix("REFIT_SESSION=").map(PathBuf::from);
        environment
            .split('\0')
            .filter_map(named)
            .collect::<Vec<_>>()
    });
    variables.collect()
}

/// No process; no session, once another refit has looked; no instance; no file that is not whole.
fn expect_nothing_left(env: &TestEnv, sessions: &[PathBuf], what: &str) {
    wait_until(&format!("{what}: the end of all its processes"), || {
        left_running(env).is_empty()
    });
    let mut deadline = Deadline::after(SOON);
    loop {
        expect_code(
            &env.refit(&["run", "--quiet", "--json", "next.json", "--", "true"]),
            0,
        );
        let left: Vec<_> = sessions.iter().filter(|session| session.exists()).collect();
        if left.is_empty() {
            break;
        }
        // Another test's refit may look at it just now.
        assert!(!deadline.is_over(), "{what}: sessions are left: {left:?}");
    }
    let instances = fs::read_dir(base(env)).expect("it is ours").flatten();
    let instances: Vec<_> = instances.map(|entry| entry.path()).collect();
    assert!(instances.is_empty(), "{what}: {instances:?}");
    for entry in fs::read_dir(env.dir()).expect("it is ours").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = || fs::read_to_string(&path).expect("it is ours");
        if name.ends_with(".json") {
            let read = serde_json::from_str::<serde_json::Value>(&text());
            assert!(read.is_ok(), "{what}: {name} is not whole: {read:?}");
        } else if name.ends_with(".prom") {
            assert!(
                text().ends_with('\n') && text().contains("refit_processes"),
                "{what}: {name} is not whole"
            );
        }
        assert!(
            !name.starts_with('.') && !name.contains(".refit"),
            "{what}: {name} is left"
        );
    }
}

/// Everything that the verb can have is taken from it, in a run for each.
pub fn taken_from(env: &TestEnv, verb: &Verb) {
    for (taken, then, why) in verb.expected {
        if matches!(then, HasNone) {
            println!("counted: {taken:?}: {why}");
            continue;
        }
        for name in ["log", "go", "out", "pid", "done"] {
            let _ = fs::remove_file(env.path(name));
        }
        let what = format!("{taken:?}, {why}");
        let mut running = start(env, verb, taken);
        wait_within(SOON, &format!("{what}: its work"), || {
            assert!(running.is_alive(), "{what}: it ended before");
            ((verb.progress)(&mut running) > 0).then_some(())
        });
        let sessions = sessions(env);
        let (before, used, began) = (
            (verb.progress)(&mut running),
            running.used(),
            Instant::now(),
        );
        match taken {
            Taken::Parent => {
                running.child.kill().expect("it is our child");
                running.child.wait().expect("it is our child");
            }
            _ => drop(running.person.take()),
        }
        match then {
            Ends(meant) => {
                wait_within(SOON, &format!("{what}: its end"), || {
                    (!running.is_alive()).then_some(())
                });
                let took = began.elapsed();
                let status = running.child.wait().expect("it is our child");
                println!(
                    "counted: {taken:?}: ended after {:.1} s: {why}",
                    took.as_secs_f64()
                );
                assert_eq!(code(status), meant, "{what}");
            }
            GoesOn => {
                wait_within(SOON, &format!("{what}: more of its work"), || {
                    assert!(running.is_alive(), "{what}: it ended");
                    let is_further = (verb.progress)(&mut running) > before;
                    (is_further && began.elapsed() >= LOOK).then_some(())
                });
                let (wall, since) = (began.elapsed(), running.used().zip(used));
                let spent = since.map_or(Duration::ZERO, |(after, before)| after - before);
                println!(
                    "counted: {taken:?}: went on, {:.0} % of a core: {why}",
                    100.0 * spent.as_secs_f64() / wall.as_secs_f64()
                );
                assert!(spent * 2 < wall, "{what}: it used {spent:?} in {wall:?}");
                let meant = match verb.end {
                    ByItself(code) => {
                        env.file("go", "");
                        code
                    }
                    ByTerm(code) => {
                        send_signal(running.pid.cast_signed(), libc::SIGTERM);
                        code
                    }
                };
                wait_within(SOON, &format!("{what}: its end at last"), || {
                    (!running.is_alive()).then_some(())
                });
                // An orphan's code is told to nobody here.
                if !matches!(taken, Taken::Parent) {
                    let status = running.child.wait().expect("it is our child");
                    assert_eq!(code(status), meant, "{what}");
                }
            }
            HasNone => unreachable!("it was passed over"),
        }
        env.file("go", "");
        expect_nothing_left(env, &sessions, &what);
    }
}
