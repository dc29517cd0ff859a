//! Samples what is watched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refit_meter::{Cgroups, Pressure, ProcessSyncs, ProcessTable, SyncWatch};

use crate::tree::PROC;

use super::budget::{Budget, processor_time};
use super::groups::Groups;
use super::huge_pages;
use super::known::{Known, Member, Processes};
use super::readings;
use super::record::{
    Caller, Cost, Group, GroupSample, HugePages, Sample, SyncDirectory, Syncs, Witnessing,
};
use super::sync_shares::{covered, sum};
use super::target::Target;
use super::thinning::{MOST_CALLERS, MOST_DIRECTORIES};

/// Scanning all processes may use so much of the budget; the rest is for their memory.
const SCANNING: f64 = 0.4;

/// Watches. Call [`Watcher::tick`] ten times a second, and [`Watcher::sample`] when it is
/// [`Watcher::due`].
pub struct Watcher {
    proc: PathBuf,
    table: ProcessTable,
    processes: Processes,
    groups: Groups,
    syncs: Result<SyncWatch, String>,
    interval: Duration,
    budget: Budget,
    began: Instant,
    /// The time of the last sample.
    last: Option<Instant>,
    next: Instant,
    pressure: Option<Pressure>,
    cgroups: Cgroups,
    /// The totals of cgroups at the sample before.
    cgroup_pressure: BTreeMap<usize, Pressure>,
}

/// The calls of one group while they are put together.
#[derive(Default)]
struct Tally {
    calls: u64,
    untimed: u64,
    waits: Vec<[u64; 2]>,
    callers: BTreeMap<String, (u64, u64)>,
    directories: BTreeMap<(u32, u64), u64>,
}

impl Watcher {
    /// Begins. `share`: of one core, that watching may take.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn begin(target: Target, interval: Duration, share: f64) -> std::io::Result<Watcher> {
        let proc = Path::new(PROC);
        let budget = Budget::begin(share);
        let table = ProcessTable::open(proc)?;
        let syncs = SyncWatch::begin();
        let now = Instant::now();
        Ok(Watcher {
            proc: proc.to_owned(),
            table,
            processes: Processes::default(),
            groups: Groups::new(target, proc),
            syncs,
            interval,
            budget,
            began: now,
            last: None,
            next: now,
            pressure: None,
            cgroups: Cgroups::of(proc),
            cgroup_pressure: BTreeMap::new(),
        })
    }

    /// Watches the tree of this process, and nothing else.
    pub fn set_root(&mut self, pid: u32) {
        self.groups.set_root(pid);
    }

    /// Whether durable calls are seen.
    #[must_use]
    pub fn witness(&self) -> Witnessing {
        match &self.syncs {
            Ok(syncs) => Witnessing::Filesystems(syncs.filesystems()),
            Err(reason) => Witnessing::Unavailable(reason.clone()),
        }
    }

    /// Takes what the kernel has recorded.
    pub fn tick(&mut self) {
        if let Ok(syncs) = &mut self.syncs {
            syncs.tick();
        }
    }

    /// Whether the next sample may be taken.
    #[must_use]
    pub fn due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// All groups that were found so far.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups.all
    }

    /// The processes of a group, those with the most memory first.
    #[must_use]
    pub fn members(&self, group: usize) -> Vec<Member> {
        let living = self.processes.living();
        let members = living.filter(|known| known.group.flatten() == Some(group));
        let mut members: Vec<Member> = members
            .map(|known| Member {
                pid: known.process.pid,
                name: refit_session::printable(&known.process.name),
                threads: known.process.threads,
                rss_bytes: known.process.rss_bytes,
                vsz_bytes: known.process.vsz_bytes,
                memory: known.memory.map(|(memory, _)| memory),
            })
            .collect();
        members.sort_by_key(|one| {
            std::cmp::Reverse(one.memory.map_or(one.rss_bytes, |memory| memory.pss_bytes))
        });
        members
    }

    /// What transparent huge pages would add to the largest process of each of some groups, those with the most memory
    /// first. Of the whole machine as much as the budget allows; of what was named all, which takes several times as
    /// long as a sample.
    #[must_use]
    pub fn huge_pages(&self) -> Vec<HugePages> {
        let groups = 0..self.groups.all.len();
        let largest =
            groups.filter_map(|group| Some((group, self.members(group).into_iter().next()?)));
        let budget = self.groups.is_machine().then_some(&self.budget);
        huge_pages::read(&self.proc, largest.collect(), budget)
    }

    /// What watching has taken.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.budget.cost()
    }

    /// Whether anything that is watched still lives. Between two runs of a recipe the refit that
    /// makes them does.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        if let Some(refit) = self.groups.refit() {
            return self
                .processes
                .living()
                .any(|known| known.process.pid == refit);
        }
        self.processes
            .living()
            .any(|known| known.group.flatten().is_some())
    }

    /// Takes a sample.
    pub fn sample(&mut self) -> Sample {
        let began = Instant::now();
        let before = processor_time();
        let (syncs, parents) = match &mut self.syncs {
            Ok(syncs) => syncs.take(),
            Err(_) => Default::default(),
        };
        self.processes.update(self.table.read());
        self.groups.assign(&mut self.processes, &parents);
        let scanning = processor_time().saturating_sub(before);
        readings::read(&mut self.processes, &self.proc, &self.budget, self.interval);
        let mut tallies = self.tallies(syncs, &parents);
        let groups = self.group_samples(began, &mut tallies);
        let pressure = Pressure::of_machine(&self.proc);
        let sample = Sample {
            at_ms: millis(began.saturating_duration_since(self.began)),
            lasted_us: self
                .last
                .map_or(0, |last| micros(began.saturating_duration_since(last))),
            pressure: pressure
                .zip(self.pressure)
                .map(|(now, then)| now.since(then)),
            lost: self.syncs.as_ref().map_or(0, SyncWatch::lost),
            groups,
            heap: None,
        };
        self.pressure = pressure;
        self.last = Some(began);
        // Where even the scan is too much, samples become rarer.
        let pause = self.budget.pause_after(scanning).div_f64(SCANNING);
        self.next = began + self.interval.max(pause);
        sample
    }

    fn tallies(
        &mut self,
        syncs: Vec<ProcessSyncs>,
        parents: &BTreeMap<u32, u32>,
    ) -> BTreeMap<usize, Tally> {
        let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
        for mut one in syncs {
            // Its number may be another's by now; its parent is its own.
            let by_parent = one.parent.filter(|parent| *parent > 1);
            let group = by_parent
                .and_then(|parent| self.groups.of(parent, &mut self.processes, parents, 0))
                .or_else(|| self.groups.of(one.process, &mut self.processes, parents, 0));
            let Some(group) = group else { continue };
            let name = self.name_of(&one);
            let tally = tallies.entry(group).or_default();
            tally.calls += one.calls;
            tally.untimed += one.untimed;
            let caller = tally.callers.entry(name).or_default();
            caller.0 += one.calls;
            caller.1 += sum(&one.waits);
            tally.waits.append(&mut one.waits);
            for (place, calls) in one.directories {
                *tally.directories.entry(place).or_default() += calls;
            }
        }
        tallies
    }

    fn name_of(&mut self, one: &ProcessSyncs) -> String {
        let seen = one
            .executable
            .as_deref()
            .map(|path| path.rsplit('/').next().unwrap_or(path));
        if let Some(name) = seen {
            return name.to_owned();
        }
        let known = self.processes.0.get_mut(&one.process);
        known.map_or_else(
            || "?".to_owned(),
            |known| known.executable(&self.proc).to_owned(),
        )
    }

    fn group_samples(
        &mut self,
        began: Instant,
        tallies: &mut BTreeMap<usize, Tally>,
    ) -> Vec<GroupSample> {
        let mut all: BTreeMap<usize, GroupSample> = BTreeMap::new();
        let now = Instant::now();
        for known in self.processes.living().filter(|known| !known.is_kernel()) {
            if let Some(group) = known.group.flatten() {
                all.entry(group)
                    .or_insert_with(|| empty(group))
                    .add(known, began, now);
            }
        }
        for group in tallies.keys() {
            all.entry(*group).or_insert_with(|| empty(*group));
        }
        let mut pressures = BTreeMap::new();
        for (group, of) in &self.groups.cgroups {
            let Some(sample) = all.get_mut(group) else {
                continue;
            };
            let charged = self.cgroups.charged(of);
            sample.charged_bytes = charged.now_bytes;
            sample.charged_peak_bytes = charged.peak_bytes;
            if let Some(total) = charged.pressure {
                let before = self.cgroup_pressure.get(group);
                sample.pressure = before.map(|before| total.since(*before));
                pressures.insert(*group, total);
            }
        }
        self.cgroup_pressure = pressures;
        let is_seen = self.syncs.is_ok();
        for (group, sample) in &mut all {
            let tally = tallies.remove(group).unwrap_or_default();
            sample.syncs = is_seen.then(|| tally.syncs());
        }
        all.into_values().collect()
    }

    /// Leaves what takes the kernel long to a process of its own.
    pub fn close_in_background(self) {
        if let Ok(syncs) = self.syncs {
            syncs.close_in_background();
        }
    }
}

fn empty(group: usize) -> GroupSample {
    GroupSample {
        group,
        processes: 0,
        rss_bytes: 0,
        vsz_bytes: 0,
        memory: None,
        memory_age_ms: 0,
        fresh: 0,
        unread: 0,
        unreadable: 0,
        charged_bytes: None,
        charged_peak_bytes: None,
        pressure: None,
        syncs: None,
    }
}

impl GroupSample {
    fn add(&mut self, known: &Known, began: Instant, now: Instant) {
        let process = &known.process;
        self.processes += 1;
        self.rss_bytes = self.rss_bytes.saturating_add(process.rss_bytes);
        self.vsz_bytes = self.vsz_bytes.saturating_add(process.vsz_bytes);
        if let Some((memory, read)) = &known.memory {
            self.memory.get_or_insert_default().add(memory);
            self.fresh += u64::from(*read >= began);
            if process.rss_bytes != known.rss_when_read {
                let age = millis(now.saturating_duration_since(*read));
                self.memory_age_ms = self.memory_age_ms.max(age);
            }
        } else if known.unreadable {
            self.unreadable += 1;
        } else {
            self.unread += 1;
        }
    }
}

impl Tally {
    fn syncs(mut self) -> Syncs {
        let mut callers: Vec<Caller> = self
            .callers
            .into_iter()
            .map(|(executable, (calls, waited_ns))| Caller {
                executable,
                calls,
                waited_us: waited_ns / 1000,
            })
            .collect();
        callers.sort_by_key(|one| std::cmp::Reverse((one.waited_us, one.calls)));
        callers.truncate(MOST_CALLERS);
        let mut places: Vec<_> = self.directories.into_iter().collect();
        places.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        places.truncate(MOST_DIRECTORIES);
        let named = places
            .into_iter()
            .map(|((device, inode), calls)| SyncDirectory {
                path: SyncWatch::path(device, inode),
                calls,
            });
        Syncs {
            calls: self.calls,
            untimed: self.untimed,
            waited_us: sum(&self.waits) / 1000,
            busy_us: covered(&mut self.waits) / 1000,
            callers,
            directories: named.collect(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
