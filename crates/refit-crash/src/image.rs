//! What a disk may hold after a power cut: pure functions of the record.
//!
//! Let *F* be the last flush that was answered before the cut. Whatever was
//! answered before *F* began is durable. What the disk received after that is
//! *pending*: each part of it may have reached the medium or not, in any order,
//! because a volatile cache that honours flushes may write back in any order.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

use crate::record::{Entry, Kind, Record, SECTOR};
use crate::sectors::Sectors;

/// Which of the pending writes reached the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// None.
    None,
    /// All.
    All,
    /// The first ones in order, the last of them perhaps torn.
    Prefix,
    /// Each one or not.
    Subset,
    /// Each block of each one or not.
    Torn,
    /// The control, which no disk that honours flushes can leave: for as many
    /// milliseconds as the seed says flushes were answered and ignored, and
    /// nothing since then reached the medium.
    Lying,
    /// The same, but each of those writes reached it or not. The seed's lowest
    /// [`LYING_BITS`] bits are the milliseconds, the others are for the draws.
    Scrambled,
}

/// Those that a disk which honours flushes can leave.
pub const LEGAL: [Choice; 5] = [
    Choice::None,
    Choice::All,
    Choice::Prefix,
    Choice::Subset,
    Choice::Torn,
];

/// The controls.
pub const LIES: [Choice; 2] = [Choice::Lying, Choice::Scrambled];
/// Bits of a control's seed that are milliseconds.
pub const LYING_BITS: u32 = 10;

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Choice::None => "none",
            Choice::All => "all",
            Choice::Prefix => "prefix",
            Choice::Subset => "subset",
            Choice::Torn => "torn",
            Choice::Lying => "lying",
            Choice::Scrambled => "scrambled",
        })
    }
}

/// One state of a record after a cut, by name: `c1234567-torn-17` is the cut
/// 1,234,567 ns after the record's first entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// Nanoseconds after the start of the record's first entry.
    pub at: u64,
    /// Which of the pending writes are there.
    pub choice: Choice,
    /// The seed of the choice; [`Choice::Scrambled`] says what it is for a control.
    pub seed: u32,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}-{}-{}", self.at, self.choice, self.seed)
    }
}

impl FromStr for Cut {
    type Err = ();

    fn from_str(text: &str) -> Result<Cut, ()> {
        let mut words = text.strip_prefix('c').ok_or(())?.split('-');
        let mut next = || words.next().ok_or(());
        let (at, choice, seed) = (next()?, next()?, next()?);
        let choices = LEGAL.into_iter().chain(LIES);
        let cut = Cut {
            at: at.parse().map_err(|_| ())?,
            choice: choices
                .into_iter()
                .find(|one| one.to_string() == choice)
                .ok_or(())?,
            seed: seed.parse().map_err(|_| ())?,
        };
        // Only as it is printed: no sign, no leading zero, nothing after it.
        if cut.to_string() == text {
            Ok(cut)
        } else {
            Err(())
        }
    }
}

/// A discard is torn into at most so many blocks: one entry of a few bytes can
/// name the whole disk. A write is a chunk of [`crate::record::CHUNK`] bytes at most.
const MOST_BLOCKS: u64 = 1 << 12;
/// With more runs than these in an image an entry is no longer torn.
const MOST_RUNS: usize = 1 << 22;

/// A disk at a cut, as a difference to what is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The first so many entries are durable.
    pub durable: usize,
    /// How many writes, discards and zeroings were pending.
    pub pending: usize,
    /// Sectors of the pending that are there.
    pub extra: Sectors,
    /// Two images of one record with the same number hold the same, except
    /// where a write repeats what was there before.
    pub identity: u64,
}

/// The entries before the last flush that was answered by `time`, and how many
/// entries had begun by then.
fn borders(entries: &[Entry], time: u64) -> (usize, usize) {
    let submitted = entries.partition_point(|entry| entry.start <= time);
    let flush = entries[..submitted]
        .iter()
        .rposition(|entry| entry.kind == Kind::Flush && entry.end <= time);
    let durable = flush.map_or(0, |flush| {
        entries[..flush].partition_point(|entry| entry.end <= entries[flush].start)
    });
    (durable, submitted)
}

/// The image of a cut. `tear` is the block, in bytes, that the medium writes as
/// a whole.
#[must_use]
pub fn image(record: &Record, cut: Cut, tear: u64) -> Image {
    let entries = record.entries();
    let first = entries.first().map_or(0, |entry| entry.start);
    let time = first.saturating_add(cut.at);
    let (durable, submitted) = match cut.choice {
        Choice::Lying | Choice::Scrambled => {
            let lied_ms = u64::from(cut.seed % (1 << LYING_BITS));
            let (durable, _) = borders(entries, time.saturating_sub(lied_ms * 1_000_000));
            (durable, borders(entries, time).1)
        }
        _ => borders(entries, time),
    };
    let mut image = Image {
        durable,
        ..Image::default()
    };
    let mut identity = DefaultHasher::new();
    durable.hash(&mut identity);
    let pending: Vec<usize> = (durable..submitted)
        .filter(|index| entries[*index].kind != Kind::Flush)
        .collect();
    image.pending = pending.len();
    let mut random = Random::new(cut.seed.into());
    let share = random.unit();
    let kept_in_order = random.below(pending.len() as u64 + 1);
    for (order, index) in (0_u64..).zip(pending) {
        let entry = &entries[index];
        let is_torn = image.extra.runs() < MOST_RUNS;
        let blocks = Blocks::of(entry, if is_torn { tear } else { entry.length });
        let mut keep = |first: u64, end: u64, image: &mut Image| {
            (index, first, end).hash(&mut identity);
            let source = (entry.kind == Kind::Write)
                .then(|| u32::try_from(index).expect("fewer than 2^26 entries"));
            image.extra.set(first, end, source);
        };
        let (first, end) = (entry.sector(), entry.sector() + entry.sectors());
        match cut.choice {
            Choice::None | Choice::Lying => {}
            Choice::All => keep(first, end, &mut image),
            Choice::Prefix if order < kept_in_order => keep(first, end, &mut image),
            Choice::Prefix if order == kept_in_order && entry.kind == Kind::Write => {
                let blocks: Vec<_> = blocks.collect();
                let torn = random.below(blocks.len() as u64);
                for (first, end) in blocks.into_iter().take(usize::try_from(torn).unwrap_or(0)) {
                    keep(first, end, &mut image);
                }
            }
            Choice::Prefix => {}
            Choice::Subset | Choice::Scrambled => {
                if random.unit() < share {
                    keep(first, end, &mut image);
                }
            }
            Choice::Torn => {
                for (first, end) in blocks {
                    if random.unit() < share {
                        keep(first, end, &mut image);
                    }
                }
            }
        }
    }
    image.identity = identity.finish();
    image
}

/// The blocks, as sectors, that an entry covers wholly or in part.
struct Blocks {
    at: u64,
    end: u64,
    sectors: u64,
}

impl Blocks {
    fn of(entry: &Entry, tear: u64) -> Blocks {
        let least = entry.sectors().div_ceil(MOST_BLOCKS).max(1);
        Blocks {
            at: entry.sector(),
            end: entry.sector() + entry.sectors(),
            sectors: least.max(tear / SECTOR).next_power_of_two(),
        }
    }
}

impl Iterator for Blocks {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.at >= self.end {
            return None;
        }
        let next = (self.at / self.sectors + 1) * self.sectors;
        let block = (self.at, next.min(self.end));
        self.at = block.1;
        Some(block)
    }
}

/// Draws that a seed repeats: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The same seed draws the same.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to less than 1.
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits are what a double holds"
    )]
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Less than `end`; 0 when that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The bias is below end / 2^64.
        self.draw().checked_rem(end).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
