//! What the image files of a session and its guardian have counted.

use std::collections::BTreeMap;

use crate::calls::{Calls, ExecutableReport, UnreachedProgram, calls, directories, syncs};
use crate::guardian::GuardianCounts;
use crate::image::{Counter, IMAGE_DEEPBIND, Image};
use crate::page::CALLS;

/// All images of one executable.
#[derive(Clone, Debug, Default)]
pub struct Executable {
    /// Processes that the preload reached.
    pub processes: u64,
    /// In the order of [`CALLS`].
    pub calls: [Counter; CALLS.len()],
    /// `IMAGE_*` bits.
    pub flags: u32,
    /// io_urings whose submissions are not seen.
    pub rings_unseen: u64,
    /// The object that serves malloc, empty when unknown.
    pub malloc_object: String,
    /// Bit i: function i of [`OTHERS`](crate::OTHERS) is another object's too.
    pub others: u64,
    /// The first such object, empty when there is none.
    pub other_object: String,
    /// Processes that only the filter reached.
    pub filtered: u64,
    /// Count and nanoseconds by directory.
    pub directories: BTreeMap<String, (u64, u64)>,
}

impl Executable {
    fn add_calls(&mut self, calls: &[Counter; CALLS.len()]) {
        for (sum, counter) in self.calls.iter_mut().zip(calls) {
            add_counter(sum, counter);
        }
    }
}

/// Sums over all images that were read.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// By path of the executable, `?` where that is unknown.
    pub executables: BTreeMap<String, Executable>,
    /// Starts of programs that the preload cannot reach, by name and reason.
    pub unreached: BTreeMap<(String, &'static str), u64>,
    /// Of these, those beneath which the preload put a filter.
    pub filtered: BTreeMap<(String, &'static str), u64>,
    /// Such starts that found no room for their name.
    pub unreached_lost: u64,
    /// Images that reported.
    pub reported: u64,
    /// Images that should have: the first program and what the images exec'ed.
    pub expected: u64,
    /// Processes that still use an image: pid and executable.
    pub alive: Vec<(u32, String)>,
    /// Calls that were real because their file could not be determined.
    pub path_unknown: u64,
    /// Opens and writes that the emulated disk does not delay.
    pub not_delayed: u64,
    /// Bit i: rule i of the policy decided a call, or named an executable.
    pub matched: u64,
    /// Reports of users whom no program of the tree became.
    pub foreign: u64,
}

impl Collected {
    pub(crate) fn add_image(&mut self, image: Image, alive: Vec<u32>) {
        self.reported += 1;
        self.expected = self.expected.saturating_add(image.execs);
        self.unreached_lost = self.unreached_lost.saturating_add(image.unreached_lost);
        self.path_unknown = self.path_unknown.saturating_add(image.path_unknown);
        self.not_delayed = self.not_delayed.saturating_add(image.not_delayed);
        self.matched |= image.matched;
        for unreached in &image.unreached {
            let maps = [
                Some(&mut self.unreached),
                unreached.filtered.then_some(&mut self.filtered),
            ];
            for map in maps.into_iter().flatten() {
                let key = (unreached.name.clone(), unreached.reason);
                let count = map.entry(key).or_default();
                *count = count.saturating_add(unreached.count);
            }
        }
        let name = if image.executable.is_empty() {
            "?"
        } else {
            &image.executable
        };
        let executable = self.executables.entry(name.to_owned()).or_default();
        executable.processes = executable.processes.saturating_add(processes(&image));
        executable.flags |= image.flags;
        executable.rings_unseen = executable.rings_unseen.saturating_add(image.rings_unseen);
        executable.malloc_object.clone_from(&image.malloc_object);
        executable.others |= image.others;
        if image.others != 0 {
            executable.other_object.clone_from(&image.other_object);
        }
        for directory in image.directories {
            let (count, waited_ns) = executable.directories.entry(directory.path).or_default();
            *count = count.saturating_add(directory.count);
            *waited_ns = waited_ns.saturating_add(directory.waited_ns);
        }
        for slot in &image.slots {
            executable.add_calls(&slot.calls);
        }
        self.alive
            .extend(alive.into_iter().map(|pid| (pid, name.to_owned())));
    }

    /// Adds what a guardian counted to the executables.
    pub fn add_guardian(&mut self, guardian: &GuardianCounts) {
        for counted in &guardian.executables {
            let executable = self
                .executables
                .entry(counted.executable.clone())
                .or_default();
            executable.add_calls(&counted.calls);
            if executable.processes == 0 {
                executable.filtered = counted.processes;
            }
        }
        self.matched |= guardian.matched;
        self.path_unknown = self.path_unknown.saturating_add(guardian.path_unknown);
        self.not_delayed = self.not_delayed.saturating_add(guardian.not_delayed);
    }

    /// By executable and kind of call.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<String, BTreeMap<String, Calls>> {
        let executables = self.executables.iter();
        executables
            .map(|(name, executable)| (name.clone(), calls(&executable.calls)))
            .collect()
    }

    /// The records of all executables, the most syncs first.
    #[must_use]
    pub fn executable_reports(&self) -> Vec<ExecutableReport> {
        let mut executables: Vec<ExecutableReport> = self
            .executables
            .iter()
            .map(|(name, executable)| ExecutableReport {
                executable: name.clone(),
                processes: executable.processes.saturating_add(executable.filtered),
                calls: calls(&executable.calls),
                malloc_object: Some(executable.malloc_object.clone())
                    .filter(|object| !object.is_empty()),
                deepbind: executable.flags & IMAGE_DEEPBIND != 0,
                directories: directories(&executable.directories),
            })
            .collect();
        executables.sort_by_key(|executable| std::cmp::Reverse(syncs(executable)));
        executables
    }

    /// The records of what the preload did not reach.
    #[must_use]
    pub fn unreached_programs(&self) -> Vec<UnreachedProgram> {
        programs(&self.unreached)
    }

    /// Of these, those beneath which the preload put a filter.
    #[must_use]
    pub fn filtered_programs(&self) -> Vec<UnreachedProgram> {
        programs(&self.filtered)
    }
}

fn programs(counts: &BTreeMap<(String, &'static str), u64>) -> Vec<UnreachedProgram> {
    counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|((name, reason), count)| UnreachedProgram {
            name: name.clone(),
            reason: (*reason).to_owned(),
            count: *count,
        })
        .collect()
}

fn add_counter(sum: &mut Counter, more: &Counter) {
    sum.seen = sum.seen.saturating_add(more.seen);
    sum.suppressed = sum.suppressed.saturating_add(more.suppressed);
    sum.real = sum.real.saturating_add(more.real);
    sum.waited_ns = sum.waited_ns.saturating_add(more.waited_ns);
    sum.injected = sum.injected.saturating_add(more.injected);
}

/// A process counts once for each program that it ran: the image itself, and
/// every child that it forked and that did not exec something else.
fn processes(image: &Image) -> u64 {
    1 + image.forked.saturating_sub(image.departed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardian::ExecutableCounts;

    #[test]
    fn a_child_that_execs_is_counted_by_its_new_image() {
        let image = Image {
            pid: 10,
            forked: 5,
            departed: 2,
            ..Image::default()
        };
        assert_eq!(processes(&image), 1 + 5 - 2);
    }

    #[test]
    fn what_the_guardian_counted_is_added_to_its_executable() {
        let mut all = Collected::default();
        all.executables
            .entry("/bin/one".to_owned())
            .or_default()
            .processes = 1;
        let counts = |executable: &str| ExecutableCounts {
            executable: executable.to_owned(),
            processes: 3,
            calls: [Counter {
                seen: 8,
                suppressed: 7,
                real: 1,
                ..Counter::default()
            }; CALLS.len()],
        };
        all.add_guardian(&GuardianCounts {
            executables: vec![counts("/bin/one"), counts("/bin/two")],
            ..GuardianCounts::default()
        });
        let reports = all.executable_reports();
        let known: Vec<_> = reports
            .iter()
            .map(|one| (&*one.executable, one.processes))
            .collect();
        // Processes of the first are among those that the preload reached.
        assert_eq!(known, [("/bin/one", 1), ("/bin/two", 3)]);
        assert!(reports.iter().all(|one| one.calls["fsync"].suppressed == 7));
    }
}
