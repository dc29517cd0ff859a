//! The states of a mode, counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::mode::{Harm, Mode, State};

/// The counts. Images are counted once each, however many cuts left
/// them: those tell nothing new.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cuts.
    pub cuts: usize,
    /// Cuts with pending writes.
    pub with_pending: usize,
    /// Different images.
    pub images: usize,
    /// How many of them are bad at any of their cuts.
    pub bad_images: usize,
    /// Images with each harm.
    pub harms: BTreeMap<Harm, usize>,
    /// The most that one cut lost, and of how many.
    pub worst: (usize, usize),
    /// Name of the state with the worst harm that lost most.
    pub worst_state: Option<String>,
    /// Age of the oldest loss.
    pub oldest_ns: Option<u64>,
}

impl Mode {
    /// Counts.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut images: HashMap<&str, BTreeSet<Harm>> = HashMap::new();
        let mut tally = Tally {
            cuts: self.states.len(),
            ..Tally::default()
        };
        let mut worst = None;
        for state in &self.states {
            let loss = &state.loss;
            let harms = state.harms();
            let rank = (harms.iter().max().copied(), loss.lost);
            if rank.0.is_some() && worst.is_none_or(|(_, old)| rank > old) {
                worst = Some((state, rank));
            }
            images.entry(&state.image).or_default().extend(harms);
            tally.with_pending += usize::from(state.pending > 0);
            tally.oldest_ns = tally.oldest_ns.max(loss.oldest_ns);
            if loss.lost > tally.worst.0 || tally.worst.1 == 0 {
                tally.worst = (loss.lost, loss.acknowledged);
            }
        }
        tally.images = images.len();
        for harms in images.into_values() {
            tally.bad_images += usize::from(!harms.is_empty());
            for harm in harms {
                *tally.harms.entry(harm).or_default() += 1;
            }
        }
        tally.worst_state = worst.map(|(state, _): (&State, _)| state.name.clone());
        tally
    }
}

#[cfg(test)]
mod tests {
    use crate::mode::samples::{mode, state};
    use crate::mode::{Harm, Role};

    #[test]
    fn an_image_counts_once() {
        let states = vec![
            state("a", 0, false),
            state("a", 2, false),
            state("b", 3, true),
        ];
        let tally = mode(Role::Candidate, states).tally();
        assert_eq!((tally.cuts, tally.images, tally.bad_images), (3, 2, 2));
        assert_eq!(tally.harms, [(Harm::Lost, 2), (Harm::Hole, 1)].into());
        assert_eq!((tally.worst, tally.oldest_ns), ((3, 10), Some(3)));
        assert_eq!(tally.worst_state.as_deref(), Some("c1-none-3"));
    }
}
