//! What the program acknowledged before the cut, and what of it was lost.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

/// One acknowledgement. Its time is taken by the receiver, later than the program
/// gave it, so that no loss is reported that was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    /// What has to be there; or, after a `-`, what has to be gone.
    pub id: String,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub at: u64,
}

/// What a check found in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Whole items.
    pub ids: HashSet<String>,
    /// Items of which a part is there.
    pub damaged: HashSet<String>,
    /// Why the image as a whole is bad: recovery failed, or the file that holds
    /// everything cannot be read.
    pub broken: Option<String>,
}

/// What a cut took of what was acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loss {
    /// Acknowledgements before the cut.
    pub acknowledged: usize,
    /// Acknowledged items that are not there.
    pub lost: usize,
    /// How long before the cut the oldest lost one was acknowledged, nanoseconds.
    pub oldest_ns: Option<u64>,
    /// Something was kept that was acknowledged later than something lost.
    pub is_hole: bool,
    /// Lost items of which a part is there.
    pub damaged: usize,
    /// Items that were acknowledged to be gone, and are there.
    pub resurrected: usize,
}

impl Loss {
    /// Compares what was acknowledged until `time` with what was found.
    #[must_use]
    pub fn of(acknowledgements: &[Acknowledgement], time: u64, found: &Found) -> Loss {
        // The last acknowledgement of each item counts.
        let mut last: HashMap<&str, (bool, u64)> = HashMap::new();
        let mut acknowledged = 0;
        for one in acknowledgements.iter().filter(|one| one.at <= time) {
            acknowledged += 1;
            let (id, is_there) = match one.id.strip_prefix('-') {
                Some(id) => (id, false),
                None => (one.id.as_str(), true),
            };
            last.insert(id, (is_there, one.at));
        }
        let mut loss = Loss {
            acknowledged,
            ..Loss::default()
        };
        let mut oldest: Option<u64> = None;
        let mut newest_kept = 0;
        for (id, (is_there, at)) in last {
            let is_found = found.ids.contains(id);
            match (is_there, is_found) {
                (true, true) => newest_kept = newest_kept.max(at),
                (true, false) => {
                    loss.lost += 1;
                    loss.damaged += usize::from(found.damaged.contains(id));
                    oldest = Some(oldest.map_or(at, |old| old.min(at)));
                }
                (false, true) => loss.resurrected += 1,
                (false, false) => {}
            }
        }
        loss.oldest_ns = oldest.map(|at| time - at);
        loss.is_hole = oldest.is_some_and(|at| newest_kept > at);
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(ids: &[&str]) -> Vec<Acknowledgement> {
        let one = |(at, id): (u64, &&str)| Acknowledgement {
            id: (*id).to_owned(),
            at,
        };
        (10..).step_by(10).zip(ids).map(one).collect()
    }

    fn found(ids: &[&str]) -> Found {
        Found {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            ..Found::default()
        }
    }

    #[test]
    fn what_was_acknowledged_after_the_cut_may_be_missing() {
        let loss = Loss::of(&acknowledged(&["1", "2", "3"]), 20, &found(&["1", "2"]));
        assert_eq!(loss.acknowledged, 2);
        assert_eq!(loss.lost, 0);
        assert_eq!(loss.oldest_ns, None);
    }

    #[test]
    fn the_tail_is_lost() {
        let loss = Loss::of(&acknowledged(&["1", "2", "3"]), 35, &found(&["1"]));
        assert_eq!((loss.lost, loss.oldest_ns), (2, Some(15)));
        assert!(!loss.is_hole);
    }

    #[test]
    fn an_old_one_is_lost_and_a_newer_one_is_there() {
        let loss = Loss::of(&acknowledged(&["1", "2", "3"]), 30, &found(&["1", "3"]));
        assert_eq!((loss.lost, loss.oldest_ns), (1, Some(10)));
        assert!(loss.is_hole);
    }

    #[test]
    fn what_was_removed_may_not_come_back() {
        let all = acknowledged(&["1", "-1", "2", "-2", "2"]);
        let loss = Loss::of(&all, 100, &found(&["1", "2"]));
        assert_eq!((loss.resurrected, loss.lost), (1, 0));
        let loss = Loss::of(&all, 20, &found(&[]));
        assert_eq!((loss.resurrected, loss.lost), (0, 0));
    }

    #[test]
    fn a_part_is_a_loss_with_damage() {
        let mut half = found(&["1"]);
        half.damaged.insert("2".to_owned());
        half.damaged.insert("never acknowledged".to_owned());
        let loss = Loss::of(&acknowledged(&["1", "2"]), 30, &half);
        assert_eq!((loss.lost, loss.damaged), (1, 1));
    }
}
