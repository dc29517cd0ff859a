//! Taking a change back: to the bytes, or not at all.

use crate::amend;
use crate::exchange::{Edit, make_all};
use crate::kind::Step;
use crate::kinds::{kind_named, kind_of};
use crate::library;
use crate::shared_files::tell_others;
use crate::store::Store;
use crate::three_way::End;
use crate::{
    Change, Changed, Error, FileEdit, FileError, LibraryFile, Phase, Record, System, declared,
    indexes, undo,
};

/// Who takes a change back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A person.
    Person,
    /// The unit that the timer started, which must not stop itself.
    Timer,
    /// The unit of the machine's start: no service runs yet.
    Boot,
    /// An apply that failed before the service took anything up.
    Gate,
    /// An apply that failed.
    Apply,
}

/// What was done.
pub struct Reverted {
    /// The record that is gone now.
    pub record: Record,
    /// Files that were as before already.
    pub untouched: Vec<String>,
    /// Files that went with their package: they stay so.
    pub purged: Vec<String>,
    /// Files that somebody else edited elsewhere, which stays.
    pub kept: Vec<String>,
}

/// Takes back the change of a service, also one that was interrupted.
///
/// # Errors
/// [`Error::Conflict`] where somebody else changed what refit wrote; nothing is reverted then.
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
    let mut done = take_back(system, &store, record, By::Person)?;
    while let Some(first) = done.record.first.take() {
        let of_first = take_back(system, &store, *first, By::Person)?;
        done.record.first = of_first.record.first;
        done.untouched.extend(of_first.untouched);
        done.purged.extend(of_first.purged);
        done.kept.extend(of_first.kept);
    }
    Ok(done)
}

/// Takes back a change that was not confirmed, as its timer asks, or the start of the machine. Where
/// it was confirmed or reverted, nothing is left to do.
///
/// # Errors
/// As [`revert`].
pub fn revert_unconfirmed(system: &System, word: &str, by: By) -> Result<Option<Reverted>, Error> {
    let store = Store::to_change(system)?;
    match store.load(&service_of(&store.all()?.readable, system, word)?)? {
        Some(record) if record.change.undo.is_some() => {
            take_back(system, &store, record, by).map(Some)
        }
        _ => Ok(None),
    }
}

/// A service that is gone, with its package perhaps, is known by its record.
pub fn service_with_record(system: &System, word: &str) -> Result<String, Error> {
    service_of(&Store::to_read(system)?.all()?.readable, system, word)
}

fn service_of(records: &[Record], system: &System, word: &str) -> Result<String, Error> {
    let is_meant = |name: &str| name == word || name.strip_suffix(".service") == Some(word);
    let name_where = |is_it: &dyn Fn(&Change) -> bool| {
        let mut changes = records.iter().map(|record| &record.change);
        changes
            .find(|change| is_it(change))
            .map(|change| change.service.clone())
    };
    if let Some(service) = name_where(&|change| is_meant(&change.service)) {
        return Ok(service);
    }
    let found = kind_of(system, word).map(|(_, service)| service);
    match name_where(&|change| found.as_ref().is_ok_and(|name| *name == change.service)) {
        Some(service) => Ok(service),
        // A word that meant it while it was there, as an alias of its unit does.
        None => name_where(&|change| change.word == word).map_or(found, Ok),
    }
}

/// Takes back all of a record.
pub fn take_back(
    system: &System,
    store: &Store,
    mut record: Record,
    by: By,
) -> Result<Reverted, Error> {
    let (mut ends, mut conflicts) = (Vec::new(), Vec::new());
    for edit in record.change.edits() {
        match End::of(system, &record.change, edit)? {
            Ok(end) => ends.push(end),
            Err(changed) => conflicts.push(changed),
        }
    }
    if !conflicts.is_empty() {
        return Err(Error::Conflict(conflicts));
    }
    if let Some(moved) = &record.change.moved {
        moved.refuse_other(system)?;
    }
    indexes::refuse_other(system, &record)?;
    declared::refuse_other(system, &record)?;
    for file in record.change.placed() {
        // One that is not whole was never seen by a service while the change is being made.
        if library::is_whole(system, file)? == Some(false) {
            return Err(Error::LibraryChanged {
                path: file.path.clone(),
            });
        }
    }
    for (edit, end) in record.change.edits().zip(&ends) {
        if !matches!(end, End::AsBefore | End::Purged) {
            system.place(&edit.path)?.refuse_fixed()?;
        }
    }
    let step = match record.phase {
        Phase::Applying => Step::Recover,
        _ => Step::Revert,
    };
    let as_it_was = record.clone();
    let (mut untouched, mut purged, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (edit, end) in record.change.edits_mut().zip(&ends) {
        match end {
            End::AsBefore => untouched.push(edit.path.clone()),
            End::Purged => {
                purged.push(edit.path.clone());
                (edit.before, edit.after) = (None, None);
            }
            End::Restored => {}
            // Whoever goes on with this revert finds a file that is as before, or as applied.
            End::Kept { now, left } => {
                kept.push(edit.path.clone());
                (edit.before, edit.after) = (Some(left.clone()), Some(now.clone()));
            }
        }
    }
    record.phase = Phase::Reverting;
    let is_told = !matches!(by, By::Gate | By::Apply) || !kept.is_empty();
    if is_told && let Err(error) = store.save(&record) {
        // On a full disk a revert that needs no space goes on: only `status` would read it.
        if !error.is_no_space() || !kept.is_empty() {
            return Err(error);
        }
    }
    let change = &record.change;
    let restored = match stage(system, change) {
        Ok(restored) => restored,
        Err(error) => {
            if is_told {
                let _ = store.save(&as_it_was);
            }
            return Err(error);
        }
    };
    let running = match (&change.undo, by) {
        (Some(undo), By::Timer) => Some(undo::service_file(&undo.unit)),
        _ => None,
    };
    let (own, restored): (Vec<_>, Vec<_>) = restored
        .into_iter()
        .partition(|(path, _)| running.as_ref() == Some(path));
    if let Err(error) = put(restored) {
        if let (true, FileError::Edited { .. }) = (is_told, &error) {
            store.save(&as_it_was)?;
        }
        return Err(error.into());
    }
    if let Some(moved) = &change.moved
        && moved.take_back(system)?
    {
        untouched.push(moved.path.clone());
    }
    untouched.extend(indexes::take_back(system, change)?);
    match declared::take_back(system, &as_it_was) {
        Ok(of_schema) => untouched.extend(of_schema),
        Err(error) => {
            if is_told && declared::is_as_applied(system, change) {
                store.save(&as_it_was)?;
            }
            return Err(error);
        }
    }
    remove_directories(system, change)?;
    if system.is_live() {
        if let Some(undo) = &change.undo {
            undo::stop(undo, matches!(by, By::Timer | By::Boot));
            crate::systemd::systemctl(&["daemon-reload"])?;
        }
        match (by, kind_named(&change.kind)) {
            (By::Boot, _) | (_, None) => {}
            (By::Gate, Some(kind)) => kind.refused(change)?,
            (By::Person, Some(kind)) => kind.activate(change, step)?,
            (By::Timer | By::Apply, Some(kind)) => {
                kind.activate(change, step)?;
                if let Some(first) = &record.first {
                    amend::give_back(kind, &first.change, change)?;
                }
            }
        }
    }
    if !own.is_empty() {
        put(own)?;
        remove_directories(system, change)?;
    }
    let back = record.change.files.iter().map(|edit| FileEdit {
        path: edit.path.clone(),
        before: edit.after.clone(),
        after: edit.before.clone(),
    });
    let _ = tell_others(store, &record.change.service, &back.collect::<Vec<_>>());
    end(system, store, &record)?;
    Ok(Reverted {
        record,
        untouched,
        purged,
        kept,
    })
}

fn put(files: Vec<(String, Edit)>) -> Result<(), FileError> {
    make_all(files.into_iter().map(|(_, edit)| edit).collect())
}

/// All that needs space, in the order in which the files go back, each with its path.
fn stage(system: &System, change: &Change) -> Result<Vec<(String, Edit)>, Error> {
    let of_service = change.files.iter().rev();
    let of_undo = change.undo.iter().flat_map(|undo| &undo.files);
    let mut all = Vec::new();
    // A file that another one includes is there as long as that one.
    for FileEdit {
        path,
        before,
        after,
    } in of_service.chain(of_undo)
    {
        let place = system.place(path)?;
        place.remove_temporary()?;
        let now = place.state()?;
        if now != *before && now != *after {
            return Err(place.edited().into());
        }
        let edit = Edit::stage(place, now, before.as_ref())?;
        all.extend(edit.map(|edit| (path.clone(), edit)));
    }
    Ok(all)
}

/// Removes the directories that were made, as far as nothing is in them.
///
/// # Errors
/// [`Error::File`].
pub fn remove_directories(system: &System, change: &Change) -> Result<(), Error> {
    for dir in change.directories.iter().rev() {
        system.place(dir)?.remove_directory()?;
    }
    Ok(())
}

/// Removes what no service has any more, and the record; where there was a first form of the change, the record is that of
/// it again.
fn end(system: &System, store: &Store, record: &Record) -> Result<(), Error> {
    let first = record.first.as_deref();
    let is_of_first = |file: &&LibraryFile| {
        let mut placed = first.iter().flat_map(|first| first.change.placed());
        placed.any(|other| other.path == file.path)
    };
    let all = record.change.placed().chain(&record.superseded);
    for file in all.filter(|file| !is_of_first(file)) {
        library::withdraw(system, store, &record.change.service, file)?;
    }
    match first {
        Some(first) => store.save(first),
        None => store.forget(&record.change.service),
    }
}

/// Removes what was made for a change of which no file is edited yet.
///
/// # Errors
/// [`Error::File`].
pub fn discard(system: &System, store: &Store, record: &Record) -> Result<(), Error> {
    let change = &record.change;
    if let Some(moved) = &change.moved {
        moved.take_back(system)?;
    }
    remove_directories(system, change)?;
    end(system, store, record)
}

/// Files that are neither as before nor as applied.
pub fn conflicts(system: &System, record: &Record) -> Result<Vec<Changed>, Error> {
    let mut found = Vec::new();
    for edit in record.change.edits() {
        let now = system.state(&edit.path)?;
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
