//! Which part of a program's memory grows with its work, and what that is called.
//!
//! First the whole has to grow; then each part is asked, and those that grow are named by how much of the growth is
//! theirs. So at most one program of twenty that does not grow is told that it does, however many parts it has. What
//! is live, where it is counted, is asked as well when the whole does not grow: a leak may hide in memory that an
//! allocator had kept. It is asked at half the error then, and so is the whole.

use crate::growth::{Growth, GrowthError, Observation, Trend, growth};

/// A part of a program's memory. Together they make up the whole: what is counted in one is in no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Bytes that the program asked for and has not freed. Counted by a shim.
    Live,
    /// What the allocator gave beyond what was asked for. Counted by a shim.
    Internal,
    /// Free bytes on pages that also hold live ones. Counted by a shim.
    External,
    /// Pages without a live byte that the allocator keeps. Counted by a shim.
    Retained,
    /// The heap that brk(2) moves, where nothing tells what in it is live.
    Heap,
    /// Private memory without a file, outside the heap: other allocators, further arenas, mmap(2) itself.
    Anonymous,
    /// Stacks of threads.
    Stacks,
    /// Pages of files that are mapped.
    File,
    /// Memory shared without a file, and private copies of a file's pages.
    Shared,
    /// Pages that a fork left shared and that were written since.
    Copied,
    /// Parts of huge pages that nothing ever touched.
    Untouched,
}

/// What was found of a program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryVerdict {
    /// Nothing grows: the whole interval is smaller than what matters.
    None,
    /// This part grows most.
    Grows(Part),
    /// It fills up, or is still warming up.
    Settles,
    /// It cannot be told yet.
    Unclear,
}

/// One part that grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrowingPart {
    /// Which.
    pub part: Part,
    /// What was found.
    pub growth: Growth,
    /// Its slope as a part of the sum of the slopes of all parts that grow.
    pub share: f64,
}

/// The answer with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryGrowth {
    /// The word.
    pub verdict: MemoryVerdict,
    /// The whole.
    pub whole: Growth,
    /// The parts that grow, the one with the steepest slope first.
    pub parts: Vec<GrowingPart>,
}

/// The parts at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryPoint {
    /// Operations done so far.
    pub operations: f64,
    /// Bytes of each part; one that is not named was not measured.
    pub parts: Vec<(Part, f64)>,
}

/// Two-sided error of the whole answer.
const ALPHA: f64 = 0.05;

/// Judges memory against operations. `least_bytes` is the smallest growth over what is looked at that matters.
///
/// # Errors
/// [`GrowthError`].
pub fn memory_growth(
    points: &[MemoryPoint],
    least_bytes: f64,
) -> Result<MemoryGrowth, GrowthError> {
    let series = |value: &dyn Fn(&MemoryPoint) -> f64| -> Vec<Observation> {
        let one = |point: &MemoryPoint| Observation {
            operations: point.operations,
            value: value(point),
        };
        points.iter().map(one).collect()
    };
    let of = |part: Part| series(&|point| bytes(point, part).unwrap_or(0.0));
    let measured: Vec<Part> = points
        .first()
        .map(|point| point.parts.iter().map(|(part, _)| *part).collect())
        .unwrap_or_default();
    let has_live = measured.contains(&Part::Live);
    let alpha = if has_live { ALPHA / 2.0 } else { ALPHA };
    let whole = growth(
        &series(&|point| point.parts.iter().map(|(_, bytes)| bytes).sum()),
        alpha,
        least_bytes,
    )?;
    let mut parts = Vec::new();
    for part in measured {
        let found = growth(&of(part), alpha, least_bytes)?;
        let is_asked = whole.trend == Trend::Grows || part == Part::Live;
        if is_asked && found.trend == Trend::Grows {
            parts.push(GrowingPart {
                part,
                growth: found,
                share: 0.0,
            });
        }
    }
    let all: f64 = parts.iter().map(|part| part.growth.slope).sum();
    parts
        .iter_mut()
        .for_each(|part| part.share = part.growth.slope / all);
    parts.sort_by(|a, b| b.growth.slope.total_cmp(&a.growth.slope));
    let verdict = match (parts.first(), whole.trend) {
        (Some(first), _) => MemoryVerdict::Grows(first.part),
        (None, Trend::Level | Trend::Falls | Trend::Steps) => MemoryVerdict::None,
        (None, Trend::Settles) => MemoryVerdict::Settles,
        (None, Trend::Grows | Trend::Unclear) => MemoryVerdict::Unclear,
    };
    Ok(MemoryGrowth {
        verdict,
        whole,
        parts,
    })
}

fn bytes(point: &MemoryPoint, part: Part) -> Option<f64> {
    let mut parts = point.parts.iter();
    parts
        .find(|(other, _)| *other == part)
        .map(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const MIB: f64 = 1_048_576.0;

    /// Parts at 20 MiB each with noise of 64 KiB, that grow by so much over all samples.
    fn points(rises: &[(Part, f64)], seed: u64) -> Vec<MemoryPoint> {
        let mut rng = Rng::new(seed);
        let mut noise = || (rng.unit() - 0.5) * 131_072.0;
        let point = |at: u32| MemoryPoint {
            operations: f64::from(at) * 3.0,
            parts: rises
                .iter()
                .map(|(part, rise)| (*part, 20.0 * MIB + rise * f64::from(at) / 90.0 + noise()))
                .collect(),
        };
        (0..90).map(point).collect()
    }

    #[test]
    fn the_part_that_grows_most_gives_the_verdict() {
        let rises = [
            (Part::Heap, 0.0),
            (Part::Stacks, 12.0 * MIB),
            (Part::File, 4.0 * MIB),
        ];
        let found = memory_growth(&points(&rises, 1), MIB).expect("enough");
        assert_eq!(found.verdict, MemoryVerdict::Grows(Part::Stacks));
        let named: Vec<(Part, f64)> = found
            .parts
            .iter()
            .map(|one| (one.part, (one.share * 20.0).round() / 20.0))
            .collect();
        assert_eq!(named, [(Part::Stacks, 0.75), (Part::File, 0.25)]);
    }

    #[test]
    fn each_part_can_be_what_grows_and_nothing_is_without_growth() {
        for part in [
            Part::Live,
            Part::Internal,
            Part::External,
            Part::Retained,
            Part::Heap,
            Part::Anonymous,
            Part::Stacks,
            Part::File,
            Part::Shared,
            Part::Copied,
            Part::Untouched,
        ] {
            let grows = MemoryVerdict::Grows(part);
            for (rise, expected) in [(16.0 * MIB, grows), (0.0, MemoryVerdict::None)] {
                let beside = if part == Part::Shared {
                    Part::Heap
                } else {
                    Part::Shared
                };
                let found =
                    memory_growth(&points(&[(beside, 0.0), (part, rise)], 2), MIB).expect("enough");
                assert_eq!(found.verdict, expected, "{part:?} by {rise}");
            }
        }
    }

    #[test]
    fn a_leak_in_what_the_allocator_had_kept_is_found() {
        let rises = [(Part::Live, 16.0 * MIB), (Part::Retained, -16.0 * MIB)];
        let found = memory_growth(&points(&rises, 3), MIB).expect("enough");
        assert_eq!(found.whole.trend, Trend::Level);
        assert_eq!(found.verdict, MemoryVerdict::Grows(Part::Live));
        let rises = [(Part::Heap, 16.0 * MIB), (Part::Anonymous, -16.0 * MIB)];
        let found = memory_growth(&points(&rises, 3), MIB).expect("enough");
        assert_eq!(
            (found.verdict, found.parts),
            (MemoryVerdict::None, Vec::new())
        );
    }

    #[test]
    fn what_has_no_parts_or_too_few_samples_is_refused() {
        assert_eq!(memory_growth(&[], 1.0), Err(GrowthError::TooFewSamples(0)));
        let few = points(&[(Part::Heap, MIB)], 4);
        assert!(memory_growth(&few[..20], 1.0).is_err());
    }
}
