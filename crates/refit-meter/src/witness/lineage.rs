//! The processes that descend from those that refit started.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use refit_session::printable;

use super::record::Record;

/// The kernel's names of an io_uring's threads (io_uring/io-wq.c, sqpoll.c).
const WORKERS: [&str; 2] = ["iou-wrk-", "iou-sqp-"];

/// A process of a tree.
#[derive(Clone, Debug)]
pub struct Member {
    /// The process that refit started.
    pub leader: u32,
    /// As the process sees it; `None` until it is known.
    pub executable: Option<Rc<str>>,
    /// It did an exec, and the first file that is mapped is the executable
    /// (fs/binfmt_elf.c maps it before its interpreter).
    awaits_executable: bool,
    threads: u32,
}

/// All that descend from refit's own children.
#[derive(Debug)]
pub struct Lineage {
    /// refit.
    ancestor: u32,
    members: BTreeMap<u32, Member>,
    workers: BTreeSet<u32>,
}

impl Lineage {
    pub fn new(ancestor: u32) -> Lineage {
        Lineage {
            ancestor,
            members: BTreeMap::new(),
            workers: BTreeSet::new(),
        }
    }

    pub fn member(&self, process: u32) -> Option<&Member> {
        self.members.get(&process)
    }

    /// Whether the kernel's own code runs in this thread, for an io_uring.
    pub fn is_worker(&self, thread: u32) -> bool {
        self.workers.contains(&thread)
    }

    /// Takes the next record; records come in order of time.
    pub fn learn(&mut self, record: Record) {
        match record {
            Record::Forked { process, parent } if process == parent => {
                if let Some(member) = self.members.get_mut(&process) {
                    member.threads += 1;
                }
            }
            Record::Forked { process, parent } => self.born(process, parent),
            Record::Ended { process, thread } => self.ended(process, thread),
            Record::Execed { process } => {
                if let Some(member) = self.members.get_mut(&process) {
                    member.executable = None;
                    member.awaits_executable = true;
                }
            }
            Record::Mapped { process, path } => {
                if let Some(member) = self.members.get_mut(&process)
                    && member.awaits_executable
                {
                    // Named as refit's own counts name it.
                    member.executable = Some(printable(&path).into());
                    member.awaits_executable = false;
                }
            }
            Record::Named {
                process,
                thread,
                name,
            } => {
                if self.members.contains_key(&process)
                    && WORKERS.iter().any(|worker| name.starts_with(worker))
                {
                    self.workers.insert(thread);
                }
            }
            Record::Called { .. } => {}
        }
    }

    /// A pid may have been a member's before.
    fn born(&mut self, process: u32, parent: u32) {
        let member = if parent == self.ancestor {
            Some(Member {
                leader: process,
                executable: None,
                awaits_executable: false,
                threads: 1,
            })
        } else {
            self.members.get(&parent).map(|parent| Member {
                threads: 1,
                ..parent.clone()
            })
        };
        match member {
            Some(member) => self.members.insert(process, member),
            None => self.members.remove(&process),
        };
    }

    fn ended(&mut self, process: u32, thread: u32) {
        if let Some(member) = self.members.get_mut(&process) {
            member.threads = member.threads.saturating_sub(1);
            if member.threads == 0 {
                self.members.remove(&process);
            }
        }
        self.workers.remove(&thread);
    }
}
