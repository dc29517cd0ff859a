use std::fs::{self, File};

use super::*;

fn write(offset: u64, at: u64, data: &[u8]) -> (Entry, Vec<u8>) {
    let entry = Entry {
        kind: Kind::Write,
        offset,
        length: data.len() as u64,
        start: at,
        end: at + 5,
    };
    (entry, data.to_vec())
}

fn flush(at: u64) -> (Entry, Vec<u8>) {
    let entry = Entry {
        kind: Kind::Flush,
        offset: 0,
        length: 0,
        start: at,
        end: at + 5,
    };
    (entry, Vec::new())
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let byte = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as u8
    };
    (0..length).map(byte).collect()
}

fn stored(entries: &[(Entry, Vec<u8>)]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = File::create(file.path()).expect("writable");
    let mut writer = RecordWriter::new(to, 1 << 20, 1 << 30).expect("a header");
    for (entry, data) in entries {
        writer.append(*entry, data).expect("room");
    }
    writer.flush().expect("written");
    file
}

fn few() -> Vec<(Entry, Vec<u8>)> {
    vec![
        write(4096, 10, &[7; 4096]),
        write(0, 20, &noise(1024)),
        flush(30),
        write(8192, 40, &noise(512)),
    ]
}

#[test]
fn what_was_appended_is_read() {
    let entries = few();
    let file = stored(&entries);
    let record = Record::open(file.path()).expect("whole");
    assert_eq!(record.size(), 1 << 20);
    assert_eq!(record.entries().len(), 4);
    for (index, (entry, data)) in entries.iter().enumerate() {
        assert_eq!(record.entries()[index], *entry);
        if entry.kind == Kind::Write {
            let mut read = Vec::new();
            record.data(index, &mut read).expect("readable");
            assert_eq!(read, *data);
        }
    }
    assert!(record.stored_bytes(0) < 200, "a run of one byte is packed");
    assert_eq!(record.stored_bytes(1), 1024, "noise is not");
}

#[test]
fn a_long_write_becomes_chunks() {
    let data = noise(CHUNK + 4096);
    let file = stored(&[write(512, 10, &data)]);
    let record = Record::open(file.path()).expect("whole");
    let shape: Vec<_> = record
        .entries()
        .iter()
        .map(|e| (e.offset, e.length))
        .collect();
    assert_eq!(shape, [(512, CHUNK as u64), (512 + CHUNK as u64, 4096)]);
    let mut second = Vec::new();
    record.data(1, &mut second).expect("readable");
    assert_eq!(second, data[CHUNK..]);
}

#[test]
fn the_cap_holds() {
    let file = tempfile::tempfile().expect("a file");
    let mut writer = RecordWriter::new(file, 1 << 20, 2000).expect("a header");
    let (entry, data) = write(0, 10, &noise(1024));
    writer.append(entry, &data).expect("room");
    let full = writer.append(entry, &data).expect_err("no room");
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_truncated_record_is_refused() {
    let file = stored(&few());
    let whole = fs::read(file.path()).expect("readable");
    for length in 0..whole.len() {
        fs::write(file.path(), &whole[..length]).expect("writable");
        let is_boundary = Record::open(file.path());
        match is_boundary {
            Ok(record) => assert!(record.entries().len() < 4, "{length}"),
            Err(RecordError::Foreign) => assert!(length < 24, "{length}"),
            Err(RecordError::Truncated { .. }) => assert!(length > 24, "{length}"),
            Err(other) => panic!("{length}: {other}"),
        }
    }
}

#[test]
fn a_hostile_record_is_refused() {
    let file = stored(&few());
    let whole = fs::read(file.path()).expect("readable");
    let mut refused = 0;
    for at in 0..whole.len() {
        for flip in [1, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(file.path(), &bytes).expect("writable");
            refused += usize::from(Record::open(file.path()).is_err());
        }
    }
    // Only the headers' unused bytes may differ.
    assert_eq!(refused, (whole.len() - 4 - 4 * 4) * 3);
}

#[test]
fn a_lying_header_is_refused_by_what_it_says() {
    let file = stored(&[write(0, 10, &[1; 512])]);
    let whole = fs::read(file.path()).expect("readable");
    let lies: [(usize, u64, &str); 5] = [
        (8, 1 << 20, "beyond the end"),
        (8, 100, "whole sectors"),
        (16, u64::MAX - 5, "beyond the end"),
        (16, 1 << 19, "do not have its length"),
        (24, 99, "backwards"),
    ];
    for (at, value, what) in lies {
        let mut bytes = whole.clone();
        let entry = &mut bytes[24..];
        entry[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&entry[..40]);
        sum.update(&entry[48..]);
        let sum = sum.finalize().to_le_bytes();
        entry[40..44].copy_from_slice(&sum);
        fs::write(file.path(), &bytes).expect("writable");
        let error = Record::open(file.path()).expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    }
}
