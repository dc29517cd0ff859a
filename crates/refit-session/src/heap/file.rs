//! The heap file of one exec'ed image.

use std::fs::File;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::{FileExt, MetadataExt};

use super::layout::{
    CClass, CEnded, CHeader, CLASSES, CProcess, CRegion, CSamples, CSize, CSlot, CSmallSizes,
    FINE_BYTES, FINE_CLASSES, LARGEST_PAGE, LIMITED, MAGIC, NO_TABLE, OLD_KERNEL, OTHER_MALLOC,
    PAGE, PROCESSES, REGIONS, SLOTS, SMALL, SMALL_FREE,
};
use super::report::{HeapSize, SizeClass, WithoutTable};
use crate::layout::{field_size, get_text, get_u32, get_u64};

/// Size of a heap file in bytes.
pub(crate) const HEAP_SIZE: u64 = (SMALL_AT + PROCESSES * size_of::<CSmallSizes>()) as u64;

/// Where the samples begin: where a page of any kernel does, ...
pub(crate) const SAMPLES_AT: usize = (PAGE + PROCESSES * BLOCK).next_multiple_of(LARGEST_PAGE);

/// ... and so do the small sizes.
const SMALL_AT: usize = (SAMPLES_AT + size_of::<CSamples>()).next_multiple_of(LARGEST_PAGE);

/// A process and its slots.
const BLOCK: usize = PAGE * (1 + SLOTS);

/// Memory of the library's own in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first address.
    pub at: u64,
    /// Bytes of address space.
    pub size: u64,
}

/// What one process counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapProcess {
    /// As the process saw it.
    pub pid: u32,
    /// It was forked from another process of the image.
    pub is_forked: bool,
    /// Allocations that it made.
    pub allocations: u64,
    /// Blocks that it freed.
    pub frees: u64,
    /// Bytes that it ever requested.
    pub allocated_bytes: u64,
    /// What is live now.
    pub live: HeapSize,
    /// What was live when the most bytes were usable.
    pub peak: HeapSize,
    /// Frees of blocks that were never counted.
    pub unknown_frees: u64,
    /// Blocks that could not be counted.
    pub untracked: u64,
    /// Blocks that were freed by a function that is not seen.
    pub vanished: u64,
    /// Live blocks by requested size, smallest first; empty classes are left out. Empty without a table.
    pub classes: Vec<SizeClass>,
    /// There is no table of its live blocks.
    pub without_table: Option<WithoutTable>,
    /// Memory of the library's own.
    pub regions: Vec<Region>,
}

/// What the processes of one image counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapImage {
    /// See [`super::layout`].
    pub flags: u32,
    /// Forked processes that found no room.
    pub lost: u64,
    /// Device (`major << 32 | minor`) and inode of the file: each of its processes maps it.
    pub file: (u64, u64),
    /// Where each of its processes has the table of its live blocks: see [`super::each_noted`].
    pub shadow: u64,
    /// Path of the executable, empty when unknown.
    pub executable: String,
    /// The object that serves malloc.
    pub malloc_object: String,
    /// Sums of processes whose room another one has.
    pub ended: Ended,
    /// The others, that which was exec'ed first.
    pub processes: Vec<HeapProcess>,
}

/// Processes whose room another one has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// How many.
    pub processes: u64,
    /// Allocations that they made.
    pub allocations: u64,
    /// Blocks that they freed.
    pub frees: u64,
    /// Bytes that they requested.
    pub allocated_bytes: u64,
}

fn size_at(bytes: &[u8], at: usize) -> HeapSize {
    let field = |offset| get_u64(bytes, at + offset);
    HeapSize {
        requested_bytes: positive(field(offset_of!(CSize, requested))),
        usable_bytes: positive(field(offset_of!(CSize, usable))),
        blocks: positive(field(offset_of!(CSize, blocks))),
    }
}

/// Sums of signed changes, modulo 2^64: what is below 0 was damaged, or is another
/// thread's free that was counted before the allocation.
fn positive(sum: u64) -> u64 {
    u64::try_from(sum.cast_signed()).unwrap_or(0)
}

/// The requests of a class: more than the first, up to the second; 0 to 8 in the
/// first class, and without end in the last.
fn bounds(class: usize) -> (u64, Option<u64>) {
    let end = |class: usize| {
        if class < FINE_CLASSES {
            8 * (class as u64 + 1)
        } else {
            let coarse = class - FINE_CLASSES;
            let quarter = FINE_BYTES << (coarse / 4) >> 2;
            quarter * (5 + (coarse % 4) as u64)
        }
    };
    let from = class.checked_sub(1).map_or(0, end);
    (from, (class + 1 < CLASSES).then(|| end(class)))
}

/// The class of a small request.
fn class_of(bytes: usize) -> usize {
    (0..CLASSES)
        .find(|class| bounds(*class).1.is_none_or(|end| bytes as u64 <= end))
        .unwrap_or(CLASSES - 1)
}

impl HeapImage {
    /// Whether its processes count.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.flags & (OTHER_MALLOC | LIMITED | OLD_KERNEL) == 0
    }

    /// Reads a heap file. Nothing in it is trusted: the program, or another user with
    /// a file of his own, may have written anything.
    ///
    /// Returns `None` when it is not one, or its constructor has not finished.
    #[must_use]
    pub fn read(file: &File) -> Option<HeapImage> {
        let header = page(file, 0)?;
        if get_u64(&header, offset_of!(CHeader, magic)) != MAGIC {
            return None;
        }
        let text = |at, size| get_text(&header, at, size);
        let ended = offset_of!(CHeader, ended);
        let ended = |field| get_u64(&header, ended + field);
        let forks = get_u64(&header, offset_of!(CHeader, forked));
        // The room is searched from its beginning: beyond that many there is none.
        let most = usize::try_from(forks)
            .map_or(PROCESSES, |forks| PROCESSES.min(forks.saturating_add(1)));
        Some(HeapImage {
            flags: get_u32(&header, offset_of!(CHeader, flags)),
            lost: get_u32(&header, offset_of!(CHeader, lost)).into(),
            file: identity(file)?,
            shadow: get_u64(&header, offset_of!(CHeader, shadow)),
            executable: text(
                offset_of!(CHeader, executable),
                field_size(|header: &CHeader| &header.executable),
            ),
            malloc_object: text(
                offset_of!(CHeader, malloc_object),
                field_size(|header: &CHeader| &header.malloc_object),
            ),
            ended: Ended {
                processes: ended(offset_of!(CEnded, processes)),
                allocations: ended(offset_of!(CEnded, allocations)),
                frees: ended(offset_of!(CEnded, frees)),
                allocated_bytes: ended(offset_of!(CEnded, allocated)),
            },
            processes: (0..most)
                .filter_map(|index| {
                    let flags = get_u32(&header, offset_of!(CHeader, flags));
                    HeapProcess::read(file, index, flags & NO_TABLE == 0)
                })
                .collect(),
        })
    }
}

/// The block of the process of this pid.
pub(crate) fn block_of(file: &File, pid: u32) -> Option<usize> {
    (0..PROCESSES).find(|index| {
        let mut found = [0; 4];
        let at = block_at(*index) + offset_of!(CProcess, pid) as u64;
        file.read_exact_at(&mut found, at).is_ok() && u32::from_ne_bytes(found) == pid
    })
}

pub(crate) fn identity(file: &File) -> Option<(u64, u64)> {
    let meta = file.metadata().ok()?;
    let (major, minor) = (libc::major(meta.dev()), libc::minor(meta.dev()));
    Some(((u64::from(major) << 32) | u64::from(minor), meta.ino()))
}

fn page(file: &File, number: usize) -> Option<[u8; PAGE]> {
    let mut bytes = [0; PAGE];
    file.read_exact_at(&mut bytes, (number * PAGE) as u64)
        .ok()?;
    Some(bytes)
}

/// Where the block of a process begins.
pub(crate) fn block_at(index: usize) -> u64 {
    (PAGE + index * BLOCK) as u64
}

impl HeapProcess {
    fn read(file: &File, index: usize, has_table: bool) -> Option<HeapProcess> {
        let first = 1 + index * (1 + SLOTS);
        let bytes = page(file, first)?;
        let field = |at| get_u64(&bytes, at);
        let pid = get_u32(&bytes, offset_of!(CProcess, pid));
        if pid == 0 {
            return None;
        }
        let used = field(offset_of!(CProcess, slots_used));
        let used = usize::try_from(used).map_or(SLOTS, |used| used.min(SLOTS));
        let regions = (0..REGIONS).map(|i| {
            let at = offset_of!(CProcess, regions) + i * size_of::<CRegion>();
            Region {
                at: field(at + offset_of!(CRegion, at)),
                size: field(at + offset_of!(CRegion, size)),
            }
        });
        let mut process = HeapProcess {
            pid,
            is_forked: get_u32(&bytes, offset_of!(CProcess, forked)) != 0,
            peak: size_at(&bytes, offset_of!(CProcess, peak)),
            unknown_frees: field(offset_of!(CProcess, unknown_frees)),
            untracked: field(offset_of!(CProcess, untracked)),
            vanished: field(offset_of!(CProcess, vanished)),
            regions: regions.filter(|region| region.size > 0).collect(),
            ..HeapProcess::default()
        };
        let mut sums = process.add_slots(file, first + 1, used);
        let small_slots = field(offset_of!(CProcess, small_slots));
        process.add_small(file, index, small_slots, &mut sums);
        for sum in &sums {
            process.allocations = process.allocations.wrapping_add(sum.allocations);
            process.frees = process.frees.wrapping_add(sum.frees);
        }
        let inherited = field(offset_of!(CProcess, inherited));
        process.frees = positive(process.frees.wrapping_add(inherited));
        match has_table {
            true => process.add_classes(&sums),
            false => process.bound(&sums, |class| {
                field(offset_of!(CProcess, most_slack) + class * 8)
            }),
        }
        // What is pending in the threads is not in it.
        if process.peak.usable_bytes < process.live.usable_bytes {
            process.peak = process.live;
        }
        if !has_table {
            process.peak.requested_bytes = 0;
        }
        Some(process)
    }

    /// Sums of what its threads counted, by class.
    fn add_slots(&mut self, file: &File, first: usize, used: usize) -> [Sums; CLASSES] {
        let mut sums = [Sums::default(); CLASSES];
        for slot in (0..used).filter_map(|slot| page(file, first + slot)) {
            let allocated = get_u64(&slot, offset_of!(CSlot, allocated));
            self.allocated_bytes = self.allocated_bytes.wrapping_add(allocated);
            for (class, sum) in sums.iter_mut().enumerate() {
                let at = offset_of!(CSlot, classes) + class * size_of::<CClass>();
                let field = |offset| get_u64(&slot, at + offset);
                for (sum, more) in [
                    (&mut sum.allocations, field(offset_of!(CClass, allocations))),
                    (&mut sum.frees, field(offset_of!(CClass, frees))),
                    (&mut sum.requested, field(offset_of!(CClass, requested))),
                    (&mut sum.usable, field(offset_of!(CClass, usable))),
                ] {
                    *sum = sum.wrapping_add(more);
                }
            }
        }
        sums
    }

    /// What was counted by its exact size, of these slots.
    fn add_small(&mut self, file: &File, index: usize, slots: u64, sums: &mut [Sums; CLASSES]) {
        let at = SMALL_AT + index * size_of::<CSmallSizes>();
        let read = |offset: usize, size: usize| {
            let mut bytes = vec![0; size];
            let at = (at + offset) as u64;
            file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
        };
        let sizes = (slots != 0).then(|| read(0, SMALL * size_of::<u16>()));
        let Some(Some(sizes)) = sizes else {
            return;
        };
        let usable = |n: usize| u16::from_ne_bytes([sizes[2 * n], sizes[2 * n + 1]]).into();
        for slot in (0..SLOTS).filter(|slot| slots >> slot & 1 != 0) {
            let row = SMALL * size_of::<u64>();
            let counts = read(offset_of!(CSmallSizes, counts) + slot * row, row);
            for (n, count) in counts
                .iter()
                .flat_map(|bytes| bytes.chunks_exact(8))
                .enumerate()
            {
                let count = get_u64(count, 0);
                if count == 0 {
                    continue;
                }
                let (allocations, frees) = (count % SMALL_FREE, count / SMALL_FREE);
                let blocks = allocations.wrapping_sub(frees);
                let sum = &mut sums[class_of(n)];
                sum.allocations = sum.allocations.wrapping_add(allocations);
                sum.frees = sum.frees.wrapping_add(frees);
                sum.requested = sum.requested.wrapping_add(blocks.wrapping_mul(n as u64));
                sum.usable = sum.usable.wrapping_add(blocks.wrapping_mul(usable(n)));
                let allocated = allocations * n as u64;
                self.allocated_bytes = self.allocated_bytes.wrapping_add(allocated);
            }
        }
    }

    fn add_classes(&mut self, sums: &[Sums; CLASSES]) {
        for (class, sum) in sums.iter().enumerate() {
            let size = sum.live(positive(sum.requested));
            self.live.add(size);
            if sum.allocations > 0 || size.blocks > 0 {
                let (above_bytes, up_to_bytes) = bounds(class);
                self.classes.push(SizeClass {
                    above_bytes,
                    up_to_bytes,
                    allocations: sum.allocations,
                    live: size,
                });
            }
        }
    }

    /// Without a table: see `struct refit_heap_class`. A forked child did not give out what it inherited: of that only
    /// the largest slack is known.
    fn bound(&mut self, sums: &[Sums; CLASSES], most_slack: impl Fn(usize) -> u64) {
        let (mut least, mut most) = (0_u64, 0_u64);
        for (class, sum) in sums.iter().enumerate() {
            let size = sum.live(0);
            let largest = most_slack(class);
            let of_all = size.blocks.saturating_mul(largest).min(size.usable_bytes);
            let freed = sum.allocations.saturating_sub(size.blocks);
            let (low, likely, high) = match self.is_forked {
                true => (0, of_all / 2, of_all),
                false => {
                    let high = of_all.min(sum.requested);
                    let low = sum.requested.saturating_sub(freed.saturating_mul(largest));
                    let low = low.min(high);
                    let mean = sum.requested as f64 / sum.allocations.max(1) as f64;
                    let likely = (mean * size.blocks as f64) as u64;
                    (low, likely.clamp(low, high), high)
                }
            };
            self.live.add(HeapSize {
                requested_bytes: size.usable_bytes.saturating_sub(likely),
                ..size
            });
            least = least.saturating_add(size.usable_bytes.saturating_sub(high));
            most = most.saturating_add(size.usable_bytes.saturating_sub(low));
        }
        self.without_table = Some(WithoutTable {
            least_requested_bytes: least,
            most_requested_bytes: most,
        });
    }
}

/// What a class of blocks has, modulo 2^64.
#[derive(Clone, Copy, Default)]
struct Sums {
    allocations: u64,
    frees: u64,
    requested: u64,
    usable: u64,
}

impl Sums {
    fn live(&self, requested_bytes: u64) -> HeapSize {
        HeapSize {
            requested_bytes,
            usable_bytes: positive(self.usable),
            blocks: positive(self.allocations.wrapping_sub(self.frees)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_classes_meet_and_double_every_four() {
        assert_eq!(bounds(0), (0, Some(8)));
        assert_eq!(bounds(63), (504, Some(512)));
        assert_eq!(bounds(64), (512, Some(640)));
        assert_eq!(bounds(67), (896, Some(1024)));
        assert_eq!(bounds(68), (1024, Some(1280)));
        assert_eq!(bounds(CLASSES - 1), (20 << 20, None));
        for class in 1..CLASSES {
            assert_eq!(Some(bounds(class).0), bounds(class - 1).1);
        }
    }

    #[test]
    fn a_file_of_random_bytes_never_panics() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut file = tempfile::tempfile().unwrap();
        let pages = 1 + 3 * (1 + SLOTS);
        let bytes: Vec<u8> = (0..pages * PAGE).map(|_| random() as u8).collect();
        file.write_all(&MAGIC.to_ne_bytes()).unwrap();
        file.write_all(&bytes[8..]).unwrap();
        file.set_len(HEAP_SIZE).unwrap();
        let image = HeapImage::read(&file).unwrap();
        assert_eq!(image.processes.len(), 3);
        assert!(!image.executable.chars().any(char::is_control));
        // No count of forks hides those that are there.
        let forked = offset_of!(CHeader, forked) as u64;
        file.write_all_at(&u64::MAX.to_ne_bytes(), forked).unwrap();
        assert_eq!(HeapImage::read(&file).unwrap().processes.len(), 3);
        file.set_len(PAGE as u64).unwrap();
        assert!(HeapImage::read(&file).unwrap().processes.is_empty());
        file.set_len(100).unwrap();
        assert_eq!(HeapImage::read(&file), None);
    }
}
