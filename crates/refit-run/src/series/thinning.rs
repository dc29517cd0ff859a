//! A watch that goes on for days keeps as many samples as a picture can show: when there
//! are more, two that follow each other become one of their time together.

use refit_meter::Pressure;

use super::record::{Caller, GroupSample, Sample, Series, SyncDirectory, Syncs};

/// More samples than this are thinned out.
const MOST: usize = 2000;
/// Callers and directories that a sample names.
pub const MOST_CALLERS: usize = 8;
pub const MOST_DIRECTORIES: usize = 5;

impl Series {
    /// Adds the next sample.
    pub fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() <= MOST {
            return;
        }
        let mut all = std::mem::take(&mut self.samples).into_iter();
        // The first has no time before it.
        self.samples.extend(all.next());
        while let Some(earlier) = all.next() {
            self.samples.push(match all.next() {
                Some(later) => joined(earlier, later),
                None => earlier,
            });
        }
    }
}

/// Counts and waits of both; memory of the later.
fn joined(earlier: Sample, later: Sample) -> Sample {
    let mut groups = later.groups;
    for old in earlier.groups {
        match groups.iter_mut().find(|one| one.group == old.group) {
            Some(one) => one.include(&old),
            // It has ended; its calls were made.
            None if old.syncs.as_ref().is_some_and(|syncs| syncs.calls > 0) => {
                groups.push(GroupSample {
                    processes: 0,
                    rss_bytes: 0,
                    vsz_bytes: 0,
                    memory: None,
                    unread: 0,
                    unreadable: 0,
                    ..old
                })
            }
            None => {}
        }
    }
    Sample {
        lasted_us: earlier.lasted_us.saturating_add(later.lasted_us),
        pressure: both(earlier.pressure, later.pressure),
        groups,
        ..later
    }
}

fn both(a: Option<Pressure>, b: Option<Pressure>) -> Option<Pressure> {
    let (a, b) = a.zip(b)?;
    Some(Pressure {
        cpu_us: a.cpu_us.saturating_add(b.cpu_us),
        io_us: a.io_us.saturating_add(b.io_us),
        memory_us: a.memory_us.saturating_add(b.memory_us),
    })
}

impl GroupSample {
    fn include(&mut self, old: &GroupSample) {
        self.pressure = both(old.pressure, self.pressure);
        self.fresh = self.fresh.saturating_add(old.fresh);
        if let (Some(syncs), Some(old)) = (&mut self.syncs, &old.syncs) {
            syncs.include(old);
        }
    }
}

impl Syncs {
    fn include(&mut self, old: &Syncs) {
        for (sum, more) in [
            (&mut self.calls, old.calls),
            (&mut self.untimed, old.untimed),
            (&mut self.waited_us, old.waited_us),
            (&mut self.busy_us, old.busy_us),
        ] {
            *sum = sum.saturating_add(more);
        }
        for caller in &old.callers {
            match self
                .callers
                .iter_mut()
                .find(|one| one.executable == caller.executable)
            {
                Some(one) => {
                    one.calls += caller.calls;
                    one.waited_us += caller.waited_us;
                }
                None => self.callers.push(caller.clone()),
            }
        }
        self.callers
            .sort_by_key(|one: &Caller| std::cmp::Reverse((one.waited_us, one.calls)));
        self.callers.truncate(MOST_CALLERS);
        for directory in &old.directories {
            match self
                .directories
                .iter_mut()
                .find(|one| one.path == directory.path)
            {
                Some(one) => one.calls += directory.calls,
                None => self.directories.push(directory.clone()),
            }
        }
        self.directories
            .sort_by_key(|one: &SyncDirectory| std::cmp::Reverse(one.calls));
        self.directories.truncate(MOST_DIRECTORIES);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Cost, Witnessing};
    use super::*;

    fn sample(at_ms: u64, group: usize) -> Sample {
        let caller = Caller {
            executable: "a".to_owned(),
            calls: 2,
            waited_us: 30,
        };
        Sample {
            at_ms,
            lasted_us: u64::from(at_ms > 0) * 1000,
            pressure: Some(Pressure::default()),
            lost: 0,
            groups: vec![GroupSample {
                group,
                processes: 1,
                rss_bytes: at_ms,
                vsz_bytes: 0,
                memory: None,
                memory_age_ms: 0,
                fresh: 1,
                unread: 0,
                unreadable: 0,
                charged_bytes: None,
                charged_peak_bytes: None,
                pressure: None,
                syncs: Some(Syncs {
                    calls: 2,
                    waited_us: 30,
                    busy_us: 20,
                    callers: vec![caller],
                    ..Syncs::default()
                }),
            }],
            heap: None,
        }
    }

    #[test]
    fn nothing_that_was_counted_is_lost() {
        let mut series = Series {
            schema: 1,
            kind: String::new(),
            refit: String::new(),
            started_unix: 0,
            target: Vec::new(),
            interval_ms: 1,
            witness: Witnessing::Filesystems(Vec::new()),
            groups: Vec::new(),
            samples: Vec::new(),
            cost: Cost::default(),
            largest_process_bytes: None,
            huge_pages: Vec::new(),
            heap_coverage: None,
        };
        let count = 5003;
        for at in 0..count {
            series.add(sample(at, usize::from(at == 7)));
        }
        assert!(series.samples.len() <= MOST && series.samples.len() > MOST / 2);
        let lasted: u64 = series.samples.iter().map(|one| one.lasted_us).sum();
        assert_eq!(lasted, (count - 1) * 1000);
        let syncs = || {
            series
                .samples
                .iter()
                .flat_map(|one| &one.groups)
                .filter_map(|one| one.syncs.as_ref())
        };
        assert_eq!(syncs().map(|one| one.calls).sum::<u64>(), 2 * count);
        assert_eq!(
            syncs()
                .flat_map(|one| &one.callers)
                .map(|one| one.calls)
                .sum::<u64>(),
            2 * count
        );
        assert!(series.samples.iter().any(|one| one.groups.len() == 2));
        let last = series.samples.last().unwrap();
        assert_eq!(
            (last.at_ms, last.groups[0].rss_bytes),
            (count - 1, count - 1)
        );
        assert!(series.samples.is_sorted_by_key(|one| one.at_ms));
    }
}
