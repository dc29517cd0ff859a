//! One execution of a program, as it is recorded.

use std::collections::BTreeMap;

use refit_launch::Usage;
use refit_meter::{Pressure, Testimony, TimeAccount};
use refit_session::heap::HeapReport;
use refit_session::{Calls, ExecutableReport, OPENING, sum};
use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, Sources};
use crate::identity::MemoryIdentity;
use crate::purge::PurgeAnswer;

/// What a run took. [`Usage`] is what wait4(2) tells of the first process and of
/// all that it waited for; daemons are not in it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metrics {
    /// From the start of the program to its end, CLOCK_MONOTONIC.
    pub wall_ns: u64,
    /// Processor time, memory, faults, context switches and writes.
    #[serde(flatten)]
    pub usage: Usage,
    /// Microseconds during the run in which some task *of the whole machine*
    /// waited; `None` where the kernel has no PSI.
    pub pressure: Option<Pressure>,
}

/// A process that outlives the run, and keeps what it had.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Survivor {
    /// As the process saw it.
    pub pid: u32,
    /// Its executable.
    pub executable: String,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// One execution of a command: the same record in `run` and in `compare`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// How it ended.
    pub exit: Outcome,
    /// What it took.
    pub metrics: Metrics,
    /// What was reached.
    pub coverage: Coverage,
    /// Sums over all executables.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "refit_session::calls_by_kind")
    )]
    pub totals: BTreeMap<String, Calls>,
    /// By executable, the most syncs first.
    pub executables: Vec<ExecutableReport>,
    /// Processes of the program that outlive the run.
    pub survivors: Vec<Survivor>,
    /// What was counted of the heap; `None` where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapReport>,
    /// What memory consisted of when it was the most; `None` where the heap was not counted, or the program ended before
    /// it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryIdentity>,
    /// What the allocator could have given back; `None` where it was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<PurgeAnswer>,
    /// Where the time of its threads went; `None` where that was not sampled, or the program ended before the first
    /// sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeAccount>,
    /// What the kernel saw; `None` where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Testimony>,
}

impl Run {
    /// The record of a run that ended as `exit`.
    pub(crate) fn of(sources: &Sources, exit: Outcome, metrics: Metrics) -> Run {
        let executables = sources.counted.executable_reports();
        let mut totals: BTreeMap<String, Calls> = BTreeMap::new();
        for (name, calls) in executables.iter().flat_map(|executable| &executable.calls) {
            totals.entry(name.clone()).or_default().add(calls);
        }
        let alive = sources.counted.alive.iter();
        Run {
            exit,
            metrics,
            coverage: Coverage::of(sources, &executables),
            totals,
            executables,
            survivors: alive
                .map(|(pid, executable)| Survivor {
                    pid: *pid,
                    executable: executable.clone(),
                })
                .collect(),
            heap: None,
            memory: None,
            purge: None,
            time: None,
            witness: None,
        }
    }

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
            heap: None,
            memory: None,
            purge: None,
            time: None,
            witness: None,
        }
    }

    /// Whether it may have made sync calls that nobody saw: none was counted, and some
    /// processes were not reached, or may make such calls by instructions of their own.
    #[must_use]
    pub fn are_syncs_unknown(&self) -> bool {
        let is_partial = self.coverage.processes_reached < self.coverage.processes_seen;
        (is_partial || self.coverage.has_own_syscalls()) && self.syncs(|calls| calls.seen) == 0
    }

    /// One field, summed over the calls that wait for durability.
    #[must_use]
    pub fn syncs(&self, field: fn(&Calls) -> u64) -> u64 {
        let calls = self.totals.iter();
        let syncs = calls.filter(|(name, _)| !OPENING.contains(&name.as_str()));
        sum(syncs.map(|(_, calls)| field(calls)))
    }
}
