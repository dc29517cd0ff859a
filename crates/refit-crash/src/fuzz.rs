//! Records that somebody else made, names of states, acknowledgements and answers of mail servers.

use std::fs::File;
use std::io::{Seek, Write};

use refit_fuzz::Target;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::ack_source::{AckSource, LineReader};
use crate::image::{Choice, Cut, LEGAL, LIES, image};
use crate::record::{ENTRY_HEADER, Entry, FILE_HEADER, Kind, Record, RecordWriter, SECTOR};
use crate::smtp::Session;

/// A file in memory.
fn file(bytes: &[u8]) -> File {
    let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

/// A record as refit writes it.
fn record() -> Vec<u8> {
    let at = |kind, offset, length, start| Entry {
        kind,
        offset,
        length,
        start,
        end: start + 5,
    };
    let entries = [
        (at(Kind::Write, 4096, 4096, 10), vec![7; 4096]),
        (
            at(Kind::Write, 0, 512, 20),
            (0..=255).chain(0..=255).collect(),
        ),
        (at(Kind::Flush, 0, 0, 30), Vec::new()),
        (at(Kind::Discard, 8192, 65536, 40), Vec::new()),
        (at(Kind::Write, 8192, 1024, 50), vec![9; 1024]),
        (at(Kind::Zero, 0, 8192, 60), Vec::new()),
        (at(Kind::Flush, 0, 0, 70), Vec::new()),
        (at(Kind::Write, 4096, 512, 80), vec![1; 512]),
    ];
    let kept = file(b"");
    let mut writer = RecordWriter::new(kept.try_clone().unwrap(), 1 << 20, 1 << 30).unwrap();
    for (entry, data) in &entries {
        writer.append(*entry, data).unwrap();
    }
    writer.flush().unwrap();
    read(kept)
}

fn read(mut file: File) -> Vec<u8> {
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

/// Puts in the check sums that belong there: who forges a record does so too.
fn with_check_sums(bytes: &mut [u8]) {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap()) as usize;
    let put = |at: usize, sum: u32, bytes: &mut [u8]| {
        bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    };
    if bytes.len() < FILE_HEADER {
        return;
    }
    put(16, crc32fast::hash(&bytes[..16]), bytes);
    let mut at = FILE_HEADER;
    while at + ENTRY_HEADER <= bytes.len() {
        let end = at + ENTRY_HEADER + number(&bytes[at + 4..at + 8]);
        let Some(data) = bytes.get(at + ENTRY_HEADER..end) else {
            break;
        };
        let mut sum = crc32fast::Hasher::new();
        sum.update(&bytes[at..at + 40]);
        sum.update(data);
        put(at + 40, sum.finalize(), bytes);
        at = end;
    }
}

#[test]
fn records() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "records")
        .seeds([record()])
        // The reader's own buffer has 1 MiB, a discard's blocks are 4096 a time.
        .memory(4 << 20, 1 << 10)
        .run(|input| {
            let mut bytes = input.to_vec();
            // The last bit tells whether the sums are repaired.
            if bytes.last().is_some_and(|last| last % 2 == 0) || input == record() {
                with_check_sums(&mut bytes);
            }
            let record = match Record::read(file(&bytes)) {
                Ok(record) => record,
                Err(error) => return assert!(!error.to_string().contains('\n')),
            };
            let entries = record.entries();
            let sectors = record.size() / SECTOR;
            assert!(entries.is_sorted_by_key(|entry| entry.start));
            let again = file(b"");
            let mut writer =
                RecordWriter::new(again.try_clone().unwrap(), record.size(), 1 << 30).unwrap();
            let mut is_whole = true;
            for (index, entry) in entries.iter().enumerate() {
                assert!(entry.sector() + entry.sectors() <= sectors);
                let mut data = Vec::new();
                if entry.kind == Kind::Write {
                    match record.data(index, &mut data) {
                        Ok(()) => assert_eq!(data.len() as u64, entry.length),
                        Err(_) => is_whole = false,
                    }
                }
                if is_whole {
                    writer.append(*entry, &data).unwrap();
                }
            }
            writer.flush().unwrap();
            if is_whole {
                let again = Record::read(file(&read(again))).unwrap();
                assert_eq!(again.entries(), entries);
            }
            for cut in entries
                .iter()
                .take(20)
                .map(|entry| entry.start - entries[0].start)
            {
                for (seed, choice) in (0..).zip(LEGAL.into_iter().chain(LIES)) {
                    for tear in [512, 4096, 16384] {
                        is_legal(
                            &record,
                            Cut {
                                at: cut,
                                choice,
                                seed,
                            },
                            tear,
                        );
                    }
                }
            }
        });
}

/// What an image holds is of the record, and nothing that is durable is missing.
fn is_legal(record: &Record, cut: Cut, tear: u64) {
    let image = image(record, cut, tear);
    let entries = record.entries();
    assert!(image.durable + image.pending <= entries.len());
    for (sector, source) in image.extra.each().take(10_000) {
        let Some(source) = source else { continue };
        let entry = &entries[source as usize];
        assert!(source as usize >= image.durable && entry.kind == Kind::Write);
        assert!((entry.sector()..entry.sector() + entry.sectors()).contains(&sector));
    }
    if matches!(cut.choice, Choice::None | Choice::Lying) {
        assert_eq!(image.extra.runs(), 0);
    }
}

#[test]
fn states() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "states")
        .seeds(["c1234567-torn-17", "c0-none-0", "c5-scrambled-4294967295"])
        .words(
            LEGAL
                .into_iter()
                .chain(LIES)
                .map(|choice| choice.to_string()),
        )
        .longest(64)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            if let Ok(cut) = text.parse::<Cut>() {
                // It names a file: nothing but what was printed is one.
                assert_eq!(cut.to_string(), text);
                assert!(!text.contains(['/', '.', '\0']));
            }
        });
}

#[test]
fn sources_of_acknowledgements() {
    let seeds = [
        "fd:1",
        "sync",
        "smtp:127.0.0.1:2525/a@b",
        "smtp:[::1]:25",
        "fd:255",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "sources_of_acknowledgements")
        .seeds(seeds)
        .words(["$REFIT_PORT_", "smtp:", "fd:"])
        .longest(128)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            match text.parse::<AckSource>() {
                Ok(source) => {
                    let again: AckSource = source.to_string().parse().unwrap();
                    assert_eq!(again.to_string(), source.to_string());
                }
                // What to write, on one line.
                Err(error) => assert!(
                    ["fd:", "smtp:", "from 1 to"]
                        .iter()
                        .any(|what| error.contains(what))
                        && !error.contains('\n'),
                    "{error}"
                ),
            }
        });
}

#[test]
fn acknowledgements() {
    let regex = || regex_lite::Regex::new(r"committed (\d+)").unwrap();
    Target::new(env!("CARGO_MANIFEST_DIR"), "acknowledgements")
        .seeds([
            "1\n2\n-1\n",
            "committed 5\nnot committed\n",
            "\r\n\u{a0}\nx\n",
            "é\n\n",
        ])
        .words(["committed ", "\n", "\r\n", "-"])
        .run(|input| {
            for regex in [None, Some(regex())] {
                let mut whole = LineReader::new(regex.clone());
                whole.read(input);
                // However it arrives.
                let mut pieces = LineReader::new(regex);
                input.chunks(3).for_each(|piece| pieces.read(piece));
                let ids = |reader: &LineReader| -> Vec<String> {
                    let all = reader.acknowledgements.iter();
                    all.map(|one| one.id.clone()).collect()
                };
                assert_eq!(ids(&whole), ids(&pieces));
                let lines = input.iter().filter(|byte| **byte == b'\n').count();
                assert!(ids(&whole).len() <= lines);
                assert!(
                    ids(&whole)
                        .iter()
                        .all(|id| !id.is_empty() && !id.contains('\n'))
                );
            }
        });
}

#[test]
fn answers_of_mail_servers() {
    let seeds = [
        "220 ready\r\n250-x\r\n250 8BITMIME\r\n250 ok\r\n250 ok\r\n354 go\r\n250 queued\r\n",
        "421 busy\r\n",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "answers_of_mail_servers")
        .seeds(seeds)
        .words(["250-", "250 ", "354 ", "\r\n", "\n"])
        .run(|input| {
            let mut session = Session::of(input, std::io::sink());
            let mut answered = 0;
            for code in ["220", "250", "250", "250", "354", "250"] {
                match session.expect("NOOP\r\n", code) {
                    Ok(()) => answered += 1,
                    Err(error) => {
                        assert!(!error.to_string().contains('\n'));
                        break;
                    }
                }
            }
            let lines = input.split(|byte| *byte == b'\n').count();
            assert!(answered <= lines);
        });
}
