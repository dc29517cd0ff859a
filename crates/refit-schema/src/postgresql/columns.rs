//! A table that stays: what becomes of its columns.

use super::text::{MADE, column, quoted};
use super::walk::Walk;
use crate::way::Condition;
use crate::{Catalog, Difference, Key, Kind, Object, SchemaError};

/// Whether a table changes so that PostgreSQL refuses it under a view.
pub fn is_heavy(from: &Catalog, to: &Catalog, table: &str) -> bool {
    let columns = from.parts(table, Kind::Column);
    columns.into_iter().any(|(key, before)| {
        to.get(key).is_none_or(|after| {
            let facts = ["type", "collation", "generated"];
            facts
                .iter()
                .any(|fact| before.fact(fact) != after.fact(fact))
        })
    })
}

/// All that is different of a table itself and of its columns.
pub fn alter(walk: &mut Walk, table: &str) -> Result<(), SchemaError> {
    let key = Key::new(Kind::Table, table);
    if let (Some(before), Some(after)) = (walk.from.get(&key), walk.to.get(&key)) {
        itself(walk, table, before, after)?;
    }
    let mut all = walk.differences(Kind::Column);
    all.retain(|one| one.key.table == table);
    all.sort_by_key(|one| one.to.map_or(0, |after| after.place));
    for one in &all {
        if let (Some(before), Some(after)) = (one.from, one.to) {
            change(walk, one, before, after);
        }
    }
    for one in &all {
        if let (Some(before), None) = (one.from, one.to) {
            let name = quoted(&one.key.name);
            walk.way
                .together(format!("ALTER TABLE {table} DROP COLUMN {name}"));
            if before.fact("generated").is_empty() {
                let count = format!("SELECT pg_catalog.count({name}) FROM {table}");
                walk.way.loses(one.key.to_string(), "values", count);
            }
        }
    }
    for one in &all {
        if let (None, Some(after)) = (one.from, one.to) {
            add(walk, one.key, after);
        }
    }
    order(walk, table);
    Ok(())
}

fn itself(
    walk: &mut Walk,
    table: &str,
    before: &Object,
    after: &Object,
) -> Result<(), SchemaError> {
    let differs = |fact: &str| before.fact(fact) != after.fact(fact);
    if differs("persistence") {
        let word = match after.fact("persistence") {
            "" => "LOGGED",
            _ => "UNLOGGED",
        };
        walk.way.together(format!("ALTER TABLE {table} SET {word}"));
        walk.way.note(format!(
            "{table} is written anew while it is locked: readers and writers wait"
        ));
    }
    if differs("options") {
        let names = before
            .fact("options")
            .split(", ")
            .filter_map(|option| option.split_once('='));
        let names: Vec<&str> = names.map(|(name, _)| name).collect();
        if !names.is_empty() {
            walk.way
                .together(format!("ALTER TABLE {table} RESET ({})", names.join(", ")));
        }
        if !after.fact("options").is_empty() {
            walk.way.together(format!(
                "ALTER TABLE {table} SET ({})",
                after.fact("options")
            ));
        }
    }
    if differs("replica identity") {
        let word = match after.fact("replica identity") {
            "" => "DEFAULT",
            "f" => "FULL",
            "n" => "NOTHING",
            _ => {
                return Err(SchemaError::NoWay {
                    what: format!("table {table}"),
                    reason: "refit sets no index as its replica identity\n  set it by hand, then plan again".to_owned(),
                });
            }
        };
        walk.way
            .together(format!("ALTER TABLE {table} REPLICA IDENTITY {word}"));
    }
    security(
        walk,
        table,
        before.fact("row security"),
        after.fact("row security"),
    );
    Ok(())
}

/// Row security of a table.
pub fn security(walk: &mut Walk, table: &str, before: &str, after: &str) {
    let has = |text: &str, word: &str| text.contains(word);
    for (word, on, off) in [("on", "ENABLE", "DISABLE"), ("forced", "FORCE", "NO FORCE")] {
        if has(before, word) != has(after, word) {
            let how = if has(after, word) { on } else { off };
            walk.way
                .together(format!("ALTER TABLE {table} {how} ROW LEVEL SECURITY"));
        }
    }
}

/// How the values of a column are kept, and how much ANALYZE keeps of it.
pub fn storage(walk: &mut Walk, key: &Key, before: Option<&Object>, after: &Object) {
    let (table, name) = (&key.table, quoted(&key.name));
    let differs = |fact: &str| before.map_or("", |before| before.fact(fact)) != after.fact(fact);
    if differs("storage") {
        // Each as `e and not x`: the second one is the type's own.
        let kept = match (
            after.fact("storage"),
            before.map_or("", |before| before.fact("storage")),
        ) {
            ("", before) => before.chars().last(),
            (after, _) => after.chars().next(),
        };
        let word = match kept.map(String::from).as_deref().unwrap_or_default() {
            "p" => "PLAIN",
            "e" => "EXTERNAL",
            "m" => "MAIN",
            "x" => "EXTENDED",
            _ => "DEFAULT",
        };
        walk.way.together(format!(
            "ALTER TABLE {table} ALTER COLUMN {name} SET STORAGE {word}"
        ));
    }
    if differs("statistics") {
        let number = match after.fact("statistics") {
            "" => "-1",
            number => number,
        };
        walk.way.together(format!(
            "ALTER TABLE {table} ALTER COLUMN {name} SET STATISTICS {number}"
        ));
    }
}

fn add(walk: &mut Walk, key: &Key, after: &Object) {
    let (table, text) = (&key.table, column(&key.name, after));
    walk.way
        .together(format!("ALTER TABLE {table} ADD COLUMN {text}"));
    storage(walk, key, None, after);
    let is_filled = ["default", "generated", "identity"]
        .iter()
        .any(|fact| !after.fact(fact).is_empty());
    if !after.fact("not null").is_empty() && !is_filled {
        walk.way.conditions.push(Condition {
            count: format!("SELECT pg_catalog.count(*) FROM {table}"),
            what: key.to_string(),
            otherwise: "it is NOT NULL and has no default, and the table has rows\n  \
                        give it a DEFAULT in the file, or let it be NULL"
                .to_owned(),
        });
    }
    let is_computed = ["generated", "identity"]
        .iter()
        .any(|fact| !after.fact(fact).is_empty());
    if is_computed || after.fact("default").contains('(') {
        walk.way.note(format!(
            "{key} may be computed for each row while {table} is locked: readers and writers wait"
        ));
    }
}

fn change(walk: &mut Walk, one: &Difference, before: &Object, after: &Object) {
    let (key, table, name) = (one.key, &one.key.table, quoted(&one.key.name));
    let differs = |fact: &str| before.fact(fact) != after.fact(fact);
    let alter = |what: String| format!("ALTER TABLE {table} ALTER COLUMN {name} {what}");
    if differs("generated") {
        match (before.fact("generated"), after.fact("generated")) {
            (_, "") => walk.way.together(alter("DROP EXPRESSION".to_owned())),
            (was, _) => {
                if was.is_empty() {
                    let count = format!("SELECT pg_catalog.count({name}) FROM {table}");
                    walk.way
                        .loses(format!("{key}, which is computed then"), "values", count);
                }
                walk.way
                    .together(format!("ALTER TABLE {table} DROP COLUMN {name}"));
                add(walk, key, after);
                return;
            }
        }
    }
    if !before.fact("identity").is_empty() && after.fact("identity").is_empty() {
        walk.way.together(alter("DROP IDENTITY".to_owned()));
    }
    let is_other_type = differs("type") || differs("collation");
    if !before.fact("default").is_empty() && (after.fact("default").is_empty() || is_other_type) {
        walk.way.together(alter("DROP DEFAULT".to_owned()));
    }
    if is_other_type {
        let new = after.fact("type");
        let collation = match after.fact("collation") {
            "" if differs("collation") => " COLLATE pg_catalog.\"default\"".to_owned(),
            "" => String::new(),
            name => format!(" COLLATE {name}"),
        };
        walk.way
            .together(alter(format!("TYPE {new}{collation} USING {name}::{new}")));
        if differs("type") && !is_wider(before.fact("type"), new) {
            let old = before.fact("type");
            walk.way.note(format!(
                "{table} may be written anew for {key} while it is locked: readers and writers wait"
            ));
            walk.way.loses_if_any(
                format!("{key}, as far as {new} holds other values than {old}"),
                "values",
                format!(
                    "SELECT pg_catalog.count(*) FROM {table} WHERE ({name}::{new})::text IS DISTINCT FROM {name}::text"
                ),
            );
        }
    }
    if !after.fact("default").is_empty() && (differs("default") || is_other_type) {
        walk.way
            .together(alter(format!("SET DEFAULT {}", after.fact("default"))));
    }
    null(walk, key, before, after);
    identity(walk, key, before, after);
    storage(walk, key, Some(before), after);
}

fn null(walk: &mut Walk, key: &Key, before: &Object, after: &Object) {
    let (table, name) = (&key.table, quoted(&key.name));
    match (before.fact("not null"), after.fact("not null")) {
        ("", "") => {}
        (_, "") => walk.way.together(format!(
            "ALTER TABLE {table} ALTER COLUMN {name} DROP NOT NULL"
        )),
        ("", _) => {
            // A constraint that is valid spares SET NOT NULL the look at each row, under a lock that stops all.
            let made = quoted(&format!("{MADE}{}", key.name));
            walk.way.together(format!(
                "ALTER TABLE {table} ADD CONSTRAINT {made} CHECK ({name} IS NOT NULL) NOT VALID"
            ));
            walk.builds
                .insert(0, format!("ALTER TABLE {table} VALIDATE CONSTRAINT {made}"));
            walk.second.push(format!(
                "ALTER TABLE {table} ALTER COLUMN {name} SET NOT NULL"
            ));
            walk.second
                .push(format!("ALTER TABLE {table} DROP CONSTRAINT {made}"));
            walk.way.conditions.push(Condition {
                count: format!("SELECT pg_catalog.count(*) FROM {table} WHERE {name} IS NULL"),
                what: key.to_string(),
                otherwise: format!(
                    "the file says NOT NULL, and rows have NULL there\n  give them a value first: UPDATE {table} SET {name} = … WHERE {name} IS NULL"
                ),
            });
        }
        _ => {}
    }
}

fn identity(walk: &mut Walk, key: &Key, before: &Object, after: &Object) {
    let (table, name) = (&key.table, quoted(&key.name));
    let parts = |object: &Object| {
        let (how, options) = object.fact("identity").split_once(" (")?;
        Some((how.to_owned(), options.trim_end_matches(')').to_owned()))
    };
    let alter = |what: String| format!("ALTER TABLE {table} ALTER COLUMN {name} {what}");
    match (parts(before), parts(after)) {
        (None, Some((how, options))) => {
            walk.second.push(alter(format!(
                "ADD GENERATED {how} AS IDENTITY ({options})"
            )));
            walk.second.push(format!(
                "SELECT pg_catalog.setval(pg_catalog.pg_get_serial_sequence({}, {}), pg_catalog.max({name})) FROM {table} \
                 HAVING pg_catalog.max({name}) IS NOT NULL",
                super::text::literal(table),
                super::text::literal(&key.name)
            ));
        }
        (Some((old_how, old)), Some((how, options))) => {
            if old_how != how {
                walk.way.together(alter(format!("SET GENERATED {how}")));
            }
            if old != options {
                let set = options
                    .replace("INCREMENT", "SET INCREMENT")
                    .replace("MINVALUE", "SET MINVALUE")
                    .replace("MAXVALUE", "SET MAXVALUE")
                    .replace("START", "SET START")
                    .replace("CACHE", "SET CACHE")
                    .replace("NO CYCLE", "SET NO-CYCLE")
                    .replace(" CYCLE", " SET CYCLE")
                    .replace("NO-CYCLE", "NO CYCLE");
                walk.way.together(alter(set));
            }
        }
        _ => {}
    }
}

/// Whether each value of a type is one of the other, and prints so.
fn is_wider(old: &str, new: &str) -> bool {
    let parts = |text: &str| -> (String, Vec<i64>) {
        let Some((name, rest)) = text.split_once('(') else {
            return (text.to_owned(), Vec::new());
        };
        let (numbers, after) = rest.split_once(')').unwrap_or((rest, ""));
        let numbers = numbers
            .split(',')
            .filter_map(|number| number.trim().parse().ok());
        (format!("{name}{after}"), numbers.collect())
    };
    let ((old_name, old_sizes), (new_name, new_sizes)) = (parts(old), parts(new));
    let integers = ["smallint", "integer", "bigint", "numeric"];
    let at = |name: &str| integers.iter().position(|one| *one == name);
    match (&*old_name, &*new_name) {
        ("character varying", "text") | ("real", "double precision") => true,
        ("character varying", "character varying") => match (&*old_sizes, &*new_sizes) {
            (_, []) => true,
            ([old], [new]) => old <= new,
            _ => false,
        },
        ("numeric", "numeric") => match (&*old_sizes, &*new_sizes) {
            (_, []) => true,
            ([old, old_scale], [new, new_scale]) => {
                old_scale <= new_scale && old - old_scale <= new - new_scale
            }
            _ => false,
        },
        (old, new) => {
            new_sizes.is_empty()
                && matches!((at(old), at(new)), (Some(old), Some(new)) if old < new)
        }
    }
}

/// Columns that are added come last.
fn order(walk: &mut Walk, table: &str) {
    let names = |catalog: &Catalog| -> Vec<String> {
        let columns = catalog.parts(table, Kind::Column);
        columns.iter().map(|(key, _)| key.name.clone()).collect()
    };
    let (mut now, wanted) = (names(walk.from), names(walk.to));
    let added: Vec<String> = wanted
        .iter()
        .filter(|name| !now.contains(name))
        .cloned()
        .collect();
    now.retain(|name| wanted.contains(name));
    now.extend(added);
    if now != wanted {
        walk.way.note(format!(
            "table {table}: its columns stay in another order than in the file"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::is_wider;

    #[test]
    fn a_wider_type_holds_all() {
        for (old, new, expected) in [
            ("character varying(5)", "character varying(9)", true),
            ("character varying(9)", "character varying(5)", false),
            ("character varying(9)", "text", true),
            ("text", "character varying(5)", false),
            ("smallint", "bigint", true),
            ("bigint", "integer", false),
            ("integer", "numeric", true),
            ("integer", "numeric(5,2)", false),
            ("numeric(5,2)", "numeric(9,4)", true),
            ("numeric(5,2)", "numeric(5,4)", false),
            (
                "timestamp(3) without time zone",
                "timestamp(6) without time zone",
                false,
            ),
        ] {
            assert_eq!(is_wider(old, new), expected, "{old} {new}");
        }
    }
}
