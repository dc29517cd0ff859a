//! Files of others: executables that are looked at, what a process says of itself, and memory that lies.

use std::fs::File;
use std::io::Write;

use refit_fuzz::Target;
use refit_session::heap::{HeapSamples, Sample};
use refit_session::printable;
use rustix::fd::AsRawFd;
use rustix::fs::{MemfdFlags, fstat, memfd_create};

use crate::executable::ElfFacts;
use crate::heap_paths::heap_paths;
use crate::loaded::image::Image;
use crate::loaded::memory::Memory;
use crate::mappings::Mapping;
use crate::stacks::function_name::function_name;

fn file(bytes: &[u8]) -> File {
    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file
}

/// A small library with all that a real one has.
fn library() -> Vec<u8> {
    include_bytes!("../fuzz/library.so").to_vec()
}

#[test]
fn executables() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "executables")
        .seeds([library()])
        .words([".dynamic", ".dynstr", "malloc", "fsync", "$ORIGIN"])
        .longest(32 << 10)
        .run(|input| {
            let facts = ElfFacts::read(input);
            assert!(facts.sync_imports.is_sorted());
            assert!(facts.sync_imports.len() <= input.len() / 16);
            assert!(facts.needed.iter().all(|name| name.len() < input.len()));
        });
}

/// As an object of a process whose heap is sampled: symbols, and stacks that are unwound by it.
#[test]
fn objects_of_a_heap() {
    let stack: Vec<u8> = (0..64_u64)
        .flat_map(|word| (0x1000 + word * 64).to_le_bytes())
        .collect();
    Target::new(env!("CARGO_MANIFEST_DIR"), "objects_of_a_heap")
        .seeds([library()])
        .words([".eh_frame", ".eh_frame_hdr", ".text", ".symtab", ".strtab"])
        .longest(32 << 10)
        .mutations(30)
        .memory(8 << 20, 512)
        .run(|input| {
            let file = file(input);
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let inode = fstat(&file).unwrap().st_ino;
            let sample = |at: u64| Sample {
                process: 1,
                requested_bytes: 64,
                usable_bytes: 80,
                interval_bytes: 1024,
                registers: [at, 0x7fff_0000, 0x7fff_0040],
                stack: stack.clone(),
                script: Vec::new(),
            };
            let image = HeapSamples {
                executable: "x".to_owned(),
                objects: format!(
                    "1000-{:x} r-xp 00001000 00:01 {inode} {path}\n",
                    0x1000 + input.len().max(1)
                )
                .into_bytes(),
                lost: 1,
                samples: (0..8).map(|step| sample(0x1000 + step * 0x111)).collect(),
            };
            let all = heap_paths(&[image]);
            assert_eq!(all.iter().map(|one| one.samples()).sum::<u64>(), 8);
            for path in all.iter().flat_map(|one| &one.paths) {
                assert!(path.frames.len() <= 258);
                path.frames
                    .iter()
                    .for_each(|frame| assert_eq!(printable(&frame.function), frame.function));
            }
        });
}

#[test]
fn names_of_functions() {
    let seeds = [
        "_ZN3foo3barEv",
        "_ZN5alloc7raw_vec11finish_grow17h0123456789abcdefE",
        "_RNvC6_123foo3bar",
        "_Znwm",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "names_of_functions")
        .seeds(seeds)
        .words(["_Z", "_R", "St", "Ss", "I", "E", "N", "S_", "S0_", "T_"])
        .longest(512)
        // What is remembered for each byte may double at each of the few levels that CPP_DEPTH leaves.
        .memory(1 << 20, 16 << 10)
        .run(|input| {
            let name = function_name(&String::from_utf8_lossy(input));
            assert_eq!(printable(&name), name);
            assert!(name.len() <= 4096.max(input.len() * 16), "{}", name.len());
        });
}

#[test]
fn mappings() {
    let seeds = [
        "1000-3000 r-xp 00002000 fe:01 77                         /lib/a b",
        "7ffe0000-7fff0000 rw-p 0 00:00 0 [stack]",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "mappings")
        .seeds(seeds)
        .words(["ffffffffffffffff", "-", ":", "rwxs"])
        .longest(512)
        .run(|input| {
            let Some(mapping) = Mapping::parse(input) else {
                return;
            };
            assert!(mapping.start < mapping.end && mapping.bytes() > 0);
            let again = format!(
                "{:x}-{:x} {} 0 {:x}:{:x} {} ",
                mapping.start,
                mapping.end,
                String::from_utf8_lossy(&mapping.permissions),
                mapping.file.0 >> 32,
                mapping.file.0 & u64::from(u32::MAX),
                mapping.file.1
            );
            if let Some(printed) = Mapping::parse(again.as_bytes()) {
                assert_eq!((printed.start, printed.end), (mapping.start, mapping.end));
                assert_eq!(printed.file, mapping.file);
            }
        });
}

/// A dynamic section at 0, and all that it leads to: as in the memory of a process that runs.
#[test]
fn memory() {
    let word =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    // DT_STRTAB, DT_STRSZ, DT_SYMTAB, DT_GNU_HASH, DT_RELA, DT_RELASZ, DT_NULL.
    let mut seed = word(&[
        5,
        512,
        10,
        64,
        6,
        256,
        0x6fff_fef5,
        128,
        7,
        384,
        8,
        48,
        0,
        0,
    ]);
    seed.resize(1024, 0);
    let hash = [1_u32, 1, 1, 0]
        .iter()
        .flat_map(|half| half.to_le_bytes())
        .collect::<Vec<_>>();
    seed[128..144].copy_from_slice(&hash);
    seed[384..432].copy_from_slice(&word(&[600, (1 << 32) | 6, 0, 608, (1 << 32) | 7, 0]));
    seed[512..520].copy_from_slice(b"\0malloc\0");
    let with_hash = |tag: u64| {
        let mut other = seed.clone();
        other[48..56].copy_from_slice(&tag.to_le_bytes());
        other
    };
    Target::new(env!("CARGO_MANIFEST_DIR"), "memory")
        .seeds([seed.clone(), with_hash(4)])
        .words(["malloc\0", "free\0"])
        .longest(4096)
        .memory(1 << 20, 64)
        .run(|input| {
            let memory = Memory::of(file(input));
            for base in [0, 64, u64::MAX - 8] {
                if let Some(image) = Image::read(&memory, base, 0) {
                    let _ = image.exports(&memory, "malloc");
                    let slots = image
                        .slots(&memory, &["malloc", "free"])
                        .unwrap_or_default();
                    assert!(slots.iter().all(|slot| slot.function < 2));
                }
            }
        });
}
