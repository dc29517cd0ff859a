//! The statements of PostgreSQL between two catalogs, each in the form that stops others for the shortest time.
//!
//! One transaction drops what goes, and makes and alters tables. Then indexes are built beside writers. A second transaction
//! takes these up, and adds foreign keys that are not valid yet. At last each of these is validated by itself.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::columns::{self, is_heavy};
use super::text::{MADE, column, comment, concurrently, quoted, values, view};
use super::walk::Walk;
use crate::{Catalog, Difference, Key, Kind, Object, SchemaError, Way};

/// The statements between two catalogs.
pub fn way(from: &Catalog, to: &Catalog) -> Result<Way, SchemaError> {
    let mut walk = Walk {
        from,
        to,
        way: Way::default(),
        second: Vec::new(),
        builds: Vec::new(),
        validations: Vec::new(),
    };
    walk.left()?;
    walk.enumerations()?;
    let goes = walk.views_that_go();
    walk.drop_parts(&goes);
    walk.make_names();
    walk.tables()?;
    walk.parts();
    walk.views(&goes);
    walk.drop_names();
    walk.comments(&goes);
    let Walk {
        mut way,
        second,
        builds,
        validations,
        ..
    } = walk;
    builds.into_iter().for_each(|sql| way.alone(sql));
    second.into_iter().for_each(|sql| way.together(sql));
    validations.into_iter().for_each(|sql| way.alone(sql));
    Ok(way)
}

/// Whether two objects differ in more than the comment.
fn differs(one: &Object, other: &Object) -> bool {
    let facts = |object: &Object| {
        let mut facts = object.facts.clone();
        facts.remove("comment");
        facts
    };
    facts(one) != facts(other)
}

impl Walk<'_> {
    fn left(&mut self) -> Result<(), SchemaError> {
        for one in self.differences(Kind::Other) {
            let what = one.key.to_string();
            if one.to.is_some() {
                return Err(SchemaError::NotKnown { what });
            }
            self.way.left.push(what);
        }
        Ok(())
    }

    /// A value can be used only after the transaction that adds it.
    fn enumerations(&mut self) -> Result<(), SchemaError> {
        for one in self.differences(Kind::Type) {
            let (Some(before), Some(after)) = (one.from, one.to) else {
                continue;
            };
            if !differs(before, after) {
                continue;
            }
            if !before.fact("domain").is_empty() || !after.fact("domain").is_empty() {
                return Err(SchemaError::NoWay {
                    what: one.key.to_string(),
                    reason: "refit makes domains and drops them, and alters none\n  alter it by hand as the file has it, then plan again".to_owned(),
                });
            }
            let (old, new) = (values(before), values(after));
            let kept: Vec<&String> = new.iter().filter(|value| old.contains(value)).collect();
            if kept != old.iter().collect::<Vec<_>>() {
                return Err(SchemaError::NoWay {
                    what: one.key.to_string(),
                    reason: "the file takes values out of it, or orders them otherwise, which PostgreSQL cannot\n  \
                             make another type by hand, and let the columns have that"
                        .to_owned(),
                });
            }
            let mut place = old.first().map(|first| format!(" BEFORE {first}"));
            for value in &new {
                if !old.contains(value) {
                    let place = place.clone().unwrap_or_default();
                    self.way.alone(format!(
                        "ALTER TYPE {} ADD VALUE {value}{place}",
                        one.key.name
                    ));
                }
                place = Some(format!(" AFTER {value}"));
            }
        }
        Ok(())
    }

    /// Views that are dropped, and made again where the file has them: PostgreSQL changes no column under a view.
    fn views_that_go(&mut self) -> BTreeSet<String> {
        let mut goes = BTreeSet::new();
        let heavy = |name: &String| {
            let is_gone = self.has(self.from, name) && !self.has(self.to, name);
            is_gone || is_heavy(self.from, self.to, name)
        };
        let mut views: Vec<(&Key, &Object)> = self.from.of_kind(Kind::View).collect();
        loop {
            let known = goes.len();
            views.retain(|(key, object)| {
                let stays = match self.to.get(key) {
                    None => false,
                    Some(after) => {
                        let (old, new) = (object.fact("columns"), after.fact("columns"));
                        !differs(object, after)
                            || new == old
                            || new.starts_with(&format!("{old}, "))
                    }
                };
                let below = object
                    .needs
                    .iter()
                    .any(|name| heavy(name) || goes.contains(name));
                if !stays || below {
                    goes.insert(key.name.clone());
                }
                stays && !below
            });
            if goes.len() == known {
                break;
            }
        }
        let again: Vec<&str> = goes
            .iter()
            .map(String::as_str)
            .filter(|name| self.to.get(&Key::new(Kind::View, *name)).is_some())
            .collect();
        if !again.is_empty() {
            self.way.note(format!(
                "dropped and made again, without what was granted on it: view {}",
                again.join(", view ")
            ));
        }
        goes
    }

    fn drop_parts(&mut self, views: &BTreeSet<String>) {
        for one in self.differences(Kind::Trigger) {
            let Key { table, name, .. } = one.key;
            let stays = self.is_kept(table)
                || (self.from.get(&Key::new(Kind::View, table)).is_some()
                    && !views.contains(table));
            if stays && one.from.is_some() {
                self.way
                    .together(format!("DROP TRIGGER {} ON {table}", quoted(name)));
            }
        }
        if !views.is_empty() {
            let all: Vec<&str> = views.iter().map(String::as_str).collect();
            self.way.together(format!("DROP VIEW {}", all.join(", ")));
        }
        for (name, of) in self.functions_that_go(true) {
            self.way.together(format!("DROP {of} {name}"));
        }
        for first in [true, false] {
            let constraints: Vec<(&Key, &Object)> = self.from.of_kind(Kind::Constraint).collect();
            for (key, object) in constraints {
                let is_key = object.fact("of") == "f";
                if is_key == first && self.is_kept(&key.table) && self.is_made_again(key, object) {
                    let (table, name) = (&key.table, quoted(&key.name));
                    self.way
                        .together(format!("ALTER TABLE {table} DROP CONSTRAINT {name}"));
                }
            }
        }
        for one in self.differences(Kind::Index) {
            if one.to.is_none() && self.is_kept(&one.key.table) {
                self.way
                    .together(format!("DROP INDEX {}", index_name(one.key)));
            }
        }
    }

    /// Whether a constraint is dropped: it differs, or is a foreign key to something that is dropped.
    fn is_made_again(&self, key: &Key, object: &Object) -> bool {
        let Some(after) = self.to.get(key) else {
            return true;
        };
        let refers = object.fact("refers to");
        let unique = |key: &Key, of: &Object| {
            key.table == refers
                && matches!(of.fact("of"), "p" | "u")
                && self.to.get(key).is_none_or(|after| differs(of, after))
        };
        let mut constraints = self.from.of_kind(Kind::Constraint);
        differs(object, after)
            || (!refers.is_empty() && constraints.any(|(key, of)| unique(key, of)))
    }

    /// Schemas, types, sequences and functions, which tables use.
    fn make_names(&mut self) {
        for one in self.differences(Kind::Schema) {
            if one.from.is_none() {
                self.way.together(format!("CREATE SCHEMA {}", one.key.name));
                self.way.made.push(format!("SCHEMA {}", one.key.name));
            }
        }
        let mut types = self.differences(Kind::Type);
        types.sort_by_key(|one| one.to.map_or(0, |after| after.place));
        for one in types {
            if let (None, Some(after)) = (one.from, one.to) {
                let name = &one.key.name;
                match (after.fact("domain"), after.fact("values")) {
                    ("", values) => {
                        self.way
                            .together(format!("CREATE TYPE {name} AS ENUM ({values})"));
                        self.way.made.push(format!("TYPE {name}"));
                    }
                    (of, _) => {
                        self.way.together(format!("CREATE DOMAIN {name} AS {of}"));
                        self.way.made.push(format!("DOMAIN {name}"));
                    }
                }
            }
        }
        for one in self.differences(Kind::Sequence) {
            let name = &one.key.name;
            match (one.from, one.to) {
                (None, Some(after)) => {
                    let (kind, counts) = (after.fact("type"), after.fact("counts"));
                    self.way
                        .together(format!("CREATE SEQUENCE {name} AS {kind} {counts}"));
                    if after.fact("owned by").is_empty() {
                        self.way.made.push(format!("SEQUENCE {name}"));
                    }
                }
                (Some(before), Some(after))
                    if ["type", "counts"]
                        .iter()
                        .any(|fact| before.fact(fact) != after.fact(fact)) =>
                {
                    let (kind, counts) = (after.fact("type"), after.fact("counts"));
                    self.way
                        .together(format!("ALTER SEQUENCE {name} AS {kind} {counts}"));
                }
                _ => {}
            }
        }
        self.functions(false);
    }

    /// Those whose body the server reads when they are made come after what they use.
    fn functions(&mut self, are_read: bool) {
        for one in self.differences(Kind::Function) {
            let Some(after) = one.to else { continue };
            let is_read = after.text.contains("BEGIN ATOMIC");
            if is_read == are_read && one.from.is_none_or(|before| differs(before, after)) {
                self.way.together(after.text.trim_end());
                if one.from.is_none() {
                    self.way
                        .made
                        .push(format!("{} {}", after.fact("of"), one.key.name));
                }
            }
        }
    }

    fn tables(&mut self) -> Result<(), SchemaError> {
        let dropped: Vec<&Key> = (self.differences(Kind::Table).into_iter())
            .filter(|one| one.to.is_none())
            .map(|one| one.key)
            .collect();
        for one in self.differences(Kind::Table) {
            if let (None, Some(after)) = (one.from, one.to) {
                self.create(one.key, after);
            }
        }
        let mut kept: BTreeSet<&str> = BTreeSet::new();
        for one in self.from.differences(self.to) {
            match one.key.kind {
                Kind::Table => kept.insert(&one.key.name),
                Kind::Column => kept.insert(&one.key.table),
                _ => false,
            };
        }
        kept.retain(|table| self.is_kept(table));
        for table in kept {
            columns::alter(self, table)?;
        }
        for one in self.differences(Kind::Sequence) {
            let now = one.from.map_or("", |before| before.fact("owned by"));
            if let Some(after) = one.to.filter(|after| after.fact("owned by") != now) {
                let owner = match after.fact("owned by") {
                    "" => "NONE",
                    owner => owner,
                };
                self.way
                    .together(format!("ALTER SEQUENCE {} OWNED BY {owner}", one.key.name));
            }
        }
        if !dropped.is_empty() {
            let names: Vec<&str> = dropped.iter().map(|key| &*key.name).collect();
            self.way
                .together(format!("DROP TABLE {}", names.join(", ")));
            for name in names {
                let count = format!("SELECT pg_catalog.count(*) FROM {name}");
                self.way.loses(format!("table {name}"), "rows", count);
            }
        }
        Ok(())
    }

    fn create(&mut self, key: &Key, table: &Object) {
        let columns = self.to.parts(&key.name, Kind::Column).into_iter();
        let columns: Vec<String> = columns
            .map(|(key, object)| column(&key.name, object))
            .collect();
        let persistence = match table.fact("persistence") {
            "" => String::new(),
            word => format!("{word} "),
        };
        let options = match table.fact("options") {
            "" => String::new(),
            options => format!(" WITH ({options})"),
        };
        let (name, columns) = (&key.name, columns.join(",\n  "));
        self.way.together(format!(
            "CREATE {persistence}TABLE {name} (\n  {columns}\n){options}"
        ));
        self.way.made.push(format!("TABLE {name}"));
        columns::security(self, name, "", table.fact("row security"));
        for (part, object) in self.to.parts(name, Kind::Column) {
            columns::storage(self, part, None, object);
        }
    }

    /// Constraints, indexes and triggers.
    fn parts(&mut self) {
        self.functions(true);
        let constraints: Vec<(&Key, &Object)> = self.to.of_kind(Kind::Constraint).collect();
        let is_new = |walk: &Walk, key: &Key| match walk.from.get(key) {
            Some(before) if walk.is_kept(&key.table) => walk.is_made_again(key, before),
            _ => true,
        };
        let constraints: Vec<_> = constraints
            .into_iter()
            .filter(|(key, _)| is_new(self, key))
            .collect();
        for (key, object) in constraints
            .iter()
            .filter(|(_, object)| object.fact("of") != "f")
        {
            self.constraint(key, object);
        }
        for one in self.differences(Kind::Index) {
            let Some(after) = one.to else { continue };
            if one.from.is_some_and(|before| !differs(before, after)) {
                continue;
            }
            let (definition, name) = (after.fact("definition"), &one.key.name);
            match one.from {
                _ if !self.is_kept(&one.key.table) => self.way.together(definition),
                None => self.builds.push(concurrently(definition, name)),
                Some(_) => {
                    let space = one.key.table.split_once('.').map_or("", |(space, _)| space);
                    let made = format!("{MADE}{name}");
                    self.builds.push(concurrently(definition, &made));
                    self.second
                        .push(format!("DROP INDEX IF EXISTS {}", index_name(one.key)));
                    let made = quoted(&made);
                    self.second.push(format!(
                        "ALTER INDEX {space}.{made} RENAME TO {}",
                        quoted(name)
                    ));
                }
            }
        }
        for (key, object) in constraints
            .iter()
            .filter(|(_, object)| object.fact("of") == "f")
        {
            self.constraint(key, object);
        }
    }

    fn constraint(&mut self, key: &Key, object: &Object) {
        let (table, name) = (&key.table, quoted(&key.name));
        let definition = object.fact("definition");
        let add = format!("ALTER TABLE {table} ADD CONSTRAINT {name} {definition}");
        let is_valid = !definition.ends_with(" NOT VALID");
        let validate = format!("ALTER TABLE {table} VALIDATE CONSTRAINT {name}");
        match object.fact("of") {
            "f" if !self.is_kept(table) && !self.is_kept(object.fact("refers to")) => {
                self.second.push(add)
            }
            _ if !self.is_kept(table) && object.fact("of") != "f" => self.way.together(add),
            "c" | "f" => {
                let add = if is_valid {
                    format!("{add} NOT VALID")
                } else {
                    add
                };
                match object.fact("of") {
                    "c" => self.way.together(add),
                    _ => self.second.push(add),
                }
                if is_valid {
                    self.validations.push(validate);
                }
            }
            kind @ ("p" | "u") => {
                let word = if kind == "p" { "PRIMARY KEY" } else { "UNIQUE" };
                let rest = definition
                    .strip_prefix(word)
                    .unwrap_or(definition)
                    .trim_start();
                let (columns, deferred) = match rest.find(" DEFERRABLE") {
                    Some(at) => rest.split_at(at),
                    None => (rest, ""),
                };
                // `UNIQUE NULLS NOT DISTINCT (a)`: of an index that stands after the columns.
                let columns = match columns.strip_prefix("NULLS NOT DISTINCT ") {
                    Some(columns) => format!("{columns} NULLS NOT DISTINCT"),
                    None => columns.to_owned(),
                };
                self.builds.push(format!(
                    "CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} {columns}"
                ));
                self.second.push(format!(
                    "ALTER TABLE {table} ADD CONSTRAINT {name} {word} USING INDEX {name}{deferred}"
                ));
            }
            _ => {
                self.way.note(format!(
                    "{key} is built while {table} is locked: readers and writers wait"
                ));
                self.way.together(add);
            }
        }
    }

    fn views(&mut self, gone: &BTreeSet<String>) {
        let mut waits: Vec<(&Key, &Object)> = self.to.of_kind(Kind::View).collect();
        waits.retain(|(key, after)| {
            let before = self.from.get(key);
            gone.contains(&key.name) || before.is_none_or(|before| differs(before, after))
        });
        while !waits.is_empty() {
            let names: Vec<String> = waits.iter().map(|(key, _)| key.name.clone()).collect();
            let is_ready = |object: &Object| !object.needs.iter().any(|name| names.contains(name));
            let (ready, rest): (Vec<_>, Vec<_>) =
                waits.into_iter().partition(|(_, object)| is_ready(object));
            if ready.is_empty() {
                break;
            }
            for (key, object) in ready {
                let replaces = self.from.get(key).is_some() && !gone.contains(&key.name);
                self.way.together(view(&key.name, object, replaces));
                if !replaces {
                    self.way.made.push(format!("VIEW {}", key.name));
                }
            }
            waits = rest;
        }
        for (key, object) in self.to.of_kind(Kind::Trigger) {
            let before = self.from.get(key).filter(|_| {
                !gone.contains(&key.table)
                    && (self.is_kept(&key.table) || !self.has(self.to, &key.table))
            });
            if before.is_none_or(|before| differs(before, object)) {
                self.way.together(object.fact("definition"));
                let word = match object.fact("enabled") {
                    "" => continue,
                    "D" => "DISABLE TRIGGER",
                    "R" => "ENABLE REPLICA TRIGGER",
                    _ => "ENABLE ALWAYS TRIGGER",
                };
                self.way.together(format!(
                    "ALTER TABLE {} {word} {}",
                    key.table,
                    quoted(&key.name)
                ));
            }
        }
    }

    /// Functions that the file does not have, with what they are; those whose body the server reads keep tables from going.
    fn functions_that_go(&self, are_read: bool) -> Vec<(String, String)> {
        let all = self.differences(Kind::Function).into_iter();
        let goes = all.filter_map(|one| match (one.from, one.to) {
            (Some(before), None) if before.text.contains("BEGIN ATOMIC") == are_read => {
                Some((one.key.name.clone(), before.fact("of").to_owned()))
            }
            _ => None,
        });
        goes.collect()
    }

    /// Functions, sequences, types and schemas that nothing uses any more.
    fn drop_names(&mut self) {
        for (name, of) in self.functions_that_go(false) {
            self.way.together(format!("DROP {of} {name}"));
        }
        let kinds = [Kind::Sequence, Kind::Type, Kind::Schema];
        let all = kinds.into_iter().flat_map(|kind| {
            let mut all = self.differences(kind);
            // A domain goes before the type that it is of.
            all.sort_by_key(|one| Reverse(one.from.map_or(0, |before| before.place)));
            all
        });
        let all: Vec<Difference> = all.collect();
        for one in all {
            if one.to.is_some() {
                continue;
            }
            let name = &one.key.name;
            let sql = match one.key.kind {
                // One of a column goes with it.
                Kind::Sequence => format!("DROP SEQUENCE IF EXISTS {name}"),
                // Of a domain too.
                Kind::Type => format!("DROP TYPE {name}"),
                _ => format!("DROP SCHEMA {name}"),
            };
            self.way.together(sql);
        }
    }

    fn comments(&mut self, gone: &BTreeSet<String>) {
        for (key, object) in &self.to.0 {
            let before = self.from.get(key);
            let is_anew = match (key.kind, before) {
                (Kind::View, _) => gone.contains(&key.name),
                (Kind::Constraint, Some(before)) => self.is_made_again(key, before),
                (Kind::Trigger | Kind::Index, Some(before)) => {
                    gone.contains(&key.table) || differs(before, object)
                }
                _ => false,
            };
            let is_of_kept = key.table.is_empty()
                || self.has(self.from, &key.table) == self.has(self.to, &key.table);
            let before = before.filter(|_| !is_anew && is_of_kept);
            if let Some(sql) = comment(key, before, object) {
                // Of what is built later.
                match matches!(key.kind, Kind::Index | Kind::Constraint) {
                    true => self.second.push(sql),
                    false => self.way.together(sql),
                }
            }
        }
    }
}

fn index_name(key: &Key) -> String {
    let space = key.table.split_once('.').map_or("", |(space, _)| space);
    format!("{space}.{}", quoted(&key.name))
}
