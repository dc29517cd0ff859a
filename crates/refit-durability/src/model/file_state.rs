//! A file, as far as it is known.

use refit_session::file_events::{FileFacts, FileId};

use super::Caller;
use crate::finding::WrongSync;

/// How a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By a call that was told.
    Written,
    /// By the C library, from the buffer of a stream.
    InStream,
    /// It was truncated.
    Truncated,
    /// By a call that was not told: its size or its time differ.
    Unseen,
}

/// Changes that no sync covers.
#[derive(Clone, Debug)]
pub struct Dirt {
    /// Number of the first of them.
    pub first: u64,
    /// Number of the last one that was told.
    pub last: u64,
    /// Who made the first one.
    pub caller: Caller,
    /// Something was added: without that a power cut brings back what was cut off, and takes nothing.
    pub has_data: bool,
    /// It was judged at an acknowledgement.
    pub is_acknowledged: bool,
}

/// What is known of a file.
#[derive(Clone, Debug)]
pub struct FileState {
    /// The last path that it had.
    pub path: String,
    /// Directory of the last name that it got; inode 0: not known.
    pub directory: FileId,
    /// Image that changed it last.
    pub image: u64,
    /// When it was told last, in bytes and nanoseconds.
    pub size: u64,
    pub changed_ns: u64,
    /// `None`: all that is known of is durable.
    pub dirt: Option<Dirt>,
    /// Some content of it was durable once: it was there before the run, or was synced.
    pub is_durable: bool,
    /// It was made in this run.
    pub was_made: bool,
    /// It has a name that it was not made with.
    pub is_renamed: bool,
    /// Number of the event that told of it first.
    pub since: u64,
    /// Number of the event by which it was mapped, and not synced since.
    pub mapped: Option<u64>,
    /// It was mapped once: its time may change at any moment.
    was_mapped: bool,
    /// A sync failed: the error, the number of the event, who made it.
    pub failed: Option<(i32, u64, Caller)>,
    /// A call that did not cover what was written.
    pub wrong: Option<(WrongSync, Caller)>,
    /// It was truncated to nothing, and not written since; it had so many bytes.
    pub cut: Option<(u64, Caller)>,
    /// Syncs that had something to write, while it had a name, ...
    pub named_syncs: u64,
    /// ... and while it had none.
    pub unnamed_syncs: u64,
}

impl FileState {
    fn new(facts: &FileFacts, path: &str, was_made: bool, since: u64) -> FileState {
        FileState {
            path: path.to_owned(),
            directory: FileId::default(),
            image: 0,
            size: facts.size,
            changed_ns: facts.changed_ns,
            dirt: None,
            is_durable: !was_made,
            was_made,
            is_renamed: false,
            since,
            mapped: None,
            was_mapped: false,
            failed: None,
            wrong: None,
            cut: None,
            named_syncs: 0,
            unnamed_syncs: 0,
        }
    }

    /// One that was there before.
    pub fn found(facts: &FileFacts, since: u64) -> FileState {
        FileState::new(facts, "", false, since)
    }

    /// One that this run made.
    pub fn made(facts: &FileFacts, path: &str, since: u64) -> FileState {
        FileState::new(facts, path, true, since)
    }

    /// It was changed, by the event of this number.
    pub fn change(&mut self, number: u64, caller: Caller, how: Change, now: &FileFacts) {
        let has_data = how != Change::Truncated || now.size > self.size;
        self.size = now.size;
        self.changed_ns = now.changed_ns;
        self.image = caller.image;
        match &mut self.dirt {
            Some(dirt) => {
                dirt.last = number;
                dirt.has_data |= has_data;
            }
            None => {
                let by_nobody = how == Change::Unseen;
                self.dirt = Some(Dirt {
                    first: number,
                    last: number,
                    caller: Caller {
                        place: caller.place.filter(|_| !by_nobody),
                        ..caller
                    },
                    has_data,
                    is_acknowledged: false,
                });
            }
        }
    }

    /// Whether something changed it that was not told.
    pub fn is_changed(&self, now: &FileFacts) -> bool {
        self.dirt.is_none()
            && self.mapped.is_none()
            && !self.was_mapped
            && (self.size != now.size || self.changed_ns != now.changed_ns)
    }

    /// Whether a sync has nothing to write, as far as is known.
    pub fn is_idle(&self, now: &FileFacts) -> bool {
        self.dirt.is_none() && !self.was_mapped && self.mapped.is_none() && {
            self.size == now.size && self.changed_ns == now.changed_ns
        }
    }

    /// Whether it was changed after the event of this number.
    pub fn has_changed_since(&self, number: u64) -> bool {
        self.dirt.as_ref().is_some_and(|dirt| dirt.last > number)
    }

    /// A sync that succeeded, and began when there were this many events; `facts`: the file before it.
    pub fn synced(&mut self, began: u64, facts: Option<&FileFacts>) {
        if let Some(facts) = facts {
            self.size = facts.size;
            self.changed_ns = facts.changed_ns;
        }
        if self.dirt.as_ref().is_none_or(|dirt| dirt.last < began) {
            self.dirt = None;
            self.wrong = None;
            self.cut = None;
            self.is_durable = true;
        }
        if self.mapped.is_some_and(|number| number < began) {
            self.mapped = None;
            self.was_mapped = true;
        }
    }
}
