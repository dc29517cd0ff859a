//! Taking a change back: to the bytes, or not at all.

use crate::file_state::{remove, temporary};
use crate::kind::Step;
use crate::kinds::{kind_named, kind_of};
use crate::library;
use crate::store::Store;
use crate::{Changed, Error, FileState, Phase, Record, System, undo};

/// What was done.
pub struct Reverted {
    /// The record that is gone now.
    pub record: Record,
    /// Files that were as before already.
    pub untouched: Vec<String>,
}

/// Takes back the change of a service, also one that was interrupted.
///
/// # Errors
/// [`Error::Conflict`] where a file is neither as it was before the change nor as the change
/// left it; nothing is reverted then.
pub fn revert(system: &System, word: &str) -> Result<Reverted, Error> {
    let service = service_with_record(system, word)?;
    if system.is_live() && !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if Store::to_read(system)?.load(&service)?.is_none() {
        return Err(Error::NoChange { service });
    }
    let store = Store::to_change(system)?;
    let Some(record) = store.load(&service)? else {
        return Err(Error::NoChange { service });
    };
    take_back(system, &store, record, false)
}

/// Takes back a change that was not confirmed, as its timer asks. Where it was confirmed or
/// reverted, nothing is left to do.
///
/// # Errors
/// As [`revert`].
pub fn revert_unconfirmed(system: &System, word: &str) -> Result<Option<Reverted>, Error> {
    let store = Store::to_change(system)?;
    match store.load(&service_of(&store.all()?, system, word)?)? {
        Some(record) if record.change.undo.is_some() => {
            take_back(system, &store, record, true).map(Some)
        }
        _ => Ok(None),
    }
}

/// A service that is gone, with its package perhaps, is known by its record.
pub fn service_with_record(system: &System, word: &str) -> Result<String, Error> {
    service_of(&Store::to_read(system)?.all()?, system, word)
}

fn service_of(records: &[Record], system: &System, word: &str) -> Result<String, Error> {
    let is_meant = |name: &str| name == word || name.strip_suffix(".service") == Some(word);
    let by_record = records
        .iter()
        .find(|record| is_meant(&record.change.service));
    match by_record {
        Some(record) => Ok(record.change.service.clone()),
        None => Ok(kind_of(system, word)?.1),
    }
}

/// Takes back all of a record. `by_timer`: this process runs in the unit that the timer started,
/// which must not stop itself.
pub fn take_back(
    system: &System,
    store: &Store,
    mut record: Record,
    by_timer: bool,
) -> Result<Reverted, Error> {
    let change = record.change.clone();
    let conflicts = conflicts(system, &record)?;
    if !conflicts.is_empty() {
        return Err(Error::Conflict(conflicts));
    }
    for file in change.placed() {
        // One that is not whole was never seen by a service while the change is being made.
        if library::is_whole(system, file)? == Some(false) {
            return Err(Error::LibraryChanged {
                path: file.path.clone(),
            });
        }
    }
    let step = match record.phase {
        Phase::Applying => Step::Recover,
        _ => Step::Revert,
    };
    record.phase = Phase::Reverting;
    store.save(&record)?;
    let mut untouched = Vec::new();
    // A file that another one includes is there as long as that one.
    let of_undo = change.edits().skip(change.files.len());
    for edit in change.files.iter().rev().chain(of_undo) {
        let path = system.path(&edit.path)?;
        if path.parent().is_some_and(|dir| dir.is_dir()) {
            remove(&temporary(&path))?;
        }
        if FileState::read(&path)? == edit.before {
            untouched.push(edit.path.clone());
            continue;
        }
        match &edit.before {
            Some(state) => state.write(&path)?,
            None => remove(&path)?,
        }
    }
    for dir in change.directories.iter().rev() {
        library::remove_directory(&system.path(dir)?)?;
    }
    if system.is_live() {
        if let Some(undo) = &change.undo {
            undo::stop(undo, by_timer);
        }
        if let Some(kind) = kind_named(&change.kind) {
            kind.activate(&change, step)?;
        }
    }
    for file in change.placed() {
        library::withdraw(system, store, &change.service, file)?;
    }
    store.forget(&change.service)?;
    Ok(Reverted { record, untouched })
}

/// Files that somebody else changed.
pub fn conflicts(system: &System, record: &Record) -> Result<Vec<Changed>, Error> {
    let mut found = Vec::new();
    for edit in record.change.edits() {
        let now = FileState::read(&system.path(&edit.path)?)?;
        if now != edit.before && now != edit.after {
            found.push(Changed {
                path: edit.path.clone(),
                before: edit.before.clone(),
                after: edit.after.clone(),
                now,
            });
        }
    }
    Ok(found)
}
