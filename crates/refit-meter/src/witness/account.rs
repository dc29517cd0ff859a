//! Durable calls by tree, caller and directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::lineage::Lineage;
use super::record::Record;
use super::tracepoint::{Event, Tracepoint};
use super::{Caller, Directory, Witnessed, directory};
use crate::stat::Stat;

/// Directories that are looked up and named.
const MOST_NAMED: usize = 20;
/// Directories that are told apart: a program may sync in as many as it likes.
const MOST_KEPT: usize = 100_000;

/// Processes outside of the tree whose calls are kept until it is known whether
/// they are the kernel's own.
const MOST_OTHERS: usize = 10_000;

/// Leader, executable, worker.
type Who = (u32, Option<Rc<str>>, bool);

/// What was seen so far.
#[derive(Debug)]
pub struct Account {
    lineage: Lineage,
    callers: BTreeMap<Who, BTreeMap<usize, u64>>,
    /// By leader; device and inode.
    directories: BTreeMap<u32, BTreeMap<(u32, u64), u64>>,
    /// Calls with a directory too many, by leader.
    elsewhere: BTreeMap<u32, u64>,
    /// Calls of processes that belong to no tree, by process and tracepoint.
    others: BTreeMap<(u32, usize), u64>,
}

impl Account {
    pub fn new(ancestor: u32) -> Account {
        Account {
            lineage: Lineage::new(ancestor),
            callers: BTreeMap::new(),
            directories: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            others: BTreeMap::new(),
        }
    }

    /// Records come in order of time.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Called {
                process,
                thread,
                event,
            } => self.called(process, thread, &event),
            record => self.lineage.learn(record),
        }
    }

    fn called(&mut self, process: u32, thread: u32, event: &Event) {
        let Some(member) = self.lineage.member(process) else {
            let other = (process, event.tracepoint);
            if self.others.len() < MOST_OTHERS || self.others.contains_key(&other) {
                *self.others.entry(other).or_default() += 1;
            }
            return;
        };
        let who = (
            member.leader,
            member.executable.clone(),
            self.lineage.is_worker(thread),
        );
        if let Some(place) = event.directory {
            let known = self.directories.entry(who.0).or_default();
            if known.len() < MOST_KEPT || known.contains_key(&place) {
                *known.entry(place).or_default() += 1;
            } else {
                *self.elsewhere.entry(who.0).or_default() += 1;
            }
        }
        let events = self.callers.entry(who).or_default();
        *events.entry(event.tracepoint).or_default() += 1;
    }

    /// Calls by the kernel's own threads.
    fn by_kernel(&self, tracepoints: &[Tracepoint]) -> u64 {
        let others = self.others.iter();
        others
            .filter(|((process, _), _)| is_kernel_thread(*process))
            .map(|((_, index), events)| tracepoints[*index].calls(*events))
            .sum()
    }

    /// The calls of one tree.
    pub fn of(&self, leader: u32, tracepoints: &[Tracepoint]) -> Witnessed {
        let ours = self.callers.iter().filter(|((of, ..), _)| *of == leader);
        let mut callers: Vec<Caller> = ours
            .map(|((_, executable, worker), events)| {
                let events: BTreeMap<String, u64> = events
                    .iter()
                    .map(|(index, n)| {
                        let tracepoint = &tracepoints[*index];
                        (tracepoint.name().to_owned(), tracepoint.calls(*n))
                    })
                    .collect();
                Caller {
                    executable: executable.as_deref().map(str::to_owned),
                    io_uring_worker: *worker,
                    calls: events.values().sum(),
                    events,
                }
            })
            .collect();
        callers.sort_by_key(|caller| std::cmp::Reverse(caller.calls));
        let (directories, left) = self.directories_of(leader);
        Witnessed {
            calls: callers.iter().map(|caller| caller.calls).sum(),
            callers,
            by_kernel: self.by_kernel(tracepoints),
            directories,
            elsewhere: left + self.elsewhere.get(&leader).copied().unwrap_or_default(),
            ..Witnessed::default()
        }
    }

    /// The most used by name, and the number of calls in others.
    fn directories_of(&self, leader: u32) -> (Vec<Directory>, u64) {
        let all = self.directories.get(&leader).into_iter().flatten();
        let mut all: Vec<_> = all.map(|(place, calls)| (*calls, *place)).collect();
        all.sort_by(|a, b| b.cmp(a));
        let rest = all.split_off(all.len().min(MOST_NAMED));
        let named = all.iter().map(|(calls, (device, inode))| Directory {
            path: directory::path(*device, *inode),
            device: directory::numbers(*device),
            inode: *inode,
            calls: *calls,
        });
        (named.collect(), rest.iter().map(|(calls, _)| calls).sum())
    }
}

/// The kernel's threads are children of kthreadd, which is always process 2
/// (init/main.c, `rest_init`).
fn is_kernel_thread(process: u32) -> bool {
    Stat::read(&Path::new("/proc").join(process.to_string())).is_some_and(|stat| stat.parent == 2)
}
