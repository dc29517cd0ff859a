//! Calls that ask for durability, and what each covers.

use refit_session::file_events::{FileEvent, FileFacts, FileId, IN_STREAM, Operation};

use super::judgement::Judged;
use super::{Caller, LastSync, Model};
use crate::finding::{Circumstance, Level, WrongSync};
use crate::rule::Rule;

/// Errors that say that a descriptor cannot be synced, not that data was lost.
const NOT_SYNCABLE: [i32; 4] = [-9, -22, -30, -95]; // EBADF, EINVAL, EROFS, EOPNOTSUPP

impl Model {
    pub(super) fn synced(&mut self, event: &FileEvent, caller: Caller) {
        self.judgement.counts.syncs += 1;
        if event.result < 0 {
            if !NOT_SYNCABLE.contains(&event.result) && event.file.is_regular() {
                let file = self.file(&event.file, &event.path, event.number);
                file.failed = Some((-event.result, event.number, caller));
                self.unjudged.insert(event.file.id);
            }
            return;
        }
        if event.file.is_directory() {
            self.directory_synced(event, caller);
        } else if event.file.is_regular() {
            self.file_synced(event, caller);
        }
    }

    pub(super) fn file_synced(&mut self, event: &FileEvent, caller: Caller) {
        let id = event.file.id;
        let is_full = event.operation == Operation::Synced;
        let covers_names = self.names.file_synced(id, event.began, is_full);
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
        let (directory, path) = (file.directory, file.path.clone());
        file.synced(event.began, Some(&event.file));
        if event.has(IN_STREAM) {
            file.wrong = Some((WrongSync::Stream, caller));
        }
        if file.dirt.is_none() {
            self.dirty.remove(&id);
            self.unjudged.remove(&id);
        }
        if directory.inode != 0 {
            let directory = self.directories.entry(directory).or_default();
            directory.has_synced_files = true;
        }
        self.judgement.counts.idle_syncs += u64::from(is_idle);
        if !is_idle && self.judgement.matters(id.device, &path) {
            self.count_sync(&event.file, &path);
        }
        if let Some(written) = written {
            let last = LastSync {
                written,
                began: event.began,
                path,
                file: id,
            };
            self.last_sync.insert(caller.pid, last);
        }
    }

    fn count_sync(&mut self, file: &FileFacts, path: &str) {
        let state = self.files.get_mut(&file.id).expect("it was synced");
        if file.links == 0 {
            state.unnamed_syncs += 1;
        } else {
            state.named_syncs += 1;
            self.short_lived.synced(path);
        }
    }

    pub(super) fn directory_synced(&mut self, event: &FileEvent, caller: Caller) {
        let id = event.file.id;
        let is_idle = !self.names.directory_synced(id, event.began);
        self.judgement.counts.idle_syncs += u64::from(is_idle);
        let directory = self.directories.entry(id).or_default();
        directory.synced = Some((event.began, caller));
        if !event.path.is_empty() {
            event.path.clone_into(&mut directory.path);
        }
        if is_idle && !directory.has_changed {
            let sync = (event.began, directory.path.clone());
            self.idle_sync.insert(caller.pid, sync);
        }
    }

    pub(super) fn all_synced(&mut self, event: &FileEvent, device: Option<u64>) {
        self.judgement.counts.syncs += 1;
        let is_meant = |id: &FileId| device.is_none_or(|device| device == id.device);
        for (id, file) in self.files.iter_mut().filter(|(id, _)| is_meant(id)) {
            file.synced(event.began, None);
            if file.dirt.is_none() {
                self.dirty.remove(id);
            }
        }
        self.names.all_synced(is_meant, event.began);
    }
}

/// `EIO`, or a number where it is a rare one.
pub(super) fn error_name(error: i32) -> String {
    match error {
        5 => "EIO".to_owned(),
        28 => "ENOSPC".to_owned(),
        122 => "EDQUOT".to_owned(),
        number => format!("error {number}"),
    }
}
