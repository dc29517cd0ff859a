//! A name that is not durable.

use refit_session::file_events::FileId;

use super::Caller;
use super::judgement::Judged;
use crate::finding::{AcknowledgedBy, Circumstance, Level};
use crate::rule::Rule;

/// What was done to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameChange {
    /// A file was made under it.
    Created,
    /// A file was renamed to it.
    Renamed,
    /// A file was linked to it.
    Linked,
    /// A directory, a symbolic link or a device was made.
    Made,
    /// It is gone.
    Removed,
}

impl NameChange {
    fn text(self) -> &'static str {
        match self {
            NameChange::Created => "created",
            NameChange::Renamed => "renamed",
            NameChange::Linked => "linked",
            NameChange::Made => "made",
            NameChange::Removed => "removed",
        }
    }
}

/// What was removed from a name.
#[derive(Clone, Debug)]
pub struct Removed {
    /// It was a file with durable content, and had no other name.
    pub was_durable: bool,
    pub caller: Caller,
}

/// A name whose directory was not synced since it was changed.
#[derive(Clone, Debug)]
pub struct NameState {
    pub change: NameChange,
    /// Of the event.
    pub number: u64,
    pub caller: Caller,
    /// The file that has it; inode 0: none.
    pub file: FileId,
    pub is_regular: bool,
    pub path: String,
    /// The name was durable: something had it before.
    pub replaces: bool,
    /// What a power cut may bring back under it is a file with durable content.
    pub is_over_durable: bool,
    /// The file was synced after the name was made: Linux writes the name too.
    pub is_file_synced: bool,
    /// The file was durable before it got the name.
    pub was_synced_before: bool,
    pub removed: Option<Removed>,
    /// It was judged at an acknowledgement.
    pub is_acknowledged: bool,
}

impl NameState {
    /// Whether Linux writes the name with a sync of its file; `is_full`: by fsync, not by fdatasync, which leaves out what
    /// the file does not need to be read (fdatasync(2)), as a rename.
    pub fn is_covered_by_file(&self, is_full: bool) -> bool {
        match self.change {
            NameChange::Created => true,
            NameChange::Renamed | NameChange::Linked => is_full,
            NameChange::Made | NameChange::Removed => false,
        }
    }

    /// What there is to say at an acknowledgement; `is_empty`: a file without content; `other`: the directory that the
    /// same process synced after it, which made no name durable.
    pub fn judged(
        &self,
        by: AcknowledgedBy,
        is_empty: bool,
        other: Option<&str>,
        device: u64,
    ) -> Option<Judged> {
        // With the name of an empty file, as locks and marks are, no content is lost.
        if is_empty || (self.change == NameChange::Removed && by == AcknowledgedBy::Exit) {
            return None;
        }
        // Who synced the data meant it to stay.
        let cares = self.was_synced_before && self.change == NameChange::Renamed;
        let level = match (by, self.change) {
            (_, NameChange::Removed) => Level::Note,
            _ if self.is_file_synced => Level::Note,
            (AcknowledgedBy::Write, _) => Level::Warning,
            (AcknowledgedBy::Exit, _) if cares => Level::Warning,
            (AcknowledgedBy::Exit, _) => Level::Note,
        };
        let (rule, circumstance) = if self.is_file_synced {
            let text = self.change.text().to_owned();
            let what = Circumstance::NameOfSynced(text);
            (Rule::NameUnsynced, what)
        } else if let Some(other) = other {
            let what = Circumstance::OtherDirectorySynced(other.to_owned());
            (Rule::SyncedTheWrongThing, what)
        } else {
            let text = self.change.text().to_owned();
            let what = Circumstance::Name(text);
            (Rule::NameUnsynced, what)
        };
        Some(Judged {
            rule,
            level: match rule {
                Rule::SyncedTheWrongThing => Level::Warning,
                _ => level,
            },
            circumstance,
            acknowledged: Some(by),
            path: self.path.clone(),
            device,
            image: self.caller.image,
            place: self.caller.place,
            written: None,
        })
    }
}

/// The last part of a path.
pub fn base_of(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}
