//! What is known on the way between two catalogs of PostgreSQL.

use crate::{Catalog, Difference, Key, Kind, Object, Way};

/// What is on the way between two catalogs.
pub struct Walk<'a> {
    pub from: &'a Catalog,
    pub to: &'a Catalog,
    pub way: Way,
    /// The second transaction.
    pub second: Vec<String>,
    /// Statements that run by themselves before it.
    pub builds: Vec<String>,
    /// Statements that run by themselves after it.
    pub validations: Vec<String>,
}

impl<'a> Walk<'a> {
    /// The objects of a kind that are different.
    pub fn differences(&self, kind: Kind) -> Vec<Difference<'a>> {
        let mut all = self.from.differences(self.to);
        all.retain(|one| one.key.kind == kind);
        all
    }

    /// Whether a catalog has a table of this name.
    pub fn has(&self, catalog: &Catalog, name: &str) -> bool {
        catalog.get(&Key::new(Kind::Table, name)).is_some()
    }

    /// A table that is in both.
    pub fn is_kept(&self, table: &str) -> bool {
        self.has(self.from, table) && self.has(self.to, table)
    }
}

/// Whether two objects differ in more than the comment.
pub fn differs(one: &Object, other: &Object) -> bool {
    let facts = |object: &Object| {
        let mut facts = object.facts.clone();
        facts.remove("comment");
        facts
    };
    facts(one) != facts(other)
}
