use std::fs::File;

use super::*;
use crate::record::{Entry, RecordWriter};

/// Two durable writes, then a pending one: 1s at 0, 2s at 4096, 3s at 4608.
fn states() -> States {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = File::create(file.path()).expect("writable");
    let mut writer = RecordWriter::new(to, 1 << 20, 1 << 30).expect("a header");
    let mut append = |kind, offset, length, start| {
        let entry = Entry {
            kind,
            offset,
            length,
            start,
            end: start + 1,
        };
        let fill = u8::try_from(start / 10).expect("early");
        let data = vec![fill; usize::try_from(length).expect("small")];
        writer.append(entry, &data).expect("room");
    };
    append(Kind::Write, 0, 8192, 10);
    append(Kind::Write, 4096, 4096, 20);
    append(Kind::Flush, 0, 0, 25);
    append(Kind::Write, 4608, 512, 30);
    append(Kind::Zero, 0, 512, 40);
    writer.flush().expect("written");
    States::new(Record::open(file.path()).expect("whole"), 4096)
}

fn byte(states: &mut States, offset: u64) -> u8 {
    let mut sector = [9; 512];
    states
        .read(offset / 512 * 512, &mut sector)
        .expect("readable");
    assert!(sector.iter().all(|byte| *byte == sector[0]));
    sector[0]
}

#[test]
fn a_state_shows_what_was_there() {
    let mut states = states();
    states.control("c31-all-1").expect("a state");
    let shown = [0, 512, 4096, 4608, 5120, 8192].map(|at| byte(&mut states, at));
    assert_eq!(shown, [0, 1, 2, 3, 2, 0]);
    states.control("c31-none-1").expect("a state");
    let shown = [0, 4096, 4608].map(|at| byte(&mut states, at));
    assert_eq!(shown, [1, 2, 2]);
    // Back in time: before the flush nothing is durable.
    states.control("c5-none-1").expect("a state");
    assert_eq!(byte(&mut states, 0), 0);
    states.control("end").expect("a state");
    assert_eq!([0, 512, 4608].map(|at| byte(&mut states, at)), [0, 1, 3]);
}

#[test]
fn what_is_written_to_a_state_is_gone_with_it() {
    let mut states = states();
    states.control("c31-none-1").expect("a state");
    states.write(512, &[7; 512]).expect("room");
    states
        .write(4096 - 512, &[8; 1024])
        .expect("over a page's end");
    states.zero(4608, 512, false).expect("room");
    let shown = [0, 512, 1024, 3584, 4096, 4608, 5120].map(|at| byte(&mut states, at));
    assert_eq!(shown, [1, 7, 1, 8, 8, 0, 2]);
    states.control("c31-none-1").expect("a state");
    let shown = [512, 3584, 4096, 4608].map(|at| byte(&mut states, at));
    assert_eq!(shown, [1, 1, 2, 2]);
}

#[test]
fn a_long_read_is_the_sum_of_short_ones() {
    let mut states = states();
    states.control("c31-all-1").expect("a state");
    states.write(5120, &[7; 512]).expect("room");
    let mut all = vec![9; 16384];
    states.read(0, &mut all).expect("readable");
    for (at, sector) in (0..).step_by(512).zip(all.chunks(512)) {
        assert_eq!(sector[0], byte(&mut states, at), "{at}");
    }
}

#[test]
fn discarding_the_whole_disk_takes_no_memory() {
    let mut states = states();
    states.control("c31-all-1").expect("a state");
    states.zero(0, 1 << 20, true).expect("room");
    assert_eq!([512, 4096, 4608].map(|at| byte(&mut states, at)), [0, 0, 0]);
    assert_eq!(states.written.len(), 2);
}

#[test]
fn other_words_are_refused() {
    for words in ["", "finish", "c1", "c1-all-1 "] {
        assert!(states().control(words).is_err(), "{words:?}");
    }
}
