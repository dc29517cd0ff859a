//! One run: from a prepared program to its record.

use std::collections::BTreeMap;
use std::time::Duration;

use refit_launch::filter::Syncs;
use refit_launch::seccomp::{Beneath, Seccomp};
use refit_launch::{End, Ended, Prepared};
use refit_meter::{Calls, Collector, Filter, Metrics, Outcome, Pressure, Run, Testimony, Witness};
use refit_session::Session;

/// Looks at a program while it runs.
pub struct Watch {
    collector: Collector,
    seccomp: Seccomp,
    pressure: Option<Pressure>,
    /// Or why there is none.
    witness: Option<Result<Witness, String>>,
}

impl Watch {
    /// Call just before the program starts. `pressure`: read /proc/pressure
    /// before and after, which costs a short program more than it tells.
    #[must_use]
    pub fn begin(prepared: &Prepared, pressure: bool) -> Watch {
        let reason = match prepared.target.as_ref().and_then(|target| target.reason) {
            None if !prepared.preloads => Some("without the preload"),
            reason => reason,
        };
        let mut collector = Collector::new(&prepared.session.path, reason.is_none());
        collector.set_scopes(prepared.scopes.clone());
        if let (Some(target), Some(reason)) = (&prepared.target, reason) {
            collector.add_unreached(&target.path.display().to_string(), reason);
        }
        Watch {
            collector,
            seccomp: prepared.seccomp.clone(),
            pressure: pressure.then(Pressure::now).flatten(),
            witness: None,
        }
    }

    /// Calls the kernel as a witness, also just before the program starts. It
    /// costs the start about a millisecond, and the end tens of them unless they
    /// are left to [`Watch::close_in_background`].
    #[must_use]
    pub fn with_witness(self) -> Watch {
        Watch {
            witness: Some(Witness::begin()),
            ..self
        }
    }

    /// Call now and then while the program runs.
    pub fn tick(&mut self) {
        self.collector.fold_dead();
        if let Some(Ok(witness)) = &mut self.witness {
            witness.tick();
        }
    }

    /// What was counted so far, by executable and kind of call.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<String, BTreeMap<String, Calls>> {
        let mut now = self.collector.clone();
        set_filter(&mut now, &self.seccomp);
        now.calls()
    }

    /// The record of a run that its program outlives: its time, and which processes
    /// were reached. Calls are left out, as they would be those of earlier runs too.
    #[must_use]
    pub fn so_far(&self, wall: Duration) -> Run {
        let mut now = self.collector.clone();
        now.finish();
        set_filter(&mut now, &self.seccomp);
        let metrics = Metrics {
            wall_ns: nanoseconds(wall),
            ..Metrics::default()
        };
        Run {
            coverage: now.run(Outcome::Code(0), metrics).coverage,
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
        self.collector.finish();
        set_filter(&mut self.collector, &self.seccomp);
        let exit = match ended.end {
            End::Exited(code) => Outcome::Code(code),
            End::Signaled(signal) => Outcome::Signal(signal),
        };
        let usage = &ended.usage;
        let metrics = Metrics {
            wall_ns: nanoseconds(ended.wall),
            user_ns: nanoseconds(usage.user),
            system_ns: nanoseconds(usage.system),
            max_rss_bytes: usage.max_rss_bytes,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            written_bytes: usage.written_bytes,
            pressure,
        };
        Run {
            witness: self.testimony(session),
            ..self.collector.run(exit, metrics)
        }
    }

    fn testimony(&mut self, session: &Session) -> Option<Testimony> {
        Some(match self.witness.as_mut()? {
            Ok(witness) => Testimony::Seen(witness.finish(session.leader()?)),
            Err(reason) => Testimony::Unavailable(reason.clone()),
        })
    }

    /// Nobody waits for the kernel to let go of what it was asked to watch.
    pub fn close_in_background(self) {
        if let Some(Ok(witness)) = self.witness {
            witness.close_in_background();
        }
    }
}

fn set_filter(collector: &mut Collector, seccomp: &Seccomp) {
    match seccomp.beneath() {
        Beneath::Nothing => {}
        Beneath::Refused(refusal) => collector.set_filter(Err(refusal.to_string())),
        Beneath::Filter { syncs, heard } => collector.set_filter(Ok(Filter {
            asks: syncs == Syncs::Ask,
            heard,
            notified: seccomp.notified(),
        })),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
