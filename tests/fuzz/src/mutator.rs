//! Changes an input: bits, bytes, numbers, words, pieces of itself and of others.

use crate::random::Random;

/// Numbers at which something overflows, as they are written.
const NUMBERS: [&str; 22] = [
    "0",
    "-0",
    "-1",
    "1",
    "2",
    "3",
    "127",
    "255",
    "256",
    "4096",
    "32767",
    "65535",
    "65536",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
];

/// The same in bytes.
const WORDS: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    0x10,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x1000,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// How inputs are changed.
pub struct Mutator {
    /// Mean something to the parser.
    pub words: Vec<Vec<u8>>,
    /// No input gets longer.
    pub longest: usize,
}

impl Mutator {
    /// Without words.
    pub fn new(longest: usize) -> Mutator {
        Mutator {
            words: Vec::new(),
            longest,
        }
    }

    /// Another input: of one, with pieces of the others.
    pub fn mutate(&self, input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=random.below(4) {
            self.change(&mut bytes, others, random);
        }
        bytes.truncate(self.longest);
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
        let at = random.below(bytes.len() + 1);
        let range = random.range(bytes.len());
        match random.below(14) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(range)),
            3 => bytes.truncate(at),
            4 => {
                let count = 1 + random.below(8);
                let new: Vec<u8> = (0..count).map(|_| random.next() as u8).collect();
                bytes.splice(at..at, new);
            }
            5 => {
                let piece = bytes[range].to_vec();
                let times = [1, 1, 2, 64][random.below(4)];
                bytes.splice(at..at, piece.repeat(times));
            }
            6 => {
                let piece = bytes[range].to_vec();
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece);
            }
            7 => {
                let other = random.of(others);
                let piece = other[random.range(other.len())].to_vec();
                let end = match random.below(2) {
                    0 => at,
                    _ => (at + piece.len()).min(bytes.len()),
                };
                bytes.splice(at..end, piece);
            }
            8 => {
                // From somewhere on it is another.
                let other = random.of(others);
                let from = random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            9 => number_in_bytes(bytes, at, random),
            10 => number_in_digits(bytes, at, random),
            11 | 12 => token(bytes, at, random),
            _ if !self.words.is_empty() => {
                let word = random.of(&self.words).clone();
                let end = match random.below(2) {
                    0 => at,
                    _ => (at + word.len()).min(bytes.len()),
                };
                bytes.splice(at..end, word);
            }
            _ => {}
        }
    }
}

/// Writes a number of 1, 2, 4 or 8 bytes, or changes the one that is there by a little.
fn number_in_bytes(bytes: &mut [u8], at: usize, random: &mut Random) {
    let size = 1 << random.below(4);
    let Some(place) = bytes.get_mut(at..at + size) else {
        return;
    };
    let mut there = [0; 8];
    there[..size].copy_from_slice(place);
    let little = random.below(9) as u64;
    let number = match random.below(4) {
        0 => u64::from_le_bytes(there).wrapping_add(little),
        1 => u64::from_le_bytes(there).wrapping_sub(little),
        _ => random.of(&WORDS).wrapping_add(little).wrapping_sub(4),
    };
    place.copy_from_slice(&number.to_le_bytes()[..size]);
    if random.below(4) == 0 {
        place.reverse();
    }
}

/// Replaces the digits after `at` by another number.
fn number_in_digits(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else {
        return;
    };
    let range = run(bytes, at + start, |byte| byte.is_ascii_digit());
    let number = match random.below(4) {
        0 => random.next().to_string(),
        _ => (*random.of(&NUMBERS)).to_owned(),
    };
    bytes.splice(range, number.into_bytes());
}

/// Replaces a word or a quoted text after `at` by another one of the same input.
fn token(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let other = random.below(bytes.len() + 1);
    if let (Some(place), Some(from)) = (token_at(bytes, at), token_at(bytes, other)) {
        let new = bytes[from].to_vec();
        bytes.splice(place, new);
    }
}

fn token_at(bytes: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.\"".contains(byte);
    let start = at + bytes[at..].iter().position(is_word)?;
    if bytes[start] == b'"' {
        let end = bytes[start + 1..].iter().position(|byte| *byte == b'"')?;
        return Some(start..start + end + 2);
    }
    Some(run(bytes, start, |byte| is_word(byte) && *byte != b'"'))
}

fn run(bytes: &[u8], start: usize, is_in: impl Fn(&u8) -> bool) -> std::ops::Range<usize> {
    let length = bytes[start..].iter().position(|byte| !is_in(byte));
    start..length.map_or(bytes.len(), |length| start + length)
}
