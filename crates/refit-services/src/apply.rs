//! Making a change: remember, edit, check, take up, verify.

use std::time::{Duration, Instant};

use crate::check::{Check, drifts};
use crate::kind::{Kind, Step};
use crate::kinds::kind_of;
use crate::library;
use crate::plan::{Request, plan};
use crate::record::{VERSION, now};
use crate::revert::take_back;
use crate::status::{file_checks, live_checks};
use crate::store::Store;
use crate::undo::{self, Until};
use crate::{Change, Error, Phase, Plan, Record, System};

/// How long a service may take to load what it was started with.
const LOADED_WITHIN: Duration = Duration::from_secs(10);

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
    if let Some(service) = is_applied(system, request)? {
        return Ok(ToDo::Nothing { service });
    }
    let planned = match plan(system, request) {
        Ok(plan) => Ok(plan),
        // Another refit may have begun since: what is in the way is the same change, then.
        Err(_) => match is_applied(system, request)? {
            Some(service) => return Ok(ToDo::Nothing { service }),
            None => plan(system, request),
        },
    };
    planned.map(|plan| ToDo::Planned(Box::new(plan)))
}

/// Makes settings permanent on a service.
///
/// # Errors
/// Where it could not be done, or did not take effect; all is then as before, but for
/// [`Error::Stuck`].
pub fn apply(system: &System, request: &Request) -> Result<Applied, Error> {
    if let Some(service) = is_applied(system, request)? {
        return Ok(Applied::Nothing { service });
    }
    let store = Store::to_change(system)?;
    // Another refit may have been faster.
    let (kind, service) = kind_of(system, &request.word)?;
    if is_applied_to(system, &store, &service, request)? {
        return Ok(Applied::Nothing { service });
    }
    let mut plan = plan(system, request)?;
    if let Some(gate) = plan.gate.take() {
        return Err(gate);
    }
    let mut record = Record {
        version: VERSION,
        change: plan.change.clone(),
        phase: Phase::Applying,
        since_unix: now(),
    };
    store.save(&record)?;
    match put_into_effect(system, kind, &plan) {
        Ok(checks) => {
            record.phase = Phase::Applied;
            record.since_unix = now();
            store.save(&record)?;
            Ok(Applied::Done {
                record: Box::new(record),
                checks,
            })
        }
        Err(cause) => Err(match take_back(system, &store, record, false) {
            Ok(_) => Error::TakenBack(Box::new(cause)),
            Err(revert) => Error::Stuck {
                service: plan.change.service,
                cause: Box::new(cause),
                revert: Box::new(revert),
            },
        }),
    }
}

/// The service, where exactly this is applied to it, and all files are so.
///
/// # Errors
/// [`Error::OtherChange`], [`Error::Interrupted`], [`Error::Drifted`].
fn is_applied(system: &System, request: &Request) -> Result<Option<String>, Error> {
    let (_, service) = kind_of(system, &request.word)?;
    let store = Store::to_read(system)?;
    let is_applied = is_applied_to(system, &store, &service, request)?;
    Ok(is_applied.then_some(service))
}

fn is_applied_to(
    system: &System,
    store: &Store,
    service: &str,
    request: &Request,
) -> Result<bool, Error> {
    let Some(record) = store.load(service)? else {
        return Ok(false);
    };
    let service = service.to_owned();
    let wanted = request.settings.0.iter().map(ToString::to_string);
    let until = request.until;
    let change = &record.change;
    if record.phase != Phase::Applied {
        return Err(Error::Interrupted { service });
    }
    let is_same = until.is_trial() == change.trial
        && matches!(until, Until::Confirmed(_)) == change.undo.is_some();
    if !is_same || !wanted.eq(change.settings.iter().cloned()) {
        return Err(Error::OtherChange {
            service,
            settings: change.settings.join(" "),
        });
    }
    let mut checks = file_checks(system, &record)?;
    checks.extend(live_checks(system, &record)?);
    if drifts(&checks) {
        return Err(Error::Drifted { service });
    }
    Ok(true)
}

fn put_into_effect(system: &System, kind: &dyn Kind, plan: &Plan) -> Result<Vec<Check>, Error> {
    let change = &plan.change;
    for (file, content) in change.placed().zip(&plan.contents) {
        library::place(system, file, content)?;
    }
    for dir in &change.directories {
        library::make_directory(&system.path(dir)?)?;
    }
    if system.is_live() {
        kind.prepare(change)?;
    }
    for edit in change.edits() {
        let path = system.path(&edit.path)?;
        match &edit.after {
            Some(state) => state.write(&path)?,
            None => crate::file_state::remove(&path)?,
        }
    }
    if !system.is_live() {
        return Ok(Vec::new());
    }
    kind.gate(change)?;
    undo::start(change)?;
    kind.activate(change, Step::Apply)?;
    in_effect(kind, change)
}

/// Waits until all of a change is in effect; returns the last checks.
pub fn in_effect(kind: &dyn Kind, change: &Change) -> Result<Vec<Check>, Error> {
    let began = Instant::now();
    loop {
        let mut checks = kind.checks(change)?;
        checks.extend(change.undo.as_ref().map(undo::check).transpose()?);
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
