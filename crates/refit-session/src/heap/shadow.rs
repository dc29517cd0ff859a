//! The table of live blocks that the heap library keeps in the memory of its process, read from outside: see
//! `heap/shadow.c` and `heap/shadow.h` of refit-preload, whose numbers these are.

const ADDRESS_BITS: u32 = 48;
const LEAF_BITS: u32 = 20;
const MIDDLE_BITS: u32 = 14;
const LONG_FORM: u8 = 0x7f;
const LONG_SAMPLE: u8 = 0x7d;
/// At most 1,024 of a process, and each of less than 128 bytes: they are left out.
const SHORT_SAMPLE: u8 = 0x7e;
const SHORT_FORM: u8 = 0x80;
const LEAF_TAIL: usize = 64;

const TOP_ENTRIES: usize = 1 << (ADDRESS_BITS - LEAF_BITS - MIDDLE_BITS);
const MIDDLE_ENTRIES: usize = 1 << MIDDLE_BITS;
const LEAF_BYTES: usize = 1 << (LEAF_BITS - 3);

/// Bytes of address space that a leaf of the table describes.
pub const LEAF_SPAN: u64 = 1 << LEAF_BITS;

/// What the table tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// Some block of malloc began in the [`LEAF_SPAN`] bytes from here on, now or ever.
    Span(u64),
    /// A live block.
    Block {
        /// Its address.
        at: u64,
        /// Bytes that were requested.
        requested: u64,
        /// Bytes that are usable.
        usable: u64,
    },
}

/// Reads the table at `top`, by ascending address. `read` fills a buffer from an address of the process, with zeros
/// where nothing is. Nothing in the table is trusted: at most `most_spans` spans are read, and a block ends within the
/// address space. The process goes on meanwhile: what it changes may be read or not.
pub fn each_noted(
    top: u64,
    most_spans: u64,
    mut read: impl FnMut(u64, &mut [u8]),
    mut each: impl FnMut(Noted),
) {
    let mut table = |at: u64, entries: usize| {
        let mut bytes = vec![0; entries * 8];
        read(at, &mut bytes);
        bytes
    };
    let used = |bytes: &[u8]| -> Vec<(u64, u64)> {
        let words = bytes.chunks_exact(8).zip(0..);
        let words = words.map(|(word, index)| (index, number(word)));
        words.filter(|(_, at)| *at != 0).collect()
    };
    let mut spans = 0;
    let mut beyond = 0;
    for (high, middle) in used(&table(top, TOP_ENTRIES)) {
        for (low, leaf) in used(&table(middle, MIDDLE_ENTRIES)) {
            if spans == most_spans {
                return;
            }
            spans += 1;
            let start = ((high << MIDDLE_BITS) | low) << LEAF_BITS;
            each(Noted::Span(start));
            let bytes = table(leaf, (LEAF_BYTES + LEAF_TAIL) / 8);
            beyond = blocks(start, beyond, &bytes, &mut each);
        }
    }
}

/// The blocks of a leaf, from the address `from` on; returns where the last one ends.
fn blocks(start: u64, from: u64, leaf: &[u8], each: &mut impl FnMut(Noted)) -> u64 {
    let mut index = usize::try_from(from.saturating_sub(start) / 8).unwrap_or(LEAF_BYTES);
    let mut end = from;
    while index < LEAF_BYTES {
        if index.is_multiple_of(8) && number(&leaf[index..index + 8]) == 0 {
            index += 8;
            continue;
        }
        let Some((requested, usable)) = block(&leaf[index..]) else {
            index += 1;
            continue;
        };
        let at = start + index as u64 * 8;
        if usable >= requested && usable < 1 << ADDRESS_BITS {
            each(Noted::Block {
                at,
                requested,
                usable,
            });
            end = at + usable;
            index += usize::try_from(usable / 8).unwrap_or(LEAF_BYTES).max(1);
        } else {
            index += 1;
        }
    }
    end
}

/// Requested and usable bytes of the block that is written here.
fn block(entry: &[u8]) -> Option<(u64, u64)> {
    match entry[0] {
        0 | SHORT_SAMPLE => None,
        LONG_FORM | LONG_SAMPLE => Some((number(&entry[8..16]), number(&entry[..8]) >> 8)),
        form if form & SHORT_FORM != 0 => {
            let usable = u64::from(form & !SHORT_FORM) * 8;
            Some((usable.saturating_sub(entry[1].into()), usable))
        }
        form => Some((u64::from(form) - 1, 8)),
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_library() {
        let heap = concat!(env!("CARGO_MANIFEST_DIR"), "/../refit-preload/heap/");
        let text = ["shadow.h", "shadow.c"]
            .map(|name| std::fs::read_to_string(heap.to_owned() + name).unwrap())
            .concat();
        for line in [
            format!("#define REFIT_SHADOW_ADDRESS_BITS {ADDRESS_BITS}\n"),
            format!("#define REFIT_SHADOW_LEAF_BITS {LEAF_BITS} "),
            format!("#define REFIT_SHADOW_MIDDLE_BITS {MIDDLE_BITS}\n"),
            format!("#define LEAF_TAIL {LEAF_TAIL}\n"),
            format!("#define REFIT_SHADOW_LONG_FORM {LONG_FORM:#x}\n"),
            format!("#define REFIT_SHADOW_SHORT_FORM {SHORT_FORM:#x}\n"),
            format!("#define REFIT_SHADOW_LONG_SAMPLE {LONG_SAMPLE:#x}\n"),
            format!("#define REFIT_SHADOW_SHORT_SAMPLE {SHORT_SAMPLE:#x}\n"),
        ] {
            assert!(text.contains(&line), "{line}");
        }
    }

    /// A table with one leaf, for the third span of the second middle, and its content.
    fn read(leaf: &[u8]) -> Vec<Noted> {
        let leaf = leaf.to_vec();
        let mut found = Vec::new();
        let memory = |at: u64, bytes: &mut [u8]| match at {
            1 => bytes[8..16].copy_from_slice(&2_u64.to_ne_bytes()),
            2 => bytes[16..24].copy_from_slice(&3_u64.to_ne_bytes()),
            _ => bytes[..leaf.len()].copy_from_slice(&leaf),
        };
        each_noted(1, 9, memory, |noted| found.push(noted));
        found
    }

    #[test]
    fn every_form_of_a_block_is_read() {
        let mut leaf = vec![0; LEAF_BYTES + LEAF_TAIL];
        leaf[1] = 4; // 3 of 8 bytes
        leaf[2] = 1; // none
        leaf[3..5].copy_from_slice(&[0x80 | 3, 18]); // 6 of 24
        leaf[100..108].copy_from_slice(&(8192_u64 << 8 | 0x7f).to_ne_bytes());
        leaf[108..116].copy_from_slice(&5000_u64.to_ne_bytes());
        leaf[120] = 0x81; // inside the block: not another one
        leaf[2000] = 0x7e; // a sample whose sizes are elsewhere
        leaf[2004..2012].copy_from_slice(&(136_u64 << 8 | 0x7d).to_ne_bytes());
        leaf[2012..2020].copy_from_slice(&130_u64.to_ne_bytes());
        let last = LEAF_BYTES - 1;
        leaf[last..last + 8].copy_from_slice(&((1_u64 << 21) << 8 | 0x7f).to_ne_bytes());
        leaf[last + 8..last + 16].copy_from_slice(&(1_u64 << 20).to_ne_bytes());
        let start = ((1_u64 << MIDDLE_BITS) | 2) << LEAF_BITS;
        let block = |index: u64, requested, usable| Noted::Block {
            at: start + index * 8,
            requested,
            usable,
        };
        let found = read(&leaf);
        assert_eq!(
            found,
            [
                Noted::Span(start),
                block(1, 3, 8),
                block(2, 0, 8),
                block(3, 6, 24),
                block(100, 5000, 8192),
                block(2004, 130, 136),
                block(last as u64, 1 << 20, 1 << 21),
            ]
        );
    }

    #[test]
    fn a_leaf_of_random_bytes_never_panics() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let leaf: Vec<u8> = (0..LEAF_BYTES + LEAF_TAIL)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        assert!(read(&leaf).len() > 1);
    }
}
