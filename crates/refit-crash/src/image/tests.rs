//! Against a model of a disk with a volatile cache, and against wrong builders.

use std::collections::BTreeMap;
use std::fs::File;

use super::*;
use crate::record::RecordWriter;
use crate::sectors::Source;

const DISK: u64 = 256 * SECTOR;

/// What is appended; each takes 4 ns and lasts 2.
enum Step {
    Write(u64, u64),
    Zero(u64, u64),
    Flush,
}
use Step::{Flush, Write, Zero};

fn record(steps: &[Step]) -> Record {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = File::create(file.path()).expect("writable");
    let mut writer = RecordWriter::new(to, DISK, 1 << 30).expect("a header");
    for (index, step) in steps.iter().enumerate() {
        let start = 100 + 4 * index as u64;
        let (kind, sector, sectors) = match step {
            Write(sector, sectors) => (Kind::Write, *sector, *sectors),
            Zero(sector, sectors) => (Kind::Zero, *sector, *sectors),
            Flush => (Kind::Flush, 0, 0),
        };
        let entry = Entry {
            kind,
            offset: sector * SECTOR,
            length: sectors * SECTOR,
            start,
            end: start + 2,
        };
        let fill = u8::try_from(index + 1).expect("few steps");
        let data = vec![fill; usize::try_from(entry.length).expect("small")];
        writer.append(entry, &data).expect("room");
    }
    writer.flush().expect("written");
    Record::open(file.path()).expect("whole")
}

fn cut(at: u64, choice: Choice, seed: u32) -> Cut {
    Cut { at, choice, seed }
}

/// Each sector's source after the cut.
fn content(record: &Record, image: &Image) -> BTreeMap<u64, Source> {
    let mut sectors = BTreeMap::new();
    for (index, entry) in record.entries()[..image.durable].iter().enumerate() {
        let source = (entry.kind == Kind::Write).then(|| u32::try_from(index).expect("few"));
        if entry.kind != Kind::Flush {
            let all = entry.sector()..entry.sector() + entry.sectors();
            sectors.extend(all.map(|sector| (sector, source)));
        }
    }
    sectors.extend(image.extra.each());
    sectors
}

/// What a disk that honours flushes may show in a sector at a time: what was
/// there at the last answered flush, or anything written to it since. Told by
/// playing the record forward, without looking for flushes backwards as the
/// builder does.
fn legal(record: &Record, time: u64) -> BTreeMap<u64, Vec<Source>> {
    let mut may: BTreeMap<u64, Vec<Source>> = (0..DISK / SECTOR).map(|s| (s, vec![None])).collect();
    for (index, entry) in record.entries().iter().enumerate() {
        if entry.start > time {
            break;
        }
        if entry.kind == Kind::Flush {
            if entry.end <= time {
                for sources in may.values_mut() {
                    sources.drain(..sources.len() - 1);
                }
            }
            continue;
        }
        let source = (entry.kind == Kind::Write).then(|| u32::try_from(index).expect("few"));
        for sector in entry.sector()..entry.sector() + entry.sectors() {
            may.get_mut(&sector).expect("on the disk").push(source);
        }
    }
    may
}

type Builder = fn(&Record, Cut, u64) -> Image;

/// How many of many images show what no such disk can.
fn violations(record: &Record, build: Builder) -> usize {
    let last = record.entries().last().expect("some").end;
    let times = 0..=last - 100;
    let cuts = times.flat_map(|at| {
        LEGAL
            .into_iter()
            .flat_map(move |choice| (0..8).map(move |seed| cut(at, choice, seed)))
    });
    cuts.filter(|cut| {
        let may = legal(record, 100 + cut.at);
        let shown = content(record, &build(record, *cut, 512));
        !may.iter()
            .all(|(sector, sources)| sources.contains(&shown.get(sector).copied().flatten()))
    })
    .count()
}

fn journal() -> Record {
    record(&[
        Write(0, 8),
        Flush,
        Write(8, 4),
        Write(0, 2),
        Flush,
        Zero(9, 2),
        Write(16, 24),
        Write(8, 1),
        Flush,
        Write(0, 1),
        Write(40, 8),
    ])
}

#[test]
fn no_image_shows_what_such_a_disk_cannot() {
    assert_eq!(violations(&journal(), image), 0);
}

/// The check above can fail.
#[test]
fn wrong_builders_are_found() {
    let flushes_are_pending: Builder = |record, cut, tear| Image {
        durable: 0,
        ..image(record, cut, tear)
    };
    assert!(violations(&journal(), flushes_are_pending) > 100);
    let everything_is_durable: Builder = |record, _, _| Image {
        durable: record.entries().len(),
        ..Image::default()
    };
    assert!(violations(&journal(), everything_is_durable) > 100);
}

/// A recorder that ignores flushes makes legal what is not.
#[test]
fn flushes_matter() {
    let with = journal();
    let none = image(&with, cut(41, Choice::None, 0), 512);
    assert_eq!(none.durable, 8);
    let without = record(&[Write(0, 8), Write(8, 4), Write(0, 2), Write(40, 8)]);
    assert_eq!(image(&without, cut(15, Choice::None, 0), 512).durable, 0);
}

#[test]
fn a_flush_that_was_not_answered_makes_nothing_durable() {
    let record = record(&[Write(0, 1), Flush, Write(1, 1), Flush]);
    // The second flush lasts from 112 to 114.
    for (at, durable, pending) in [(4, 0, 1), (6, 1, 0), (13, 1, 1), (14, 3, 0)] {
        let image = image(&record, cut(at, Choice::None, 0), 512);
        assert_eq!((image.durable, image.pending), (durable, pending), "{at}");
    }
}

#[test]
fn each_choice_takes_its_part() {
    let record = record(&[Write(0, 1), Flush, Write(1, 1), Write(2, 16), Write(1, 1)]);
    let end = 18;
    let extra = |choice, seed| -> BTreeMap<u64, Source> {
        image(&record, cut(end, choice, seed), 4096)
            .extra
            .each()
            .collect()
    };
    assert_eq!(extra(Choice::None, 1).len(), 0);
    let all = extra(Choice::All, 1);
    assert_eq!(all.len(), 17);
    assert_eq!(all[&1], Some(4), "the later write of a sector wins");
    let mut kinds = std::collections::HashSet::new();
    for seed in 0..200 {
        for choice in [Choice::Prefix, Choice::Subset, Choice::Torn] {
            let sectors: Vec<(u64, Source)> = extra(choice, seed).into_iter().collect();
            if choice == Choice::Prefix && sectors.iter().any(|(sector, _)| *sector > 1) {
                assert!(sectors.iter().any(|(sector, _)| *sector == 1), "in order");
            }
            let torn = sectors.iter().filter(|(sector, _)| *sector >= 2).count();
            if choice == Choice::Subset {
                assert!([0, 16].contains(&torn), "a write is there or not");
            }
            kinds.insert((choice, sectors));
        }
    }
    // 16 sectors from the 2nd on are parts of three blocks of 4096 bytes.
    let torn = kinds
        .iter()
        .filter(|(choice, _)| *choice == Choice::Torn)
        .count();
    assert!(torn > 10, "{torn}");
}

#[test]
fn the_same_cut_is_the_same_image() {
    let record = journal();
    let one = image(&record, cut(41, Choice::Torn, 7), 512);
    assert_eq!(one, image(&record, cut(41, Choice::Torn, 7), 512));
    assert_ne!(
        one.identity,
        image(&record, cut(41, Choice::All, 7), 512).identity
    );
    let none = image(&record, cut(37, Choice::None, 7), 512);
    let later = image(&record, cut(41, Choice::None, 9), 512);
    assert_eq!(
        none.identity, later.identity,
        "nothing pending is there in both"
    );
}

#[test]
fn the_control_loses_what_was_flushed() {
    let record = journal();
    let lying = image(&record, cut(40, Choice::Lying, 1), 512);
    assert_eq!((lying.durable, lying.extra.runs()), (0, 0));
    let scrambled = |draws: u32| {
        image(
            &record,
            cut(40, Choice::Scrambled, draws << LYING_BITS | 1),
            512,
        )
    };
    assert!((0..20).any(|draws| scrambled(draws).extra.runs() > 0));
    assert!((0..20).all(|draws| scrambled(draws).durable == 0));
    let honest = image(&record, cut(40, Choice::Lying, 0), 512);
    assert_eq!(honest.durable, 8);
}

#[test]
fn names_are_read_as_they_are_printed() {
    for choice in LEGAL.into_iter().chain(LIES) {
        let cut = cut(1_234_567, choice, 17);
        assert_eq!(cut.to_string().parse(), Ok(cut));
    }
    for wrong in [
        "",
        "c",
        "c1",
        "c1-all",
        "c1-all-",
        "c01-all-1",
        "c1-All-1",
        "c1-all-1-1",
        "c-1-all-1",
        "c1-all-+1",
        "x1-all-1",
        "c99999999999999999999-all-1",
    ] {
        assert_eq!(wrong.parse::<Cut>(), Err(()), "{wrong}");
    }
}

/// A record of 72 bytes can state that a disk of 1 TiB was discarded.
#[test]
fn a_discard_of_a_large_disk_takes_little_memory() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = File::create(file.path()).expect("writable");
    let size = 1 << 40;
    let mut writer = RecordWriter::new(to, size, 1 << 30).expect("a header");
    let entry = Entry {
        kind: Kind::Discard,
        offset: 0,
        length: size,
        start: 1,
        end: 2,
    };
    writer.append(entry, &[]).expect("room");
    writer.flush().expect("written");
    let record = Record::open(file.path()).expect("whole");
    for choice in LEGAL {
        let runs = image(&record, cut(5, choice, 3), 512).extra.runs();
        assert!(runs <= 4096, "{choice}: {runs}");
    }
    assert_eq!(image(&record, cut(5, Choice::All, 3), 512).extra.runs(), 1);
}

/// As disks write that promise 16 KiB: a write of several blocks keeps some of them, each as a whole.
#[test]
fn a_larger_block_is_torn_as_a_whole() {
    let record = record(&[Write(0, 1), Flush, Write(64, 128)]);
    let mut parts = 0;
    for seed in 0..50 {
        let image = image(&record, cut(20, Choice::Torn, seed), 16384);
        let kept: Vec<u64> = image.extra.each().map(|(sector, _)| sector).collect();
        for block in 0..4 {
            let first = 64 + block * 32;
            let count = kept
                .iter()
                .filter(|one| (first..first + 32).contains(*one))
                .count();
            assert!(
                count == 0 || count == 32,
                "{count} of 32 sectors of block {block}"
            );
        }
        parts += usize::from(!kept.is_empty() && kept.len() < 128);
    }
    assert!(parts > 20, "{parts} of 50 images have a part of the write");
}
