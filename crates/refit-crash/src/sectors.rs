//! Where each sector of a disk has its content from, as runs: a discard of the
//! whole disk is one of them.

use std::collections::BTreeMap;

/// The index of the entry that was written there; `None` reads as zeroes.
pub type Source = Option<u32>;

/// Runs of sectors with one source each. A sector that no run covers has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sectors {
    /// By the first sector: the sector after the last, and the source.
    runs: BTreeMap<u64, (u64, Source)>,
}

/// A sector and those after it that share its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// `None` where nothing covers the sector.
    pub source: Option<Source>,
    /// The first sector to which this no longer applies.
    pub end: u64,
}

impl Sectors {
    /// From `first` up to `end`, which is not included, the source is this one.
    pub fn set(&mut self, first: u64, end: u64, source: Source) {
        if first >= end {
            return;
        }
        let before = self.runs.range(..first).next_back();
        if let Some((start, (stop, old))) = before.map(|(start, run)| (*start, *run))
            && stop > first
        {
            self.runs.insert(start, (first, old));
            if stop > end {
                self.runs.insert(end, (stop, old));
            }
        }
        while let Some((start, (stop, old))) = self.first_within(first, end) {
            self.runs.remove(&start);
            if stop > end {
                self.runs.insert(end, (stop, old));
            }
        }
        self.runs.insert(first, (end, source));
    }

    fn first_within(&self, first: u64, end: u64) -> Option<(u64, (u64, Source))> {
        let (start, run) = self.runs.range(first..end).next()?;
        Some((*start, *run))
    }

    /// What is known of a sector.
    #[must_use]
    pub fn at(&self, sector: u64) -> Run {
        if let Some((_, (end, source))) = self.runs.range(..=sector).next_back()
            && *end > sector
        {
            return Run {
                source: Some(*source),
                end: *end,
            };
        }
        let next = self.runs.range(sector..).next();
        Run {
            source: None,
            end: next.map_or(u64::MAX, |(start, _)| *start),
        }
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// No sector is covered.
    pub fn clear(&mut self) {
        self.runs.clear();
    }

    /// Every covered sector.
    #[cfg(test)]
    pub fn each(&self) -> impl Iterator<Item = (u64, Source)> + '_ {
        let runs = self.runs.iter();
        runs.flat_map(|(first, (end, source))| (*first..*end).map(|sector| (sector, *source)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::image::Random;

    #[test]
    fn runs_are_what_single_sectors_would_be() {
        let mut random = Random::new(1);
        for _ in 0..300 {
            let mut sectors = Sectors::default();
            let mut model: HashMap<u64, Source> = HashMap::new();
            for _ in 0..random.below(40) {
                let first = random.below(40);
                let end = first + random.below(20);
                let source = u32::try_from(random.below(9)).ok().filter(|one| *one > 0);
                sectors.set(first, end, source);
                model.extend((first..end).map(|sector| (sector, source)));
            }
            assert_eq!(sectors.each().collect::<HashMap<_, _>>(), model);
            for sector in 0..64 {
                let run = sectors.at(sector);
                assert!(run.end > sector);
                for same in sector..run.end.min(64) {
                    assert_eq!(run.source, model.get(&same).copied());
                }
            }
        }
    }

    #[test]
    fn a_large_discard_is_one_run() {
        let mut sectors = Sectors::default();
        sectors.set(0, 1 << 31, None);
        sectors.set(8, 16, Some(3));
        assert_eq!(sectors.runs(), 3);
        assert_eq!(sectors.at(1 << 30).source, Some(None));
        assert_eq!(
            sectors.at(9),
            Run {
                source: Some(Some(3)),
                end: 16
            }
        );
    }
}
