//! The statements of SQLite between two catalogs: ALTER TABLE ADD COLUMN where that is all, else the table is made anew
//! under another name, filled, and renamed (<https://www.sqlite.org/lang_altertable.html#otheralter>).

use std::collections::{BTreeMap, BTreeSet};

use super::text::{Column, Table, affinity, declared_type, default, outer, renamed};
use crate::way::Condition;
use crate::{Catalog, Key, Kind, Object, SchemaError, Way};

/// A name in quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// How a table gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Created,
    Dropped,
    /// It only gets columns that ALTER TABLE can add.
    Added,
    /// It is made anew.
    Rebuilt,
}

/// The statements between two catalogs.
pub fn way(from: &Catalog, to: &Catalog) -> Result<Way, SchemaError> {
    let mut way = Way::default();
    for difference in from.differences(to) {
        match (difference.key.kind, difference.to) {
            (Kind::Other, None) => way.left.push(difference.key.to_string()),
            (Kind::Other, Some(_)) => {
                let what = difference.key.to_string();
                return Err(SchemaError::NotKnown { what });
            }
            _ => {}
        }
    }
    let tables = tables(from, to);
    let how = |table: &str| {
        tables
            .iter()
            .find(|(name, _)| name == table)
            .map(|(_, how)| *how)
    };
    let is_anew = |table: &str| matches!(how(table), Some(How::Dropped | How::Rebuilt));
    let differs = |key: &Key| match (from.get(key), to.get(key)) {
        (Some(one), Some(other)) => !one.is_as(other),
        _ => true,
    };
    let view_goes = |name: &str| {
        let key = Key::new(Kind::View, name);
        from.get(&key).is_some() && differs(&key)
    };
    // What goes with its table or view is not dropped by itself.
    let dropped = |kind, word: &str, way: &mut Way| {
        for (key, _) in from.of_kind(kind) {
            if differs(key) && !is_anew(&key.table) && !view_goes(&key.table) {
                way.together(format!("DROP {word} {}", quoted(&key.name)));
            }
        }
    };
    dropped(Kind::Trigger, "TRIGGER", &mut way);
    dropped(Kind::View, "VIEW", &mut way);
    dropped(Kind::Index, "INDEX", &mut way);
    for (table, _) in tables.iter().filter(|(_, how)| *how == How::Dropped) {
        let name = name_of(from, table);
        way.together(format!("DROP TABLE {}", quoted(&name)));
        let count = format!("SELECT count(*) FROM {}", quoted(&name));
        way.loses(format!("table {name}"), "rows", count);
        for child in children(from, table) {
            way.note(format!(
                "a revert is refused while rows of {child} refer to table {name}, which it would make again without its rows"
            ));
        }
    }
    for (key, object) in to.in_place(Kind::Table) {
        match how(&key.name) {
            Some(How::Created) => {
                let name = quoted(object.fact("name"));
                way.together(create(to, &key.name, &name));
            }
            Some(How::Added) => add(from, to, &key.name, &mut way),
            Some(How::Rebuilt) => rebuild(from, to, &key.name, &mut way),
            _ => note_order(from, to, &key.name, &mut way),
        }
    }
    let is_made = |key: &Key| differs(key) || is_anew(&key.table) || view_goes(&key.table);
    for kind in [Kind::Index, Kind::View, Kind::Trigger] {
        let made = to
            .in_place(kind)
            .into_iter()
            .filter(|(key, _)| is_made(key));
        made.for_each(|(_, object)| way.together(&object.text));
    }
    if tables.iter().any(|(_, how)| *how == How::Rebuilt) {
        way.note(
            "a table that is made anew is copied as a whole: the file needs as much space again, and writers wait; \
             what ANALYZE knew of it is gone: run ANALYZE",
        );
    }
    Ok(way)
}

/// The tables that are not the same in both, each with what becomes of it.
fn tables(from: &Catalog, to: &Catalog) -> Vec<(String, How)> {
    // Whether nothing is different but columns that ALTER TABLE ADD COLUMN takes.
    let mut names: BTreeMap<&str, bool> = BTreeMap::new();
    for one in from.differences(to) {
        let (name, can_be_added) = match one.key.kind {
            Kind::Table => (&one.key.name, false),
            Kind::Constraint => (&one.key.table, false),
            Kind::Column => (
                &one.key.table,
                one.from.is_none() && one.to.is_some_and(is_addable),
            ),
            _ => continue,
        };
        *names.entry(name).or_insert(true) &= can_be_added;
    }
    let is_in = |catalog: &Catalog, name: &str| catalog.get(&Key::new(Kind::Table, name)).is_some();
    let all = names.into_iter().map(|(name, can_be_added)| {
        let how = match (is_in(from, name), is_in(to, name)) {
            (true, false) => How::Dropped,
            (false, _) => How::Created,
            _ if can_be_added => How::Added,
            _ => How::Rebuilt,
        };
        (name.to_owned(), how)
    });
    all.collect()
}

/// <https://www.sqlite.org/lang_altertable.html#alter_table_add_column>
fn is_addable(column: &Object) -> bool {
    let definition = column.fact("definition");
    let words = outer(definition);
    let has = |word: &str| words.iter().any(|one| one == word);
    let is_constant = match default(definition) {
        Some(value) => value != "(" && !value.to_ascii_lowercase().starts_with("current_"),
        None => true,
    };
    let is_null = default(definition).is_none_or(|value| value.eq_ignore_ascii_case("null"));
    let is_stored = is_generated(column) && has("stored");
    let can_be_null = !is_not_null(column) || !is_null;
    !has("primary") && !has("unique") && !is_stored && is_constant && can_be_null
}

fn is_generated(column: &Object) -> bool {
    let words = outer(column.fact("definition"));
    words.iter().any(|word| word == "as")
}

fn is_not_null(column: &Object) -> bool {
    let words = outer(column.fact("definition"));
    words.windows(2).any(|pair| pair == ["not", "null"])
}

/// The tables that refer to a table, but for itself, and that stay.
fn children(catalog: &Catalog, table: &str) -> BTreeSet<String> {
    let parts = [Kind::Column, Kind::Constraint].map(|kind| catalog.of_kind(kind));
    let parts = parts.into_iter().flatten();
    let refers = |key: &Key, object: &Object| {
        let text = format!("{} {}", key.name, object.fact("definition"));
        let mut rest = text.split("references ").skip(1);
        rest.any(|rest| {
            rest.trim_start_matches('"')
                .to_ascii_lowercase()
                .starts_with(table)
        })
    };
    let found = parts.filter(|(key, object)| key.table != table && refers(key, object));
    found.map(|(key, _)| key.table.clone()).collect()
}

fn name_of(catalog: &Catalog, table: &str) -> String {
    let object = catalog.get(&Key::new(Kind::Table, table));
    object
        .map_or(table, |object| object.fact("name"))
        .to_owned()
}

fn add(from: &Catalog, to: &Catalog, table: &str, way: &mut Way) {
    let name = quoted(&name_of(to, table));
    for (key, column) in to.parts(table, Kind::Column) {
        if from.get(key).is_none() {
            way.together(format!("ALTER TABLE {name} ADD COLUMN {}", column.text));
        }
    }
    note_order(from, to, table, way);
}

/// Columns that are added come last; a table is not copied for the order of its columns alone.
fn note_order(from: &Catalog, to: &Catalog, table: &str, way: &mut Way) {
    let names = |catalog: &Catalog| -> Vec<String> {
        let columns = catalog.parts(table, Kind::Column);
        columns.iter().map(|(key, _)| key.name.clone()).collect()
    };
    let (now, wanted) = (names(from), names(to));
    let added = wanted.iter().filter(|name| !now.contains(name));
    let then: Vec<&String> = now.iter().chain(added).collect();
    if then != wanted.iter().collect::<Vec<_>>() {
        way.note(format!(
            "table {table}: its columns stay in another order than in the file"
        ));
    }
}

/// The column of a table's own that is its row id, if any.
fn has_row_id_column(catalog: &Catalog, table: &str) -> bool {
    let columns = catalog.parts(table, Kind::Column);
    let is_integer = |column: &Object| declared_type(column.fact("definition")) == "integer";
    let in_place = columns.iter().any(|(_, column)| {
        let words = outer(column.fact("definition"));
        is_integer(column) && words.iter().any(|word| word == "primary")
    });
    let mut constraints = catalog.parts(table, Kind::Constraint).into_iter();
    in_place
        || constraints.any(|(key, _)| {
            let of_one = key.name.split_once("primary key ( ");
            let column = of_one.and_then(|(_, rest)| rest.split(' ').next());
            let column = column.and_then(|name| catalog.get(&Key::of(table, Kind::Column, name)));
            column.is_some_and(is_integer)
        })
}

fn options(catalog: &Catalog, table: &str) -> String {
    let object = catalog.get(&Key::new(Kind::Table, table));
    object
        .map_or("", |object| object.fact("options"))
        .to_owned()
}

fn has_row_ids(catalog: &Catalog, table: &str) -> bool {
    !options(catalog, table).contains("without rowid")
}

fn counts_up(catalog: &Catalog, table: &str) -> bool {
    let mut columns = catalog.parts(table, Kind::Column).into_iter();
    columns.any(|(_, column)| {
        outer(column.fact("definition"))
            .iter()
            .any(|word| word == "autoincrement")
    })
}

/// How the values of a column are stored.
fn stored_as(catalog: &Catalog, table: &str, column: &Object) -> &'static str {
    let declared = declared_type(column.fact("definition"));
    match (&*declared, options(catalog, table).contains("strict")) {
        ("any", true) => "blob",
        (declared, _) => affinity(declared),
    }
}

fn rebuild(from: &Catalog, to: &Catalog, table: &str, way: &mut Way) {
    let (old_name, new_name) = (name_of(from, table), name_of(to, table));
    let (old, new) = (quoted(&old_name), quoted(&new_name));
    let made = format!("refit made {new_name}");
    let other = quoted(&made);
    let create = create(to, table, &other);
    let (mut into, mut select) = (Vec::new(), Vec::new());
    if has_row_ids(from, table) && has_row_ids(to, table) {
        let has = |name: &str| {
            let key = Key::of(table, Kind::Column, name);
            from.get(&key).is_some() || to.get(&key).is_some()
        };
        let mut names = ["rowid", "_rowid_", "oid"].into_iter();
        if let Some(name) = names.find(|name| !has(name))
            && !has_row_id_column(from, table)
            && !has_row_id_column(to, table)
        {
            into.push(name.to_owned());
            select.push(name.to_owned());
        }
    }
    for (key, column) in to.parts(table, Kind::Column) {
        let shown = column.fact("name");
        match from.get(key) {
            Some(_) if is_generated(column) => {}
            Some(before) => {
                into.push(quoted(shown));
                select.push(quoted(before.fact("name")));
                if is_not_null(column) && !is_not_null(before) {
                    let name = quoted(before.fact("name"));
                    way.conditions.push(Condition {
                        count: format!("SELECT count(*) FROM {old} WHERE {name} IS NULL"),
                        what: key.to_string(),
                        otherwise: format!(
                            "the file says NOT NULL, and rows have NULL there\n  give them a value first: UPDATE {old} SET {name} = … WHERE {name} IS NULL"
                        ),
                    });
                }
            }
            None => {
                let value = default(column.fact("definition"));
                let is_null = value.is_none_or(|value| value.eq_ignore_ascii_case("null"));
                let words = outer(column.fact("definition"));
                let is_key = words.iter().any(|word| word == "primary");
                if is_not_null(column) && is_null && !is_generated(column) && !is_key {
                    way.conditions.push(Condition {
                        count: format!("SELECT count(*) FROM {old}"),
                        what: key.to_string(),
                        otherwise: "it is NOT NULL and has no default, and the table has rows\n  \
                                    give it a DEFAULT in the file, or let it be NULL"
                            .to_owned(),
                    });
                }
            }
        }
    }
    losses(from, to, table, way);
    way.together(create);
    if !into.is_empty() {
        // OR ABORT: what the table's own constraints would do with a row that violates them is not done here.
        way.together(format!(
            "INSERT OR ABORT INTO {other} ({}) SELECT {} FROM {old}",
            into.join(", "),
            select.join(", ")
        ));
    }
    if counts_up(from, table) && counts_up(to, table) {
        way.together(format!(
            "DELETE FROM sqlite_sequence WHERE name = {}",
            text(&made)
        ));
        way.together(format!(
            "INSERT INTO sqlite_sequence (name, seq) SELECT {}, seq FROM sqlite_sequence WHERE name = {}",
            text(&made),
            text(&old_name)
        ));
    }
    way.together(format!("DROP TABLE {old}"));
    way.together(format!("ALTER TABLE {other} RENAME TO {new}"));
}

/// The statement that makes a table under a name: as it was typed, or of its parts where they are of several origins.
fn create(catalog: &Catalog, table: &str, name: &str) -> String {
    let typed = catalog
        .get(&Key::new(Kind::Table, table))
        .map_or("", |object| &object.text);
    let (columns, constraints) = (
        catalog.parts(table, Kind::Column),
        catalog.parts(table, Kind::Constraint),
    );
    let is_whole = Table::read(typed).is_some_and(|read| {
        let has_column = |column: &Column| {
            let key = Key::of(table, Kind::Column, column.name.to_ascii_lowercase());
            let object = catalog.get(&key);
            object.is_some_and(|object| object.fact("definition") == column.definition)
        };
        let has = |(form, _): &(String, String)| {
            catalog
                .get(&Key::of(table, Kind::Constraint, form))
                .is_some()
        };
        read.columns.len() == columns.len()
            && read.columns.iter().all(has_column)
            && read.constraints.len() == constraints.len()
            && read.constraints.iter().all(has)
            && read.options == options(catalog, table)
    });
    if let (true, Some(text)) = (is_whole, renamed(typed, name)) {
        return text;
    }
    let parts = columns.iter().chain(&constraints);
    let parts: Vec<&str> = parts.map(|(_, object)| &*object.text).collect();
    format!(
        "CREATE TABLE {name} (\n  {}\n) {}",
        parts.join(",\n  "),
        options(catalog, table)
    )
}

/// What of a table's data is not in the new one.
fn losses(from: &Catalog, to: &Catalog, table: &str, way: &mut Way) {
    let old = quoted(&name_of(from, table));
    for (key, column) in from.parts(table, Kind::Column) {
        let name = quoted(column.fact("name"));
        let count = format!("SELECT count({name}) FROM {old}");
        let what = format!("column {}.{}", name_of(from, table), column.fact("name"));
        match to.get(key) {
            _ if is_generated(column) => {}
            None => way.loses(what, "values", count),
            Some(after) if is_generated(after) => {
                way.loses(format!("{what}, which is computed then"), "values", count)
            }
            Some(after) => {
                let (was, is) = (stored_as(from, table, column), stored_as(to, table, after));
                let is_same = |one: &str| ["integer", "numeric"].contains(&one);
                if was == is || is == "blob" || (is_same(was) && is_same(is)) {
                    continue;
                }
                let what = format!("{what}, as far as values are stored as {is} and not as {was}");
                let others = match is {
                    "text" => "'integer', 'real'",
                    "real" => "'integer', 'text'",
                    _ => "'text'",
                };
                let count =
                    format!("SELECT count(*) FROM {old} WHERE typeof({name}) IN ({others})");
                way.loses_if_any(what, "values", count);
            }
        }
    }
    if has_row_ids(from, table) && !has_row_ids(to, table) && !has_row_id_column(from, table) {
        way.note(format!("table {table}: its rows have no rowid then"));
    }
}
