//! What is known of a run when it has ended: one record, printed or as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use refit_session::{CALLS, Counter, IMAGE_DEEPBIND, IMAGE_OWN_RING, IMAGE_OWN_SECCOMP};
use serde::{Deserialize, Serialize};

use crate::collector::{Collector, Counters};
use crate::executable::has_own_syscalls;
use crate::filter::FilterReport;
use crate::metrics::Metrics;
use crate::witness::Testimony;

/// Version of the JSON schema (docs/result.schema.json).
pub const SCHEMA: u32 = 1;

/// The calls of one kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Calls {
    /// Calls that asked for durability.
    pub seen: u64,
    /// Of these, answered without the kernel's work.
    pub suppressed: u64,
    /// Of these, passed on to the kernel. What is neither failed its check.
    pub real: u64,
    /// Nanoseconds waited in the real ones.
    pub waited_ns: u64,
    /// Of these, failed by the emulated disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub injected: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// One executable of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecutableReport {
    /// Path, as the program saw it.
    pub executable: String,
    /// Processes that ran it.
    pub processes: u64,
    /// By kind of call; kinds that did not occur are left out.
    pub calls: BTreeMap<String, Calls>,
    /// The object that served malloc, `null` when unknown.
    pub malloc_object: Option<String>,
    /// It opened a library with RTLD_DEEPBIND, which hides a preloaded malloc.
    pub deepbind: bool,
    /// Where its calls waited 20 µs and more, the longest sum first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<DirectoryReport>,
}

/// A directory in whose files sync calls waited.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectoryReport {
    /// The (end of the) path.
    pub path: String,
    /// Calls that waited 20 µs and more.
    pub count: u64,
    /// Nanoseconds that they waited.
    pub waited_ns: u64,
}

/// A program that was started and not reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnreachedProgram {
    /// The (end of the) path of its executable.
    pub name: String,
    /// Why.
    pub reason: String,
    /// How often it was started.
    pub count: u64,
}

/// Something that cannot be observed, and so is not 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unknown {
    /// `io_uring`, `own syscall instructions`, `own seccomp filter`,
    /// `never reported`, `unnamed` or `foreign report`.
    pub what: String,
    /// Where, when that is known.
    pub executable: Option<String>,
    /// Rings, executables or processes.
    pub count: u64,
}

/// What refit reached of the tree. A process counts once for each program that
/// it ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// How.
    pub backend: String,
    /// Processes that refit knows of.
    pub processes_seen: u64,
    /// Of these, those whose calls went through refit.
    pub processes_reached: u64,
    /// By name and reason.
    pub unreached: Vec<UnreachedProgram>,
    /// What cannot be said.
    pub unknown: Vec<Unknown>,
    /// Calls that were real because the file of a path scope could not be told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub path_unknown: u64,
    /// Opens with O_SYNC and writes with RWF_SYNC that an emulated disk did not
    /// delay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_delayed: u64,
    /// Scopes of settings that nothing matched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched_scopes: Vec<String>,
    /// What became of a seccomp filter; `None` where nothing asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<FilterReport>,
}

/// A process that outlives the run, and keeps what it had.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Survivor {
    /// As the process saw it.
    pub pid: u32,
    /// Its executable.
    pub executable: String,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// What is known of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `run`.
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// The command's words.
    pub command: Vec<String>,
    /// Each setting with its class.
    pub settings: Vec<SettingReport>,
    /// The run itself.
    #[serde(flatten)]
    pub run: Run,
}

/// One execution of a command: the same record in `run` and in `compare`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// How it ended.
    pub exit: Outcome,
    /// What it took.
    pub metrics: Metrics,
    /// What was reached.
    pub coverage: Coverage,
    /// Sums over all executables.
    pub totals: BTreeMap<String, Calls>,
    /// By executable, the most syncs first.
    pub executables: Vec<ExecutableReport>,
    /// What goes on.
    pub survivors: Vec<Survivor>,
    /// What the kernel saw; `None` where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Testimony>,
}

impl Run {
    /// The record of a program that was not started: exit code 125, as `refit
    /// run` gives for a failure before the start.
    #[must_use]
    pub fn not_started() -> Run {
        Run {
            exit: Outcome::Code(125),
            metrics: Metrics::default(),
            coverage: Coverage {
                // As documented; it reached nothing of nothing.
                backend: "preload".to_owned(),
                ..Coverage::default()
            },
            totals: BTreeMap::new(),
            executables: Vec::new(),
            survivors: Vec::new(),
            witness: None,
        }
    }

    /// One field, summed over the calls that wait for durability.
    #[must_use]
    pub fn syncs(&self, field: fn(&Calls) -> u64) -> u64 {
        let calls = self.totals.iter();
        let syncs = calls.filter(|(name, _)| !OPENING.contains(&name.as_str()));
        sum(syncs.map(|(_, calls)| field(calls)))
    }
}

/// A setting as it was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingReport {
    /// Its canonical text.
    pub setting: String,
    /// What it risks.
    pub class: String,
}

/// Calls that only show how a file was opened; they wait for nothing.
pub const OPENING: [&str; 4] = [
    "open(O_SYNC)",
    "open(O_DIRECT)",
    "fcntl(O_DIRECT)",
    "io_uring_setup",
];

fn calls(counters: &Counters) -> BTreeMap<String, Calls> {
    CALLS
        .iter()
        .zip(counters)
        .filter(|(_, counter)| counter.seen > 0)
        .map(
            |(
                name,
                Counter {
                    seen,
                    suppressed,
                    real,
                    waited_ns,
                    injected,
                },
            )| {
                let calls = Calls {
                    seen: *seen,
                    suppressed: *suppressed,
                    real: *real,
                    waited_ns: *waited_ns,
                    injected: *injected,
                };
                ((*name).to_owned(), calls)
            },
        )
        .collect()
}

fn directories(waits: &BTreeMap<String, (u64, u64)>) -> Vec<DirectoryReport> {
    let mut directories: Vec<DirectoryReport> = waits
        .iter()
        .map(|(path, (count, waited_ns))| DirectoryReport {
            path: path.clone(),
            count: *count,
            waited_ns: *waited_ns,
        })
        .collect();
    directories.sort_by_key(|directory| std::cmp::Reverse(directory.waited_ns));
    directories
}

/// Whether a process is behind it, nobody can say.
const FOREIGN: &str = "foreign report";

/// A program may write any number into its own counters: nothing may overflow.
pub(crate) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn syncs(report: &ExecutableReport) -> u64 {
    let calls = report.calls.iter();
    let syncs = calls.filter(|(name, _)| !OPENING.contains(&name.as_str()));
    sum(syncs.map(|(_, calls)| calls.seen))
}

impl Collector {
    fn unmatched(&self) -> Vec<String> {
        let scopes = self.scopes.iter().enumerate();
        scopes
            .filter(|(i, _)| self.matched >> i & 1 == 0)
            .filter_map(|(_, scope)| scope.clone())
            .collect()
    }

    fn unknown(&self, executables: &[ExecutableReport]) -> Vec<Unknown> {
        let mut unknown = Vec::new();
        let filtered = matches!(self.filter, Some(Ok(_)));
        for executable in executables {
            let mut add = |what: &str, count| {
                unknown.push(Unknown {
                    what: what.to_owned(),
                    executable: Some(executable.executable.clone()),
                    count,
                });
            };
            let known = &self.executables[&executable.executable];
            let flags = known.flags;
            // What goes through liburing is seen when it is submitted, where the
            // preload is.
            if let Some(rings) = executable.calls.get("io_uring_setup")
                && (flags & IMAGE_OWN_RING != 0 || known.asked > 0)
            {
                add("io_uring", rings.seen);
            }
            // A filter sees them as all others.
            if !filtered && has_own_syscalls(Path::new(&executable.executable)) {
                add("own syscall instructions", 1);
            }
            if flags & IMAGE_OWN_SECCOMP != 0 {
                add("own seccomp filter", 1);
            }
        }
        for (what, count) in [
            (
                "never reported",
                self.expected.saturating_sub(self.reported),
            ),
            ("unnamed", self.unreached_lost),
            (FOREIGN, self.foreign),
        ] {
            if count > 0 {
                unknown.push(Unknown {
                    what: what.to_owned(),
                    executable: None,
                    count,
                });
            }
        }
        unknown
    }

    /// What was counted so far, by executable and kind of call.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<String, BTreeMap<String, Calls>> {
        let mut now = self.clone();
        now.finish();
        let now = now.with_notified();
        let executables = now.executables.iter();
        executables
            .map(|(name, executable)| (name.clone(), calls(&executable.calls)))
            .collect()
    }

    /// The record of a run that ended as `exit`. Call [`Collector::finish`]
    /// before.
    #[must_use]
    pub fn run(&self, exit: Outcome, metrics: Metrics) -> Run {
        self.with_notified().record(exit, metrics)
    }

    fn record(&self, exit: Outcome, metrics: Metrics) -> Run {
        let mut executables: Vec<ExecutableReport> = self
            .executables
            .iter()
            .map(|(name, executable)| ExecutableReport {
                executable: name.clone(),
                processes: executable.processes + executable.asked,
                calls: calls(&executable.calls),
                malloc_object: Some(executable.malloc_object.clone())
                    .filter(|object| !object.is_empty()),
                deepbind: executable.flags & IMAGE_DEEPBIND != 0,
                directories: directories(&executable.directories),
            })
            .collect();
        executables.sort_by_key(|executable| std::cmp::Reverse(syncs(executable)));
        let mut totals: BTreeMap<String, Calls> = BTreeMap::new();
        for (name, calls) in executables.iter().flat_map(|executable| &executable.calls) {
            let total = totals.entry(name.clone()).or_default();
            *total = Calls {
                seen: total.seen.saturating_add(calls.seen),
                suppressed: total.suppressed.saturating_add(calls.suppressed),
                real: total.real.saturating_add(calls.real),
                waited_ns: total.waited_ns.saturating_add(calls.waited_ns),
                injected: total.injected.saturating_add(calls.injected),
            };
        }
        let unknown = self.unknown(&executables);
        let preloaded = sum(self.executables.values().map(|e| e.processes));
        let unreached: Vec<UnreachedProgram> = self
            .unreached
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|((name, reason), count)| UnreachedProgram {
                name: name.clone(),
                reason: (*reason).to_owned(),
                count: *count,
            })
            .collect();
        let silent = unknown
            .iter()
            .filter(|u| u.executable.is_none() && u.what != FOREIGN)
            .map(|u| u.count);
        let seccomp = self.filter_report(&executables, &unreached);
        let (filtered, unreached) = match &seccomp {
            Some(FilterReport::Installed(reached)) => (reached.processes, Vec::new()),
            _ => (0, unreached),
        };
        let named = unreached.iter().map(|program| program.count);
        let backend = match (preloaded, filtered) {
            (_, 0) => "preload",
            (0, _) => "seccomp",
            _ => "preload and seccomp",
        };
        let reached = preloaded.saturating_add(filtered);
        let coverage = Coverage {
            backend: backend.to_owned(),
            processes_seen: sum([reached].into_iter().chain(silent).chain(named)),
            processes_reached: reached,
            unreached,
            unknown,
            path_unknown: self.path_unknown,
            not_delayed: self.not_delayed,
            unmatched_scopes: self.unmatched(),
            seccomp,
        };
        let survivors = self
            .alive
            .iter()
            .map(|(pid, executable)| Survivor {
                pid: *pid,
                executable: executable.clone(),
            })
            .collect();
        Run {
            exit,
            metrics,
            coverage,
            totals,
            executables,
            survivors,
            witness: None,
        }
    }
}
