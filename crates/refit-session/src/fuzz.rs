//! What programs of other users may write where refit reads: counters, events, heap files.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::mem::offset_of;

use refit_fuzz::Target;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::Collected;
use crate::event::{EVENT_SIZE, Event};
use crate::heap::file::{HEAP_SIZE, SAMPLES_AT, block_at};
use crate::heap::layout::{self, CHeader, CSamples};
use crate::heap::{HeapImage, HeapSamples};
use crate::image::{IMAGE_SIZE, Image};
use crate::page::{ANSWERS, CALLS, MAGIC, VERSION};
use crate::printable;

fn is_shown(text: &str) {
    assert_eq!(printable(text), text, "it would steer a terminal");
}

/// The input, then zeroes.
fn padded(input: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = input.to_vec();
    bytes.resize(size, 0);
    bytes
}

#[test]
fn counters() {
    let mut seed = padded(&MAGIC.to_ne_bytes(), IMAGE_SIZE);
    seed[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    let mut full = seed.clone();
    for (at, byte) in full.iter_mut().enumerate().skip(12) {
        *byte = [2, 0, 0, 0, b'a', 0, 0, 0][at % 8];
    }
    Target::new(env!("CARGO_MANIFEST_DIR"), "counters")
        .seeds([seed, full])
        .words(["\u{1b}[2J", "\u{202e}", "\n"])
        .longest(IMAGE_SIZE)
        .memory(1 << 20, 16)
        .run(|input| {
            assert_eq!(
                Image::parse(&input[..input.len().min(IMAGE_SIZE - 1)]),
                None
            );
            let Some(image) = Image::parse(&padded(input, IMAGE_SIZE)) else {
                return;
            };
            is_shown(&image.executable);
            is_shown(&image.malloc_object);
            image.unreached.iter().for_each(|one| is_shown(&one.name));
            image.directories.iter().for_each(|one| is_shown(&one.path));
            // Sums of it with itself: no count is too large.
            let mut collected = Collected::default();
            for _ in 0..3 {
                collected.add_image(image.clone(), vec![image.pid]);
            }
            let reports = collected.executable_reports();
            assert!(reports.len() <= 1, "of one executable");
            let _ = collected.calls();
        });
}

#[test]
fn events() {
    let event = Event {
        turn: 1,
        at_ns: 5,
        took_ns: 6,
        pid: 7,
        call: CALLS[2],
        answer: ANSWERS[1],
        result: None,
        executable: "/usr/sbin/postfix".to_owned(),
        path: "/var/spool/é".to_owned(),
    };
    Target::new(env!("CARGO_MANIFEST_DIR"), "events")
        .seeds([event.to_bytes()])
        .words(["\u{1b}[2J", "\u{202e}"])
        .longest(EVENT_SIZE)
        .run(|input| {
            let Some(event) = Event::parse(&padded(input, EVENT_SIZE)) else {
                return;
            };
            is_shown(&event.executable);
            is_shown(&event.path);
            // The turn is the ring's; texts that do not fit any more, once they are printable, lose their beginning.
            let again = Event::parse(&event.to_bytes()).expect("it is one");
            assert_eq!(
                (
                    again.at_ns,
                    again.took_ns,
                    again.pid,
                    again.call,
                    again.answer
                ),
                (
                    event.at_ns,
                    event.took_ns,
                    event.pid,
                    event.call,
                    event.answer
                )
            );
            assert!(again.result == event.result);
        });
}

/// A heap file is sparse and has some MB: the input says where in it which bytes are, eight for the place and the
/// length of each piece.
fn heap_file(input: &[u8], size: u64) -> File {
    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(size).unwrap();
    let mut rest = input;
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let number = u64::from_le_bytes(*head);
        let (at, length) = ((number >> 16) % size, number & 0xffff);
        let length = after.len().min(usize::try_from(length).unwrap());
        let fits = usize::try_from(size - at).map_or(length, |room| room.min(length));
        file.seek(std::io::SeekFrom::Start(at)).unwrap();
        file.write_all(&after[..fits]).unwrap();
        rest = &after[length..];
    }
    file.rewind().unwrap();
    file
}

fn piece(at: u64, bytes: &[u8]) -> Vec<u8> {
    let head = at << 16 | bytes.len() as u64;
    [&head.to_le_bytes(), bytes].concat()
}

#[test]
fn heap_files() {
    let magic = piece(0, &layout::MAGIC.to_ne_bytes());
    let process = piece(block_at(0), &[1; 256]);
    let forked = piece(offset_of!(CHeader, forked) as u64, &u64::MAX.to_ne_bytes());
    let of_samples = |at: usize, bytes: &[u8]| piece((SAMPLES_AT + at) as u64, bytes);
    let sample = [
        of_samples(offset_of!(CSamples, interval), &524_288_u64.to_ne_bytes()),
        of_samples(offset_of!(CSamples, objects_bytes), &u64::MAX.to_ne_bytes()),
        of_samples(offset_of!(CSamples, owner), &[1, 0, 0, 0]),
        of_samples(offset_of!(CSamples, sample), &[1; 200]),
    ]
    .concat();
    Target::new(env!("CARGO_MANIFEST_DIR"), "heap_files")
        .seeds([
            [magic.clone(), process.clone()].concat(),
            [magic.clone(), forked, process].concat(),
            [magic, sample].concat(),
        ])
        .mutations(10)
        .memory(16 << 20, 256)
        .run(|input| {
            let file = heap_file(input, HEAP_SIZE);
            if let Some(image) = HeapImage::read(&file) {
                is_shown(&image.executable);
                is_shown(&image.malloc_object);
                for process in &image.processes {
                    assert!(process.pid != 0);
                    assert!(process.live.usable_bytes <= process.peak.usable_bytes);
                    assert!(process.classes.is_sorted_by_key(|class| class.above_bytes));
                }
            }
            if let Some(samples) = HeapSamples::read(&file) {
                is_shown(&samples.executable);
                for sample in &samples.samples {
                    assert!(sample.bytes().is_finite() && sample.bytes() >= 0.0);
                }
            }
            // One that ends early is of another version, or cut short.
            let mut whole = Vec::new();
            let length = input.len() as u64 * 97 % HEAP_SIZE;
            file.set_len(length).unwrap();
            (&file).read_to_end(&mut whole).unwrap();
            let _ = HeapImage::read(&file);
            let _ = HeapSamples::read(&file);
        });
}
