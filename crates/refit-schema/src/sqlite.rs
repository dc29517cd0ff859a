//! SQLite: all statements of a change are one transaction.

mod read;
mod text;
mod way;

use crate::{Catalog, Client, Kind, SchemaError, Server, Way};

/// The server that is none.
pub static SQLITE: Sqlite = Sqlite;

/// See [`SQLITE`].
#[derive(Debug)]
pub struct Sqlite;

/// Before the transaction: inside one, foreign_keys is ignored, and DROP TABLE would delete what refers to the table. With
/// legacy_alter_table a renamed table changes no other object. EXTRA syncs the directory after the journal is removed,
/// which ends the transaction.
const BEGIN: &str = "PRAGMA foreign_keys = OFF;\nPRAGMA legacy_alter_table = ON;\nPRAGMA synchronous = EXTRA;\nBEGIN IMMEDIATE;\n";

/// What points nowhere before.
const KEYS_BEFORE: &str = "CREATE TEMP TABLE \"refit keys\" AS SELECT \"table\" AS t, rowid AS r, parent AS p FROM pragma_foreign_key_check;\n";

/// No more does so after it.
const KEYS_AFTER: &str = "CREATE TEMP TABLE \"refit broken\" (t, r, p, CONSTRAINT \"a foreign key of the file points to no row\" CHECK (t IS NULL));\n\
    INSERT INTO temp.\"refit broken\" SELECT \"table\", rowid, parent FROM pragma_foreign_key_check EXCEPT SELECT t, r, p FROM temp.\"refit keys\";\n";

impl Server for Sqlite {
    fn read(&self, client: &dyn Client) -> Result<Catalog, String> {
        read::read(client)
    }

    fn way(&self, from: &Catalog, to: &Catalog) -> Result<Way, SchemaError> {
        way::way(from, to)
    }

    fn export(&self, catalog: &Catalog) -> String {
        let kinds = [
            Kind::Table,
            Kind::Other,
            Kind::Index,
            Kind::View,
            Kind::Trigger,
        ];
        let objects = kinds.into_iter().flat_map(|kind| catalog.in_place(kind));
        let texts = objects.map(|(_, object)| ended(&object.text));
        texts.collect()
    }

    fn go(&self, client: &dyn Client, way: &Way) -> Result<(), String> {
        // Where a key names a table without a fitting index, SQLite cannot check it, before or after.
        let can_check = client
            .rows("SELECT count(*) FROM pragma_foreign_key_check", 1)
            .is_ok();
        let (before, after) = match can_check {
            true => (KEYS_BEFORE, KEYS_AFTER),
            false => ("", ""),
        };
        let steps: String = way.steps.iter().map(|step| ended(&step.sql)).collect();
        client.script(&format!("{BEGIN}{before}{steps}{after}COMMIT;\n"))
    }
}

/// A statement with its semicolon, which no comment at its end hides.
fn ended(sql: &str) -> String {
    let last = sql.lines().next_back().unwrap_or_default();
    match last.contains("--") {
        true => format!("{sql}\n;\n"),
        false => format!("{sql};\n"),
    }
}
