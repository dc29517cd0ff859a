//! Making a change: remember, edit, check, take up, verify.

use std::time::{Duration, Instant};

use crate::amend;
use crate::check::{Check, drifts};
use crate::exchange::{Edit, Staged, make_all};
use crate::kind::{Kind, Step};
use crate::library;
use crate::plan::{Request, Target, missing, share_directories};
use crate::record::{VERSION, now};
use crate::revert::{By, discard, remove_directories, take_back};
use crate::shared_files::tell_others;
use crate::status::{file_checks, live_checks};
use crate::store::Store;
use crate::undo::{self, Until};
use crate::{
    Change, Error, FileEdit, FileError, LibraryFile, Phase, Plan, Record, System, declared, health,
    indexes,
};

/// How long a service may take to load what it was started with.
const LOADED_WITHIN: Duration = Duration::from_secs(10);

/// When [`ask_health`] asks.
const BEFORE: &str = "before the change, so nothing was changed\n  mend the service, or ask it by another --health COMMAND";
const WITH: &str = "with the change";
const WITHOUT: &str = "again";

/// What was done.
pub enum Applied {
    /// All of it is applied already.
    Nothing {
        /// The service.
        service: String,
    },
    /// The change, and what was seen of it afterwards.
    Done {
        /// What was written.
        record: Box<Record>,
        /// Of the running service; empty for a tree.
        checks: Vec<Check>,
    },
    /// Nothing was done: it would not have been what was shown.
    NotAsShown {
        /// What it would be now.
        now: Box<Plan>,
    },
}

/// What is left to do.
pub enum ToDo {
    /// All of it is applied already.
    Nothing {
        /// The service.
        service: String,
    },
    /// This.
    Planned(Box<Plan>),
}

/// What applying these settings to a service would do. Nothing is changed.
///
/// # Errors
/// Where it cannot be done: [`Error`] says why.
pub fn to_do(system: &System, request: &Request) -> Result<ToDo, Error> {
    let target = Target::find(system, request)?;
    let is_applied = || is_applied(&target, &Store::to_read(system)?);
    let nothing = ToDo::Nothing {
        service: target.service.clone(),
    };
    if is_applied()? {
        return Ok(nothing);
    }
    let planned = match target.plan() {
        Ok(plan) => Ok(plan),
        Err(error) if target.kind.is_declared() => Err(error),
        // Another refit may have begun since: what is in the way is the same change, then.
        Err(_) => match is_applied()? {
            true => return Ok(nothing),
            false => target.plan(),
        },
    };
    planned.map(|plan| match plan.is_declared_already() {
        true => nothing,
        false => ToDo::Planned(Box::new(plan)),
    })
}

/// Makes settings permanent on a service, where that is still what was shown.
///
/// # Errors
/// Where it could not be done, or did not take effect; all is then as before, but for
/// [`Error::Stuck`].
pub fn apply(system: &System, request: &Request, shown: &Plan) -> Result<Applied, Error> {
    let target = Target::find(system, request)?;
    let (kind, service) = (target.kind, target.service.clone());
    if is_applied(&target, &Store::to_read(system)?)? {
        return Ok(Applied::Nothing { service });
    }
    // What has to be asked is asked before the lock is taken. A file that is edited from here on is found when the
    // new one is put over it.
    let before = target.plan().ok();
    if before.as_ref().is_some_and(Plan::is_declared_already) {
        return Ok(Applied::Nothing { service });
    }
    let before = before.filter(|plan| plan.does_as(shown) && plan.gate.is_none());
    if let Some(plan) = &before {
        ask_health(&plan.change, BEFORE)?;
    }
    let store = Store::to_change(system)?;
    // Another refit may have been faster.
    if is_applied(&target, &store)? {
        return Ok(Applied::Nothing { service });
    }
    let first = store.load(&service)?;
    let mut plan = match before.filter(|plan| plan.first.as_deref() == first.as_ref()) {
        Some(plan) => plan,
        // Or was seen at work.
        None => {
            let mut plan = target.plan_from(first.clone())?;
            if plan.is_declared_already() {
                return Ok(Applied::Nothing { service });
            }
            if !plan.does_as(shown) {
                return Ok(Applied::NotAsShown {
                    now: Box::new(plan),
                });
            }
            if let Some(gate) = plan.gate.take() {
                return Err(gate);
            }
            ask_health(&plan.change, BEFORE)?;
            plan
        }
    };
    plan.change.directories = missing(system, &plan.change)?;
    share_directories(&store, &mut plan.change)?;
    let change = &plan.change;
    let mut begun = Record {
        version: VERSION,
        change: change.clone(),
        phase: Phase::Applying,
        since_unix: now(),
        superseded: first.map_or(Vec::new(), |first| first.superseded),
        first: plan.first.clone(),
    };
    let mut record = Record {
        phase: Phase::Applied,
        ..begun.clone()
    };
    if change.undo.is_none() {
        record = amend::settled(&record);
    }
    let stuck = |cause: Error, revert: Error| Error::Stuck {
        service: service.clone(),
        cause: Box::new(cause),
        revert: Box::new(revert),
    };
    let staged = store.save(&begun).and_then(|()| stage(system, &plan));
    let staged = staged.and_then(|edits| Ok((edits, store.stage(&record)?)));
    let (edits, staged_record) = match staged {
        Ok(staged) => staged,
        Err(cause) => {
            forget_edited(system, &mut begun.change, &cause);
            return Err(match discard(system, &store, &begun) {
                Ok(()) => cause,
                Err(revert) => stuck(cause, revert),
            });
        }
    };
    let mut by = By::Gate;
    let done = put_into_effect(system, kind, &plan, edits, &mut by);
    let done = done.and_then(|checks| {
        // Before the change counts as applied: whoever takes back one that does not tells them again.
        let _ = tell_others(&store, &service, &plan.change.files);
        Ok(staged_record.put().map(|()| checks)?)
    });
    match done {
        Ok(checks) => {
            if plan.first.is_some() {
                tidy(system, &store, &record);
            }
            Ok(Applied::Done {
                record: Box::new(record),
                checks,
            })
        }
        Err(cause) => Err({
            if let Error::MadeSince { index, .. } = &cause {
                // That one and those after it are not refit's to take back.
                let mut schema = change.schema.iter();
                let made = schema.position(|edit| edit.index == *index);
                begun.change.schema.truncate(made.unwrap_or_default());
            }
            forget_edited(system, &mut begun.change, &cause);
            match take_back(system, &store, begun, by) {
                Ok(_) => taken_back(change, cause),
                Err(revert) => stuck(cause, revert),
            }
        }),
    }
}

/// Lets go of the files, where one of them was edited meanwhile: no file was changed, and what is there now is not refit's
/// to take back.
fn forget_edited(system: &System, begun: &mut Change, cause: &Error) {
    if let Error::File(FileError::Edited { .. }) = cause {
        begun.files.clear();
        if let Some(undo) = &mut begun.undo {
            undo.files.clear();
        }
        begun.moved.take_if(|moved| !moved.is_put(system));
    }
}

/// Whether exactly this is applied, and all files are so.
///
/// # Errors
/// [`Error::StaysAlready`], [`Error::Waits`], [`Error::Interrupted`], [`Error::Drifted`].
fn is_applied(target: &Target, store: &Store) -> Result<bool, Error> {
    let (system, request) = (target.system, target.request);
    let service = target.service.clone();
    let found = store.load(&service)?;
    if target.kind.is_declared() {
        return found
            .as_ref()
            .map_or(Ok(()), amend::refuse_unsettled)
            .map(|()| false);
    }
    let Some(record) = found else {
        return Ok(false);
    };
    let change = &record.change;
    let is_more =
        !amend::new_of(&request.settings, change).is_empty() || !request.dropped.is_empty();
    let is_as_long = match request.until {
        Until::Confirmed(_) => change
            .undo
            .as_ref()
            .is_some_and(|undo| undo.at_unix.is_some()),
        Until::Reboot => match &change.undo {
            Some(undo) => undo.at_unix.is_none(),
            None => change.trial,
        },
        Until::Reverted => !change.trial && change.undo.is_none(),
    };
    if is_more || !is_as_long || record.phase != Phase::Applied {
        amend::refuse_unsettled(&record)?;
    }
    if !is_more && !is_as_long {
        let settings = change.settings.join(" ");
        return Err(Error::StaysAlready { service, settings });
    }
    let mut checks = file_checks(system, &record)?;
    checks.extend(live_checks(system, &record)?);
    if drifts(&checks) {
        return Err(Error::Drifted { service });
    }
    Ok(!is_more)
}

/// Removes what only an earlier form of a change has: what was placed for it, and directories. What cannot be removed now
/// goes when the change is taken back.
pub fn tidy(system: &System, store: &Store, record: &Record) {
    let Record {
        change, superseded, ..
    } = record;
    let is_left = |file: &&LibraryFile| !change.placed().any(|new| new.path == file.path);
    for file in superseded.iter().filter(is_left) {
        let _ = library::withdraw(system, store, &change.service, file);
    }
    // Those with files stay.
    let _ = remove_directories(system, change);
}

/// What goes to its place.
struct StagedChange {
    edits: Vec<Edit>,
    /// Of a program that moves.
    script: Option<Staged>,
}

/// All of a change that needs space, so that a full disk is found before anything is edited: its
/// libraries, directories and files, the latter under their temporary names.
fn stage(system: &System, plan: &Plan) -> Result<StagedChange, Error> {
    let change = &plan.change;
    for (file, content) in change.placed().zip(&plan.contents) {
        library::place(system, file, content)?;
    }
    for dir in &change.directories {
        system.place(dir)?.make_directory(0o755)?;
    }
    let mut staged = Vec::new();
    for FileEdit {
        path,
        before,
        after,
    } in change.edits()
    {
        let place = system.place(path)?;
        staged.extend(Edit::stage(place, before.clone(), after.as_ref())?);
    }
    let moved = change.moved.as_ref();
    let script = moved.map(|moved| moved.stage(system)).transpose()?;
    Ok(StagedChange {
        edits: staged,
        script,
    })
}

/// `by`: who takes it back where this fails.
fn put_into_effect(
    system: &System,
    kind: &dyn Kind,
    plan: &Plan,
    staged: StagedChange,
    by: &mut By,
) -> Result<Vec<Check>, Error> {
    let change = &plan.change;
    if system.is_live() {
        kind.prepare(change)?;
    }
    if let (Some(moved), Some(script)) = (&change.moved, staged.script) {
        moved.put(system, script)?;
    }
    make_all(staged.edits)?;
    indexes::apply(system, change)?;
    declared::apply(system, change)?;
    if !system.is_live() {
        return Ok(Vec::new());
    }
    kind.gate(change)?;
    *by = By::Apply;
    undo::start(change)?;
    amend::drop_from(kind, plan.first.as_deref(), change)?;
    kind.activate(change, Step::Apply)?;
    let checks = in_effect(kind, change)?;
    ask_health(change, WITH)?;
    Ok(checks)
}

/// The service does its work, as far as its command tells; a change without one says nothing.
pub fn ask_health(change: &Change, when: &str) -> Result<(), Error> {
    let command = change.health.as_deref();
    command.map_or(Ok(()), |command| health::ask(command, when))
}

/// What is told of a change that was taken back: also whether the service does its work again.
fn taken_back(change: &Change, cause: Error) -> Error {
    let cause = Box::new(cause);
    match ask_health(change, WITHOUT) {
        Ok(()) => Error::TakenBack(cause),
        Err(health) => Error::StillNotHealthy {
            service: change.service.clone(),
            cause,
            health: Box::new(health),
        },
    }
}

/// Waits until all of a change is in effect; returns the last checks.
pub fn in_effect(kind: &dyn Kind, change: &Change) -> Result<Vec<Check>, Error> {
    let began = Instant::now();
    loop {
        let mut checks = kind.checks(change)?;
        checks.extend(change.undo.as_ref().map(undo::check).transpose()?.flatten());
        if !drifts(&checks) {
            return Ok(checks);
        }
        if began.elapsed() > LOADED_WITHIN {
            return Err(Error::NotInEffect {
                service: change.service.clone(),
                reason: reasons(&checks),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn reasons(checks: &[Check]) -> String {
    let failed = checks.iter().filter(|check| check.holds == Some(false));
    let texts: Vec<String> = failed
        .map(|check| format!("{} {}: {}", check.key, check.expected, check.found))
        .collect();
    texts.join("; ")
}
