//! What one exec'ed image counted: its file.

use std::mem::{offset_of, size_of};

use crate::layout::{
    CCounter, CDirectory, CImage, CSlot, CUnreached, field_size, get_text, get_u32, get_u64,
};
use crate::page::{CALLS, DIRECTORIES, MAGIC, REASONS, SLOTS, UNREACHED, USERS, VERSION};

/// `sync=off` held for this executable.
pub const IMAGE_SYNC_OFF: u32 = 1;
/// `odirect=off` held for this executable.
pub const IMAGE_ODIRECT_OFF: u32 = 2;
/// The program opened a library with `RTLD_DEEPBIND`.
pub const IMAGE_DEEPBIND: u32 = 4;
/// The program installed a seccomp filter of its own.
pub const IMAGE_OWN_SECCOMP: u32 = 8;
/// More processes lived at once than there are slots.
pub const IMAGE_SHARED_SLOT: u32 = 16;
/// The image could not attach the event ring.
pub const IMAGE_NO_EVENT_RING: u32 = 32;
/// No filter of the preload's was beneath the image when it started.
pub const IMAGE_UNFILTERED: u32 = 64;
/// A filter of the preload's was beneath the image when it started, or came later.
pub const IMAGE_FILTERED: u32 = 128;

/// Added to the reason of an entry: a filter was put beneath the program
/// (`REFIT_UNREACHED_FILTERED`).
pub(crate) const FILTERED: u32 = 1 << 16;

/// State of an entry that can be read (`enum refit_entry`).
pub(crate) const ENTRY_VALID: u32 = 2;

/// Size of an image file in bytes.
pub const IMAGE_SIZE: usize = size_of::<CImage>();

/// The counters of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Calls that asked for durability.
    pub seen: u64,
    /// Calls that were answered without the kernel's work.
    pub suppressed: u64,
    /// Calls that were passed on to the kernel. What is neither suppressed nor real failed its probe.
    pub real: u64,
    /// Nanoseconds spent in the real ones.
    pub waited_ns: u64,
    /// Failed by the emulated disk.
    pub injected: u64,
}

/// One process of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// 0 for the sum of the dead.
    pub pid: u32,
    /// In the order of [`CALLS`].
    pub calls: [Counter; CALLS.len()],
}

/// A program that the image started and that the preload cannot reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The (end of the) path of its executable.
    pub name: String,
    /// One of [`REASONS`].
    pub reason: &'static str,
    /// A filter was put beneath it.
    pub filtered: bool,
    /// How often it was started.
    pub count: u64,
}

/// A directory in whose files calls waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The (end of the) path.
    pub path: String,
    /// Calls that waited there.
    pub count: u64,
    /// For how long in sum.
    pub waited_ns: u64,
}

/// What one exec'ed image counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// As the image saw it in its own pid namespace.
    pub pid: u32,
    /// `IMAGE_*` bits.
    pub flags: u32,
    /// Starts of unreached programs that found no room for their name.
    pub unreached_lost: u64,
    /// Child processes that it forked.
    pub forked: u64,
    /// Of these, those that went on to exec something.
    pub departed: u64,
    /// Programs that it started and that should have reported.
    pub execs: u64,
    /// Calls that were real because their file could not be determined.
    pub path_unknown: u64,
    /// Opens whose writes the emulated disk does not delay.
    pub not_delayed: u64,
    /// Bit i: rule i decided a call.
    pub matched: u64,
    /// io_urings whose submissions are not seen.
    pub rings_unseen: u64,
    /// Path of the executable, empty when unknown.
    pub executable: String,
    /// The object that serves malloc, empty when unknown.
    pub malloc_object: String,
    /// Bit i: function i of [`OTHERS`](crate::page::OTHERS) is another object's too.
    pub others: u64,
    /// The first such object: the end of its path.
    pub other_object: String,
    /// Users, other than the file's owner, that it had become when it exec'ed.
    pub users: Vec<u32>,
    /// What it started and could not reach.
    pub unreached: Vec<Unreached>,
    /// Where its calls waited.
    pub directories: Vec<Directory>,
    /// Used slots; the first is the sum of the dead.
    pub slots: Vec<Slot>,
}

impl Image {
    /// Reads an image file. Nothing in it is trusted: the program, or another
    /// user with a file of his own, may have written anything.
    ///
    /// Returns `None` when it is not an image of this version, or its
    /// constructor has not finished.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Image> {
        if bytes.len() != IMAGE_SIZE
            || get_u64(bytes, offset_of!(CImage, magic)) != MAGIC
            || get_u32(bytes, offset_of!(CImage, version)) != VERSION
        {
            return None;
        }
        Some(Image {
            pid: get_u32(bytes, offset_of!(CImage, pid)),
            flags: get_u32(bytes, offset_of!(CImage, flags)),
            unreached_lost: get_u32(bytes, offset_of!(CImage, unreached_lost)).into(),
            forked: get_u64(bytes, offset_of!(CImage, forked)),
            departed: get_u64(bytes, offset_of!(CImage, departed)),
            execs: get_u64(bytes, offset_of!(CImage, execs)),
            path_unknown: get_u64(bytes, offset_of!(CImage, path_unknown)),
            not_delayed: get_u64(bytes, offset_of!(CImage, not_delayed)),
            matched: get_u64(bytes, offset_of!(CImage, matched)),
            rings_unseen: get_u64(bytes, offset_of!(CImage, rings_unseen)),
            executable: get_text(
                bytes,
                offset_of!(CImage, executable),
                field_size(|image: &CImage| &image.executable),
            ),
            malloc_object: get_text(
                bytes,
                offset_of!(CImage, malloc_object),
                field_size(|image: &CImage| &image.malloc_object),
            ),
            others: get_u64(bytes, offset_of!(CImage, others)),
            other_object: get_text(
                bytes,
                offset_of!(CImage, other_object),
                field_size(|image: &CImage| &image.other_object),
            ),
            users: (0..USERS)
                .map(|i| get_u32(bytes, offset_of!(CImage, users) + i * size_of::<u32>()))
                .filter(|user| *user != 0)
                .collect(),
            unreached: (0..UNREACHED)
                .filter_map(|i| {
                    parse_unreached(
                        bytes,
                        offset_of!(CImage, unreached) + i * size_of::<CUnreached>(),
                    )
                })
                .collect(),
            directories: (0..DIRECTORIES)
                .filter_map(|i| {
                    parse_directory(
                        bytes,
                        offset_of!(CImage, directories) + i * size_of::<CDirectory>(),
                    )
                })
                .collect(),
            slots: (0..SLOTS)
                .map(|i| parse_slot(bytes, offset_of!(CImage, slots) + i * size_of::<CSlot>()))
                .enumerate()
                .filter(|(i, slot)| *i == 0 || slot.pid != 0)
                .map(|(_, slot)| slot)
                .collect(),
        })
    }
}

fn parse_unreached(bytes: &[u8], at: usize) -> Option<Unreached> {
    let count = get_u64(bytes, at + offset_of!(CUnreached, count));
    let reason = get_u32(bytes, at + offset_of!(CUnreached, reason));
    if get_u32(bytes, at + offset_of!(CUnreached, state)) != ENTRY_VALID
        || count == 0
        || count > u64::from(u32::MAX)
    {
        return None;
    }
    Some(Unreached {
        name: get_text(
            bytes,
            at + offset_of!(CUnreached, name),
            field_size(|entry: &CUnreached| &entry.name),
        ),
        reason: REASONS.get((reason & !FILTERED) as usize)?,
        filtered: reason & FILTERED != 0,
        count,
    })
}

fn parse_directory(bytes: &[u8], at: usize) -> Option<Directory> {
    if get_u32(bytes, at + offset_of!(CDirectory, state)) != ENTRY_VALID {
        return None;
    }
    Some(Directory {
        path: get_text(
            bytes,
            at + offset_of!(CDirectory, path),
            field_size(|entry: &CDirectory| &entry.path),
        ),
        count: get_u64(bytes, at + offset_of!(CDirectory, count)),
        waited_ns: get_u64(bytes, at + offset_of!(CDirectory, waited_ns)),
    })
}

fn parse_slot(bytes: &[u8], at: usize) -> Slot {
    let mut slot = Slot {
        pid: get_u32(bytes, at + offset_of!(CSlot, pid)),
        ..Slot::default()
    };
    for (i, counter) in slot.calls.iter_mut().enumerate() {
        let at = at + offset_of!(CSlot, calls) + i * size_of::<CCounter>();
        let suppressed = get_u64(bytes, at + offset_of!(CCounter, suppressed));
        let rest = get_u64(bytes, at + offset_of!(CCounter, not_suppressed));
        *counter = Counter {
            seen: suppressed.saturating_add(rest),
            suppressed,
            real: get_u64(bytes, at + offset_of!(CCounter, real)),
            waited_ns: get_u64(bytes, at + offset_of!(CCounter, waited_ns)),
            injected: get_u64(bytes, at + offset_of!(CCounter, injected)),
        };
    }
    slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::put;

    #[test]
    fn an_image_of_random_bytes_never_panics() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200 {
            let mut bytes: Vec<u8> = (0..IMAGE_SIZE)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .collect();
            put(&mut bytes, 0, &MAGIC.to_ne_bytes());
            put(
                &mut bytes,
                offset_of!(CImage, version),
                &VERSION.to_ne_bytes(),
            );
            let image = Image::parse(&bytes).unwrap();
            assert!(!image.executable.chars().any(char::is_control));
        }
        assert_eq!(Image::parse(&[]), None);
        assert_eq!(Image::parse(&vec![0; IMAGE_SIZE]), None);
    }
}
