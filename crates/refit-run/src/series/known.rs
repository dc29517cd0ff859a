//! What is remembered of each process from one sample to the next.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use refit_meter::{Memory, Process};
use refit_session::printable;

/// A process of a group.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// Printable.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Address space.
    pub vsz_bytes: u64,
    /// The last reading; `None` where it was not read.
    pub memory: Option<Memory>,
}

/// A process, while it lives and until the sample after its end.
#[derive(Clone, Debug)]
pub struct Known {
    pub process: Process,
    /// Index of its group; `None` inside: it belongs to none. Decided once, so that a
    /// daemon stays where it came from.
    pub group: Option<Option<usize>>,
    /// It was not there any more.
    pub gone: bool,
    /// The last reading of its memory, and when.
    pub memory: Option<(Memory, Instant)>,
    /// Resident memory at that time.
    pub rss_when_read: u64,
    /// Processor time that the last reading took.
    pub cost: Duration,
    /// Its memory may not be read.
    pub unreadable: bool,
    /// Where its executable was, once it was asked for.
    executable: Option<String>,
}

/// All processes, by number.
#[derive(Debug, Default)]
pub struct Processes(pub BTreeMap<u32, Known>);

impl Processes {
    /// Takes what the table shows now.
    pub fn update(&mut self, table: Vec<Process>) {
        self.0.retain(|_, known| !known.gone);
        for known in self.0.values_mut() {
            known.gone = true;
        }
        for process in table {
            match self.0.get_mut(&process.pid) {
                Some(known) if known.process.started == process.started => {
                    known.gone = false;
                    if known.process.name != process.name {
                        known.executable = None;
                    }
                    known.process = process;
                }
                _ => {
                    let known = Known {
                        process,
                        group: None,
                        gone: false,
                        memory: None,
                        rss_when_read: 0,
                        cost: Duration::ZERO,
                        unreadable: false,
                        executable: None,
                    };
                    self.0.insert(known.process.pid, known);
                }
            }
        }
    }

    /// Those that are there now, and have not ended.
    pub fn living(&self) -> impl Iterator<Item = &Known> {
        self.0
            .values()
            .filter(|known| !known.gone && !known.process.ended)
    }
}

impl Known {
    /// kthreadd is always process 2 (init/main.c, `rest_init`).
    pub fn is_kernel(&self) -> bool {
        self.process.pid == 2 || self.process.parent == 2
    }

    /// The last name of its executable, or its own name where that may not be read;
    /// printable.
    pub fn executable(&mut self, proc: &Path) -> &str {
        let process = &self.process;
        self.executable.get_or_insert_with(|| {
            let link = fs::read_link(proc.join(process.pid.to_string()).join("exe"));
            let name = link
                .ok()
                .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
            printable(&name.unwrap_or_else(|| process.name.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn process(pid: u32, started: u64, parent: u32) -> Process {
        Process {
            pid,
            started,
            parent,
            name: format!("p{pid}"),
            ended: false,
            threads: 1,
            rss_bytes: 4096,
            vsz_bytes: 8192,
        }
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let mut processes = Processes::default();
        processes.update(vec![process(5, 1, 1), process(6, 1, 1)]);
        processes.0.get_mut(&5).unwrap().group = Some(Some(0));
        processes.update(vec![process(5, 2, 1)]);
        assert_eq!(processes.0[&5].group, None);
        assert!(
            processes.0[&6].gone,
            "its parenthood may still be asked for"
        );
        assert_eq!(processes.living().count(), 1);
        processes.update(vec![process(5, 2, 1)]);
        assert!(!processes.0.contains_key(&6));
    }
}
