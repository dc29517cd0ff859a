//! Keeping a trial: what lies below /run moves to /etc, and nothing takes it back any more.

use crate::apply::in_effect;
use crate::check::drifts;
use crate::file_state::{remove, temporary};
use crate::kinds::kind_named;
use crate::library::{self, remove_directory};
use crate::plan::missing;
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
/// not as it was applied; [`Error::NotInEffect`] where the files are kept and systemd does not
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
    let mut record = store.load(&service)?.ok_or_else(none)?;
    match record.phase {
        Phase::Applied if !record.change.trial => return Ok((service, false)),
        Phase::Applied => begin(system, &mut record)?,
        Phase::Confirming => {}
        Phase::Applying | Phase::Reverting => return Err(Error::Interrupted { service }),
    }
    let changed = conflicts(system, &record)?;
    if !changed.is_empty() {
        return Err(Error::Conflict(changed));
    }
    store.save(&record)?;
    let kept = keep(system, &record.change)?;
    if let Some(undo) = &record.change.undo {
        if system.is_live() {
            undo::stop(undo, false);
        }
        if let Some(file) = &undo.program {
            library::withdraw(system, &store, &service, file)?;
        }
    }
    if let (true, Some(kind)) = (system.is_live(), kind_named(&kept.kind)) {
        crate::systemd::systemctl(&["daemon-reload"])?;
        in_effect(kind, &kept)?;
    }
    record.change = kept;
    record.phase = Phase::Applied;
    record.since_unix = now();
    store.save(&record)?;
    Ok((service, true))
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
    let mut kept = record.change.files.clone();
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

/// Moves the files from /run to /etc; returns the change as it is from then on.
fn keep(system: &System, change: &Change) -> Result<Change, Error> {
    let mut kept = Change {
        trial: false,
        undo: None,
        ..change.clone()
    };
    kept.files.retain(|edit| !edit.path.starts_with(TRIAL));
    kept.directories.retain(|dir| !dir.starts_with(TRIAL));
    for dir in &kept.directories {
        library::make_directory(&system.path(dir)?)?;
    }
    for edit in &kept.files {
        let path = system.path(&edit.path)?;
        remove(&temporary(&path))?;
        if let (Some(state), true) = (&edit.after, FileState::read(&path)? != edit.after) {
            state.write(&path)?;
        }
    }
    for edit in change.edits().filter(|edit| edit.path.starts_with(TRIAL)) {
        remove(&system.path(&edit.path)?)?;
    }
    for dir in change
        .directories
        .iter()
        .rev()
        .filter(|dir| dir.starts_with(TRIAL))
    {
        remove_directory(&system.path(dir)?)?;
    }
    Ok(kept)
}
