//! A schema as the catalog of its database describes it: objects, each with facts that are compared.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What an object is. The order is that of an exported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A schema of PostgreSQL.
    Schema,
    /// A type: an enumeration, for one.
    Type,
    /// A sequence that no column owns.
    Sequence,
    /// A function.
    Function,
    /// A table.
    Table,
    /// A column of a table.
    Column,
    /// A constraint of a table.
    Constraint,
    /// An index of a table.
    Index,
    /// A view.
    View,
    /// A trigger of a table or view.
    Trigger,
    /// A comment on an object whose facts do not have it.
    Comment,
    /// What the comparison knows by its name only.
    Other,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Schema => "schema",
            Kind::Type => "type",
            Kind::Sequence => "sequence",
            Kind::Function => "function",
            Kind::Table => "table",
            Kind::Column => "column",
            Kind::Constraint => "constraint",
            Kind::Index => "index",
            Kind::View => "view",
            Kind::Trigger => "trigger",
            Kind::Comment => "comment on",
            Kind::Other => "",
        }
    }
}

/// By what an object is found in two catalogs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// The table that it is a part of; empty where it is of none.
    pub table: String,
    /// Its name; the text of a constraint that has none.
    pub name: String,
}

impl Key {
    /// An object of no table.
    pub fn new(kind: Kind, name: impl Into<String>) -> Key {
        Key::of("", kind, name)
    }

    /// A part of a table.
    pub fn of(table: impl Into<String>, kind: Kind, name: impl Into<String>) -> Key {
        Key {
            kind,
            table: table.into(),
            name: name.into(),
        }
    }

    /// Whether the object is this table, or a part of it.
    #[must_use]
    pub fn is_of(&self, table: &str) -> bool {
        self.table == table || (self.kind == Kind::Table && self.name == table)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key { kind, table, name } = self;
        match (kind, &**table) {
            (Kind::Other, _) => f.write_str(name),
            (_, "") => write!(f, "{} {name}", kind.word()),
            (Kind::Column, _) => write!(f, "column {table}.{name}"),
            _ => write!(f, "{} {name} of {table}", kind.word()),
        }
    }
}

/// What a catalog holds of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// What is compared, each by the name of a fact: type, default, definition.
    pub facts: BTreeMap<String, String>,
    /// The statement or part of one that makes it, as the database prints it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Its place among those of its kind, which is not compared.
    #[serde(default)]
    pub place: u32,
    /// The tables and views that it is made of, which the facts tell too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

impl Object {
    /// A fact; empty where it has none of this name.
    #[must_use]
    pub fn fact(&self, name: &str) -> &str {
        self.facts.get(name).map_or("", String::as_str)
    }

    /// Whether it is the same, as far as the catalog tells.
    #[must_use]
    pub fn is_as(&self, other: &Object) -> bool {
        self.facts == other.facts
    }

    /// The facts on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let facts = self.facts.iter().filter(|(_, value)| !value.is_empty());
        let facts: Vec<String> = facts
            .map(|(name, value)| match &**name {
                "definition" | "name" => value.clone(),
                _ => format!("{name} {value}"),
            })
            .collect();
        match facts.is_empty() {
            true => "there".to_owned(),
            false => facts.join(", "),
        }
    }
}

/// All objects of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Key, Object)>", into = "Vec<(Key, Object)>")]
pub struct Catalog(pub BTreeMap<Key, Object>);

impl From<Vec<(Key, Object)>> for Catalog {
    fn from(objects: Vec<(Key, Object)>) -> Catalog {
        Catalog(objects.into_iter().collect())
    }
}

impl From<Catalog> for Vec<(Key, Object)> {
    fn from(catalog: Catalog) -> Vec<(Key, Object)> {
        catalog.0.into_iter().collect()
    }
}

impl Catalog {
    /// An object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.0.get(key)
    }

    /// Those of a kind, in the order of their names.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Object)> {
        self.0.iter().filter(move |(key, _)| key.kind == kind)
    }

    /// Those of a kind in their places.
    #[must_use]
    pub fn in_place(&self, kind: Kind) -> Vec<(&Key, &Object)> {
        let mut all: Vec<_> = self.of_kind(kind).collect();
        all.sort_by_key(|(_, object)| object.place);
        all
    }

    /// The parts of a kind that a table has, in their places.
    #[must_use]
    pub fn parts(&self, table: &str, kind: Kind) -> Vec<(&Key, &Object)> {
        // Keys are in the order of kind, table and name.
        let first = Key::of(table, kind, "");
        let of_table = self
            .0
            .range(first..)
            .take_while(|(key, _)| key.kind == kind && key.table == table);
        let mut all: Vec<_> = of_table.collect();
        all.sort_by_key(|(_, object)| object.place);
        all
    }

    /// Whether `other` has the same objects with the same facts.
    #[must_use]
    pub fn is_as(&self, other: &Catalog) -> bool {
        self.differences(other).is_empty()
    }

    /// What is different in `other`.
    #[must_use]
    pub fn differences<'a>(&'a self, other: &'a Catalog) -> Vec<Difference<'a>> {
        let keys = self.0.keys().chain(other.0.keys());
        let mut keys: Vec<&Key> = keys.collect();
        keys.sort();
        keys.dedup();
        let all = keys.into_iter().map(|key| Difference {
            key,
            from: self.get(key),
            to: other.get(key),
        });
        all.filter(|one| match (one.from, one.to) {
            (Some(from), Some(to)) => !from.is_as(to),
            _ => true,
        })
        .collect()
    }
}

/// An object that two catalogs do not have in the same way.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// Which.
    pub key: &'a Key,
    /// In the first one.
    pub from: Option<&'a Object>,
    /// In the second one.
    pub to: Option<&'a Object>,
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |object: Option<&Object>| object.map_or("not there".to_owned(), Object::line);
        write!(f, "{}: {} → {}", self.key, line(self.from), line(self.to))
    }
}
