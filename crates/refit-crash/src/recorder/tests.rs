use super::*;
use crate::record::Record;

const SIZE: u64 = 8 << 20;

fn disk(cap: u64) -> (Recorder, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = File::create(file.path()).expect("writable");
    let record = RecordWriter::new(to, SIZE, cap).expect("a header");
    let content = tempfile::tempfile().expect("a file");
    let disk = Recorder::new(content, record, SIZE, Vec::new(), 1).expect("a disk");
    (disk, file)
}

/// Of three megabytes, so that the thread gets several batches.
#[test]
fn it_holds_and_records_what_it_received() {
    let (mut disk, file) = disk(1 << 30);
    let block = |n: u64| vec![n as u8; 64 << 10];
    for n in 0..48 {
        disk.write(n << 16, &block(n)).expect("room");
    }
    disk.flush().expect("nothing failed");
    disk.zero(3 << 16, 4096, true).expect("nothing failed");
    disk.write(7 << 16, &[77; 512]).expect("room");
    let mut read = vec![0; 64 << 10];
    disk.read(5 << 16, &mut read).expect("it is there");
    assert_eq!(read, block(5));
    disk.read(3 << 16, &mut read).expect("it is there");
    assert_eq!((read[0], read[4095], read[4096]), (0, 0, 3));
    disk.read(7 << 16, &mut read).expect("it is there");
    assert_eq!((read[511], read[512]), (77, 7));
    disk.control("finish").expect("nothing failed");
    let bytes = std::fs::metadata(file.path()).expect("it is there").len();
    assert_eq!(disk.status(), bytes.to_string());

    let record = Record::open(file.path()).expect("whole");
    let kinds: Vec<Kind> = record.entries().iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds[..48], [Kind::Write; 48]);
    assert_eq!(kinds[48..], [Kind::Flush, Kind::Discard, Kind::Write]);
    let mut data = Vec::new();
    record.data(41, &mut data).expect("it is there");
    assert_eq!(data, block(41));
}

#[test]
fn a_full_record_refuses_what_comes_later_and_reports_it() {
    let (mut disk, _file) = disk(1 << 20);
    let mut state = 1_u64;
    let mut noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as u8
    };
    let block: Vec<u8> = (0..64 << 10).map(|_| noise()).collect();
    let refused = (0..1000).find_map(|n| disk.write((n % 100) << 16, &block).err());
    assert_eq!(
        refused.map(|error| error.kind()),
        Some(io::ErrorKind::StorageFull)
    );
    assert!(disk.status().contains("failed"), "{}", disk.status());
    assert!(disk.flush().is_err());
    assert!(disk.control("finish").is_err());
}
