//! The structs as `sync/session.h` lays them out, offset by offset. They are never
//! laid over foreign memory: they give the offsets at which fields are read and
//! written.

use crate::page::{
    CALL_SLOTS, DIRECTORIES, EVENTS, FILTER, LATENCIES, QUEUES, RULES, SLOTS, TEXT, UNREACHED,
    USERS,
};
use crate::printable;

#[repr(C)]
pub struct CRule {
    pub knob: u32,
    pub on: u32,
    pub path: u32,
    pub pad: u32,
    pub exe: [u8; 64],
}

#[repr(C)]
pub struct CDisk {
    pub kind: u32,
    pub error: u32,
    pub when: u32,
    pub event_ring: i32,
    pub n: u64,
    pub seed: u64,
    pub latency_ns: [u64; LATENCIES],
}

#[repr(C)]
pub struct CQueue {
    pub device: u64,
    pub busy_ns: u64,
    pub from_ns: u64,
}

#[repr(C)]
pub struct CFlushes {
    pub number: u64,
    pub queues: [CQueue; QUEUES],
}

#[repr(C)]
pub struct CEvent {
    pub turn: u64,
    pub at_ns: u64,
    pub took_ns: u64,
    pub pid: u32,
    pub call: u32,
    pub answer: u32,
    pub result: i32,
    pub executable: [u8; 40],
    pub path: [u8; 176],
}

#[repr(C)]
pub struct CEventRing {
    pub flushes: CFlushes,
    pub events: u64,
    pub ring: [CEvent; EVENTS],
}

#[repr(C)]
pub struct CPolicy {
    pub magic: u64,
    pub version: u32,
    pub flags: u32,
    pub rule_count: u32,
    pub library: u32,
    pub preloads: u32,
    pub session: u32,
    pub env: u32,
    pub seccomp_filters: u32,
    pub root_dev: u64,
    pub root_ino: u64,
    pub filter_length: u64,
    pub filter: [u64; FILTER],
    pub disk: CDisk,
    pub rules: [CRule; RULES],
    pub text: [u8; TEXT],
}

#[repr(C)]
pub struct CCounter {
    pub suppressed: u64,
    pub not_suppressed: u64,
    pub real: u64,
    pub waited_ns: u64,
    pub injected: u64,
}

#[repr(C)]
pub struct CSlot {
    pub pid: u32,
    pub pad32: u32,
    pub pad: [u64; 4],
    pub calls: [CCounter; CALL_SLOTS],
}

#[repr(C)]
pub struct CUnreached {
    pub state: u32,
    pub reason: u32,
    pub count: u64,
    pub name: [u8; 112],
}

#[repr(C)]
pub struct CDirectory {
    pub state: u32,
    pub pad: u32,
    pub count: u64,
    pub waited_ns: u64,
    pub path: [u8; 168],
}

#[repr(C)]
pub struct CImage {
    pub magic: u64,
    pub version: u32,
    pub pid: u32,
    pub flags: u32,
    pub unreached_lost: u32,
    pub forked: u64,
    pub departed: u64,
    pub execs: u64,
    pub path_unknown: u64,
    pub not_delayed: u64,
    pub matched: u64,
    pub rings_unseen: u64,
    pub executable: [u8; 256],
    pub malloc_object: [u8; 256],
    pub others: u64,
    pub other_object: [u8; 128],
    pub users: [u32; USERS],
    pub slots: [CSlot; SLOTS],
    pub unreached: [CUnreached; UNREACHED],
    pub directories: [CDirectory; DIRECTORIES],
}

pub fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

pub fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A C string of at most `size` bytes, [`printable`].
pub fn get_text(bytes: &[u8], at: usize, size: usize) -> String {
    let field = &bytes[at..at + size];
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(size);
    printable(&String::from_utf8_lossy(&field[..end]))
}

/// The size of a text field.
pub const fn field_size<T, const N: usize>(_: fn(&T) -> &[u8; N]) -> usize {
    N
}

#[cfg(test)]
mod tests;
