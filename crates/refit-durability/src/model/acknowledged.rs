//! What is judged when something is acknowledged.

use refit_session::file_events::FileId;

use super::judgement::Judged;
use super::name_state::NameState;
use super::syncs::error_name;
use super::{Caller, Model};
use crate::finding::{AcknowledgedBy, Circumstance, Level, WrongSync};
use crate::rule::Rule;

impl Model {
    /// Whether the process is the one that acknowledges, or was started by it.
    pub(super) fn is_of(&self, mut pid: u32, caller: Option<Caller>) -> bool {
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

    pub(super) fn acknowledged(&mut self, by: AcknowledgedBy, number: u64, caller: Option<Caller>) {
        self.judge_data(by, number, caller);
        self.judge_names(by, number, caller);
    }

    /// Whether the process has synced another file since: it may be a journal that has the same.
    pub(super) fn may_have_journal(&self, id: FileId, number: u64, caller: Caller) -> bool {
        let last = self.last_sync.get(&caller.pid);
        last.is_some_and(|last| last.file != id && last.began > number)
    }

    pub(super) fn judge_data(&mut self, by: AcknowledgedBy, number: u64, caller: Option<Caller>) {
        let mut found = Vec::new();
        let unjudged = self.unjudged.iter();
        for (id, file) in unjudged.filter_map(|id| Some((id, self.files.get(id)?))) {
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
            if failed.is_none() {
                self.unjudged.remove(&id);
            }
            self.judge_file(id, failed, synced, by);
        }
    }

    pub(super) fn judge_file(
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
            });
            return;
        }
        let Some(dirt) = &mut file.dirt else { return };
        dirt.is_acknowledged = true;
        let caller = dirt.caller;
        let wrong = self.wrong_sync_of(id);
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
        };
        if let Some(later) = synced {
            self.judgement.add(Judged {
                rule: Rule::OrderAssumed,
                level: Level::Note,
                circumstance: Circumstance::SyncedLater(later),
                ..judged.clone()
            });
        }
        self.judgement.add(judged);
    }

    /// The call that the program may have taken for a sync of the file's changes.
    pub(super) fn wrong_sync_of(&self, id: FileId) -> Option<(WrongSync, Caller)> {
        let file = self.files.get(&id)?;
        let of_directory = || {
            let directory = self.directories.get(&file.directory)?;
            let (began, caller) = directory.synced?;
            // Who syncs files of the directory as well does not take its sync for theirs.
            let is_taken = began > file.dirt.as_ref()?.first && !directory.has_synced_files;
            is_taken.then_some((WrongSync::Directory, caller))
        };
        file.wrong.or_else(of_directory)
    }

    pub(super) fn wrongly_synced(
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
            circumstance: Circumstance::NotCoveredBy(wrong),
            acknowledged: by,
            path: file.path.clone(),
            device: id.device,
            image: caller.image,
            place: caller.place,
            written,
        });
    }

    pub(super) fn judge_names(&mut self, by: AcknowledgedBy, number: u64, caller: Option<Caller>) {
        let is_meant = |name: &NameState| {
            let has_journal = by == AcknowledgedBy::Write
                && name.is_regular
                && self.may_have_journal(name.file, name.number, name.caller);
            self.is_of(name.caller.pid, caller) && !has_journal
        };
        for key in self.names.unjudged(number, is_meant) {
            self.names.judged(&key);
            let name = self.names.get(&key).expect("it was found there");
            let file = self.files.get(&name.file);
            let is_empty =
                name.is_regular && file.is_none_or(|file| file.size == 0 && file.dirt.is_none());
            let idle = self.idle_sync.get(&name.caller.pid);
            let other = idle.filter(|(began, _)| *began > name.number);
            let other = other.map(|(_, path)| path.as_str());
            if let Some(judged) = name.judged(by, is_empty, other, key.0.device) {
                self.judgement.add(judged);
            }
        }
    }
}
