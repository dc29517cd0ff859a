//! What a power cut could take, at each moment of a run.
//!
//! Files are told apart by device and inode, never by path; names by their directory and last part. A sync covers what
//! had ended before it began. Memory grows with the files and names that are not durable, and with those that were
//! written once.

mod acknowledged;
mod data;
mod file_state;
mod judgement;
mod name_state;
mod name_table;
mod names;
mod short_lived;
mod syncs;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use refit_session::file_events::{FileEvent, FileFacts, FileId, Operation};

use crate::file_systems::FileSystems;
use crate::finding::{AcknowledgedBy, WrongSync};
use crate::ignored::Ignored;
use crate::stack_table::StackId;
use file_state::{Change, FileState};
pub use judgement::{Group, Judged, Judgement};
use name_state::NameChange;
use name_table::{Key, NameTable};
use short_lived::ShortLived;

/// Who made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Caller {
    pid: u32,
    image: u64,
    place: Option<StackId>,
}

/// A shared mapping that is written to.
struct MappedRange {
    image: u64,
    range: Range<u64>,
    file: FileId,
}

/// A sync of a process.
#[derive(Clone, Debug)]
struct LastSync {
    /// The first unsynced write that it covered.
    written: u64,
    /// So many events there were when it began.
    began: u64,
    path: String,
    file: FileId,
}

/// What is known of a directory.
#[derive(Default)]
struct DirectoryState {
    /// A descriptor's path is told once.
    path: String,
    /// Its last sync: when it began, and who made it.
    synced: Option<(u64, Caller)>,
    /// Some file in it was synced by itself.
    has_synced_files: bool,
    /// A name in it was changed: who syncs it means that one, which may be durable by a sync of its file.
    has_changed: bool,
}

/// The state of all files and names that were seen.
pub struct Model {
    files: HashMap<FileId, FileState>,
    /// Files with changes that no sync covers.
    dirty: HashSet<FileId>,
    /// Files with such changes, or failed syncs, that no acknowledgement has judged.
    unjudged: HashSet<FileId>,
    names: NameTable,
    /// The name that a durable file had before it was renamed.
    formerly: HashMap<FileId, Key>,
    /// Whether a file was durable whose inode's number another one got before its removal was told.
    reused: HashMap<FileId, bool>,
    maps: Vec<MappedRange>,
    parents: HashMap<u32, u32>,
    /// The last sync of a file by each process.
    last_sync: HashMap<u32, LastSync>,
    directories: HashMap<FileId, DirectoryState>,
    /// The last sync by each process of a directory in which no name was ever changed: when it began, and its path.
    idle_sync: HashMap<u32, (u64, String)>,
    short_lived: ShortLived,
    judgement: Judgement,
}

impl Model {
    /// The model of a run that has not begun.
    #[must_use]
    pub fn new(ignored: Ignored) -> Model {
        Model {
            files: HashMap::new(),
            dirty: HashSet::new(),
            unjudged: HashSet::new(),
            names: NameTable::default(),
            formerly: HashMap::new(),
            reused: HashMap::new(),
            maps: Vec::new(),
            parents: HashMap::new(),
            last_sync: HashMap::new(),
            directories: HashMap::new(),
            idle_sync: HashMap::new(),
            short_lived: ShortLived::default(),
            judgement: Judgement::new(ignored, FileSystems::default()),
        }
    }

    /// Takes the next event, with the stack of its call.
    pub fn take(&mut self, event: &FileEvent, place: Option<StackId>) {
        let caller = Caller {
            pid: event.pid,
            image: event.image,
            place,
        };
        self.parents.insert(event.pid, event.parent);
        self.judgement.counts.events += 1;
        match event.operation {
            Operation::Image => self.judgement.counts.events -= 1,
            Operation::Opened => self.opened(event, caller),
            Operation::Wrote => self.wrote(event, caller),
            Operation::Resized => self.resized(event, caller),
            Operation::Renamed => self.renamed(event, caller),
            Operation::Linked => self.linked(event, caller),
            Operation::Made => {
                self.name_changed(event, caller, NameChange::Made, &event.path, false);
            }
            Operation::Removed => self.removed(event, caller),
            Operation::Synced | Operation::DataSynced => self.synced(event, caller),
            Operation::AllSynced => self.all_synced(event, None),
            Operation::FileSystemSynced => {
                self.all_synced(event, Some(event.file.id.device));
            }
            Operation::RangeSynced => self.not_covered(event.file.id, WrongSync::Range, caller),
            Operation::Mapped => self.mapped(event),
            Operation::MapSynced => self.map_synced(event, caller),
            Operation::Timed => {
                if let Some(file) = self.files.get_mut(&event.file.id) {
                    file.changed_ns = event.file.changed_ns;
                }
            }
            Operation::Acknowledged => {
                self.acknowledged(AcknowledgedBy::Write, event.number, Some(caller));
            }
        }
    }

    /// The run has ended, which acknowledges all that it did. `look`: what a path leads to now.
    #[must_use]
    pub fn finish(mut self, look: impl Fn(&str) -> Option<FileFacts>) -> Judgement {
        for file in self.files.values() {
            self.short_lived.vanished(file.unnamed_syncs);
        }
        let there = |path: &str| look(path).is_some();
        (self.judgement.unnamed_syncs, self.judgement.removed_syncs) =
            self.short_lived.at_the_end(there);
        self.look_at_the_end(look);
        self.acknowledged(AcknowledgedBy::Exit, u64::MAX, None);
        for (id, file) in self.files.iter().filter(|(_, file)| file.mapped.is_some()) {
            self.judgement.unknown(id.device, &file.path);
        }
        self.judgement
    }

    /// What calls that nobody told have changed, or removed.
    fn look_at_the_end(&mut self, look: impl Fn(&str) -> Option<FileFacts>) {
        let mut overwritten = Vec::new();
        let unjudged = &mut self.unjudged;
        self.files.retain(|id, file| {
            let there = look(&file.path).filter(|there| there.id == *id);
            if let Some(there) = &there
                && file.is_changed(there)
            {
                let nobody = Caller {
                    pid: 0,
                    image: file.image,
                    place: None,
                };
                file.change(u64::MAX - 1, nobody, Change::Unseen, there);
                unjudged.insert(*id);
            }
            if let (Some(there), Some((bytes, caller))) = (&there, file.cut)
                && there.size > 0
            {
                overwritten.push((id.device, file.path.clone(), bytes, caller));
            }
            there.is_some()
        });
        for (device, path, bytes, caller) in overwritten {
            self.truncated(device, &path, bytes, caller);
        }
        let files = &self.files;
        self.names.retain(|name| {
            name.change == NameChange::Removed || !name.is_regular || files.contains_key(&name.file)
        });
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod states_tests;
