//! What a power cut could take, at each moment of a run.
//!
//! Files are told apart by device and inode, never by path; names by their directory and last part. A sync covers what
//! had ended before it began. Memory grows with the files and names that are not durable, and with those that were
//! written once.

mod file;
mod judgement;
mod name;

use std::collections::{HashMap, HashSet};

use refit_session::file_events::{
    ASYNC, DURABLE, EXCHANGED, FileEvent, FileFacts, FileId, IN_STREAM, Operation,
};

use crate::file_systems::FileSystems;
use crate::finding::{AcknowledgedBy, Circumstance, Level};
use crate::ignored::Ignored;
use crate::rule::{Kept, Rule};
use crate::stack_table::StackId;
use file::{Change, FileState, WrongSync};
pub use judgement::{Group, Judged, Judgement};
use name::{NameChange, NameState, Removed, base_of};

/// O_TRUNC and O_CREAT of open(2), on all architectures that refit knows.
const O_TRUNC: i32 = 0o1000;
const O_CREAT: i32 = 0o100;

/// Errors that say that a descriptor cannot be synced, not that data was lost.
const NOT_SYNCABLE: [i32; 4] = [-9, -22, -30, -95]; // EBADF, EINVAL, EROFS, EOPNOTSUPP

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
    at: u64,
    length: u64,
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

/// The state of all files and names that were seen.
pub struct Model {
    files: HashMap<FileId, FileState>,
    /// Names that are not durable.
    names: HashMap<(FileId, String), NameState>,
    /// The name that a durable file had before it was renamed.
    formerly: HashMap<FileId, (FileId, String)>,
    /// Whether a file was durable whose inode's number another one got before its removal was told.
    reused: HashMap<FileId, bool>,
    maps: Vec<MappedRange>,
    parents: HashMap<u32, u32>,
    /// The last sync of a file by each process.
    last_sync: HashMap<u32, LastSync>,
    /// Directories in which some file was synced.
    with_synced_files: HashSet<FileId>,
    judgement: Judgement,
}

impl Model {
    /// Of a run that has not begun.
    #[must_use]
    pub fn new(ignored: Ignored) -> Model {
        Model {
            files: HashMap::new(),
            names: HashMap::new(),
            formerly: HashMap::new(),
            reused: HashMap::new(),
            maps: Vec::new(),
            parents: HashMap::new(),
            last_sync: HashMap::new(),
            with_synced_files: HashSet::new(),
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

    // ---- data -----------------------------------------------------------

    fn file(&mut self, facts: &FileFacts, path: &str, number: u64) -> &mut FileState {
        let file = self
            .files
            .entry(facts.id)
            .or_insert_with(|| FileState::found(facts, number));
        if !path.is_empty() {
            file.path = path.to_owned();
        }
        file
    }

    fn opened(&mut self, event: &FileEvent, caller: Caller) {
        let is_new = !event.other.exists();
        if is_new {
            // The number of an inode may have been another file's.
            let made = FileState::made(&event.file, &event.path, event.number);
            if let Some(before) = self.files.insert(event.file.id, made) {
                self.reused.insert(event.file.id, before.is_durable);
            }
            self.formerly.remove(&event.file.id);
            if event.open_flags & O_CREAT != 0 && event.file.links > 0 {
                self.name_changed(event, caller, NameChange::Created, &event.path, false);
            }
        }
        let file = self.file(&event.file, &event.path, event.number);
        if event.directory.inode != 0 {
            file.directory = event.directory;
        }
        let is_cut = event.open_flags & O_TRUNC != 0 && !is_new && event.other.size > 0;
        if is_cut {
            let was_durable = file.is_durable;
            file.change(event.number, caller, Change::Truncated, &event.file);
            if was_durable {
                self.truncated(event.file.id.device, &event.path, event.other.size, caller);
            }
        }
    }

    fn truncated(&mut self, device: u64, path: &str, bytes: u64, caller: Caller) {
        self.judgement.add(Judged {
            rule: Rule::OverwrittenInPlace,
            level: Level::Warning,
            circumstance: Circumstance::Truncated(bytes),
            acknowledged: None,
            path: path.to_owned(),
            device,
            image: caller.image,
            place: caller.place,
            written: None,
            kept: Kept::Somewhere,
        });
    }

    fn wrote(&mut self, event: &FileEvent, caller: Caller) {
        let file = self.file(&event.file, &event.path, event.number);
        if event.has(DURABLE) {
            file.is_durable = true;
            file.size = event.file.size;
            file.changed_ns = event.file.changed_ns;
            return;
        }
        let cut = file.cut.take();
        let how = match event.has(IN_STREAM) {
            true => Change::InStream,
            false => Change::Written,
        };
        file.change(event.number, caller, how, &event.file);
        if let Some((bytes, by)) = cut {
            self.truncated(event.file.id.device, &event.path, bytes, by);
        }
    }

    fn resized(&mut self, event: &FileEvent, caller: Caller) {
        let file = self.file(&event.file, &event.path, event.number);
        if event.at == 0 && event.other.size > 0 && file.is_durable {
            file.cut = Some((event.other.size, caller));
        }
        file.change(event.number, caller, Change::Truncated, &event.file);
    }

    fn mapped(&mut self, event: &FileEvent) {
        let file = self.file(&event.file, &event.path, event.number);
        file.mapped = Some(event.number);
        self.maps.retain(|map| {
            map.image != event.image
                || map.at + map.length <= event.at
                || event.at + event.length <= map.at
        });
        self.maps.push(MappedRange {
            image: event.image,
            at: event.at,
            length: event.length.min(u64::MAX - event.at),
            file: event.file.id,
        });
    }

    fn map_synced(&mut self, event: &FileEvent, caller: Caller) {
        let mut maps = self.maps.iter();
        let map = maps.find(|map| {
            map.image == event.image && map.at <= event.at && event.at - map.at < map.length
        });
        let Some(id) = map.map(|map| map.file) else {
            return;
        };
        if event.has(ASYNC) {
            self.not_covered(id, WrongSync::AsyncMap, caller);
        } else if event.result == 0
            && let Some(file) = self.files.get_mut(&id)
        {
            self.judgement.counts.syncs += 1;
            file.synced(event.began, None);
        }
    }

    /// A call that many take for a sync.
    fn not_covered(&mut self, id: FileId, wrong: WrongSync, caller: Caller) {
        if let Some(file) = self.files.get_mut(&id)
            && (file.dirt.is_some() || file.mapped.is_some())
        {
            file.wrong = Some((wrong, caller));
        }
    }

    // ---- syncs ----------------------------------------------------------

    fn synced(&mut self, event: &FileEvent, caller: Caller) {
        self.judgement.counts.syncs += 1;
        if event.result < 0 {
            if !NOT_SYNCABLE.contains(&event.result) && event.file.is_regular() {
                let file = self.file(&event.file, &event.path, event.number);
                file.failed = Some((-event.result, event.number, caller));
            }
            return;
        }
        if event.file.is_directory() {
            self.directory_synced(event, caller);
        } else if event.file.is_regular() {
            self.file_synced(event, caller);
        }
    }

    fn file_synced(&mut self, event: &FileEvent, caller: Caller) {
        let id = event.file.id;
        let is_full = event.operation == Operation::Synced;
        let mut covers_names = false;
        for name in self.names.values_mut() {
            if name.file == id && name.number < event.began && name.is_covered_by_file(is_full) {
                covers_names |= !name.is_file_synced;
                name.is_file_synced = true;
            }
        }
        let file = self.file(&event.file, &event.path, event.number);
        let retried = file
            .failed
            .filter(|(_, number, _)| !file.has_changed_since(*number));
        if let Some((error, _, _)) = retried {
            let path = file.path.clone();
            self.judgement.add(Judged {
                rule: Rule::ErrorIgnored,
                level: Level::Error,
                circumstance: Circumstance::Retried(error_name(error)),
                acknowledged: None,
                path,
                device: id.device,
                image: caller.image,
                place: caller.place,
                written: None,
                kept: Kept::Nowhere,
            });
        }
        // Where it was written again, that may have been the same data.
        let file = self.file(&event.file, &event.path, event.number);
        file.failed = None;
        if retried.is_some() {
            return;
        }
        let written = file.dirt.as_ref().map(|dirt| dirt.first);
        let is_idle = file.is_idle(&event.file) && !covers_names;
        let directory = file.directory;
        file.synced(event.began, Some(&event.file));
        if event.has(IN_STREAM) {
            file.wrong = Some((WrongSync::Stream, caller));
        }
        if directory.inode != 0 {
            self.with_synced_files.insert(directory);
        }
        self.judgement.counts.idle_syncs += u64::from(is_idle);
        if let Some(written) = written {
            let last = LastSync {
                written,
                began: event.began,
                path: event.path.clone(),
                file: id,
            };
            self.last_sync.insert(caller.pid, last);
        }
    }

    fn directory_synced(&mut self, event: &FileEvent, caller: Caller) {
        let id = event.file.id;
        let before = self.names.len();
        self.names
            .retain(|(directory, _), name| *directory != id || name.number >= event.began);
        let is_idle = self.names.len() == before;
        self.judgement.counts.idle_syncs += u64::from(is_idle);
        for name in self.names.values_mut() {
            if is_idle && name.caller.pid == caller.pid && name.number < event.began {
                name.other_synced = Some(event.path.clone());
            }
        }
        if self.with_synced_files.contains(&id) {
            return;
        }
        for file in self.files.values_mut() {
            let is_there = file.directory == id && file.dirt.is_some();
            if is_there && file.wrong.is_none() {
                file.wrong = Some((WrongSync::Directory, caller));
            }
        }
    }

    fn all_synced(&mut self, event: &FileEvent, device: Option<u64>) {
        self.judgement.counts.syncs += 1;
        let is_meant = |id: &FileId| device.is_none_or(|device| device == id.device);
        for (_, file) in self.files.iter_mut().filter(|(id, _)| is_meant(id)) {
            file.synced(event.began, None);
        }
        self.names
            .retain(|(directory, _), name| !is_meant(directory) || name.number >= event.began);
    }

    // ---- names ----------------------------------------------------------

    fn name_changed(
        &mut self,
        event: &FileEvent,
        caller: Caller,
        change: NameChange,
        path: &str,
        replaces: bool,
    ) {
        let is_over_durable = self.is_over_durable(event);
        let key = (event.directory, base_of(path).to_owned());
        let before = self.names.remove(&key);
        let removed = before.and_then(|before| before.removed);
        if let Some(gone) = removed.as_ref().filter(|gone| gone.was_durable) {
            let is_durable = self
                .files
                .get(&event.file.id)
                .is_some_and(|file| file.is_durable && file.dirt.is_none());
            // Who syncs files may have removed a journal, whose content is elsewhere by then.
            let may_be_journal =
                change == NameChange::Created && self.last_sync.contains_key(&gone.caller.pid);
            // Another process may remove what is to be made anew.
            let by_same = gone.caller.pid == caller.pid;
            if change != NameChange::Made && by_same && !is_durable && !may_be_journal {
                self.judgement.add(Judged {
                    rule: Rule::RemovedTooEarly,
                    level: Level::Warning,
                    circumstance: Circumstance::ReplacedBy(path.to_owned()),
                    acknowledged: None,
                    path: path.to_owned(),
                    device: event.file.id.device,
                    image: gone.caller.image,
                    place: gone.caller.place,
                    written: None,
                    kept: Kept::Nowhere,
                });
            }
        }
        let state = NameState {
            change,
            number: event.number,
            caller,
            file: event.file.id,
            is_regular: event.file.is_regular(),
            path: path.to_owned(),
            replaces: replaces || removed.is_some(),
            is_over_durable,
            is_file_synced: false,
            was_synced_before: self
                .files
                .get(&event.file.id)
                .is_some_and(|file| file.is_durable && file.dirt.is_none()),
            other_synced: None,
            removed: None,
            is_acknowledged: false,
        };
        self.names.insert(key, state);
    }

    /// The old name of a renamed file, or one that was unlinked.
    fn name_gone(&mut self, directory: FileId, path: &str, event: &FileEvent, gone: Removed) {
        let key = (directory, base_of(path).to_owned());
        match self.names.remove(&key) {
            // It was never durable: nothing is left of it.
            Some(NameState {
                replaces: false, ..
            }) => {}
            _ => {
                let caller = gone.caller;
                let state = NameState {
                    change: NameChange::Removed,
                    number: event.number,
                    caller,
                    file: FileId::default(),
                    is_regular: false,
                    path: path.to_owned(),
                    replaces: true,
                    is_over_durable: false,
                    is_file_synced: false,
                    was_synced_before: false,
                    other_synced: None,
                    removed: Some(gone),
                    is_acknowledged: false,
                };
                self.names.insert(key, state);
            }
        }
    }

    fn renamed(&mut self, event: &FileEvent, caller: Caller) {
        if event.has(EXCHANGED) {
            self.name_changed(event, caller, NameChange::Renamed, &event.path, true);
            return;
        }
        let id = event.file.id;
        // rename(2) of one name of a file over another one of it does nothing.
        if event.other.exists() && event.other.id == id {
            return;
        }
        if event.file.is_regular() {
            self.look_for_unseen(event, caller);
            let dirt = self.files[&id].dirt.clone();
            let wrong = self.files[&id].wrong;
            let is_over_durable = self.is_over_durable(event);
            if let Some(dirt) = dirt.filter(|_| is_over_durable) {
                self.judgement.add(Judged {
                    rule: Rule::ReplacedUnsynced,
                    level: Level::Error,
                    circumstance: Circumstance::RenamedFrom(event.old_path.clone()),
                    acknowledged: None,
                    path: event.path.clone(),
                    device: id.device,
                    image: caller.image,
                    place: caller.place,
                    written: dirt.caller.place,
                    kept: Kept::Somewhere,
                });
                self.wrongly_synced(id, wrong, None);
            }
        }
        let old = (event.old_directory, base_of(&event.old_path).to_owned());
        let had_durable_name = !self.names.contains_key(&old);
        let gone = Removed {
            was_durable: false,
            caller,
        };
        self.name_gone(event.old_directory, &event.old_path, event, gone);
        self.name_changed(
            event,
            caller,
            NameChange::Renamed,
            &event.path,
            event.other.exists(),
        );
        if event.file.is_regular() {
            if had_durable_name && self.files[&id].is_durable {
                self.formerly.insert(id, old);
            }
            let file = self.file(&event.file, &event.path, event.number);
            file.directory = event.directory;
            if event.other.links <= 1 {
                self.forget(event.other.id, event.began);
            }
        }
    }

    /// Whether the file that loses its name has durable content, or a power cut may bring back one that has.
    fn is_over_durable(&self, event: &FileEvent) -> bool {
        let key = (event.directory, base_of(&event.path).to_owned());
        let before = self.names.get(&key);
        event.other.exists()
            && (self.was_durable(event.other.id, event.began)
                || before.is_some_and(|name| name.is_over_durable))
    }

    /// Whether the file that a call took away had durable content; the call began when there were so many events.
    fn was_durable(&self, id: FileId, began: u64) -> bool {
        match self.files.get(&id) {
            Some(file) if file.since < began => file.is_durable,
            // It is another file by now.
            Some(_) => self.reused.get(&id).copied().unwrap_or(true),
            None => true,
        }
    }

    /// Whether a file was changed by calls that nobody told.
    fn look_for_unseen(&mut self, event: &FileEvent, caller: Caller) {
        let file = self.file(&event.file, &event.old_path, event.number);
        if file.is_changed(&event.file) {
            file.change(event.number, caller, Change::Unseen, &event.file);
        }
    }

    fn linked(&mut self, event: &FileEvent, caller: Caller) {
        if event.file.is_regular() {
            self.look_for_unseen(event, caller);
        }
        self.name_changed(event, caller, NameChange::Linked, &event.path, false);
        if event.file.is_regular() {
            let file = self.file(&event.file, &event.path, event.number);
            file.directory = event.directory;
        }
    }

    fn removed(&mut self, event: &FileEvent, caller: Caller) {
        let id = event.file.id;
        let was_durable = event.file.is_regular()
            && self.was_durable(id, event.began)
            && event.file.size > 0
            && event.file.links <= 1;
        if was_durable {
            self.removed_too_early(event, caller);
        }
        let gone = Removed {
            was_durable,
            caller,
        };
        self.name_gone(event.directory, &event.path, event, gone);
        if event.file.links <= 1 {
            self.forget(id, event.began);
        }
    }

    fn removed_too_early(&mut self, event: &FileEvent, caller: Caller) {
        let Some((device, successor)) = self.successor(event, caller) else {
            return;
        };
        // Who moves a file to tmpfs does not mean it to stay.
        if !self.judgement.matters(device, &successor) {
            return;
        }
        self.judgement.add(Judged {
            rule: Rule::RemovedTooEarly,
            level: Level::Error,
            circumstance: Circumstance::ReplacedBy(successor),
            acknowledged: None,
            path: event.path.clone(),
            device: event.file.id.device,
            image: caller.image,
            place: caller.place,
            written: None,
            kept: Kept::Nowhere,
        });
    }

    /// The file that takes the place of a removed one, where it is not durable.
    fn successor(&self, event: &FileEvent, caller: Caller) -> Option<(u64, String)> {
        let is_dirty = |id: &FileId| self.files.get(id).is_some_and(|file| file.dirt.is_some());
        // It was renamed away, and another file got its name.
        let former = self.formerly.get(&event.file.id);
        if let Some(name) = former.and_then(|key| self.names.get(key))
            && is_dirty(&name.file)
        {
            return Some((name.file.device, name.path.clone()));
        }
        // A copy of it: the same last part, or one with an ending more or less.
        let base = base_of(&event.path);
        let copied = self.files.iter().find(|(_, file)| {
            let by_same = file
                .dirt
                .as_ref()
                .is_some_and(|dirt| dirt.caller.pid == caller.pid);
            by_same
                && file.was_made
                && file.path != event.path
                && is_copy(base, base_of(&file.path))
        });
        if let Some((id, copied)) = copied {
            return Some((id.device, copied.path.clone()));
        }
        // In its directory a file was replaced, and that is not durable.
        let mut names = self.names.iter();
        let replaced = names.find(|((directory, _), name)| {
            *directory == event.directory
                && name.change == NameChange::Renamed
                && name.replaces
                && name.caller.pid == caller.pid
                && name.path != event.path
                && !name.is_file_synced
        });
        replaced.map(|(_, name)| (name.file.device, name.path.clone()))
    }

    /// It is gone. Its inode's number may already be that of a file that was made after the removal began.
    fn forget(&mut self, id: FileId, began: u64) {
        if self.files.get(&id).is_some_and(|file| file.since < began) {
            self.files.remove(&id);
            self.formerly.remove(&id);
        } else {
            self.reused.remove(&id);
        }
    }

    // ---- acknowledgements -----------------------------------------------

    /// Whether the process is the one that acknowledges, or was started by it.
    fn is_of(&self, mut pid: u32, caller: Option<Caller>) -> bool {
        let Some(caller) = caller else {
            return true;
        };
        for _ in 0..64 {
            if pid == caller.pid {
                return true;
            }
            match self.parents.get(&pid) {
                Some(parent) if *parent != pid => pid = *parent,
                _ => return false,
            }
        }
        false
    }

    fn acknowledged(&mut self, by: AcknowledgedBy, number: u64, caller: Option<Caller>) {
        self.judge_data(by, number, caller);
        self.judge_names(by, number, caller);
    }

    /// Whether the process has synced another file since: it may be a journal that has the same.
    fn may_have_journal(&self, id: FileId, number: u64, caller: Caller) -> bool {
        let last = self.last_sync.get(&caller.pid);
        last.is_some_and(|last| last.file != id && last.began > number)
    }

    fn judge_data(&mut self, by: AcknowledgedBy, number: u64, caller: Option<Caller>) {
        let mut found = Vec::new();
        for (id, file) in &self.files {
            if let Some((error, failed_at, failed)) = file.failed
                && failed_at < number
                && self.is_of(failed.pid, caller)
            {
                found.push((*id, Some((error, failed)), None));
            }
            let Some(dirt) = &file.dirt else { continue };
            let has_data = !dirt.is_acknowledged && dirt.has_data && dirt.first <= number;
            if !has_data || !self.is_of(dirt.caller.pid, caller) {
                continue;
            }
            if by == AcknowledgedBy::Write && self.may_have_journal(*id, dirt.first, dirt.caller) {
                continue;
            }
            let last = self.last_sync.get(&dirt.caller.pid);
            let later = last.filter(|last| last.file != *id && last.written > dirt.first);
            found.push((*id, None, later.map(|last| last.path.clone())));
        }
        found.sort_by_key(|(id, ..)| *id);
        for (id, failed, synced) in found {
            self.judge_file(id, failed, synced, by);
        }
    }

    fn judge_file(
        &mut self,
        id: FileId,
        failed: Option<(i32, Caller)>,
        synced: Option<String>,
        by: AcknowledgedBy,
    ) {
        let file = self.files.get_mut(&id).expect("it was found there");
        let path = file.path.clone();
        if let Some((error, caller)) = failed {
            file.failed = None;
            self.judgement.add(Judged {
                rule: Rule::ErrorIgnored,
                level: Level::Error,
                circumstance: Circumstance::Failed(error_name(error)),
                acknowledged: Some(by),
                path,
                device: id.device,
                image: caller.image,
                place: caller.place,
                written: None,
                kept: Kept::Nowhere,
            });
            return;
        }
        let Some(dirt) = &mut file.dirt else { return };
        dirt.is_acknowledged = true;
        let caller = dirt.caller;
        // Who syncs files of the directory as well does not take its sync for theirs.
        let knows_better = self.with_synced_files.contains(&file.directory);
        let wrong = file
            .wrong
            .filter(|(wrong, _)| *wrong != WrongSync::Directory || !knows_better);
        if wrong.is_some() {
            self.wrongly_synced(id, wrong, Some(by));
            return;
        }
        let level = match by {
            AcknowledgedBy::Write => Level::Warning,
            AcknowledgedBy::Exit => Level::Note,
        };
        let judged = Judged {
            rule: Rule::AcknowledgedUnsynced,
            level,
            circumstance: Circumstance::Written,
            acknowledged: Some(by),
            path,
            device: id.device,
            image: caller.image,
            place: caller.place,
            written: caller.place,
            kept: Kept::Nowhere,
        };
        if let Some(later) = synced {
            self.judgement.add(Judged {
                rule: Rule::OrderAssumed,
                level: Level::Note,
                circumstance: Circumstance::SyncedLater(later),
                kept: Kept::Somewhere,
                ..judged.clone()
            });
        }
        self.judgement.add(judged);
    }

    fn wrongly_synced(
        &mut self,
        id: FileId,
        wrong: Option<(WrongSync, Caller)>,
        by: Option<AcknowledgedBy>,
    ) {
        let Some((wrong, caller)) = wrong else { return };
        let file = &self.files[&id];
        let written = file.dirt.as_ref().and_then(|dirt| dirt.caller.place);
        self.judgement.add(Judged {
            rule: Rule::SyncedTheWrongThing,
            level: Level::Warning,
            circumstance: Circumstance::NotCoveredBy(wrong.text().to_owned()),
            acknowledged: by,
            path: file.path.clone(),
            device: id.device,
            image: caller.image,
            place: caller.place,
            written,
            kept: Kept::Nowhere,
        });
    }

    fn judge_names(&mut self, by: AcknowledgedBy, number: u64, caller: Option<Caller>) {
        let has_journal = |name: &NameState| {
            by == AcknowledgedBy::Write
                && name.is_regular
                && self.may_have_journal(name.file, name.number, name.caller)
        };
        let mut keys: Vec<_> = self
            .names
            .iter()
            .filter(|(_, name)| {
                !name.is_acknowledged
                    && name.number < number
                    && self.is_of(name.caller.pid, caller)
                    && !has_journal(name)
            })
            .map(|(key, name)| (name.number, key.clone()))
            .collect();
        keys.sort();
        for (_, key) in keys {
            let name = self.names.get_mut(&key).expect("it was found there");
            name.is_acknowledged = true;
            let is_empty = name.is_regular
                && self
                    .files
                    .get(&name.file)
                    .is_none_or(|file| file.size == 0 && file.dirt.is_none());
            if let Some(judged) = name.judged(by, is_empty, key.0.device) {
                self.judgement.add(judged);
            }
        }
    }

    /// The run has ended, which acknowledges all that it did. `look`: what a path leads to now.
    #[must_use]
    pub fn finish(mut self, look: impl Fn(&str) -> Option<FileFacts>) -> Judgement {
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
        self.names.retain(|_, name| {
            name.change == NameChange::Removed || !name.is_regular || files.contains_key(&name.file)
        });
    }
}

/// `a` and `a.gz`, `a.gz` and `a`, or the same.
fn is_copy(old: &str, new: &str) -> bool {
    let has_ending = |long: &str, short: &str| {
        long.strip_prefix(short)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    !old.is_empty() && !new.is_empty() && (has_ending(new, old) || has_ending(old, new))
}

/// `EIO`, or a number where it is a rare one.
fn error_name(error: i32) -> String {
    match error {
        5 => "EIO".to_owned(),
        28 => "ENOSPC".to_owned(),
        122 => "EDQUOT".to_owned(),
        number => format!("error {number}"),
    }
}

#[cfg(test)]
mod tests;
