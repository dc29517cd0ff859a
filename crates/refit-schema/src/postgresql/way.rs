//! The statements of PostgreSQL between two catalogs, each in the form that stops others for the shortest time.
//!
//! One transaction drops what goes, and makes and alters tables. Then indexes are built beside writers. A second transaction
//! takes these up, and adds foreign keys that are not valid yet. At last each of these is validated by itself.

use std::collections::BTreeSet;

use super::columns;
use super::text::{column, comment};
use super::walk::{Walk, differs};
use crate::{Catalog, Key, Kind, Object, SchemaError, Way};

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
