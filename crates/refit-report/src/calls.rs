//! Calls that wait for durability, counted by their names.

use std::collections::BTreeMap;

use refit_run::{Calls, OPENING};

use crate::format::grouped;

/// Without those that only show how a file was opened.
pub fn syncs(calls: &BTreeMap<String, Calls>) -> impl Iterator<Item = (&str, &Calls)> {
    let syncs = calls
        .iter()
        .filter(|(name, calls)| !OPENING.contains(&name.as_str()) && calls.seen > 0);
    syncs.map(|(name, calls)| (name.as_str(), calls))
}

/// One field of all of them.
pub fn sum(calls: &BTreeMap<String, Calls>, field: fn(&Calls) -> u64) -> u64 {
    syncs(calls)
        .map(|(_, calls)| field(calls))
        .fold(0, u64::saturating_add)
}

/// For [`by_call`]: every kind of call.
pub const ALL: usize = usize::MAX;

/// `fdatasync 8,000 · fsync 12`: at most so many, the most first.
pub fn by_call(calls: &BTreeMap<String, Calls>, field: fn(&Calls) -> u64, most: usize) -> String {
    let parts = syncs(calls).map(|(name, calls)| (field(calls), name));
    let mut parts: Vec<(u64, &str)> = parts.filter(|(n, _)| *n > 0).collect();
    parts.sort_by(|a, b| b.cmp(a));
    let parts = parts.iter().take(most);
    let texts: Vec<String> = parts
        .map(|(n, name)| format!("{name} {}", grouped(n)))
        .collect();
    texts.join(" · ")
}
