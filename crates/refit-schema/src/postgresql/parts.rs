//! Constraints, indexes and triggers.

use std::collections::BTreeSet;

use super::text::{MADE, concurrently, quoted};
use super::walk::{Walk, differs};
use crate::{Key, Kind, Object};

impl Walk<'_> {
    /// Triggers, views, constraints and indexes that go.
    pub fn drop_parts(&mut self, views: &BTreeSet<String>) {
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
    pub fn is_made_again(&self, key: &Key, object: &Object) -> bool {
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

    /// Constraints, indexes and triggers.
    pub fn parts(&mut self) {
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

    /// Adds a constraint.
    pub fn constraint(&mut self, key: &Key, object: &Object) {
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
}

fn index_name(key: &Key) -> String {
    let space = key.table.split_once('.').map_or("", |(space, _)| space);
    format!("{space}.{}", quoted(&key.name))
}
