//! The table of tests, and the process around each of them.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::deadline::Deadline;
use crate::locations::{TEST_ENV_DIR, work_root};
use crate::test_env::{SKIPPED, TestEnv};
use crate::{processes, sys};

/// What a test returns; a panic is a failure.
pub enum Outcome {
    /// What it expects is so.
    Pass,
    /// It could not be tried here, and why.
    #[allow(dead_code)] // most tests skip through `TestEnv::skip`
    Skip(String),
}

/// One line of the table; `test!(function)` makes it.
pub struct Test {
    name: &'static str,
    run: fn(&TestEnv) -> Outcome,
    alone: bool,
    when_named: bool,
    once: bool,
    limit: Duration,
}

impl Test {
    pub const fn new(name: &'static str, run: fn(&TestEnv) -> Outcome) -> Self {
        Self {
            name,
            run,
            alone: false,
            when_named: false,
            once: false,
            limit: Duration::from_secs(60),
        }
    }

    /// Never while another test runs: it measures time, or changes something that all share.
    pub const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Only when a filter names it: it needs what a developer's machine may lack.
    pub const fn when_named(mut self) -> Self {
        self.when_named = true;
        self
    }

    /// The user makes no difference to what it tests: it reads sources, documents or stored results, or it runs refit
    /// on files of the test's own, as others do as each user.
    pub const fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Killed after this many seconds instead of 60; see `Deadline`.
    pub const fn limit_seconds(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// `smoke::a_test`, without this crate's own name.
    fn name(&self) -> &'static str {
        self.name
            .split_once("::")
            .map_or(self.name, |(_crate, name)| name)
    }
}

/// A line of the table from a function, named after it and its module.
#[macro_export]
macro_rules! test {
    ($function:ident) => {
        $crate::runner::Test::new(
            concat!(module_path!(), "::", stringify!($function)),
            $function,
        )
    };
}

/// Tests that run at the same time: on two cores, since most of their time goes by waiting for servers and disks.
const TOGETHER: usize = 4;

/// How long the processes that a test started may run after the test's own end.
const GRACE: Duration = Duration::from_secs(2);

pub struct Options {
    pub filters: Vec<String>,
    pub list: bool,
    pub strict: bool,
    /// All tests ran as another user: without those that run once.
    pub again: bool,
    /// How often each chosen test runs.
    pub times: usize,
}

/// What all runs came to; with `--times`, each run counts.
#[derive(Default)]
struct Totals {
    passed: usize,
    skipped: usize,
    failures: Vec<Failures>,
}

/// One test's failed runs.
struct Failures {
    name: &'static str,
    count: usize,
    first_output: String,
}

/// A run of a test.
struct Ran {
    verdict: Verdict,
    took: Duration,
    /// Of processors, by its process and all that were reaped beneath it.
    worked: Duration,
}

enum Verdict {
    /// With what it counted: its lines that begin with `counted: `.
    Passed(Vec<String>),
    Failed(String),
    Skipped(String),
}

/// `MODULE::` names the tests of that module; other words, those whose name contains them.
fn is_named_by(name: &str, filter: &str) -> bool {
    if filter.ends_with("::") {
        name.starts_with(filter)
    } else {
        name.contains(filter)
    }
}

/// Runs (or lists) the tests that the options pick. True when none failed.
pub fn run(table: &[&[Test]], options: &Options) -> Result<bool> {
    let chosen: Vec<&Test> = table
        .iter()
        .copied()
        .flatten()
        .filter(|test| {
            let mut filters = options.filters.iter();
            let is_named = filters.any(|filter| is_named_by(test.name(), filter));
            let is_left_out = test.when_named || test.once && options.again;
            is_named || options.filters.is_empty() && !is_left_out
        })
        .collect();
    let names: Vec<&str> = chosen.iter().map(|test| test.name()).collect();
    for filter in &options.filters {
        let is_used = names.iter().any(|name| is_named_by(name, filter));
        ensure!(is_used, "no test's name contains {filter}");
    }
    if options.list {
        chosen.iter().for_each(|test| println!("{}", test.name()));
        return Ok(true);
    }
    let root = work_root()?;
    clean_up_when_interrupted();
    let totals = Mutex::new(Totals::default());
    let (alone, together): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|test| test.alone);
    for (tests, width) in [(together, TOGETHER), (alone, 1)] {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..width {
                scope.spawn(|| {
                    // All tests once, then all again: two runs of one test meet only when there is no other.
                    let runs = tests.len() * options.times;
                    while let Some(test) = Some(next.fetch_add(1, Ordering::Relaxed))
                        .filter(|run| *run < runs)
                        .and_then(|run| tests.get(run % tests.len()))
                    {
                        let started = Instant::now();
                        let (verdict, worked) = run_in_child(test, &root).unwrap_or_else(|error| {
                            let message = format!("the runner: {error:#}\n");
                            (Verdict::Failed(message), Duration::ZERO)
                        });
                        let took = started.elapsed();
                        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                        let ran = Ran {
                            verdict,
                            took,
                            worked,
                        };
                        totals.add(test, ran, options.strict);
                    }
                });
            }
        });
    }
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    totals.print(options.times);
    Ok(totals.failures.is_empty())
}

impl Totals {
    fn add(&mut self, test: &Test, ran: Ran, strict: bool) {
        let verdict = match ran.verdict {
            Verdict::Skipped(reason) if strict => {
                Verdict::Failed(format!("skipped, which --strict forbids: {reason}\n"))
            }
            verdict => verdict,
        };
        let times = format!(
            "{:.1} s, processors {:.1} s",
            ran.took.as_secs_f64(),
            ran.worked.as_secs_f64()
        );
        let name = test.name();
        match verdict {
            Verdict::Passed(counted) => {
                self.passed += 1;
                println!("ok {name} ({times})");
                counted.iter().for_each(|line| println!("    {line}"));
            }
            Verdict::Skipped(reason) => {
                self.skipped += 1;
                println!("skipped {name} ({times}): {reason}");
            }
            Verdict::Failed(output) => {
                let output: String = output.lines().map(|line| format!("    {line}\n")).collect();
                print!("FAILED {name} ({times})\n{output}");
                match self.failures.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.count += 1,
                    None => self.failures.push(Failures {
                        name,
                        count: 1,
                        first_output: output,
                    }),
                }
            }
        }
        // Where stdout is closed, nobody reads an error either.
        let _ = std::io::stdout().flush();
    }

    /// The last line, and before it, where tests ran more than once, which of them failed how often.
    fn print(&self, times: usize) {
        if times > 1 {
            for Failures {
                name,
                count,
                first_output,
            } in &self.failures
            {
                print!("{name} failed {count} of {times} times; the first time:\n{first_output}");
            }
        }
        println!(
            "product tests (user {}): {} passed, {} failed, {} skipped",
            user_name(),
            self.passed,
            self.failures.iter().map(|test| test.count).sum::<usize>(),
            self.skipped
        );
    }
}

/// The child's side of `--one`.
pub fn run_one(table: &[&[Test]], name: &str) -> ExitCode {
    let Some(test) = table
        .iter()
        .copied()
        .flatten()
        .find(|test| test.name() == name)
    else {
        eprintln!("refit-tests: no test is named {name}");
        return ExitCode::from(2);
    };
    sys::die_with_parent();
    sys::usual_signals();
    let env = match test_env() {
        Ok(env) => env,
        Err(error) => {
            eprintln!("refit-tests: {error:#}");
            return ExitCode::from(2);
        }
    };
    match (test.run)(&env) {
        Outcome::Pass => ExitCode::SUCCESS,
        Outcome::Skip(reason) => env.skip(&reason),
    }
}

/// The environment of a test in this very process.
pub fn test_env() -> Result<TestEnv> {
    work_root().and_then(|root| TestEnv::open(&root))
}

fn run_in_child(test: &Test, root: &Path) -> Result<(Verdict, Duration)> {
    let work = tempfile::Builder::new()
        .prefix("refit-test-")
        .permissions(Permissions::from_mode(0o755)) // tests drop privileges and go on in here
        .tempdir_in(root)
        .context("make a directory for the test")?;
    let dir = work.path().join("test");
    fs::create_dir(&dir).context("make a directory for the test")?;
    let output_path = work.path().join("output");
    let output = File::create(&output_path).context("make a file for the test's output")?;

    let mut command = Command::new(std::env::current_exe().context("find this executable")?);
    command
        .args(["--one", test.name()])
        .env(TEST_ENV_DIR, &dir)
        .env("LC_ALL", "C")
        .env("RUST_BACKTRACE", "0")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("share the test's output file")?)
        .stderr(output)
        .process_group(0);
    let mut child = {
        let mut running = running();
        let child = command.spawn().context("start the test")?;
        running.push((child.id(), work.path().to_owned()));
        child
    };
    let pid = child.id();
    let group = -i32::try_from(pid).expect("process ids are ints");
    let mut deadline = Deadline::after(test.limit);
    let in_time = loop {
        let left = deadline.left();
        if left.is_zero() || sys::ended_within(pid, left).context("wait for the test")? {
            break !left.is_zero();
        }
    };
    // Before the child is reaped, its id cannot have become someone else's.
    let left = processes::kill_leftovers(pid, &dir, if in_time { GRACE } else { Duration::ZERO });
    sys::kill_hard(group);
    running().retain(|(running, _)| *running != pid);
    let worked = processes::processor_time(pid).unwrap_or_default();
    let status = child.wait().context("reap the test")?;

    let mut messages =
        String::from_utf8_lossy(&fs::read(&output_path).context("read the output")?).into_owned();
    if let Err(error) = work.close() {
        eprintln!("refit-tests: {}: {error}", test.name());
    }
    let skip = messages
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("skip: "))
        .map(str::to_owned);
    let verdict = match (in_time, status.code()) {
        (true, Some(0)) if left.is_empty() => {
            let counted = messages.lines();
            let counted = counted.filter(|line| line.starts_with("counted: "));
            Verdict::Passed(counted.map(str::to_owned).collect())
        }
        (true, Some(0)) => {
            Verdict::Failed(format!("{messages}left running: {}\n", left.join("; ")))
        }
        (true, Some(SKIPPED)) => Verdict::Skipped(skip.unwrap_or_default()),
        _ => {
            if !in_time {
                messages += &format!("killed after {deadline}; running: {}\n", left.join("; "));
            } else if status.code() != Some(101) {
                messages += &format!("the test ended with {status}\n");
            }
            Verdict::Failed(messages)
        }
    };
    Ok((verdict, worked))
}

/// Each test's process that runs now, with its directory.
static RUNNING: Mutex<Vec<(u32, PathBuf)>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<(u32, PathBuf)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ctrl-C: neither processes nor directories of the tests are left.
fn clean_up_when_interrupted() {
    sys::block_interruptions();
    std::thread::spawn(|| {
        let signal = sys::next_interruption();
        let running = running(); // held to the end: no further test starts
        for (pid, work) in running.iter() {
            processes::kill_leftovers(*pid, &work.join("test"), Duration::ZERO);
            sys::kill_hard(-i32::try_from(*pid).expect("process ids are ints"));
            let _ = fs::remove_dir_all(work);
        }
        std::process::exit(128 + signal)
    });
}

fn user_name() -> String {
    let id = sys::euid().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    users
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            Some((fields.next()?, fields.nth(1)?))
        })
        .find_map(|(name, uid)| (uid == id).then(|| name.to_owned()))
        .unwrap_or(id)
}
