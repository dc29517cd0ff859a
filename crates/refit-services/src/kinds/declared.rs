//! The schema of a whole database: `schema=FILE`.
//!
//! What the file makes of an empty database is compared with what is there; what leads from one to the other is shown.

mod postgresql;
mod scratch;
mod sqlite;

pub use postgresql::POSTGRESQL;
pub use sqlite::SQLITE;

use refit_knobs::{Class, Ground, Setting, Settings};
use refit_schema::{Declared, File, Kind as ObjectKind, SchemaError};

use crate::check::Check;
use crate::kind::{Kind, Step};
use crate::schema::SchemaDatabase;
use crate::schema_file::read;
use crate::{Change, Error, Plan, System};

/// A database that was found; `None`: it is gone.
type Opened = Result<Option<Box<dyn SchemaDatabase>>, Error>;

/// A kind: what differs between databases.
pub struct Databases {
    name: &'static str,
    /// As [`Kind::form`].
    form: &'static str,
    /// What a table of it is named after it.
    table: &'static str,
    /// As [`Kind::find`].
    find: fn(&System, &str) -> Result<Option<String>, Error>,
    /// As [`Kind::schema_database`].
    open: fn(&System, &str) -> Opened,
}

impl Kind for Databases {
    fn name(&self) -> &'static str {
        self.name
    }

    fn form(&self) -> &'static str {
        self.form
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        (self.find)(system, word)
    }

    /// What a plan finds to destroy raises it.
    fn class(&self, _: &Setting) -> Class {
        Class::Safe
    }

    /// Indexes of a table are refused by the plan, with the tables that there are.
    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Database, Ground::Configuration]
    }

    fn known(&self) -> String {
        "schema=FILE".to_owned()
    }

    fn example(&self) -> &'static str {
        "schema=FILE"
    }

    fn only_reverted(&self) -> Option<&'static str> {
        Some("a schema is in the database: neither a reboot nor a timer takes it back")
    }

    fn is_declared(&self) -> bool {
        true
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        _: bool,
    ) -> Result<Plan, Error> {
        let database = (self.open)(system, service)?;
        let database = database.ok_or_else(|| Error::NoTable {
            what: service.to_owned(),
            reason: "it is gone".to_owned(),
        })?;
        let launch = settings.launch();
        let file = match (&launch.schema, launch.conf.is_empty()) {
            (Some(file), true) => read(file)?,
            _ => return Err(self.of_table(service, &*database)),
        };
        plan(self, service, settings, &*database, &file)
    }

    /// A database is the user's own.
    fn comes_from(&self, _: &System, _: &Change) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn gate(&self, _: &Change) -> Result<(), Error> {
        Ok(())
    }

    fn activate(&self, _: &Change, _: Step) -> Result<(), Error> {
        Ok(())
    }

    fn checks(&self, _: &Change) -> Result<Vec<Check>, Error> {
        Ok(Vec::new())
    }

    fn schema_database(&self, system: &System, service: &str) -> Opened {
        (self.open)(system, service)
    }
}

impl Databases {
    /// Of settings that are a table's.
    fn of_table(&self, service: &str, database: &dyn SchemaDatabase) -> Error {
        let reason = match database.tables() {
            Ok(tables) => format!(
                "name a table after it: {service}/{}; it has: {}",
                self.table,
                tables.join(", ")
            ),
            Err(reason) => reason,
        };
        Error::NoTable {
            what: service.to_owned(),
            reason,
        }
    }
}

fn plan(
    kind: &Databases,
    service: &str,
    settings: &Settings,
    database: &dyn SchemaDatabase,
    file: &File,
) -> Result<Plan, Error> {
    let empty = || database.empty();
    let declared = refit_schema::plan(database.server(), database.as_client(), &empty, file)?;
    let mut plan = Plan::new(service, kind.name, settings);
    plan.sizes = counted(database, &declared)?;
    plan.notes = notes(&declared);
    plan.notes.extend(database.notes());
    plan.change.was_active = true;
    plan.change.declared = Some(Box::new(declared));
    Ok(plan)
}

/// How much is destroyed, which changes while the database is used.
fn counted(database: &dyn SchemaDatabase, declared: &Declared) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for loss in declared.losses() {
        if loss.count.is_empty() {
            continue;
        }
        let number = database.count(&loss.count);
        let number = number.map_err(|output| SchemaError::Asked {
            what: loss.what.clone(),
            output,
        })?;
        lines.push(format!(
            "{}: {} that are destroyed: {number}",
            loss.what, loss.unit
        ));
    }
    Ok(lines)
}

/// How many objects a note names.
const SHOWN: usize = 12;

/// What stays, and what a revert does not bring back.
fn notes(declared: &Declared) -> Vec<String> {
    let mut notes = declared.way.notes.clone();
    if !declared.way.left.is_empty() {
        notes.push(format!(
            "not in the file, and left as it is, since refit knows it by its name only: {}",
            declared.way.left.join(", ")
        ));
    }
    let before = declared.before.of_kind(ObjectKind::Other);
    let known: Vec<String> = before.map(|(key, _)| key.to_string()).collect();
    let same = known
        .iter()
        .filter(|name| !declared.way.left.contains(name));
    let same: Vec<&str> = same.map(String::as_str).collect();
    if !same.is_empty() {
        notes.push(format!(
            "compared as a whole, and the same: {}",
            same.join(", ")
        ));
    }
    let all = |losses: &[refit_schema::Loss]| {
        let all: Vec<&str> = losses.iter().map(|loss| &*loss.what).collect();
        match all.len().checked_sub(SHOWN) {
            None | Some(0) => all.join(", "),
            Some(more) => format!("{}, and {more} more", all[..SHOWN].join(", ")),
        }
    };
    if !declared.way.losses.is_empty() {
        notes.push(format!(
            "a revert makes it again, and without what it held: {}",
            all(&declared.way.losses)
        ));
    }
    if !declared.back.losses.is_empty() {
        notes.push(format!(
            "a revert destroys what is put there from now on: {}",
            all(&declared.back.losses)
        ));
    }
    for condition in &declared.back.conditions {
        let (reason, _) = condition
            .otherwise
            .split_once('\n')
            .unwrap_or((&condition.otherwise, ""));
        notes.push(format!(
            "a revert is refused where {}: {reason}",
            condition.what
        ));
    }
    if !declared.no_way_back.is_empty() {
        notes.push(format!(
            "refit cannot revert this: {}",
            declared.no_way_back
        ));
    }
    notes
}
