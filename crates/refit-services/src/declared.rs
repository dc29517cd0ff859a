//! A schema that a change gives a database: the way there, the way back, and what differs.

use refit_schema::{Catalog, Declared, SchemaError};

use crate::check::{Check, Layer};
use crate::kinds::{kind_named, kind_of};
use crate::schema::SchemaDatabase;
use crate::{Change, Error, Phase, Record, System};

/// A database, and the schema that a change gives it.
type Found<'a> = (Box<dyn SchemaDatabase>, &'a Declared);

/// The database of a change, and its schema; `None` where it declares none, or the database is gone.
fn database<'a>(system: &System, change: &'a Change) -> Result<Option<Found<'a>>, Error> {
    let (Some(declared), Some(kind)) = (&change.declared, kind_named(&change.kind)) else {
        return Ok(None);
    };
    let database = kind.schema_database(system, &change.service)?;
    Ok(database.map(|database| (database, &**declared)))
}

fn catalog(database: &dyn SchemaDatabase, change: &Change) -> Result<Catalog, Error> {
    let read = database.server().read(database.as_client());
    read.map_err(|output| Error::Command {
        command: format!("{} cannot be asked", change.service),
        output,
    })
}

fn failed(change: &Change) -> impl Fn(String) -> Error + '_ {
    |output| Error::Command {
        command: change.service.clone(),
        output,
    }
}

/// Goes the way, and compares the catalog.
///
/// # Errors
/// [`Error::SchemaMeanwhile`], [`Error::Command`], [`Error::NotInEffect`].
pub fn apply(system: &System, change: &Change) -> Result<(), Error> {
    let Some((database, declared)) = database(system, change)? else {
        return Ok(());
    };
    let now = catalog(&*database, change)?;
    if let Some(difference) = declared.as_found().differences(&now).first() {
        return Err(Error::SchemaMeanwhile {
            service: change.service.clone(),
            what: difference.to_string(),
        });
    }
    let gone = database.server().go(database.as_client(), &declared.way);
    gone.map_err(failed(change))?;
    let now = catalog(&*database, change)?;
    let differences = declared.differences(&declared.after, &now);
    if differences.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    Err(Error::NotInEffect {
        service: change.service.clone(),
        reason: lines.join("; "),
    })
}

/// Refuses what [`take_back`] would.
///
/// # Errors
/// [`Error::SchemaSince`], [`Error::Schema`], [`Error::Command`].
pub fn refuse_other(system: &System, record: &Record) -> Result<(), Error> {
    let change = &record.change;
    let Some((database, declared)) = database(system, change)? else {
        return Ok(());
    };
    if record.phase != Phase::Applied {
        let ended = database.end_leftovers();
        ended.map_err(failed(change))?;
    }
    let now = catalog(&*database, change)?;
    let target = target(record, declared, &now)?;
    let way = database.server().way(&now, &target)?;
    for condition in &way.conditions {
        let number = database.count(&condition.count);
        if number.map_err(failed(change))? != 0 {
            return Err(SchemaError::NoWay {
                what: condition.what.clone(),
                reason: condition.otherwise.clone(),
            }
            .into());
        }
    }
    Ok(())
}

/// What to go back to.
fn target(record: &Record, declared: &Declared, now: &Catalog) -> Result<Catalog, Error> {
    let taken = declared.taken_back(now, record.phase != Phase::Applied);
    if taken.others.is_empty() {
        return Ok(taken.target);
    }
    let lines = taken
        .others
        .iter()
        .map(|(key, line)| format!("{key}: {line}"));
    Err(Error::SchemaSince {
        service: record.change.service.clone(),
        lines: lines.collect(),
    })
}

/// Goes back to the catalog before the change; what others made since stays.
///
/// # Errors
/// As [`refuse_other`].
pub fn take_back(system: &System, record: &Record) -> Result<Vec<String>, Error> {
    let change = &record.change;
    let Some((database, declared)) = database(system, change)? else {
        return Ok(Vec::new());
    };
    let now = catalog(&*database, change)?;
    let target = target(record, declared, &now)?;
    let way = database.server().way(&now, &target)?;
    if way.steps.is_empty() {
        return Ok(vec!["the schema".to_owned()]);
    }
    let gone = database.server().go(database.as_client(), &way);
    gone.map_err(failed(change))?;
    let now = catalog(&*database, change)?;
    match declared.differences(&target, &now).first() {
        None => Ok(Vec::new()),
        Some(difference) => Err(failed(change)(format!(
            "after the statements: {difference}"
        ))),
    }
}

/// Whether what the change made is all there, as after a way back of which the database took nothing.
pub fn is_as_applied(system: &System, change: &Change) -> bool {
    let Ok(Some((database, declared))) = database(system, change) else {
        return false;
    };
    let now = catalog(&*database, change);
    now.is_ok_and(|now| {
        let mut touched = declared.before.differences(&declared.after).into_iter();
        touched.all(|one| match (one.to, now.get(one.key)) {
            (Some(after), Some(now)) => after.is_as(now),
            (after, now) => after.is_none() && now.is_none(),
        })
    })
}

/// The catalog of the database against that of the file.
pub fn checks(system: &System, change: &Change) -> Vec<Check> {
    let Some(declared) = &change.declared else {
        return Vec::new();
    };
    let check = |key: String, expected: String, found: String, holds| Check {
        layer: Layer::Effective,
        key,
        expected,
        found,
        holds,
    };
    let now = database(system, change).and_then(|found| match found {
        Some((database, _)) => catalog(&*database, change).map(Some),
        None => Ok(None),
    });
    let now = match now {
        Ok(now) => now.unwrap_or_default(),
        Err(error) => {
            let expected = "as the file declares it".to_owned();
            return vec![check(
                "schema".to_owned(),
                expected,
                error.to_string(),
                None,
            )];
        }
    };
    let differences = declared.differences(&declared.after, &now);
    let line = |object: Option<&refit_schema::Object>| {
        object.map_or("not there".to_owned(), refit_schema::Object::line)
    };
    let mut checks: Vec<Check> = (differences.iter())
        .map(|one| {
            check(
                one.key.to_string(),
                line(one.from),
                line(one.to),
                Some(false),
            )
        })
        .collect();
    if checks.is_empty() {
        let objects = declared.after.0.len();
        checks.push(check(
            "schema".to_owned(),
            format!("as the file declares it ({objects} objects)"),
            "the same".to_owned(),
            Some(true),
        ));
    }
    checks
}

/// The schema of a database as a file of which a plan is empty.
///
/// # Errors
/// [`Error::UnknownService`], [`Error::NoSchema`], or what the database reports.
pub fn export_schema(system: &System, word: &str) -> Result<String, Error> {
    let (kind, service) = kind_of(system, word)?;
    let Some(database) = kind.schema_database(system, &service)? else {
        return Err(Error::NoSchema { service });
    };
    refit_schema::exported(database.server(), database.as_client()).map_err(|output| {
        Error::Command {
            command: format!("{service} cannot be asked"),
            output,
        }
    })
}
