//! What tables use, and stands before them: schemas, types, sequences and functions.

use std::cmp::Reverse;

use super::text::values;
use super::walk::{Walk, differs};
use crate::{Difference, Kind, SchemaError};

impl Walk<'_> {
    /// A value can be used only after the transaction that adds it.
    pub fn enumerations(&mut self) -> Result<(), SchemaError> {
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

    /// Schemas, types, sequences and functions, which tables use.
    pub fn make_names(&mut self) {
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
    pub fn functions(&mut self, are_read: bool) {
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

    /// Functions that the file does not have, with what they are; those whose body the server reads keep tables from going.
    pub fn functions_that_go(&self, are_read: bool) -> Vec<(String, String)> {
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
    pub fn drop_names(&mut self) {
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
}
