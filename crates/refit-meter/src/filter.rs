//! What a seccomp filter beneath the program reached: everything that started
//! from it, whatever its kind.

use refit_session::guardian::Notified;
use serde::{Deserialize, Serialize};

use crate::collector::Collector;
use crate::report::{ExecutableReport, OPENING, UnreachedProgram, is_zero, sum};

/// A filter that was installed.
#[derive(Clone, Debug)]
pub struct Filter {
    /// A guardian answers each call; otherwise the kernel, with 0.
    pub asks: bool,
    /// The guardian hears of what the kernel does not answer.
    pub heard: bool,
    /// What the guardian counted.
    pub notified: Notified,
}

/// What became of a filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterReport {
    /// It was there.
    Installed(Box<Reached>),
    /// There was none; why.
    Refused(String),
}

/// What a filter reached.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reached {
    /// Who answers fsync and its kin: `guardian`, or `kernel`, with 0 and
    /// uncounted.
    pub answers: String,
    /// Opens with O_SYNC, and what else the kernel does not answer, come to the
    /// guardian; otherwise they are real and uncounted.
    pub heard: bool,
    /// Processes that the filter reached and the preload did not.
    pub processes: u64,
    /// Those that are known by name, and why the preload did not reach them.
    pub programs: Vec<UnreachedProgram>,
    /// Real calls that came to the guardian: how long they waited in the kernel
    /// is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmeasured: u64,
    /// Opens that stayed synchronous, as they could not be done exactly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_synchronous: u64,
    /// Calls that were real as too many were under way.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crowded: u64,
    /// Times that the guardian was killed, and its other process took over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub takeovers: u64,
    /// Calls that were under way then, and were real.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub released: u64,
    /// Programs that wanted a seccomp listener of their own; the kernel allows
    /// but one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub listeners_refused: u64,
}

impl Collector {
    /// The filter beneath the program, and what its guardian counted.
    pub fn set_filter(&mut self, filter: Result<Filter, String>) {
        self.filter = Some(filter);
    }

    /// With what the guardian counted among the executables.
    pub(crate) fn with_notified(&self) -> Collector {
        let mut all = self.clone();
        if let Some(Ok(filter)) = &self.filter {
            let notified = &filter.notified;
            for asked in &notified.executables {
                let executable = all.executables.entry(asked.executable.clone()).or_default();
                executable.add_calls(&asked.calls);
                if executable.processes == 0 {
                    executable.asked = asked.processes;
                }
            }
            all.matched |= notified.matched;
            all.path_unknown = all.path_unknown.saturating_add(notified.path_unknown);
            all.not_delayed = all.not_delayed.saturating_add(notified.not_delayed);
        }
        all
    }

    /// What the filter reached, of `unreached` by the preload; without one that
    /// is nothing.
    pub(crate) fn filter_report(
        &self,
        executables: &[ExecutableReport],
        unreached: &[UnreachedProgram],
    ) -> Option<FilterReport> {
        let filter = match self.filter.as_ref()? {
            Ok(filter) => filter,
            Err(reason) => return Some(FilterReport::Refused(reason.clone())),
        };
        let asked = |report: &&ExecutableReport| self.executables[&report.executable].asked > 0;
        let asked: Vec<&ExecutableReport> = executables.iter().filter(asked).collect();
        // A program that was started twice, and forked, is known by both.
        let known = |program: &UnreachedProgram| {
            let of_name = asked
                .iter()
                .filter(|e| e.executable.ends_with(&program.name));
            sum(of_name.map(|e| e.processes))
        };
        let beyond = unreached
            .iter()
            .map(|program| program.count.saturating_sub(known(program)));
        let notified = &filter.notified;
        let opening = |call: &usize| !OPENING.contains(&refit_session::CALLS[*call]);
        let real = notified.executables.iter().flat_map(|asked| {
            let calls = (0..asked.calls.len()).filter(opening);
            calls.map(|call| asked.calls[call].real)
        });
        Some(FilterReport::Installed(Box::new(Reached {
            answers: if filter.asks { "guardian" } else { "kernel" }.to_owned(),
            heard: filter.heard,
            processes: sum(asked.iter().map(|e| e.processes).chain(beyond)),
            programs: unreached.to_vec(),
            unmeasured: sum(real),
            left_synchronous: notified.left_synchronous,
            crowded: notified.crowded,
            takeovers: notified.takeovers,
            released: notified.released,
            listeners_refused: notified.listeners_refused,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metrics, Outcome};
    use refit_session::guardian::Asked;

    fn notified(executable: &str, processes: u64, suppressed: u64) -> Notified {
        let mut asked = Asked {
            executable: executable.to_owned(),
            processes,
            ..Asked::default()
        };
        asked.calls[0].seen = suppressed + 1;
        asked.calls[0].suppressed = suppressed;
        asked.calls[0].real = 1;
        Notified {
            executables: vec![asked],
            ..Notified::default()
        }
    }

    fn coverage(collector: &Collector) -> crate::Coverage {
        collector.run(Outcome::Code(0), Metrics::default()).coverage
    }

    fn unreached() -> Collector {
        let dir = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(dir.path(), false);
        collector.add_unreached("/bin/one", "static");
        collector.add_unreached("/bin/two", "static");
        collector
    }

    #[test]
    fn what_the_filter_reached_is_reached() {
        let mut collector = unreached();
        collector.set_filter(Ok(Filter {
            asks: true,
            heard: true,
            notified: notified("/bin/one", 3, 7),
        }));
        let run = collector.run(Outcome::Code(0), Metrics::default());
        assert_eq!(run.syncs(|calls| calls.suppressed), 7);
        let coverage = run.coverage;
        assert_eq!(
            (coverage.processes_seen, coverage.processes_reached),
            (4, 4)
        );
        assert!(coverage.unreached.is_empty());
        let Some(FilterReport::Installed(reached)) = coverage.seccomp else {
            panic!("it was installed");
        };
        assert_eq!((reached.processes, reached.programs.len()), (4, 2));
        assert_eq!(reached.unmeasured, 1);
    }

    #[test]
    fn a_refused_filter_reaches_nothing() {
        let mut collector = unreached();
        collector.set_filter(Err("no permission".to_owned()));
        let coverage = coverage(&collector);
        assert_eq!(
            (coverage.processes_seen, coverage.processes_reached),
            (2, 0)
        );
        assert_eq!(coverage.unreached.len(), 2);
        assert_eq!(coverage.backend, "preload");
    }
}
