//! A machine that `scripts/booted` has booted, from outside: what runs there, its files, and refit in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::apply_booted::{booted, up};
use crate::strace::Trace;
use crate::sys::inside::Inside;
use crate::sys::kill_point::{Calls, KillPoint, Seen, run_to_call};
use crate::test_env::{TestEnv, expect_code};

const REFIT: &str = "/usr/local/bin/refit";

/// Where refit writes, but for its records.
const PLACES: [&str; 5] = [
    "/etc",
    "/usr/lib/refit",
    "/usr/local/bin",
    "/run/systemd/system",
    "/run/sysctl.d",
];

/// Holds where nothing of refit's runs or waits: neither a library in a process, nor a unit that takes a change
/// back, nor a server that judges settings. The brackets keep the shell itself from being found.
pub const CLEAN: &str = "! grep -ls r-xp.*/usr/lib/refit/ /proc/[0-9]*/maps && \
                     test -z \"$(systemctl list-units --all --plain --no-legend 'refit-undo-*')\" && \
                     ! pgrep -af '/[r]un/refit-'";

/// Mode, user, group and content of each file and directory.
pub type Files = BTreeMap<String, (u32, u32, u32, Vec<u8>)>;

/// Those that are not the same in both.
pub fn differing(one: &Files, other: &Files) -> Vec<String> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |path: &&String| one.get(*path) != other.get(*path);
    paths.into_iter().filter(differs).cloned().collect()
}

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
        let first = booted(env, &["pid"]);
        expect_code(&first, 0);
        let first = String::from_utf8_lossy(&first.stdout);
        let first = first.trim().parse().expect("a number");
        let inside = Inside::of(first).expect("it runs");
        Live { env, first, inside }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.env.command(words[0]);
        command.args(&words[1..]).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
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

    /// Every file and directory; of a timer not the content, which is a time.
    pub fn files(&self) -> Files {
        let mut all = Files::new();
        let root = format!("/proc/{}/root", self.first);
        let mut left: Vec<PathBuf> = PLACES.map(|place| format!("{root}{place}").into()).into();
        left.retain(|place| place.exists());
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(&dir).expect("it is there") {
                let path = entry.expect("readable").path();
                let inside = format!("/{}", path.strip_prefix(&root).expect("below").display());
                let meta = fs::symlink_metadata(&path).expect("it is there");
                let mut content = Vec::new();
                if meta.is_dir() {
                    left.push(path);
                } else if meta.is_symlink() {
                    let target = fs::read_link(&path).expect("it is there");
                    content = target.into_os_string().into_encoded_bytes();
                } else if inside != REFIT && !is_timer(&path) {
                    content = fs::read(&path).expect("readable");
                }
                all.insert(inside, (meta.mode(), meta.uid(), meta.gid(), content));
            }
        }
        all
    }

    /// Runs refit to its end, or to this point.
    pub fn killed(&self, words: &[&str], calls: Calls, point: KillPoint) -> Seen {
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
    pub fn counted(&self, words: &[&str]) -> (usize, usize) {
        let first = self.first.to_string();
        let changing = "write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,chmod,\
                        fchmod,fchmodat,chown,fchown,fchownat,fsetxattr,ftruncate,link,linkat,symlink";
        let calls = format!("{changing},openat,socket,fork,vfork,clone,clone3,execve");
        let all = [&["nsenter", "-a", "-t", &first, REFIT], words].concat();
        let (output, trace) = self.env.strace(&calls, &all);
        expect_code(&output, 0);
        of_refit(&trace)
    }
}

fn is_timer(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("refit-undo-") && name.ends_with(".timer")
}

fn of_refit(trace: &Trace) -> (usize, usize) {
    let is_refit = |call: &&crate::strace::Call| {
        call.name == "execve"
            && call.args.starts_with(&format!("\"{REFIT}\""))
            && call.result == "0"
    };
    let thread = trace.calls.iter().find(is_refit).expect("it ran").thread;
    let (mut files, mut starts) = (0, 0);
    let mut sockets = BTreeSet::new();
    let of_it = trace.calls.iter().filter(|call| call.thread == thread);
    for call in of_it.skip_while(|call| !is_refit(call)).skip(1) {
        let flags = call.flags();
        let number = call.args.split(',').next().unwrap_or_default();
        match &*call.name {
            "socket" => sockets.insert(&*call.result),
            "openat" => sockets.remove(&*call.result),
            _ => false,
        };
        match &*call.name {
            "fork" | "vfork" | "clone" | "clone3" => starts += usize::from(files > 0),
            "openat" if flags.contains("O_CREAT") || flags.contains("O_TRUNC") => files += 1,
            "openat" | "socket" | "execve" => {}
            // What is printed, and commands to a server.
            "write" | "writev" if ["0", "1", "2"].contains(&number) || sockets.contains(number) => {
            }
            _ => files += 1,
        }
    }
    (files, starts)
}
