//! When the power is cut, and which of the pending writes are there.

use std::collections::HashSet;

use crate::image::{Cut, LEGAL, LIES, LYING_BITS, Random};

use crate::record::{Kind, Record};

/// Of ten cuts, how many are just before a flush is answered (where most is
/// pending), just after an acknowledgement, just after a write, and anywhere.
const SHARES: [(Near, usize); 4] = [
    (Near::Flush, 4),
    (Near::Acknowledgement, 3),
    (Near::Write, 2),
    (Near::Anywhere, 1),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Near {
    Flush,
    Acknowledgement,
    Write,
    Anywhere,
}

/// `count` cuts between `from` and `to` (CLOCK_MONOTONIC, nanoseconds), in the
/// order of their times. `acknowledged` are the times of the acknowledgements.
#[must_use]
pub fn choose(
    record: &Record,
    acknowledged: &[u64],
    (from, to): (u64, u64),
    count: usize,
    seed: u64,
) -> Vec<Cut> {
    let mut random = Random::new(seed);
    let moments = |near| moments(record, acknowledged, (from, to), near);
    let all: Vec<(Near, Vec<u64>)> = SHARES
        .iter()
        .flat_map(|(near, share)| (0..*share).map(|_| (*near, moments(*near))))
        .collect();
    let first = record.entries().first().map_or(0, |entry| entry.start);
    let mut seen = HashSet::new();
    let mut cuts: Vec<Cut> = (0..count)
        .map(|index| {
            let (_, times) = &all[index % all.len()];
            let mut time = draw(times, (from, to), &mut random);
            // Another time, if there is one: the same time tells little more.
            for _ in 0..8 {
                if seen.insert(time) {
                    break;
                }
                time = draw(times, (from, to), &mut random);
            }
            Cut {
                at: time.saturating_sub(first),
                // 5 choices and 10 places in turn: each choice meets each place.
                choice: LEGAL[(index + index / all.len()) % LEGAL.len()],
                seed: u32::try_from(random.below(1 << 16)).unwrap_or(0),
            }
        })
        .collect();
    cuts.sort_by_key(|cut| (cut.at, cut.seed));
    cuts
}

/// The control's disk ignores its flushes for at most this long.
const LYING_MS: u64 = 1000;

/// The same times on a disk that ignored its flushes, but none before `from`
/// (nanoseconds after the record's first entry).
#[must_use]
pub fn lying(cuts: &[Cut], from: u64, count: usize) -> Vec<Cut> {
    let step = cuts.len().div_ceil(count.max(1)).max(1);
    // From the end: later there is more to lose.
    let chosen = cuts.iter().rev().step_by(step);
    let mut lying: Vec<Cut> = chosen
        .zip(LIES.into_iter().cycle())
        .map(|(cut, choice)| {
            let lied_ms = (cut.at.saturating_sub(from) / 1_000_000).min(LYING_MS);
            Cut {
                choice,
                seed: cut.seed << LYING_BITS | u32::try_from(lied_ms).unwrap_or(0),
                ..*cut
            }
        })
        .collect();
    lying.reverse();
    lying
}

fn draw(times: &[u64], (from, to): (u64, u64), random: &mut Random) -> u64 {
    if times.is_empty() {
        from + random.below(to.saturating_sub(from) + 1)
    } else {
        let index = random.below(times.len() as u64);
        times[usize::try_from(index).unwrap_or(0)]
    }
}

fn moments(record: &Record, acknowledged: &[u64], (from, to): (u64, u64), near: Near) -> Vec<u64> {
    let of_kind = |kind, before| {
        let entries = record.entries().iter();
        let ends = entries
            .filter(move |entry| entry.kind == kind)
            .map(move |entry| entry.end.saturating_sub(before));
        ends.filter(|time| (from..=to).contains(time)).collect()
    };
    match near {
        Near::Flush => of_kind(Kind::Flush, 1),
        Near::Write => of_kind(Kind::Write, 0),
        Near::Acknowledgement => {
            let times = acknowledged.iter().map(|time| time + 1);
            times.filter(|time| (from..=to).contains(time)).collect()
        }
        Near::Anywhere => Vec::new(),
    }
}
