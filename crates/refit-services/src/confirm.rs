//! Keeping a change that waits for it: what lies below /run moves to /etc, and nothing takes it back
//! any more.

use crate::amend;
use crate::apply::{ask_health, in_effect, tidy};
use crate::check::drifts;
use crate::exchange::{Edit, make_all};
use crate::kinds::kind_named;
use crate::library;
use crate::plan::{missing, share_directories};
use crate::record::now;
use crate::revert::{conflicts, service_with_record};
use crate::status::{file_checks, live_checks};
use crate::store::Store;
use crate::{Change, Error, FileError, Phase, Record, System, undo};

const TRIAL: &str = "/run/";
const KEPT: &str = "/etc/";

/// Keeps a change that a reboot or a timer would take back; goes on with a confirmation that was
/// interrupted. The service's name, and whether anything was left to do.
///
/// # Errors
/// [`Error::NoChange`]; [`Error::TakenBackBefore`], [`Error::Drifted`], [`Error::Conflict`] where it is
/// not as it was applied; [`Error::NotHealthy`]; [`Error::NotInEffect`] where the files are kept and systemd does not
/// read them.
pub fn confirm(system: &System, word: &str) -> Result<(String, bool), Error> {
    let service = service_with_record(system, word)?;
    if system.is_live() && !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    let none = || Error::NoChange {
        service: service.clone(),
    };
    Store::to_read(system)?.load(&service)?.ok_or_else(none)?;
    let store = Store::to_change(system)?;
    let as_it_was = store.load(&service)?.ok_or_else(none)?;
    let mut record = as_it_was.clone();
    match record.phase {
        Phase::Applied if !waits(&record.change) => return Ok((service, false)),
        Phase::Applied => {
            begin(system, &mut record)?;
            share_directories(&store, &mut record.change)?;
        }
        Phase::Confirming => {}
        Phase::Applying | Phase::Reverting => return Err(Error::Interrupted { service }),
    }
    let changed = conflicts(system, &record)?;
    if !changed.is_empty() {
        return Err(Error::Conflict(changed));
    }
    let settled = amend::settled(&record);
    let kept = Record {
        change: kept_of(&settled.change),
        phase: Phase::Applied,
        since_unix: now(),
        ..settled
    };
    store.save(&record)?;
    let staged = stage(system, &record.change, &kept.change);
    let staged = staged.and_then(|files| Ok((files, store.stage(&kept)?)));
    let (files, staged_record) = match staged {
        Ok(staged) => staged,
        Err(error) => {
            return Err(not_begun(system, &store, &kept.change, &as_it_was, error));
        }
    };
    if let Err(error) = make_all(files) {
        let is_as_it_was = matches!(error, FileError::Edited { .. });
        let error = Error::from(error);
        return Err(match is_as_it_was {
            true => not_begun(system, &store, &kept.change, &as_it_was, error),
            false => error,
        });
    }
    remove_directories(system, &record.change, &kept.change)?;
    if let Some(undo) = &record.change.undo {
        if system.is_live() {
            undo::stop(undo, false);
        }
        let is_kept = |file: &&crate::LibraryFile| {
            let mut kept = kept.change.placed();
            kept.any(|other| other.path == file.path)
        };
        if let Some(file) = undo.program.as_ref().filter(|file| !is_kept(file)) {
            library::withdraw(system, &store, &service, file)?;
        }
    }
    if let (true, Some(kind)) = (system.is_live(), kind_named(&kept.change.kind)) {
        crate::systemd::systemctl(&["daemon-reload"])?;
        in_effect(kind, &kept.change)?;
    }
    staged_record.put()?;
    if record.first.is_some() {
        tidy(system, &store, &kept);
    }
    Ok((service, true))
}

/// Whether a reboot or a timer would take it back.
fn waits(change: &Change) -> bool {
    change.trial || change.undo.is_some()
}

/// Adds the files below /etc to a record, so that from here on a revert takes back these and those
/// below /run.
fn begin(system: &System, record: &mut Record) -> Result<(), Error> {
    if record.is_taken_back(system)? {
        return Err(Error::TakenBackBefore {
            service: record.change.service.clone(),
        });
    }
    let mut checks = file_checks(system, record)?;
    checks.extend(live_checks(system, record)?);
    if drifts(&checks) {
        return Err(Error::Drifted {
            service: record.change.service.clone(),
        });
    }
    let service = &record.change.service;
    let not_kept =
        format!("with the change, so it was not confirmed\n  take it back: refit revert {service}");
    ask_health(&record.change, &not_kept)?;
    let mut kept = record.change.files.clone();
    kept.retain(|edit| edit.path.starts_with(TRIAL));
    for edit in &mut kept {
        edit.path = edit.path.replacen(TRIAL, KEPT, 1);
        system.refuse_there(&edit.path)?;
        edit.before = None;
        system.place(&edit.path)?.refuse_taken()?;
    }
    record.change.files.extend(kept);
    let new = missing(system, &record.change)?;
    record.change.directories.extend(new);
    record.phase = Phase::Confirming;
    record.since_unix = now();
    Ok(())
}

/// The change as it is from then on.
fn kept_of(change: &Change) -> Change {
    let mut kept = Change {
        trial: false,
        undo: None,
        ..change.clone()
    };
    kept.files.retain(|edit| !edit.path.starts_with(TRIAL));
    kept.directories
        .retain(|dir| kept.files.iter().any(|edit| is_below(&edit.path, dir)));
    kept
}

fn is_below(path: &str, dir: &str) -> bool {
    let below = path.strip_prefix(dir);
    below.is_some_and(|below| below.starts_with('/'))
}

/// Takes back what was made for a confirmation that moved no file; why it did not.
fn not_begun(
    system: &System,
    store: &Store,
    kept: &Change,
    as_it_was: &Record,
    error: Error,
) -> Error {
    let directories = kept.directories.iter().rev();
    let removed = directories.map(|dir| Ok(system.place(dir)?.remove_directory()?));
    let back = removed.collect::<Result<(), Error>>();
    match back.and_then(|()| store.save(as_it_was)) {
        Ok(()) => error,
        Err(error) => error,
    }
}

/// The way of the files from /run to /etc, and of the units that would take them back: all that needs
/// space is done, their directories are made.
fn stage(system: &System, change: &Change, kept: &Change) -> Result<Vec<Edit>, Error> {
    for dir in &kept.directories {
        system.place(dir)?.make_directory(0o755)?;
    }
    let mut edits = Vec::new();
    for edit in &kept.files {
        let place = system.place(&edit.path)?;
        place.remove_temporary()?;
        let now = place.state()?;
        edits.extend(Edit::stage(place, now, edit.after.as_ref())?);
    }
    let of_undo = change.edits().skip(change.files.len());
    let on_trial = change.files.iter();
    let on_trial = on_trial.filter(|edit| edit.path.starts_with(TRIAL));
    for edit in on_trial.chain(of_undo) {
        let place = system.place(&edit.path)?;
        place.remove_temporary()?;
        let now = place.state()?;
        if now.is_some() && now != edit.after {
            return Err(place.edited().into());
        }
        edits.extend(Edit::stage(place, now, None)?);
    }
    Ok(edits)
}

/// Removes directories that held only what moved.
fn remove_directories(system: &System, change: &Change, kept: &Change) -> Result<(), Error> {
    let gone = change.directories.iter().rev();
    for dir in gone.filter(|dir| !kept.directories.contains(dir)) {
        system.place(dir)?.remove_directory()?;
    }
    Ok(())
}
