//! A schema that a database gets, as the record of a change holds it.

use serde::{Deserialize, Serialize};

use crate::way::Loss;
use crate::{Catalog, Difference, Key, Kind, Step, Way};

/// What is changed, and what it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// The file's text.
    pub text: String,
    /// The catalog before the change.
    pub before: Catalog,
    /// What was printed otherwise before the change than it is when it is made again.
    #[serde(default)]
    pub found: Catalog,
    /// The same as it is printed when it is made again.
    #[serde(default)]
    pub again: Catalog,
    /// The catalog after it.
    pub after: Catalog,
    /// What leads there.
    pub way: Way,
    /// What leads back.
    pub back: Way,
    /// Why no way leads back by itself; empty where one does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_way_back: String,
}

/// What a revert finds of a change.
#[derive(Debug)]
pub struct Taken {
    /// The catalog that it goes back to: that of now, with what the change made as it was before.
    pub target: Catalog,
    /// What is neither as before nor as after the change.
    pub others: Vec<(Key, String)>,
}

impl Declared {
    /// The statements.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.way.steps
    }

    /// What is different in the catalog that is there from an expected one; what was made again, and is printed otherwise
    /// since, is not.
    #[must_use]
    pub fn differences<'a>(&self, expected: &'a Catalog, now: &'a Catalog) -> Vec<Difference<'a>> {
        let mut all = expected.differences(now);
        all.retain(|one| match (one.to, self.again.get(one.key)) {
            (Some(now), Some(again)) => !now.is_as(again),
            _ => true,
        });
        all
    }

    /// The catalog as it was found.
    #[must_use]
    pub fn as_found(&self) -> Catalog {
        let mut catalog = self.before.clone();
        catalog.0.extend(self.found.0.clone());
        catalog
    }

    /// What it destroys.
    #[must_use]
    pub fn losses(&self) -> &[Loss] {
        &self.way.losses
    }

    /// The objects that the change makes, drops or alters.
    pub fn touched(&self) -> impl Iterator<Item = &Key> {
        let all = self.before.differences(&self.after);
        all.into_iter().map(|one| one.key)
    }

    /// What to go back to from the catalog that is there now. What others made beside the change stays; of a change that was
    /// `interrupted`, what is half made is its own.
    #[must_use]
    pub fn taken_back(&self, now: &Catalog, interrupted: bool) -> Taken {
        let mut target = now.clone();
        let mut others = Vec::new();
        for difference in self.before.differences(&self.after) {
            let found = now.get(difference.key);
            let is = |expected: Option<&crate::Object>| match (found, expected) {
                (None, None) => true,
                (Some(found), Some(expected)) => found.is_as(expected),
                _ => false,
            };
            let key = difference.key.clone();
            let as_found = self.found.get(difference.key);
            if is(difference.from) || (as_found.is_some() && is(as_found)) {
                continue;
            }
            if !is(difference.to) && !interrupted {
                let line = found.map_or("not there".to_owned(), crate::Object::line);
                others.push((key, line));
                continue;
            }
            match difference.from {
                Some(before) => target.0.insert(key, before.clone()),
                None => target.0.remove(&key),
            };
        }
        if interrupted {
            // An index that a constraint would have taken up has its name.
            let is_of_constraint = |key: &Key| {
                let constraint = Key::of(&key.table, Kind::Constraint, &key.name);
                self.before.get(key).is_none() && self.after.get(&constraint).is_some()
            };
            target.0.retain(|key, _| {
                let is_made = key.name.starts_with("refit made ");
                let is_taken_up = key.kind == Kind::Index && is_of_constraint(key);
                !is_made && !is_taken_up
            });
        }
        // As it was typed.
        for (key, object) in &mut target.0 {
            if let Some(before) = self.before.get(key).filter(|before| before.is_as(object)) {
                object.clone_from(before);
            }
        }
        // What others made in a table that goes would go with it.
        let is_there = |table: &str| {
            let kinds = [Kind::Table, Kind::View, Kind::Other];
            let mut keys = kinds.map(|kind| Key::new(kind, table)).into_iter();
            table.is_empty() || keys.any(|key| target.get(&key).is_some())
        };
        for (key, object) in &target.0 {
            if !is_there(&key.table) {
                others.push((key.clone(), object.line()));
            }
        }
        Taken { target, others }
    }
}

/// The record of a second change of a database: from before the first one to after the second one.
#[must_use]
pub fn merged(first: &Declared, second: Declared) -> Declared {
    let mut before = second.before.clone();
    for difference in first.before.differences(&first.after) {
        match difference.from {
            Some(object) => before.0.insert(difference.key.clone(), object.clone()),
            None => before.0.remove(difference.key),
        };
    }
    let mut way = first.way.clone();
    way.steps.extend(second.way.steps.iter().cloned());
    way.losses.extend(second.way.losses.iter().cloned());
    Declared {
        before,
        way,
        ..second
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    fn catalog(objects: &[(&str, &str)]) -> Catalog {
        let objects = objects.iter().map(|(name, definition)| {
            let mut object = Object::default();
            let fact = ("definition".to_owned(), (*definition).to_owned());
            object.facts.extend([fact]);
            (Key::new(Kind::View, *name), object)
        });
        Catalog(objects.collect())
    }

    fn declared() -> Declared {
        Declared {
            text: String::new(),
            before: catalog(&[("a", "1"), ("b", "1")]),
            found: Catalog::default(),
            again: Catalog::default(),
            after: catalog(&[("a", "2"), ("b", "1"), ("c", "1")]),
            way: Way::default(),
            back: Way::default(),
            no_way_back: String::new(),
        }
    }

    #[test]
    fn what_others_made_beside_it_stays() {
        let now = catalog(&[("a", "2"), ("b", "7"), ("c", "1"), ("theirs", "1")]);
        let taken = declared().taken_back(&now, false);
        assert!(taken.others.is_empty());
        assert_eq!(
            taken.target,
            catalog(&[("a", "1"), ("b", "7"), ("theirs", "1")])
        );
    }

    #[test]
    fn what_others_altered_is_told_unless_it_was_interrupted() {
        let now = catalog(&[("a", "3"), ("b", "1")]);
        let taken = declared().taken_back(&now, false);
        let others: Vec<String> = taken
            .others
            .iter()
            .map(|(key, _)| key.to_string())
            .collect();
        assert_eq!(others, ["view a"]);
        let taken = declared().taken_back(&now, true);
        assert_eq!(taken.target, catalog(&[("a", "1"), ("b", "1")]));
        assert!(taken.others.is_empty());
    }

    #[test]
    fn a_second_change_goes_back_to_before_the_first() {
        let second = Declared {
            before: catalog(&[("a", "2"), ("b", "1"), ("c", "1"), ("theirs", "1")]),
            after: catalog(&[("a", "3"), ("b", "1"), ("theirs", "1")]),
            ..declared()
        };
        let merged = merged(&declared(), second);
        let before = catalog(&[("a", "1"), ("b", "1"), ("theirs", "1")]);
        assert_eq!(merged.before, before);
    }

    #[test]
    fn a_record_keeps_all() {
        let text = serde_json::to_string(&declared()).unwrap();
        let read: Declared = serde_json::from_str(&text).unwrap();
        assert_eq!(read, declared());
    }
}
