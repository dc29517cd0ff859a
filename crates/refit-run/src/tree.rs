//! The processes of an instance, and how all of them are ended.
//!
//! A cgroup of the comparison's own holds them, where one can be made: it keeps
//! daemons that left their parents, and the kernel empties it at once. Elsewhere
//! refit becomes the parent of orphans (PR_SET_CHILD_SUBREAPER) and reads who is
//! whose parent.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_meter::{descendants, has_ended};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

/// The longest time in which the kernel ends a killed process.
pub const DEATH: Duration = Duration::from_secs(10);

/// The directory of the kernel's reports on processes.
pub const PROC: &str = "/proc";

/// Reads of /proc that have to agree that no process is left.
const LOOKS: usize = 4;

/// What a process is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The service that is measured.
    Service,
    /// What sets it up, loads, checks and stops it.
    Hooks,
}

/// The processes of a comparison's instances.
pub struct Tree {
    cgroup: Option<PathBuf>,
    /// The hook that runs now, a child of refit.
    hook: Cell<Option<u32>>,
    /// The service's first process, a child of refit.
    leader: Cell<Option<u32>>,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Service => "service",
            Part::Hooks => "hooks",
        }
    }
}

/// refit's own cgroup in the unified hierarchy (cgroups(7)), which may exist next to
/// those of version 1.
fn own_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields.get(2) == Some(&"cgroup2")).then(|| fields[1].to_owned())
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(&mount).join(own))
}

fn make_cgroup(name: &str) -> Option<PathBuf> {
    let path = own_cgroup()?.join(name);
    fs::create_dir(&path).ok()?;
    let made = [Part::Service, Part::Hooks]
        .iter()
        .all(|part| fs::create_dir(path.join(part.name())).is_ok());
    // Moving a process needs the right to write here, and in refit's own.
    let own = path.parent()?.join("cgroup.procs");
    let movable = fs::File::options().write(true).open(own).is_ok();
    if made && movable {
        return Some(path);
    }
    remove_cgroup(&path);
    None
}

fn remove_cgroup(path: &Path) {
    for part in [Part::Service, Part::Hooks] {
        let _ = fs::remove_dir(path.join(part.name()));
    }
    let _ = fs::remove_dir(path);
}

/// Ends the processes of a cgroup that a killed refit left, and removes it.
pub fn kill_cgroup(name: &str) {
    if let Some(path) = own_cgroup().map(|own| own.join(name))
        && path.is_dir()
    {
        empty(&path);
        remove_cgroup(&path);
    }
}

fn empty(path: &Path) {
    let began = Instant::now();
    loop {
        // Since Linux 5.14; it reaches the cgroups below as well, and what forks meanwhile. It
        // signals first threads: a process whose first thread has ended goes on (6.18.44).
        let _ = fs::write(path.join("cgroup.kill"), "1");
        let parts = [Part::Service, Part::Hooks].map(|part| procs(&path.join(part.name())));
        let left = parts.concat();
        left.iter().for_each(|pid| kill(*pid));
        // A process that is just ending is not listed any more, and the cgroup cannot be removed yet.
        if (left.is_empty() && !is_populated(path)) || began.elapsed() > DEATH {
            return;
        }
        sleep(Duration::from_millis(2));
    }
}

/// cgroups(7), cgroup.events: also of the cgroups below it.
fn is_populated(cgroup: &Path) -> bool {
    let events = fs::read_to_string(cgroup.join("cgroup.events")).unwrap_or_default();
    events.lines().any(|line| line == "populated 1")
}

fn procs(cgroup: &Path) -> Vec<u32> {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.parse().ok())
        .filter(|pid| *pid != 0)
        .collect()
}

fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Sends SIGTERM.
pub fn terminate(pid: u32) {
    if let Some(pid) = raw(pid) {
        // It ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
}

fn kill(pid: u32) {
    if let Some(pid) = raw(pid) {
        // It ended meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
}

impl Tree {
    /// For the comparison of this name.
    pub fn new(name: &str) -> Tree {
        let cgroup = make_cgroup(name);
        if cgroup.is_none() {
            // Fails on no kernel since 3.4.
            let _ = set_child_subreaper(Some(getpid()));
        }
        Tree {
            cgroup,
            hook: Cell::new(None),
            leader: Cell::new(None),
        }
    }

    /// For instances in a pid namespace of which this process is the init: their orphans become
    /// its children, and all of them end with it.
    #[must_use]
    pub fn in_own_namespace() -> Tree {
        Tree {
            cgroup: None,
            hook: Cell::new(None),
            leader: Cell::new(None),
        }
    }

    /// Whether a cgroup of its own, below refit's, holds the processes.
    pub fn has_cgroup(&self) -> bool {
        self.cgroup.is_some()
    }

    /// Which part of the tree `name` a process belongs to whose cgroup has the path `path`, and the path of that
    /// part's cgroup; `None` if it belongs to neither.
    pub(crate) fn part_of<'a>(name: &str, path: &'a str) -> Option<(Part, &'a str)> {
        let [service, hooks] = [Part::Service, Part::Hooks].map(|part| {
            let own = format!("/{name}/{}", part.name());
            let end = path.find(&own)? + own.len();
            let is_whole = matches!(path.as_bytes().get(end), None | Some(b'/'));
            is_whole.then_some((part, &path[..end]))
        });
        service.or(hooks)
    }

    /// Words before a command that put it into its part.
    pub fn entering(&self, part: Part) -> Vec<String> {
        let Some(cgroup) = &self.cgroup else {
            return Vec::new();
        };
        let procs = cgroup.join(part.name()).join("cgroup.procs");
        let enter = "echo 0 >\"$0\" && exec \"$@\"";
        ["sh", "-c", enter, &procs.display().to_string()]
            .map(str::to_owned)
            .into()
    }

    /// Sets which child of refit is the service's first process.
    pub fn set_leader(&self, pid: Option<u32>) {
        self.leader.set(pid);
    }

    /// Sets which child of refit is a hook.
    pub fn set_hook(&self, pid: Option<u32>) {
        self.hook.set(pid);
    }

    /// The processes of a part that have not ended.
    pub fn members(&self, part: Part) -> Vec<u32> {
        if let Some(cgroup) = &self.cgroup {
            return procs(&cgroup.join(part.name()));
        }
        let proc = Path::new(PROC);
        let with_self = |pid: u32| {
            let mut all = descendants(proc, pid);
            all.push(pid);
            all
        };
        let hooks = self.hook.get().map(with_self).unwrap_or_default();
        match part {
            Part::Hooks => hooks
                .into_iter()
                .filter(|pid| !has_ended(proc, *pid))
                .collect(),
            // Orphans are the service's: its daemons leave their parents.
            Part::Service => descendants(proc, getpid().as_raw_nonzero().get().unsigned_abs())
                .into_iter()
                .filter(|pid| !hooks.contains(pid) && !has_ended(proc, *pid))
                .collect(),
        }
    }

    /// Whether every process of a part has ended. Without a cgroup one look at
    /// /proc can miss a process whose parent ends meanwhile, as it has no parent at that
    /// moment. So several looks have to agree.
    pub fn is_empty(&self, part: Part) -> bool {
        let looks = if self.cgroup.is_some() { 1 } else { LOOKS };
        (0..looks).all(|look| {
            if look > 0 {
                sleep(Duration::from_millis(2));
            }
            self.members(part).is_empty()
        })
    }

    /// Processor time of a part since the comparison began, in nanoseconds: in
    /// programs and in the kernel. `None` without a cgroup.
    pub fn cpu_ns(&self, part: Part) -> Option<[u64; 2]> {
        let path = self.cgroup.as_ref()?.join(part.name()).join("cpu.stat");
        let text = fs::read_to_string(path).ok()?;
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse::<u64>().ok().map(|us| us * 1000)
        };
        Some([of("user_usec ")?, of("system_usec ")?])
    }

    /// Kills every process of a part, and waits for their end.
    pub fn kill(&self, part: Part) {
        let began = Instant::now();
        loop {
            let left = self.members(part);
            if left.is_empty() || began.elapsed() > DEATH {
                break;
            }
            left.into_iter().for_each(kill);
            self.reap();
            sleep(Duration::from_millis(2));
        }
    }

    /// Reaps orphans that refit became the parent of.
    pub fn reap(&self) {
        if self.cgroup.is_some() {
            return;
        }
        let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        for pid in children
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
        {
            let known = [self.leader.get(), self.hook.get()].contains(&Some(pid));
            if !known && let Some(pid) = raw(pid) {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }

    /// Kills everything and removes the cgroup.
    pub fn kill_all(&self) {
        if let Some(cgroup) = &self.cgroup {
            empty(cgroup);
            remove_cgroup(cgroup);
        } else {
            self.kill(Part::Service);
            self.kill(Part::Hooks);
            let _ = set_child_subreaper(None);
        }
    }
}
