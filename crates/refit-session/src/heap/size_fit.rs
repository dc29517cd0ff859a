//! What live blocks would take with each allocator, by the rounding of its size classes alone.

use super::report::{SizeClass, SizeFit};

/// Above this, allocators round to pages, of which only those that are touched are resident.
pub const LARGEST: u64 = 32 << 10;

/// What a block takes of which so many bytes were requested.
type Rounding = fn(u64) -> u64;

/// All allocators whose rounding is known.
const ALLOCATORS: [(&str, Rounding); 4] = [
    ("glibc", glibc),
    ("jemalloc", four_for_each_doubling),
    ("mimalloc", four_for_each_doubling),
    ("tcmalloc", tcmalloc),
];

/// Blocks by requested size, with each allocator. Exact up to 512 bytes, where the classes have steps of 8, as all
/// allocators' have or multiples of that. Above it, the blocks of a class are taken to be of their mean size.
#[must_use]
pub fn size_fit(classes: &[SizeClass]) -> Vec<SizeFit> {
    let small = |class: &&SizeClass| class.up_to_bytes.is_some_and(|most| most <= LARGEST);
    let small: Vec<&SizeClass> = classes.iter().filter(small).collect();
    let fit = |(allocator, rounded): (&str, Rounding)| {
        let bytes = small.iter().map(|class| {
            let live = &class.live;
            let mean = live.requested_bytes.div_ceil(live.blocks.max(1));
            live.blocks.saturating_mul(rounded(mean))
        });
        SizeFit {
            allocator: allocator.to_owned(),
            bytes: crate::sum(bytes),
        }
    };
    ALLOCATORS.into_iter().map(fit).collect()
}

/// A chunk: the block and 8 bytes of header, in steps of 16, and 32 at least (malloc/malloc.c, `request2size`).
fn glibc(requested: u64) -> u64 {
    (requested + 8).next_multiple_of(16).max(32)
}

/// 8, then steps of 16 up to 128, then four for each doubling (jemalloc(3), "Implementation notes"; mimalloc 2.0 has
/// the same up to 128 KiB, by malloc_usable_size of each size).
fn four_for_each_doubling(requested: u64) -> u64 {
    match requested {
        0..=8 => 8,
        9..=128 => requested.next_multiple_of(16),
        _ => requested.next_multiple_of(requested.next_power_of_two() / 8),
    }
}

/// Steps of 16 up to 256, then of the sizes that a span divides into with little left over (gperftools 2.10, by
/// malloc_usable_size of each size).
fn tcmalloc(requested: u64) -> u64 {
    const ABOVE_256: [u64; 41] = [
        288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408,
        1536, 1792, 2048, 2304, 2560, 2816, 3072, 3328, 4096, 4608, 5120, 6144, 6656, 8192, 9216,
        10_240, 12_288, 13_312, 16_384, 20_480, 24_576, 26_624, 32_768, 40_960,
    ];
    match requested {
        0..=8 => 8,
        9..=256 => requested.next_multiple_of(16),
        _ => {
            let class = ABOVE_256.iter().find(|class| **class >= requested);
            class.copied().unwrap_or(requested)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::HeapSize;

    #[test]
    fn six_bytes_take_four_times_as_much_with_glibc() {
        let class = |above_bytes, up_to_bytes, requested_bytes, blocks| SizeClass {
            above_bytes,
            up_to_bytes,
            allocations: blocks,
            live: HeapSize {
                requested_bytes,
                usable_bytes: 0,
                blocks,
            },
        };
        let small = class(0, Some(8), 6000, 1000);
        let bytes = |classes: &[SizeClass]| -> Vec<u64> {
            size_fit(classes).iter().map(|fit| fit.bytes).collect()
        };
        assert_eq!(bytes(&[small]), [32_000, 8000, 8000, 8000]);
        // Of no size, of the largest, and of too large a size.
        let none = class(0, Some(8), 0, 2);
        let largest = class(28_672, Some(32_768), 32_768, 1);
        let larger = class(32_768, Some(40_960), 40_000, 1);
        assert_eq!(bytes(&[none, larger]), [64, 16, 16, 16]);
        assert_eq!(bytes(&[largest]), [32_784, 32_768, 32_768, 32_768]);
        assert_eq!(bytes(&[class(40_960, None, 1 << 40, 1)]), [0; 4]);
        // The means of 129 and 130 bytes are 130: the next class is 160.
        assert_eq!(
            bytes(&[class(128, Some(136), 259, 2)]),
            [288, 320, 320, 288]
        );
    }
}
