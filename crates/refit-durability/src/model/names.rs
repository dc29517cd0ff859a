//! Names that are made, moved and removed.

use refit_session::file_events::{EXCHANGED, FileEvent, FileId};

use super::file_state::Change;
use super::judgement::Judged;
use super::name_state::{NameChange, NameState, Removed, base_of};
use super::{Caller, Model};
use crate::finding::{Circumstance, Level};
use crate::rule::Rule;

/// What is dirty for longer is written back: vm.dirty_expire_centisecs and vm.dirty_writeback_centisecs, 30 and 5 seconds
/// unless somebody changed them.
const WRITTEN_BACK_NS: u64 = 35_000_000_000;

/// A removed file is compared with so many that may have taken its place.
const MOST_COMPARED: usize = 1000;

impl Model {
    pub(super) fn name_changed(
        &mut self,
        event: &FileEvent,
        caller: Caller,
        change: NameChange,
        path: &str,
        replaces: bool,
    ) {
        self.directories
            .entry(event.directory)
            .or_default()
            .has_changed = true;
        let is_over_durable = self.is_over_durable(event);
        let key = (event.directory, base_of(path).to_owned());
        let before = self.names.remove(&key);
        let replaces = before.as_ref().map_or(replaces, |before| before.replaces);
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
            replaces,
            is_over_durable,
            is_file_synced: false,
            was_synced_before: self
                .files
                .get(&event.file.id)
                .is_some_and(|file| file.is_durable && file.dirt.is_none()),
            removed: None,
            is_acknowledged: false,
        };
        self.names.insert(key, state);
    }

    /// The old name of a renamed file, or one that was unlinked.
    pub(super) fn name_gone(
        &mut self,
        directory: FileId,
        path: &str,
        event: &FileEvent,
        gone: Removed,
    ) {
        self.directories.entry(directory).or_default().has_changed = true;
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
                    removed: Some(gone),
                    is_acknowledged: false,
                };
                self.names.insert(key, state);
            }
        }
    }

    pub(super) fn renamed(&mut self, event: &FileEvent, caller: Caller) {
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
            let wrong = self.wrong_sync_of(id);
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
                });
                self.wrongly_synced(id, wrong, None);
            }
        }
        let old = (event.old_directory, base_of(&event.old_path).to_owned());
        let had_durable_name = self.names.get(&old).is_none();
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
            let file = self.file(&event.file, &event.path, event.number);
            file.directory = event.directory;
            if event.old_directory != event.directory {
                // Its syncs were made elsewhere.
                file.named_syncs = 0;
            }
            // The name that it was made with may be a temporary one.
            let is_missed = file.is_durable && (!file.was_made || file.is_renamed);
            file.is_renamed = true;
            if had_durable_name && is_missed {
                self.formerly.insert(id, old);
            }
            if event.other.links <= 1 {
                self.forget(event.other.id, event.began);
            }
        }
    }

    /// Whether the file that loses its name has durable content, or a power cut may bring back one that has.
    pub(super) fn is_over_durable(&self, event: &FileEvent) -> bool {
        let key = (event.directory, base_of(&event.path).to_owned());
        let before = self.names.get(&key);
        // The kernel has written it back, or somebody was told that it is there.
        let age_ns = event.file.changed_ns.saturating_sub(event.other.changed_ns);
        event.other.exists()
            && (self.was_durable(event.other.id, event.began)
                || age_ns > WRITTEN_BACK_NS
                || before.is_some_and(|name| name.is_over_durable || name.is_acknowledged))
    }

    /// Whether the file that a call took away had durable content; the call began when there were so many events.
    pub(super) fn was_durable(&self, id: FileId, began: u64) -> bool {
        match self.files.get(&id) {
            Some(file) if file.since < began => file.is_durable,
            // It is another file by now.
            Some(_) => self.reused.get(&id).copied().unwrap_or(true),
            None => true,
        }
    }

    /// Whether a file was changed by calls that nobody told.
    pub(super) fn look_for_unseen(&mut self, event: &FileEvent, caller: Caller) {
        let file = self.file(&event.file, &event.old_path, event.number);
        if file.is_changed(&event.file) {
            file.change(event.number, caller, Change::Unseen, &event.file);
            self.is_dirty(event.file.id);
        }
    }

    pub(super) fn linked(&mut self, event: &FileEvent, caller: Caller) {
        if event.file.is_regular() {
            self.look_for_unseen(event, caller);
        }
        self.name_changed(event, caller, NameChange::Linked, &event.path, false);
        if event.file.is_regular() {
            let file = self.file(&event.file, &event.path, event.number);
            file.directory = event.directory;
            file.named_syncs += std::mem::take(&mut file.unnamed_syncs);
        }
    }

    pub(super) fn removed(&mut self, event: &FileEvent, caller: Caller) {
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
            let file = self.files.get(&id).filter(|file| file.since < event.began);
            let syncs = file.map_or(0, |file| file.named_syncs * u64::from(file.was_made));
            self.short_lived.removed(&event.path, syncs);
            self.forget(id, event.began);
        }
    }

    pub(super) fn removed_too_early(&mut self, event: &FileEvent, caller: Caller) {
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
        });
    }

    /// The file that takes the place of a removed one, where it is not durable.
    pub(super) fn successor(&self, event: &FileEvent, caller: Caller) -> Option<(u64, String)> {
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
        let dirty = self.dirty.iter().take(MOST_COMPARED);
        let mut dirty = dirty.filter_map(|id| Some((id, self.files.get(id)?)));
        let copied = dirty.find(|(_, file)| {
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
        let names = self.names.in_directory(event.directory);
        let replaced = names.take(MOST_COMPARED).find(|name| {
            name.change == NameChange::Renamed
                && name.replaces
                && name.caller.pid == caller.pid
                && name.path != event.path
                && !name.is_file_synced
        });
        replaced.map(|name| (name.file.device, name.path.clone()))
    }

    /// It is gone. Its inode's number may already be that of a file that was made after the removal began.
    pub(super) fn forget(&mut self, id: FileId, began: u64) {
        if self.files.get(&id).is_some_and(|file| file.since < began) {
            self.files.remove(&id);
            self.dirty.remove(&id);
            self.unjudged.remove(&id);
            self.formerly.remove(&id);
        } else {
            self.reused.remove(&id);
        }
    }
}

/// `a` and `a.gz`, `a.gz` and `a`, or the same.
pub(super) fn is_copy(old: &str, new: &str) -> bool {
    let has_ending = |long: &str, short: &str| {
        long.strip_prefix(short)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    !old.is_empty() && !new.is_empty() && (has_ending(new, old) || has_ending(old, new))
}
