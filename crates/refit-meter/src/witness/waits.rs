//! Durable calls of every process of the machine, and how long each waited.

use std::collections::BTreeMap;
use std::rc::Rc;

use refit_session::printable;

use super::record::Record;
use super::tracepoint::{Event, Tracepoint};

/// Processes that are remembered: on a machine that forks without end the
/// oldest are forgotten, and their calls are nobody's.
const MOST_BORN: usize = 200_000;
/// Directories of one process that are told apart between two takings.
const MOST_DIRECTORIES: usize = 1000;

/// What a process did since the last taking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSyncs {
    /// Its number.
    pub process: u32,
    /// Its parent's number, where it began while it was watched.
    pub parent: Option<u32>,
    /// What it executes, where its exec was seen; printable.
    pub executable: Option<String>,
    /// Durable calls.
    pub calls: u64,
    /// Those among them of which it is not known how long they took.
    pub untimed: u64,
    /// Begin and end of each wait (CLOCK_MONOTONIC, ns). One that goes on ends at the
    /// taking, and begins there the next time.
    pub waits: Vec<[u64; 2]>,
    /// Calls by device and inode of the directory that holds the file, where the
    /// filesystem tells it.
    pub directories: BTreeMap<(u32, u64), u64>,
}

/// What is known of a process.
#[derive(Clone, Debug, Default)]
struct Known {
    parent: Option<u32>,
    executable: Option<Rc<str>>,
    awaits_executable: bool,
    threads: u32,
    ended: bool,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Open {
    process: u32,
    since_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    /// By tracepoint.
    events: BTreeMap<usize, u64>,
    waits: Vec<[u64; 2]>,
    directories: BTreeMap<(u32, u64), u64>,
}

/// The accounts of all processes.
#[derive(Debug, Default)]
pub(super) struct Waits {
    known: BTreeMap<u32, Known>,
    counted: BTreeMap<u32, Counted>,
    /// By thread.
    open: BTreeMap<u32, Open>,
    /// Of processes whose number was used again since the last taking.
    done: Vec<ProcessSyncs>,
}

impl Waits {
    pub fn take_record(&mut self, time: u64, record: Record, tracepoints: &[Tracepoint]) {
        match record {
            Record::Forked { process, parent } if process == parent => {
                if let Some(known) = self.known.get_mut(&process) {
                    known.threads += 1;
                }
            }
            Record::Forked { process, parent } => self.born(process, parent, tracepoints),
            Record::Ended { process, thread } => self.ended(time, process, thread),
            Record::Execed { process } => {
                let known = self.known.entry(process).or_default();
                known.executable = None;
                known.awaits_executable = true;
            }
            Record::Mapped { process, path } => {
                if let Some(known) = self.known.get_mut(&process)
                    && known.awaits_executable
                {
                    known.executable = Some(printable(&path).into());
                    known.awaits_executable = false;
                }
            }
            Record::Named { .. } => {}
            Record::Called {
                process,
                thread,
                event,
            } => self.called(time, process, thread, &event, tracepoints),
        }
    }

    fn born(&mut self, process: u32, parent: u32, tracepoints: &[Tracepoint]) {
        if let Some(counted) = self.counted.remove(&process) {
            self.done.push(self.account(process, counted, tracepoints));
        }
        if self.known.len() >= MOST_BORN {
            self.known.pop_first();
        }
        let executable = self
            .known
            .get(&parent)
            .and_then(|parent| parent.executable.clone());
        let known = Known {
            parent: Some(parent),
            executable,
            threads: 1,
            ..Known::default()
        };
        self.known.insert(process, known);
    }

    fn ended(&mut self, time: u64, process: u32, thread: u32) {
        // A thread that is killed in a call ends without its end having been seen.
        if let Some(open) = self.open.remove(&thread) {
            self.waited(&open, time);
        }
        if let Some(known) = self.known.get_mut(&process) {
            known.threads = known.threads.saturating_sub(1);
            // Of a process from before, its threads are not known.
            known.ended = known.parent.is_some() && known.threads == 0;
        }
    }

    fn waited(&mut self, open: &Open, until_ns: u64) {
        let counted = self.counted.entry(open.process).or_default();
        counted
            .waits
            .push([open.since_ns, until_ns.max(open.since_ns)]);
    }

    fn called(
        &mut self,
        time: u64,
        process: u32,
        thread: u32,
        event: &Event,
        tracepoints: &[Tracepoint],
    ) {
        let tracepoint = &tracepoints[event.tracepoint];
        let before = self.open.remove(&thread);
        if tracepoint.is_end() {
            if let Some(open) = before {
                self.waited(&open, time);
            }
            return;
        }
        if tracepoint.is_timed(tracepoints) {
            let open = Open {
                process,
                since_ns: time,
            };
            self.open.insert(thread, open);
        }
        let counted = self.counted.entry(process).or_default();
        *counted.events.entry(event.tracepoint).or_default() += 1;
        if let Some(place) = event.directory
            && (counted.directories.len() < MOST_DIRECTORIES
                || counted.directories.contains_key(&place))
        {
            *counted.directories.entry(place).or_default() += 1;
        }
    }

    fn account(&self, process: u32, counted: Counted, tracepoints: &[Tracepoint]) -> ProcessSyncs {
        let known = self.known.get(&process);
        let calls = |(index, events): (&usize, &u64)| tracepoints[*index].calls(*events);
        let untimed = counted
            .events
            .iter()
            .filter(|(index, _)| !tracepoints[**index].is_timed(tracepoints));
        ProcessSyncs {
            process,
            parent: known.and_then(|known| known.parent),
            executable: known.and_then(|known| known.executable.as_deref().map(str::to_owned)),
            calls: counted.events.iter().map(calls).sum(),
            untimed: untimed.map(calls).sum(),
            waits: counted.waits,
            directories: counted.directories,
        }
    }

    /// What came since the last time, up to `now`.
    pub fn take(&mut self, now: u64, tracepoints: &[Tracepoint]) -> Vec<ProcessSyncs> {
        let open: Vec<Open> = self.open.values().copied().collect();
        for open in open {
            self.waited(&open, now);
        }
        for open in self.open.values_mut() {
            open.since_ns = open.since_ns.max(now);
        }
        let mut all = std::mem::take(&mut self.done);
        for (process, counted) in std::mem::take(&mut self.counted) {
            all.push(self.account(process, counted, tracepoints));
        }
        all
    }

    /// Each that began while it was watched, with its parent. Those that have ended are
    /// forgotten.
    pub fn take_parents(&mut self) -> BTreeMap<u32, u32> {
        let parents = self
            .known
            .iter()
            .filter_map(|(process, known)| Some((*process, known.parent?)));
        let parents = parents.collect();
        self.known.retain(|_, known| !known.ended);
        parents
    }
}

#[cfg(test)]
mod tests {
    use super::super::tracepoint::event;
    use super::super::tracepoint::tests::{ext4_with_ends, sync_file, sync_file_end};
    use super::*;

    struct Machine {
        waits: Waits,
        tracepoints: Vec<Tracepoint>,
    }

    impl Machine {
        fn new() -> Machine {
            Machine {
                waits: Waits::default(),
                tracepoints: ext4_with_ends(),
            }
        }

        fn call(&mut self, time: u64, process: u32, thread: u32, raw: &[u8]) {
            let event = event(raw, &self.tracepoints).unwrap();
            self.record(
                time,
                Record::Called {
                    process,
                    thread,
                    event,
                },
            );
        }

        fn begin(&mut self, time: u64, process: u32, thread: u32) {
            self.call(time, process, thread, &sync_file(1, 7));
        }

        fn end(&mut self, time: u64, process: u32, thread: u32) {
            self.call(time, process, thread, &sync_file_end());
        }

        fn record(&mut self, time: u64, record: Record) {
            self.waits.take_record(time, record, &self.tracepoints);
        }

        fn take(&mut self, now: u64) -> Vec<ProcessSyncs> {
            self.waits.take(now, &self.tracepoints)
        }
    }

    #[test]
    fn each_thread_s_call_is_timed_and_one_that_goes_on_is_cut_at_the_taking() {
        let mut machine = Machine::new();
        machine.begin(10, 5, 5);
        machine.begin(12, 5, 6);
        machine.end(15, 5, 5);
        machine.end(16, 9, 9); // began before it was watched
        let taken = machine.take(20);
        assert_eq!(taken.len(), 1);
        assert_eq!(
            (taken[0].process, taken[0].calls, taken[0].untimed),
            (5, 2, 0)
        );
        assert_eq!(taken[0].waits, [[10, 15], [12, 20]]);
        assert_eq!(taken[0].directories, [((1, 7), 2)].into());
        // Not a new call, but still a wait.
        machine.end(27, 5, 6);
        let taken = machine.take(30);
        assert_eq!((taken[0].calls, &*taken[0].waits), (0, &[[20, 27]][..]));
        assert!(machine.take(40).is_empty());
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process_and_children_have_parents() {
        let mut machine = Machine::new();
        let forked = |process, parent| Record::Forked { process, parent };
        machine.record(1, forked(50, 4));
        machine.record(1, Record::Execed { process: 50 });
        for path in ["/bin/a\u{1b}", "/lib/ld.so"] {
            let path = path.to_owned();
            machine.record(2, Record::Mapped { process: 50, path });
        }
        machine.begin(3, 50, 50);
        // Killed in its call.
        machine.record(
            6,
            Record::Ended {
                process: 50,
                thread: 50,
            },
        );
        machine.record(7, forked(50, 8));
        machine.begin(8, 50, 50);
        machine.end(9, 50, 50);
        let taken = machine.take(10);
        assert_eq!(taken.len(), 2);
        // The first one's parent was 4.
        assert_eq!(taken[0].waits, [[3, 6]]);
        assert_eq!(taken[0].parent, Some(4));
        assert_eq!(taken[0].executable.as_deref(), Some("/bin/a\\u{1b}"));
        assert_eq!(
            (taken[1].parent, &*taken[1].waits),
            (Some(8), &[[8, 9]][..])
        );
        assert_eq!(machine.waits.take_parents(), [(50, 8)].into());
        machine.record(
            11,
            Record::Ended {
                process: 50,
                thread: 50,
            },
        );
        assert_eq!(machine.waits.take_parents(), [(50, 8)].into());
        assert!(machine.waits.take_parents().is_empty());
    }

    #[test]
    fn a_call_whose_end_nobody_tells_is_counted_as_such() {
        let mut machine = Machine::new();
        let mut sync_fs = [0; 16];
        sync_fs[..2].copy_from_slice(&1013_u16.to_ne_bytes());
        sync_fs[12] = 1;
        machine.call(3, 5, 5, &sync_fs);
        let taken = machine.take(9);
        assert_eq!((taken[0].calls, taken[0].untimed), (1, 1));
        assert!(taken[0].waits.is_empty());
    }
}
