//! The catalog of an SQLite file: sqlite_schema.

use std::collections::BTreeMap;

use super::text::{Table, statement};
use crate::{Catalog, Client, Key, Kind, Object};

/// The first version with PRAGMA `table_list`: <https://www.sqlite.org/changes.html#version_3_37_0>.
const LEAST: [u32; 2] = [3, 37];

/// Reads all objects.
pub fn read(client: &dyn Client) -> Result<Catalog, String> {
    let version = client.rows("SELECT sqlite_version()", 1)?.concat().concat();
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let found = [parts.next().unwrap_or(0), parts.next().unwrap_or(0)];
    if found < LEAST {
        return Err(format!(
            "SQLite {version} does not tell what its tables are; refit needs 3.37 or a later one"
        ));
    }
    // What virtual tables keep their data in (`shadow`) is theirs.
    let rows = client.rows(
        "SELECT s.type, s.name, s.tbl_name, coalesce(s.sql, ''), coalesce(l.type, '') FROM main.sqlite_schema s \
         LEFT JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name AND s.type = 'table' \
         WHERE s.name NOT LIKE 'sqlite@_%' ESCAPE '@' AND coalesce(l.type, '') <> 'shadow' ORDER BY s.rowid",
        5,
    )?;
    let mut catalog = Catalog::default();
    for (place, row) in rows.into_iter().enumerate() {
        let [kind, name, table, sql, storage] =
            row.try_into().map_err(|_| "other columns".to_owned())?;
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        match (&*kind, &*storage) {
            ("table", "virtual") => add_other(&mut catalog, "virtual table", &name, &sql, place),
            ("table", _) => match Table::read(&sql) {
                Some(read) => add_table(&mut catalog, &name, &read, &sql, place),
                None => add_other(&mut catalog, "table", &name, &sql, place),
            },
            ("index", _) if sql.is_empty() => {}
            ("index", _) => add(&mut catalog, Kind::Index, &table, &name, &sql, place),
            ("view", _) => add(&mut catalog, Kind::View, "", &name, &sql, place),
            ("trigger", _) => add(&mut catalog, Kind::Trigger, &table, &name, &sql, place),
            _ => add_other(&mut catalog, &kind, &name, &sql, place),
        }
    }
    Ok(catalog)
}

/// Names are the same in upper and lower case.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn facts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn add(catalog: &mut Catalog, kind: Kind, table: &str, name: &str, sql: &str, place: u32) {
    let object = Object {
        facts: facts(&[("definition", &statement(sql))]),
        text: sql.to_owned(),
        place,
        needs: Vec::new(),
    };
    let key = Key::of(folded(table), kind, folded(name));
    catalog.0.insert(key, object);
}

fn add_other(catalog: &mut Catalog, what: &str, name: &str, sql: &str, place: u32) {
    let key = Key::new(Kind::Other, format!("{what} {}", folded(name)));
    let object = Object {
        facts: facts(&[("definition", &statement(sql))]),
        text: sql.to_owned(),
        place,
        needs: Vec::new(),
    };
    catalog.0.insert(key, object);
}

fn add_table(catalog: &mut Catalog, name: &str, table: &Table, sql: &str, place: u32) {
    let key = folded(name);
    let object = Object {
        facts: facts(&[("name", name), ("options", &table.options)]),
        text: sql.to_owned(),
        place,
        needs: Vec::new(),
    };
    catalog.0.insert(Key::new(Kind::Table, &key), object);
    for (place, column) in (0..).zip(&table.columns) {
        let object = Object {
            facts: facts(&[("name", &column.name), ("definition", &column.definition)]),
            text: column.text.clone(),
            place,
            needs: Vec::new(),
        };
        let key = Key::of(&key, Kind::Column, folded(&column.name));
        catalog.0.insert(key, object);
    }
    for (place, (form, text)) in (0..).zip(&table.constraints) {
        let object = Object {
            facts: BTreeMap::new(),
            text: text.clone(),
            place,
            needs: Vec::new(),
        };
        catalog
            .0
            .insert(Key::of(&key, Kind::Constraint, form), object);
    }
}
