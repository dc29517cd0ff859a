//! Which file takes a name from which, and what lies in a circle there.

use std::collections::{BTreeMap, BTreeSet};

/// File → the files that it takes names from, and one of the names.
pub type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The groups of files that reach one another, each in the order of their names.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = arrows
        .keys()
        .map(|file| (file, reach(arrows, file)))
        .collect();
    let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
    for (file, reach) in &reached {
        if reach.contains(file) {
            let back = |other: &&&String| {
                reached
                    .get(*other)
                    .is_some_and(|reach| reach.contains(file))
            };
            circles.insert(
                reach
                    .iter()
                    .filter(back)
                    .map(|other| (*other).clone())
                    .collect(),
            );
        }
    }
    circles.into_iter().collect()
}

fn reach<'a>(arrows: &'a Arrows, start: &String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&String> = arrows
        .get(start)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .collect();
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(arrows.get(file).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}

/// Its files, and what each takes from another.
pub fn describe(circle: &[String], arrows: &Arrows) -> String {
    let inside = circle.iter().flat_map(|file| {
        let taken = arrows.get(file).into_iter().flatten();
        let taken = taken.filter(|(other, _)| circle.contains(other));
        taken.map(move |(other, name)| format!("\n    {file} takes {name} from {other}"))
    });
    format!("{}{}", circle.join(", "), inside.collect::<String>())
}
