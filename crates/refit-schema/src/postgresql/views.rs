//! Views: those that change in place, and those that are dropped and made again.

use std::collections::BTreeSet;

use super::columns::is_heavy;
use super::text::{quoted, view};
use super::walk::{Walk, differs};
use crate::{Key, Kind, Object};

impl Walk<'_> {
    /// Views that are dropped, and made again where the file has them: PostgreSQL changes no column under a view.
    pub fn views_that_go(&mut self) -> BTreeSet<String> {
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

    /// Views and triggers, each after what it is made of.
    pub fn views(&mut self, gone: &BTreeSet<String>) {
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
}
