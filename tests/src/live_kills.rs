//! Sweeps of kills on a booted machine: see `apply_booted_kills`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::apply::listing;
use crate::apply_booted::up;
use crate::runner::Outcome;
use crate::strace::Trace;
use crate::sys::inside::Inside;
use crate::sys::kill_point::{Calls, KillPoint, Seen, run_to_call};
use crate::test_env::{TestEnv, expect_code};

const REFIT: &str = "/usr/local/bin/refit";

/// Where refit writes, but for its records.
const PLACES: [&str; 4] = [
    "/etc",
    "/usr/lib/refit",
    "/run/systemd/system",
    "/run/sysctl.d",
];

/// Holds where nothing of refit's runs: neither a library in a process nor a server that judges settings. The
/// brackets keep the shell itself from being found.
const CLEAN: &str = "! grep -ls r-xp.*/usr/lib/refit/ /proc/[0-9]*/maps && \
                     ! pgrep -af '/[r]un/refit-'";

/// What is changed while refit is killed. Conditions are of the shell, inside.
pub struct Subject {
    pub service: &'static str,
    pub settings: &'static [&'static str],
    /// Files that are as before or as applied at each point.
    pub files: &'static [&'static str],
    /// Holds where the service answers as before the change.
    pub before: &'static str,
    /// Holds where it answers with the change.
    pub with: &'static str,
}

impl Subject {
    fn apply(&self) -> Vec<&'static str> {
        let mut words = vec!["apply", "--yes", self.service];
        words.extend(self.settings);
        words
    }
}

type Files = BTreeMap<String, (u32, u32, u32, u64)>;

/// A machine that runs.
pub struct Live<'a> {
    env: &'a TestEnv,
    first: u32,
    inside: Inside,
}

impl<'a> Live<'a> {
    /// Puts refit into it.
    pub fn up(env: &'a TestEnv) -> Live<'a> {
        up(env);
        let dir = std::env::var_os("BOOTED").unwrap_or_else(|| "/var/tmp/refit-booted".into());
        let nspawn = fs::read_to_string(PathBuf::from(dir).join("nspawn")).expect("it runs");
        let nspawn = nspawn.trim();
        let children = fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children"));
        let children = children.expect("it runs");
        let first = children.split_whitespace().next().expect("its PID 1");
        let first = first.parse().expect("a number");
        let inside = Inside::of(first).expect("it runs");
        Live { env, first, inside }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.env.command(words[0]);
        command.args(&words[1..]).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("LC_ALL", "C.UTF-8");
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        let output = self
            .inside
            .run(&mut self.command(words), |command| command.output());
        output.expect("it can be started")
    }

    /// Starts refit; what it prints can be read.
    pub fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(&[&[REFIT], words].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = self.inside.run(&mut command, Command::spawn);
        started.expect("it can be started")
    }

    /// Whether the condition holds.
    pub fn holds(&self, condition: &str) -> bool {
        self.run(&["sh", "-c", condition]).status.success()
    }

    /// Fails where the condition does not hold.
    #[track_caller]
    pub fn shell(&self, condition: &str) {
        expect_code(&self.run(&["sh", "-c", condition]), 0);
    }

    pub fn refit(&self, words: &[&str]) -> Output {
        self.run(&[&[REFIT], words].concat())
    }

    /// Every file and directory.
    pub fn files(&self) -> Files {
        let mut all = Files::new();
        for place in PLACES {
            let root = format!("/proc/{}/root{place}", self.first);
            if fs::exists(&root).expect("readable") {
                let found = listing(&root).into_iter();
                all.extend(found.map(|(path, about)| (format!("{place}/{path}"), about)));
            }
        }
        all
    }

    /// Runs refit to its end, or to this point.
    fn killed(&self, words: &[&str], calls: Calls, point: KillPoint) -> Seen {
        let mut command = self.command(&[&[REFIT], words].concat());
        let log = self.env.path("killed");
        let file = fs::File::create(&log).expect("the test's directory is ours");
        command.stdout(Stdio::null()).stderr(file);
        let run = |command: &mut Command| run_to_call(command, calls, Some(point));
        let (seen, code) = self
            .inside
            .run(&mut command, run)
            .expect("it can be traced");
        let printed = || fs::read_to_string(&log).unwrap_or_default();
        assert!(
            seen.was_killed || code == Some(0),
            "{words:?} ended with {code:?}: {}",
            printed()
        );
        seen
    }

    /// How many calls strace counts: those that change files, and those after the first of them that start processes.
    fn counted(&self, words: &[&str]) -> (usize, usize) {
        let first = self.first.to_string();
        let changing = "write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,chmod,\
                        fchmod,fchmodat,chown,fchown,fchownat,fsetxattr,ftruncate,link,linkat,symlink";
        let calls = format!("{changing},openat,fork,vfork,clone,clone3,execve");
        let all = [&["nsenter", "-a", "-t", &first, REFIT], words].concat();
        let (output, trace) = self.env.strace(&calls, &all);
        expect_code(&output, 0);
        of_refit(&trace)
    }

    /// The word of `status` for the only change; `None` where there is none.
    fn phase(&self) -> Option<String> {
        let output = self.refit(&["status", "--json"]);
        expect_code(&output, 0);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let phase = status["services"].get(0)?["phase"].as_str();
        Some(phase.expect("a word").to_owned())
    }

    /// `status` reports what a phase means, and its check ends accordingly.
    fn expect_told(&self, subject: &Subject, phase: &str, point: KillPoint) {
        let is_applied = phase == "applied";
        let output = self.refit(&["status", "--check"]);
        assert_eq!(
            output.status.code(),
            Some(i32::from(!is_applied)),
            "{point:?}: {phase}: {output:?}"
        );
        if is_applied {
            self.shell(subject.with);
        } else {
            let printed = String::from_utf8_lossy(&output.stdout);
            let proposes =
                |verb: &str| printed.contains(&format!("refit {verb} {}", subject.service));
            assert!(printed.contains("interrupted while it was "), "{printed}");
            // It cannot be confirmed any more.
            assert!(proposes("revert") && !proposes("confirm"), "{printed}");
        }
    }

    /// All is as before the change.
    fn expect_as_before(&self, subject: &Subject, before: &Files, point: KillPoint) {
        assert_eq!(self.files(), *before, "{point:?}: reverted");
        self.shell(subject.before);
        self.shell(CLEAN);
        assert_eq!(self.phase(), None, "{point:?}");
    }
}

fn of_refit(trace: &Trace) -> (usize, usize) {
    let is_refit = |call: &&crate::strace::Call| {
        call.name == "execve"
            && call.args.starts_with(&format!("\"{REFIT}\""))
            && call.result == "0"
    };
    let thread = trace.calls.iter().find(is_refit).expect("it ran").thread;
    let (mut files, mut starts) = (0, 0);
    let of_it = trace.calls.iter().filter(|call| call.thread == thread);
    for call in of_it.skip_while(|call| !is_refit(call)).skip(1) {
        let flags = call.flags();
        match &*call.name {
            "fork" | "vfork" | "clone" | "clone3" => starts += usize::from(files > 0),
            "openat" if flags.contains("O_CREAT") || flags.contains("O_TRUNC") => files += 1,
            "openat" | "execve" => {}
            "write" | "writev"
                if ["0,", "1,", "2,"]
                    .iter()
                    .any(|fd| call.args.starts_with(fd)) => {}
            _ => files += 1,
        }
    }
    (files, starts)
}

/// What a sweep saw.
struct Sweep {
    kills: usize,
    /// By the word of `status` after them.
    phases: BTreeMap<Option<String>, usize>,
    /// Of the run that was not killed.
    whole: Seen,
}

/// Runs `one` for each point until there is none any more: it returns what was seen, and the word of `status`.
fn each_point(mut one: impl FnMut(KillPoint) -> (Seen, Option<String>)) -> Sweep {
    let mut sweep = Sweep {
        kills: 0,
        phases: BTreeMap::new(),
        whole: Seen::default(),
    };
    for n in 1.. {
        for point in [KillPoint::Before(n), KillPoint::After(n)] {
            let (seen, phase) = one(point);
            if seen.was_killed {
                sweep.kills += 1;
                *sweep.phases.entry(phase).or_insert(0) += 1;
            } else if matches!(point, KillPoint::Before(_)) {
                sweep.whole = seen;
                return sweep;
            }
        }
    }
    unreachable!("a program ends");
}

impl Sweep {
    /// Prints it, and compares it with what strace counted. Checks that are repeated until they hold start the same
    /// processes again, so that the number of these differs from run to run.
    fn report(&self, subject: &Subject, verb: &str, calls: Calls, strace: (usize, usize)) {
        let Sweep {
            kills,
            phases,
            whole,
        } = self;
        let starts = match calls {
            Calls::FilesAndStarts => {
                format!(
                    ", {} that start processes (strace: {})",
                    whole.starts, strace.1
                )
            }
            Calls::Files => String::new(),
        };
        println!(
            "counted: {}: {verb}: {} calls that change files (strace: {}){starts}; {kills} kills; status after them: \
             {phases:?}",
            subject.service, whole.files, strace.0
        );
        assert_eq!(whole.files, strace.0, "calls that change files");
        assert!(whole.files > 0);
        assert!(*kills > 10 && phases.len() > 1, "{kills} kills");
    }
}

/// Kills `apply` or `revert` before and after each of these calls; looks at `status`, and takes back.
pub fn sweep(live: &Live, subject: &Subject, verb: &str, calls: Calls) -> Outcome {
    let apply = subject.apply();
    let revert = ["revert", subject.service];
    live.shell(subject.before);
    live.shell(CLEAN);
    let before = live.files();
    // The first change of a machine makes the directory of the records.
    expect_code(&live.refit(&apply), 0);
    expect_code(&live.refit(&revert), 0);
    let by_apply = live.counted(&apply);
    live.shell(subject.with);
    let after = live.files();
    let by_revert = live.counted(&revert);
    assert_eq!(live.files(), before);
    let sweep = each_point(|point| {
        let killed = if verb == "apply" {
            live.killed(&apply, calls, point)
        } else {
            expect_code(&live.refit(&apply), 0);
            live.killed(&revert, calls, point)
        };
        let phase = live.phase();
        println!("{point:?}: {killed:?}, {phase:?}");
        let now = live.files();
        for file in subject.files {
            let is_whole = [&before, &after].map(|then| then.get(*file) == now.get(*file));
            assert!(is_whole.contains(&true), "{point:?}: a part of {file}");
        }
        match phase.as_deref() {
            None => assert_eq!(now, before, "{point:?}: status names no change"),
            Some("applied") => assert_eq!(now, after, "{point:?}: status calls it applied"),
            Some(_) => {}
        }
        if let Some(phase) = &phase {
            live.expect_told(subject, phase, point);
            expect_code(&live.refit(&revert), 0);
        }
        live.expect_as_before(subject, &before, point);
        (killed, phase)
    });
    live.shell("! ls -d /run/refit-*");
    let counted = if verb == "apply" { by_apply } else { by_revert };
    sweep.report(subject, verb, calls, counted);
    Outcome::Pass
}
