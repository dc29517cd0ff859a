//! Sums over the heap files that were read.

use std::collections::BTreeMap;

use super::file::{HeapImage, HeapProcess};
use super::layout::{GAVE_UP, LIMITED, NEW_UNSEEN, NO_TABLE, NO_USABLE, OLD_KERNEL, OTHER_MALLOC};
use super::report::{ExecutableHeap, HeapReport, LargestHeap, UncountedHeap};
use super::size_fit::size_fit;

/// Why an image is not counted, by flag.
const REASONS: [(u32, &str); 3] = [
    (OTHER_MALLOC, "it has a malloc of its own"),
    (
        LIMITED,
        "its address space is limited (RLIMIT_AS, RLIMIT_DATA)",
    ),
    (OLD_KERNEL, "the kernel is older than Linux 4.14"),
];

/// What is not seen of an image that is counted, by flag.
const GAPS: [(u32, &str); 4] = [
    (
        NO_USABLE,
        "the allocator does not tell how much of a block is usable",
    ),
    (
        NEW_UNSEEN,
        "its allocator has C++ operators of its own, which were not counted",
    ),
    (
        NO_TABLE,
        "its address space is limited (RLIMIT_AS, RLIMIT_DATA), so no table tells what was requested of each block",
    ),
    (
        GAVE_UP,
        "counting ended early, to give its memory back: the address space of the program is limited",
    ),
];

const NO_ROOM: &str = "more processes than there is room for, or their page could not be had";

/// Sums over the heap files that were read.
#[derive(Clone, Debug, Default)]
pub struct CountedHeap {
    executables: BTreeMap<String, ExecutableHeap>,
    uncounted: BTreeMap<(String, &'static str), u64>,
}

impl CountedHeap {
    pub(crate) fn add(&mut self, image: HeapImage) {
        let name = match image.executable.as_str() {
            "" => "?",
            name => name,
        };
        let mut miss = |reason, processes| {
            let count = self.uncounted.entry((name.to_owned(), reason)).or_default();
            *count = u64::saturating_add(*count, processes);
        };
        if let Some((_, reason)) = REASONS.iter().find(|(flag, _)| image.flags & flag != 0) {
            return miss(reason, 1);
        }
        if image.lost > 0 {
            miss(NO_ROOM, image.lost);
        }
        let all = self.executables.entry(name.to_owned()).or_default();
        name.clone_into(&mut all.executable);
        all.malloc_object.clone_from(&image.malloc_object);
        for (flag, gap) in GAPS {
            if image.flags & flag != 0 && !all.gaps.iter().any(|known| known == gap) {
                all.gaps.push(gap.to_owned());
            }
        }
        let ended = image.ended;
        add(&mut all.processes, ended.processes);
        add(&mut all.allocations, ended.allocations);
        add(&mut all.frees, ended.frees);
        add(&mut all.allocated_bytes, ended.allocated_bytes);
        for process in image.processes {
            all.add_process(process);
        }
    }

    /// The records.
    #[must_use]
    pub fn report(&self) -> HeapReport {
        let mut executables: Vec<_> = self.executables.values().cloned().collect();
        executables.sort_by_key(|one| std::cmp::Reverse(one.largest.peak.usable_bytes));
        let uncounted = self.uncounted.iter();
        HeapReport {
            executables,
            uncounted: uncounted
                .map(|((executable, reason), processes)| UncountedHeap {
                    executable: executable.clone(),
                    reason: (*reason).to_owned(),
                    processes: *processes,
                })
                .collect(),
        }
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl ExecutableHeap {
    fn add_process(&mut self, process: HeapProcess) {
        add(&mut self.allocations, process.allocations);
        add(&mut self.frees, process.frees);
        add(&mut self.allocated_bytes, process.allocated_bytes);
        add(&mut self.unknown_frees, process.unknown_frees);
        add(&mut self.untracked, process.untracked);
        add(&mut self.vanished, process.vanished);
        let is_first = self.processes == 0;
        add(&mut self.processes, 1);
        if is_first || process.peak.usable_bytes > self.largest.peak.usable_bytes {
            self.largest = LargestHeap {
                pid: process.pid,
                peak: process.peak,
                end: process.live,
                without_table: process.without_table,
                fit: match process.without_table {
                    Some(_) => Vec::new(),
                    None => size_fit(&process.classes),
                },
                classes: process.classes,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::HeapSize;

    fn process(usable_bytes: u64) -> HeapProcess {
        HeapProcess {
            allocations: 3,
            peak: HeapSize {
                usable_bytes,
                ..HeapSize::default()
            },
            ..HeapProcess::default()
        }
    }

    #[test]
    fn the_largest_process_of_an_executable_is_kept_and_all_are_counted() {
        let mut counted = CountedHeap::default();
        for (name, usable) in [("/bin/a", 5), ("/bin/b", 7), ("/bin/a", 9), ("/bin/a", 2)] {
            counted.add(HeapImage {
                executable: name.to_owned(),
                processes: vec![process(usable)],
                ..HeapImage::default()
            });
        }
        counted.add(HeapImage {
            executable: "/bin/c".to_owned(),
            flags: LIMITED,
            processes: vec![process(100)],
            ..HeapImage::default()
        });
        let report = counted.report();
        let found = report.executables.iter().map(|one| {
            let name = one.executable.as_str();
            (
                name,
                one.processes,
                one.allocations,
                one.largest.peak.usable_bytes,
            )
        });
        assert!(found.eq([("/bin/a", 3, 9, 9), ("/bin/b", 1, 3, 7)]));
        assert_eq!(report.uncounted[0].executable, "/bin/c");
        assert_eq!(report.processes(), 4);
    }
}
