//! Keeping a change that waits for it: what lies below /run moves to /etc, and nothing takes it back
//! any more.

use crate::apply::{ask_health, in_effect};
use crate::check::drifts;
use crate::file_state::{Staged, remove, temporary};
use crate::kinds::kind_named;
use crate::library::{self, remove_directory};
use crate::plan::{missing, share_directories};
use crate::record::now;
use crate::revert::{conflicts, service_with_record};
use crate::status::{file_checks, live_checks};
use crate::store::Store;
use crate::{Change, Error, FileState, Phase, Record, System, undo};

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
    let kept = Record {
        change: kept_of(&record.change),
        phase: Phase::Applied,
        since_unix: now(),
        ..record
    };
    store.save(&record)?;
    let staged = stage(system, &kept.change);
    let staged = staged.and_then(|files| Ok((files, store.stage(&kept)?)));
    let (files, staged_record) = match staged {
        Ok(staged) => staged,
        Err(error) => {
            for dir in kept.change.directories.iter().rev() {
                remove_directory(&system.path(dir)?)?;
            }
            store.save(&as_it_was)?;
            return Err(error);
        }
    };
    put(system, &record.change, &kept.change, files)?;
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
        let path = system.path(&edit.path)?;
        edit.before = FileState::read(&path)?;
        if edit.before.is_some() || temporary(&path).symlink_metadata().is_ok() {
            return Err(Error::InTheWay { path });
        }
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

/// The files below /etc under their temporary names, and their directories: all that needs space.
fn stage(system: &System, kept: &Change) -> Result<Vec<Staged>, Error> {
    for dir in &kept.directories {
        library::make_directory(&system.path(dir)?)?;
    }
    let mut staged = Vec::new();
    for edit in &kept.files {
        let path = system.path(&edit.path)?;
        remove(&temporary(&path))?;
        if let (Some(state), true) = (&edit.after, FileState::read(&path)? != edit.after) {
            staged.push(state.stage(&path)?);
        }
    }
    Ok(staged)
}

/// Moves the files from /run to /etc, and removes the units that would take them back.
fn put(system: &System, change: &Change, kept: &Change, staged: Vec<Staged>) -> Result<(), Error> {
    for file in staged {
        file.put()?;
    }
    let of_undo = change.edits().skip(change.files.len());
    let on_trial = change.files.iter();
    let on_trial = on_trial.filter(|edit| edit.path.starts_with(TRIAL));
    for edit in on_trial.chain(of_undo) {
        remove(&system.path(&edit.path)?)?;
    }
    let gone = change.directories.iter().rev();
    for dir in gone.filter(|dir| !kept.directories.contains(dir)) {
        remove_directory(&system.path(dir)?)?;
    }
    Ok(())
}
