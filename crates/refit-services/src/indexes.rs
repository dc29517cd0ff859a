//! Indexes that a change makes in a database: each by one statement, and taken back by its inverse.
//!
//! What is not as refit made it is not dropped: [`Error::Redefined`].

use crate::check::{Check, Layer};
use crate::kinds::kind_named;
use crate::schema::{Database, Index, SchemaEdit};
use crate::{Change, Error, Phase, Record, System};

/// The database of a change; `None` where it makes no index, or the database is gone.
fn database(system: &System, change: &Change) -> Result<Option<Box<dyn Database>>, Error> {
    match kind_named(&change.kind) {
        Some(kind) if !change.schema.is_empty() => kind.database(system, &change.service),
        _ => Ok(None),
    }
}

fn not_told(change: &Change) -> impl Fn(String) -> Error + '_ {
    |output| Error::Command {
        command: format!("{} cannot be asked", change.service),
        output,
    }
}

/// Runs the statements, and looks at what they made.
///
/// # Errors
/// [`Error::MadeSince`], [`Error::Command`], [`Error::NotInEffect`].
pub fn apply(system: &System, change: &Change) -> Result<(), Error> {
    let Some(database) = database(system, change)? else {
        return Ok(());
    };
    for edit in &change.schema {
        let made_since = || Error::MadeSince {
            service: change.service.clone(),
            index: edit.index.clone(),
        };
        let look = || database.index(&edit.index).map_err(not_told(change));
        if look()? != edit.before {
            return Err(made_since());
        }
        if let Err(output) = database.run(&edit.apply) {
            // What a statement that failed did not make is another one's.
            let is_taken = output.contains("already exists") || output.contains("Duplicate key");
            if is_taken || look()?.as_ref() == Some(&edit.after) {
                return Err(made_since());
            }
            return Err(Error::Command {
                command: edit.apply.clone(),
                output,
            });
        }
        let now = look()?;
        if now.as_ref() != Some(&edit.after) {
            return Err(Error::NotInEffect {
                service: change.service.clone(),
                reason: format!("index {} is {}", edit.index, word(now.as_ref())),
            });
        }
    }
    Ok(())
}

/// Refuses what [`take_back`] would.
///
/// # Errors
/// [`Error::Redefined`], [`Error::Command`].
pub fn refuse_other(system: &System, record: &Record) -> Result<(), Error> {
    let change = &record.change;
    let Some(database) = database(system, change)? else {
        return Ok(());
    };
    if record.phase != Phase::Applied {
        let ended = database.end_leftovers(&change.schema);
        ended.map_err(not_told(change))?;
    }
    for edit in &change.schema {
        let now = database.found(edit).map_err(not_told(change))?;
        if now != edit.before
            && let Some(now) = now.filter(|now| !edit.is_ours(now))
        {
            return Err(Error::Redefined {
                service: change.service.clone(),
                index: edit.index.clone(),
                ours: edit.after.to_string(),
                now: now.to_string(),
            });
        }
    }
    Ok(())
}

/// Takes the statements back, from the last one; those of which nothing is left to take back.
///
/// # Errors
/// [`Error::Command`].
pub fn take_back(system: &System, change: &Change) -> Result<Vec<String>, Error> {
    let Some(database) = database(system, change)? else {
        return Ok(Vec::new());
    };
    let mut untouched = Vec::new();
    for edit in change.schema.iter().rev() {
        let look = || database.found(edit).map_err(not_told(change));
        let now = look()?;
        if now == edit.before || now.is_none() {
            untouched.push(format!("index {}", edit.index));
            continue;
        }
        let failed = |output| Error::Command {
            command: edit.inverse.clone(),
            output,
        };
        let run = database.run(&edit.inverse);
        run.map_err(failed)?;
        let now = look()?;
        if now != edit.before {
            return Err(failed(format!("the index is {}", word(now.as_ref()))));
        }
    }
    Ok(untouched)
}

/// The definitions in the catalog, and whether queries can use the indexes.
pub fn checks(system: &System, change: &Change) -> Vec<Check> {
    let database = database(system, change);
    let mut checks = Vec::new();
    for edit in &change.schema {
        let asked = match &database {
            Ok(Some(database)) => database.found(edit),
            Ok(None) => Ok(None),
            Err(error) => Err(error.to_string()),
        };
        let key = format!("index {}", edit.index);
        let SchemaEdit { after, before, .. } = edit;
        let check = |layer, expected: &str, found: String, holds| Check {
            layer,
            key: key.clone(),
            expected: expected.to_owned(),
            found,
            holds,
        };
        let now = match asked {
            Ok(now) => now,
            Err(reason) => {
                checks.push(check(Layer::Loaded, &after.definition, reason, None));
                continue;
            }
        };
        let is_before = now == *before;
        let found = now.as_ref().map_or("not there", |now| &now.definition);
        let holds = found == after.definition;
        checks.push(check(
            Layer::Loaded,
            &after.definition,
            found.to_owned(),
            Some(holds),
        ));
        if let Some(now) = now {
            let holds = now.state == after.state;
            let found = match is_before {
                true => format!("{}, as before the change", now.state),
                false => now.state,
            };
            checks.push(check(Layer::Effective, &after.state, found, Some(holds)));
        }
    }
    checks
}

fn word(index: Option<&Index>) -> String {
    index.map_or("not there".to_owned(), ToString::to_string)
}
