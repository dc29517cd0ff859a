//! What is done to the data of files.

use refit_session::file_events::{ASYNC, DURABLE, FileEvent, FileFacts, FileId, IN_STREAM};

use super::file_state::{Change, FileState};
use super::judgement::Judged;
use super::name_state::NameChange;
use super::{Caller, MappedRange, Model};
use crate::finding::{Circumstance, Level, WrongSync};
use crate::rule::Rule;

/// O_TRUNC and O_CREAT of open(2), on all architectures that refit knows.
const O_TRUNC: i32 = 0o1000;
pub(super) const O_CREAT: i32 = 0o100;

impl Model {
    pub(super) fn file(&mut self, facts: &FileFacts, path: &str, number: u64) -> &mut FileState {
        let file = self
            .files
            .entry(facts.id)
            .or_insert_with(|| FileState::found(facts, number));
        if !path.is_empty() {
            file.path = path.to_owned();
        }
        file
    }

    /// It has changes that no sync covers.
    pub(super) fn is_dirty(&mut self, id: FileId) {
        self.dirty.insert(id);
        self.unjudged.insert(id);
    }

    pub(super) fn opened(&mut self, event: &FileEvent, caller: Caller) {
        let is_new = !event.other.exists();
        if is_new {
            // The number of an inode may have been another file's.
            let made = FileState::made(&event.file, &event.path, event.number);
            if let Some(before) = self.files.insert(event.file.id, made) {
                self.reused.insert(event.file.id, before.is_durable);
                self.short_lived.vanished(before.unnamed_syncs);
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
            self.is_dirty(event.file.id);
            if was_durable {
                self.truncated(event.file.id.device, &event.path, event.other.size, caller);
            }
        }
    }

    pub(super) fn truncated(&mut self, device: u64, path: &str, bytes: u64, caller: Caller) {
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
        });
    }

    pub(super) fn wrote(&mut self, event: &FileEvent, caller: Caller) {
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
        let path = file.path.clone();
        self.is_dirty(event.file.id);
        if let Some((bytes, by)) = cut {
            self.truncated(event.file.id.device, &path, bytes, by);
        }
    }

    pub(super) fn resized(&mut self, event: &FileEvent, caller: Caller) {
        let file = self.file(&event.file, &event.path, event.number);
        if event.at == 0 && event.other.size > 0 && file.is_durable {
            file.cut = Some((event.other.size, caller));
        }
        file.change(event.number, caller, Change::Truncated, &event.file);
        self.is_dirty(event.file.id);
    }

    pub(super) fn mapped(&mut self, event: &FileEvent) {
        let file = self.file(&event.file, &event.path, event.number);
        file.mapped = Some(event.number);
        let end = event.at.saturating_add(event.length);
        self.maps.retain(|map| {
            map.image != event.image || map.range.end <= event.at || end <= map.range.start
        });
        self.maps.push(MappedRange {
            image: event.image,
            range: event.at..end,
            file: event.file.id,
        });
    }

    pub(super) fn map_synced(&mut self, event: &FileEvent, caller: Caller) {
        let mut maps = self.maps.iter();
        let map = maps.find(|map| map.image == event.image && map.range.contains(&event.at));
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
    pub(super) fn not_covered(&mut self, id: FileId, wrong: WrongSync, caller: Caller) {
        if let Some(file) = self.files.get_mut(&id)
            && (file.dirt.is_some() || file.mapped.is_some())
        {
            file.wrong = Some((wrong, caller));
        }
    }
}
