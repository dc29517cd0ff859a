//! Observes a program while it runs, and makes the record of its run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use refit_launch::filter::Syncs;
use refit_launch::seccomp::{Beneath, Seccomp};
use refit_launch::{End, Ended, Prepared};
use refit_meter::{CpuProfile, HeapPaths, Pressure, Testimony, TimeSampler, Witness, heap_paths};
use refit_session::guardian::GuardianCounts;
use refit_session::{Calls, Collected, Collector, Session};

use crate::coverage::{Filter, FilterPlace, Sources};
use crate::cpu_sampling::CpuSampling;
use crate::identity::IdentityReader;
use crate::run::{Metrics, Outcome, Run};
use crate::tree::PROC;
use crate::tree_parts::TreeParts;

/// What is not counted of a heap after dlopen(3) with RTLD_DEEPBIND.
const DEEPBIND: &str =
    "libraries that it opened with RTLD_DEEPBIND call another malloc, whose blocks are not counted";

/// A program that ends before is not sampled.
const TIME_AFTER: Duration = Duration::from_millis(50);

/// The observation of one run.
pub struct Watch {
    collector: Collector,
    /// What each rule of the policy is for, in the order of the bits.
    scopes: Vec<Option<String>>,
    seccomp: Seccomp,
    pressure: Option<Pressure>,
    /// The program counts what malloc gives out.
    heap: bool,
    identity: Option<IdentityReader>,
    time: Option<TimeSampler>,
    cpu: Option<CpuSampling>,
    /// The witness, or why there is none.
    witness: Option<Result<Witness, String>>,
}

impl Watch {
    /// Call just before the program starts. `pressure`: read /proc/pressure
    /// before and after, which is not worth its cost for a short program.
    #[must_use]
    pub fn begin(prepared: &Prepared, pressure: bool) -> Watch {
        let reason = match prepared.target.as_ref().and_then(|target| target.reason) {
            None if !prepared.preloads => Some("without the preload"),
            reason => reason,
        };
        let mut collector = Collector::new(&prepared.session.path, reason.is_none());
        if let (Some(target), Some(reason)) = (&prepared.target, reason) {
            // As the guardian names it.
            let path = std::fs::canonicalize(&target.path);
            let path = path.unwrap_or_else(|_| target.path.clone());
            collector.add_unreached(&path.display().to_string(), reason);
        }
        Watch {
            collector,
            scopes: prepared.scopes.clone(),
            seccomp: prepared.seccomp.clone(),
            pressure: pressure.then(Pressure::now).flatten(),
            heap: prepared.heap,
            identity: prepared.heap.then(IdentityReader::begin),
            time: None,
            cpu: None,
            witness: None,
        }
    }

    /// Also samples what the program's threads do, where it runs for so long: see [`Watch::sample_time`].
    #[must_use]
    pub fn with_time_account(self) -> Watch {
        Watch {
            time: Some(TimeSampler::begin(TIME_AFTER)),
            ..self
        }
    }

    /// Also samples where the program is on the processors. Call it just before the program starts.
    ///
    /// # Errors
    /// Why there can be no samples here, for people.
    pub fn with_cpu_profile(self) -> Result<Watch, String> {
        Ok(Watch {
            cpu: Some(CpuSampling::of_started()?),
            ..self
        })
    }

    /// Where the program was on the processors until now, where that is sampled: once, when it has ended.
    ///
    /// # Errors
    /// Why it is not known, for people.
    pub fn cpu_profile(&mut self) -> Option<Result<CpuProfile, String>> {
        self.cpu.take().map(CpuSampling::finish)
    }

    /// Uses the kernel's tracepoints as a witness. Call it just before the program
    /// starts, too. The start takes about a millisecond longer, and the end tens of
    /// milliseconds, unless [`Watch::close_in_background`] is called.
    #[must_use]
    pub fn with_witness(self) -> Watch {
        Watch {
            witness: Some(Witness::begin()),
            ..self
        }
    }

    /// Also measures, on forked copies of the program's processes, how much the allocator could give back, where heaps are counted.
    #[must_use]
    pub fn with_purge(self) -> Watch {
        Watch {
            identity: self.identity.map(IdentityReader::with_purge),
            ..self
        }
    }

    /// Leaves the readings of memory to the caller, who has [`Watch::tree_parts`]; no thread is made for them.
    #[must_use]
    pub fn without_readings(self) -> Watch {
        Watch {
            identity: None,
            ..self
        }
    }

    /// What the memory of the processes whose heap is counted consists of now.
    #[must_use]
    pub fn tree_parts(&mut self) -> TreeParts {
        TreeParts::read(Path::new(PROC), &self.collector.heap_images())
    }

    /// Call now and then while the program runs.
    pub fn tick(&mut self) {
        self.collector.fold_dead();
        if let Some(identity) = &mut self.identity {
            identity.tick(&self.collector);
        }
        if let Some(Ok(witness)) = &mut self.witness {
            witness.tick();
        }
    }

    /// Call every few milliseconds while the program runs, where its time is accounted for.
    pub fn sample_time(&mut self, session: &Session) {
        if let Some(time) = &mut self.time
            && let Some(leader) = session.leader()
        {
            time.tick(Path::new(PROC), leader);
        }
    }

    /// What was counted so far, by executable and kind of call.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<String, BTreeMap<String, Calls>> {
        self.counted().0.calls()
    }

    /// The record of a run that its program outlives: its time, and which processes
    /// were reached. Calls are left out, as they would be those of earlier runs too.
    #[must_use]
    pub fn so_far(&self, wall: Duration) -> Run {
        let metrics = Metrics {
            wall_ns: nanoseconds(wall),
            ..Metrics::default()
        };
        Run {
            coverage: self.record(Outcome::Code(0), metrics).coverage,
            exit: Outcome::Code(0),
            metrics,
            ..Run::not_started()
        }
    }

    /// The record of the run that has ended.
    #[must_use]
    pub fn finish(&mut self, ended: &Ended, session: &Session) -> Run {
        let pressure = self
            .pressure
            .take()
            .and_then(|before| Some(Pressure::now()?.since(before)));
        let exit = match ended.end {
            End::Exited(code) => Outcome::Code(code),
            End::Signaled(signal) => Outcome::Signal(signal),
        };
        let metrics = Metrics {
            wall_ns: nanoseconds(ended.wall),
            usage: ended.usage,
            pressure,
        };
        let usage = &ended.usage;
        let cpu_ns = usage.user_ns.saturating_add(usage.system_ns);
        let time = self
            .time
            .take()
            .and_then(|time| time.finish(ended.wall, cpu_ns));
        let identity = self.identity.take().map(IdentityReader::finish);
        let (memory, purge) = identity.unwrap_or_default();
        let run = self.record(exit, metrics);
        let mut heap = self.heap.then(|| self.collector.heap());
        if let Some(heap) = &mut heap {
            // What these call is the C library's own malloc (dlopen(3)).
            let deepbind = run.executables.iter().filter(|one| one.deepbind);
            deepbind.for_each(|one| heap.add_gap(&one.executable, DEEPBIND));
        }
        Run {
            heap,
            memory,
            purge,
            time,
            witness: self.testimony(session),
            ..run
        }
    }

    /// Whether heaps are counted.
    #[must_use]
    pub fn counts_heap(&self) -> bool {
        self.heap
    }

    /// Who allocated what is live in the processes whose heaps were counted. Call before the session is removed. The
    /// program decides how long this takes: it may be for ever.
    #[must_use]
    pub fn heap_paths(&self) -> Vec<HeapPaths> {
        heap_paths(&self.collector.heap_samples())
    }

    /// What the images and the guardian have counted, and the filter.
    fn counted(&self) -> (Collected, Option<Result<Filter, String>>) {
        let mut counted = self.collector.collect();
        let filter = filter(&self.seccomp);
        if let Some(Ok(filter)) = &filter {
            counted.add_guardian(&filter.guardian);
        }
        (counted, filter)
    }

    fn record(&self, exit: Outcome, metrics: Metrics) -> Run {
        let (counted, filter) = self.counted();
        let sources = Sources {
            counted: &counted,
            filter: filter.as_ref(),
            scopes: &self.scopes,
        };
        Run::of(&sources, exit, metrics)
    }

    fn testimony(&mut self, session: &Session) -> Option<Testimony> {
        Some(match self.witness.as_mut()? {
            Ok(witness) => Testimony::Seen(witness.finish(session.leader()?)),
            Err(reason) => Testimony::Unavailable(reason.clone()),
        })
    }

    /// Closes the witness in a process of its own: the kernel takes tens of
    /// milliseconds for it.
    pub fn close_in_background(self) {
        if let Some(Ok(witness)) = self.witness {
            witness.close_in_background();
        }
    }
}

/// The filter beneath the program, or why there is none.
fn filter(seccomp: &Seccomp) -> Option<Result<Filter, String>> {
    match seccomp.beneath() {
        Beneath::Nothing => None,
        Beneath::Refused(refusal) => Some(Err(refusal.to_string())),
        Beneath::AtExec => Some(Ok(Filter {
            beneath: FilterPlace::Unreached,
            asks: false,
            has_listener: false,
            guardian: GuardianCounts::default(),
        })),
        Beneath::Filter { syncs, listened } => Some(Ok(Filter {
            beneath: FilterPlace::All,
            asks: syncs == Syncs::Ask,
            has_listener: listened,
            guardian: seccomp.guardian_counts(),
        })),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
