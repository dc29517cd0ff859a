//! Each verb that works for long, and what is taken from it meanwhile: its terminal, the reader of its output, the
//! process that started it. It ends soon or goes on, as the table says; it never works for nothing, and leaves nothing.
//! What a full disk takes is in takeaways/disk.rs.

pub mod disk;
pub mod taken;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use self::taken::*;

use crate::apply::{DROP_IN, listing, tree};
use crate::crash::require_lab;
use crate::crash_remains::remains;
use crate::recipe_folder::RecipeFolder;
use crate::remains::base;
use crate::runner::{Outcome, Test};
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
            // On a fast disk the syncs would wait too little for anything to be worth trying.
            let words = [
                "tune",
                "--with",
                "disk=2ms",
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
