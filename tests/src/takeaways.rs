//! Each verb that works for long, and what is taken from it meanwhile: its terminal, the reader of its output, the
//! process that started it. It ends soon or goes on, as the table says; it never works for nothing, and leaves nothing.
//! What a full disk takes is in takeaways/disk.rs.

pub mod disk;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::apply::{DROP_IN, listing, tree};
use crate::crash::require_lab;
use crate::crash_remains::remains;
use crate::deadline::Deadline;
use crate::processes::status_line;
use crate::recipe_folder::RecipeFolder;
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::sys::{pty, send_signal, set_nonblocking};
use crate::test;
use crate::test_env::{TestEnv, expect_code, wait_for_file, wait_until, wait_within};

pub const TESTS: &[Test] = &[
    test!(of_a_live_watch).limit_seconds(120),
    test!(of_a_watch_that_prints_lines).limit_seconds(120),
    test!(of_a_watch_that_keeps_metrics_in_a_file).limit_seconds(120),
    test!(of_a_watch_that_is_scraped).limit_seconds(120),
    test!(of_a_watch_of_a_command).limit_seconds(120),
    test!(of_a_run).limit_seconds(120),
    test!(of_a_comparison_of_a_command).limit_seconds(180),
    test!(of_a_comparison_of_a_recipe).limit_seconds(180),
    test!(of_a_check_of_a_recipe).limit_seconds(180),
    test!(of_a_tuning).limit_seconds(180),
    test!(of_power_cuts).limit_seconds(180),
    test!(of_an_apply_that_asks).limit_seconds(120),
    test!(of_an_apply_that_waits_for_another).limit_seconds(120),
    test!(many_keys_at_once_are_taken_and_then_it_rests),
];

/// How long an end may take, on a machine with a hundred other things to do; what it took is printed.
const SOON: Duration = Duration::from_secs(20);
/// So long at least the processor time of what goes on is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What is taken.
#[derive(Clone, Copy, Debug)]
enum Taken {
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
enum Then {
    /// It ends soon with this code: 128 and the number of a signal that ends it.
    Ends(i32),
    /// It comes on as before.
    GoesOn,
    /// It cannot have such a thing.
    HasNone,
}
use Then::{Ends, GoesOn, HasNone};

/// How what went on comes to an end.
enum End {
    /// By itself with this code, once the file `go` is there.
    ByItself(i32),
    /// By SIGTERM, with this code.
    ByTerm(i32),
}
use End::{ByItself, ByTerm};

struct Verb {
    command: fn(&TestEnv) -> Command,
    /// How far it has come: 0 before it works, then more and more.
    progress: fn(&mut Running) -> u64,
    /// What is expected, and why.
    expected: [(Taken, Then, &'static str); 4],
    end: End,
}

/// refit at work.
struct Running<'a> {
    env: &'a TestEnv,
    child: Child,
    /// refit's own, which is not the child's where a shell stands between them.
    pid: u32,
    /// The other side of its terminal or its pipe.
    person: Option<File>,
    printed: Vec<u8>,
    answers: u64,
}

impl Running<'_> {
    /// Bytes that it printed so far.
    fn printed(&mut self) -> u64 {
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
    fn lines(&self, name: &str) -> u64 {
        let text = fs::read(self.env.path(name)).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    fn is_alive(&self) -> bool {
        status_line(self.pid, "State").is_some_and(|state| !state.starts_with(['Z', 'X']))
    }

    /// Processor time of all its threads; that of children which it waits for is not in it.
    fn used(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
        // USER_HZ, which is 100 wherever refit runs (proc(5)).
        Some(Duration::from_millis(ticks * 10))
    }
}

fn code(status: ExitStatus) -> i32 {
    let of_signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(of_signal).expect("it ended")
}

fn own_pid() -> String {
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
fn start<'a>(env: &'a TestEnv, verb: &Verb, taken: Taken) -> Running<'a> {
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
fn taken_from(env: &TestEnv, verb: &Verb) {
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

/// Which other changes of services wait for.
const LOCK: &str = "var/lib/refit/changes/lock";

const TERM: i32 = 128 + libc::SIGTERM;
const HUP: i32 = 128 + libc::SIGHUP;
const ITS_NOTICE: &str = "nobody is left to see it";
const BY_SIGHUP: &str = "SIGHUP ends it as it would end any command";
const AS_WITHOUT: &str = "the program is told, or not, as without refit";
const NOT_ITS_PARENT: &str = "who started it does not matter to it";

fn of_a_live_watch(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| env.refit_command(&["watch", "--interval", "200ms", &own_pid()]),
        // The whole first screen: it reads keys.
        progress: |running| running.printed().saturating_sub(500),
        expected: [
            (Taken::Terminal, Ends(0), ITS_NOTICE),
            (Taken::TerminalQuietly, Ends(0), ITS_NOTICE),
            (Taken::Reader, HasNone, "into a pipe it prints lines"),
            (
                Taken::Parent,
                HasNone,
                "on a terminal its end is the terminal's",
            ),
        ],
        end: ByTerm(0),
    };
    taken_from(env, &verb);
    // Its files are written all the same.
    let keeps = Verb {
        command: |env| {
            env.refit_command(&[
                "watch",
                "--interval",
                "200ms",
                "--json",
                &env.path("watch.json"),
                &own_pid(),
            ])
        },
        ..verb
    };
    taken_from(env, &keeps);
    let text = fs::read_to_string(env.path("watch.json")).expect("it was written");
    let series: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(
        series["samples"]
            .as_array()
            .is_some_and(|samples| !samples.is_empty()),
        "{text}"
    );
    Outcome::Pass
}

/// Whoever reads the lines of a watch that keeps nothing elsewhere is who it works for.
fn of_a_watch_that_prints_lines(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| env.refit_command(&["watch", "--batch", "--interval", "200ms", &own_pid()]),
        progress: |running| running.printed(),
        expected: [
            (Taken::Terminal, Ends(0), ITS_NOTICE),
            (Taken::TerminalQuietly, Ends(0), ITS_NOTICE),
            (Taken::Reader, Ends(0), ITS_NOTICE),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(0),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

const KEPT: &str = "what is kept elsewhere is not cut short";

fn of_a_watch_that_keeps_metrics_in_a_file(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| {
            let file = env.path("watch.prom");
            let _ = fs::remove_file(&file);
            let words = [
                "watch",
                "--batch",
                "--interval",
                "200ms",
                "--openmetrics",
                &file,
                &own_pid(),
            ];
            env.refit_command(&words)
        },
        // It is rewritten with each sample.
        progress: |running| {
            let written = fs::metadata(running.env.path("watch.prom"));
            written.map_or(0, |file| {
                (file.mtime() * 1_000_000_000 + file.mtime_nsec()).unsigned_abs()
            })
        },
        expected: [
            (Taken::Terminal, Ends(0), "SIGHUP asks for its end"),
            (Taken::TerminalQuietly, GoesOn, KEPT),
            (Taken::Reader, GoesOn, KEPT),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(0),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

/// Asks for the metrics, and counts the answers.
fn scraped(running: &mut Running) -> u64 {
    let port = fs::read_to_string(running.env.path("port")).expect("the test wrote it");
    let answer = TcpStream::connect(format!("127.0.0.1:{port}")).and_then(|mut stream| {
        stream.set_read_timeout(Some(SOON))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    running.answers += u64::from(answer.is_ok_and(|text| text.contains("refit_processes")));
    running.answers
}

fn of_a_watch_that_is_scraped(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let address = free.expect("a port can be had");
            env.file("port", &address.port().to_string());
            let words = [
                "watch",
                "--batch",
                "--interval",
                "200ms",
                "--listen",
                &address.to_string(),
                &own_pid(),
            ];
            env.refit_command(&words)
        },
        progress: scraped,
        expected: [
            (Taken::Terminal, Ends(0), "SIGHUP asks for its end"),
            (Taken::TerminalQuietly, GoesOn, KEPT),
            (Taken::Reader, GoesOn, KEPT),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(0),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

/// Works until the file `go` is there, and has a code of its own.
const PROGRAM: &str = "until test -e go; do echo >>log; sleep 0.05; done; exit 7";

fn lines_of_log(running: &mut Running) -> u64 {
    running.lines("log")
}

fn of_a_watch_of_a_command(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| {
            env.refit_command(&["watch", "--interval", "200ms", "--", "sh", "-c", PROGRAM])
        },
        // refit has printed lines too.
        progress: |running| match running.printed() {
            0 if running.person.is_some() => 0,
            _ => running.lines("log"),
        },
        expected: [
            (Taken::Terminal, Ends(HUP), AS_WITHOUT),
            (Taken::TerminalQuietly, GoesOn, AS_WITHOUT),
            (
                Taken::Reader,
                GoesOn,
                "a failed write of refit's is not the program's",
            ),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByItself(7),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

fn of_a_run(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| env.refit_command(&["run", "--", "sh", "-c", PROGRAM]),
        progress: lines_of_log,
        expected: [
            (Taken::Terminal, Ends(HUP), AS_WITHOUT),
            (Taken::TerminalQuietly, GoesOn, AS_WITHOUT),
            (Taken::Reader, GoesOn, AS_WITHOUT),
            (Taken::Parent, GoesOn, AS_WITHOUT),
        ],
        end: ByItself(7),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

const STORED: &str = "the result is stored, and its code tells";
const PRINTED_LAST: &str = "it prints its result last, and notices then";

/// Nothing but a signal ends it soon.
const LONG: [&str; 6] = [
    "--rounds",
    "400",
    "--budget",
    "1h",
    "--precision",
    "0.0001%",
];

fn of_a_comparison_of_a_command(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| {
            let words = [&["compare", "--json", "result.json"], &LONG[..]].concat();
            env.refit_command(
                &[
                    &words[..],
                    &["env.A=1", "--", "sh", "-c", "echo >>log; sleep 0.02"],
                ]
                .concat(),
            )
        },
        progress: lines_of_log,
        expected: [
            (Taken::Terminal, Ends(HUP), STORED),
            (Taken::TerminalQuietly, GoesOn, PRINTED_LAST),
            (Taken::Reader, GoesOn, PRINTED_LAST),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(TERM),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

/// A recipe whose load leaves a line in the log.
fn recipe(env: &TestEnv) -> RecipeFolder<'_> {
    let load = "load $REFIT_PORT_LINE $REFIT_OPERATIONS; sleep 0.1";
    let load = format!(
        "echo >>{}; {} {load}",
        env.path("log"),
        env.program("line_service")
    );
    RecipeFolder::service(env, "recipe").text("load.command", &load)
}

fn of_a_comparison_of_a_recipe(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| recipe(env).comparison(&LONG),
        progress: lines_of_log,
        expected: [
            (
                Taken::Terminal,
                Ends(HUP),
                "the round pair is finished, and the result stored",
            ),
            (Taken::TerminalQuietly, GoesOn, PRINTED_LAST),
            (Taken::Reader, GoesOn, PRINTED_LAST),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(TERM),
    };
    taken_from(env, &verb);
    recipe(env).nothing_left();
    Outcome::Pass
}

fn of_a_check_of_a_recipe(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| {
            let variants: Vec<String> = (0..40).map(|n| format!("env.A={n}")).collect();
            let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
            let (folder, dir) = (recipe(env).variants(&variants).write(), base(env));
            crate::recipe_folder::refit(env, &["recipes", "check", &folder, "--yes", "--dir", &dir])
        },
        progress: lines_of_log,
        expected: [
            (
                Taken::Terminal,
                Ends(1),
                "the run under way is its last one",
            ),
            (Taken::TerminalQuietly, GoesOn, "its code is an answer too"),
            (Taken::Reader, GoesOn, "its code is an answer too"),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(1),
    };
    taken_from(env, &verb);
    recipe(env).nothing_left();
    Outcome::Pass
}

fn of_a_tuning(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| {
            let _ = fs::remove_dir_all(env.path("steps"));
            let script = format!(
                "echo >>log; {} 100 file; sleep 0.3",
                env.program("write_fsync")
            );
            let words = [
                "tune",
                "--log",
                "steps",
                "--budget",
                "1h",
                "--accept",
                "loses-on-crash",
                "--",
            ];
            env.refit_command(&[&words[..], &["sh", "-c", &script]].concat())
        },
        // Beyond the run that it only observes.
        progress: |running| running.lines("log").saturating_sub(2),
        expected: [
            (
                Taken::Terminal,
                Ends(HUP),
                "what is known by then is stored",
            ),
            (Taken::TerminalQuietly, GoesOn, PRINTED_LAST),
            (Taken::Reader, GoesOn, PRINTED_LAST),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(TERM),
    };
    taken_from(env, &verb);
    Outcome::Pass
}

fn of_power_cuts(env: &TestEnv) -> Outcome {
    require_lab(env);
    let verb = Verb {
        command: |env| {
            let _ = fs::remove_dir_all(env.path("records"));
            let words =
                "crash --record records --check log:a.log --ack fd:1 --size 64M --for 60s -- sh -c";
            let words: Vec<&str> = words.split(' ').collect();
            let script = format!(
                "{} $REFIT_MOUNT/a.log 1000000 300",
                env.program("append_log")
            );
            env.refit_command(&[&words[..], &[script.as_str()]].concat())
        },
        progress: |running| {
            let acknowledged = fs::metadata(running.env.path("records/baseline/acknowledged"));
            acknowledged.map_or(0, |file| file.len())
        },
        expected: [
            (Taken::Terminal, Ends(HUP), BY_SIGHUP),
            (Taken::TerminalQuietly, GoesOn, PRINTED_LAST),
            (Taken::Reader, GoesOn, PRINTED_LAST),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByTerm(TERM),
    };
    taken_from(env, &verb);
    let records = env.path("records");
    wait_until("the end of its mounts and loop devices", || {
        remains(&records).is_empty()
    });
    Outcome::Pass
}

fn of_an_apply_that_asks(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let verb = Verb {
        command: |env| env.refit_command(&["apply", "--root", &env.path("tree"), "a", "env.X=1"]),
        progress: |running| {
            running.printed();
            u64::from(String::from_utf8_lossy(&running.printed).contains("[y/N]"))
        },
        expected: [
            (Taken::Terminal, Ends(HUP), BY_SIGHUP),
            (Taken::TerminalQuietly, Ends(2), "nobody agreed"),
            (Taken::Reader, HasNone, "it asks at a terminal alone"),
            (Taken::Parent, HasNone, "it asks at a terminal alone"),
        ],
        end: ByTerm(TERM),
    };
    taken_from(env, &verb);
    assert_eq!(listing(&root), before, "nobody agreed");
    Outcome::Pass
}

fn of_an_apply_that_waits_for_another(env: &TestEnv) -> Outcome {
    env.require_command("flock");
    let root = tree(env, "tree");
    let before = listing(&root);
    let verb = Verb {
        command: |env| {
            let root = env.path("tree");
            let lock = format!("{root}/{LOCK}");
            fs::create_dir_all(Path::new(&lock).parent().expect("it has one"))
                .expect("the tree is ours");
            let holds = "touch held; until test -e go; do sleep 0.05; done; rm held";
            let script =
                format!("flock --exclusive {lock} sh -c '{holds}' </dev/null >/dev/null 2>&1 &");
            expect_code(&env.run(&["sh", "-c", &script]), 0);
            wait_for_file(&env.path("held"));
            env.refit_command(&["apply", "--root", &root, "--yes", "a", "env.X=1"])
        },
        progress: |running| {
            let lock = format!("{}/{LOCK}", running.env.path("tree"));
            let open = fs::read_dir(format!("/proc/{}/fd", running.pid));
            let mut open = open.into_iter().flatten().flatten();
            let waits =
                open.any(|fd| fs::read_link(fd.path()).is_ok_and(|file| file == Path::new(&lock)));
            running.answers += u64::from(waits);
            running.answers
        },
        expected: [
            (Taken::Terminal, Ends(HUP), BY_SIGHUP),
            (Taken::TerminalQuietly, GoesOn, "it was agreed to"),
            (Taken::Reader, GoesOn, "it was agreed to"),
            (Taken::Parent, GoesOn, NOT_ITS_PARENT),
        ],
        end: ByItself(0),
    };
    taken_from(env, &verb);
    assert!(Path::new(&root).join(DROP_IN).exists());
    expect_code(&env.refit(&["revert", "--root", &root, "a"]), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// More than is read at once; its processor was busy with them for ever, and no key was taken any more.
fn many_keys_at_once_are_taken_and_then_it_rests(env: &TestEnv) -> Outcome {
    let verb = Verb {
        command: |env| env.refit_command(&["watch", "--interval", "200ms", &own_pid()]),
        progress: |running| running.printed().saturating_sub(500),
        expected: [(Taken::Terminal, HasNone, ""); 4],
        end: ByItself(0),
    };
    let mut running = start(env, &verb, Taken::Terminal);
    wait_within(SOON, "a screen", || {
        ((verb.progress)(&mut running) > 0).then_some(())
    });
    let person = running.person.as_mut().expect("it has one");
    person
        .write_all(&[b'x'; 3500])
        .expect("a terminal takes what is typed");
    let (began, used) = (Instant::now(), running.used());
    wait_until("a second to be over", || {
        running.printed();
        began.elapsed() >= LOOK
    });
    let spent = running
        .used()
        .zip(used)
        .map(|(after, before)| after - before);
    assert!(
        spent.is_some_and(|spent| spent * 2 < began.elapsed()),
        "{spent:?}"
    );
    let person = running.person.as_mut().expect("it has one");
    person.write_all(b"q").expect("likewise");
    wait_until("its end by q", || {
        running.printed();
        !running.is_alive()
    });
    let status = running.child.wait().expect("it is our child");
    assert_eq!(code(status), 0);
    Outcome::Pass
}
