//! Without root: a recorded disk after a cut, as a plain file that e2fsck repairs and debugfs reads. (e2fsck may repair
//! more than a mount does.)

use std::fs;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::*;
use crate::acknowledgement::Acknowledgement;
use crate::cuts;
use crate::image::Choice;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/append");

#[derive(Deserialize)]
struct Run {
    from: u64,
    to: u64,
    acknowledgements: Vec<Acknowledgement>,
}

fn sample() -> (Record, Run) {
    let mut record = tempfile::tempfile().expect("a file");
    let unpacked = Command::new("gzip")
        .arg("-dc")
        .arg(Path::new(SAMPLE).join("record.gz"))
        .stdout(record.try_clone().expect("another descriptor"))
        .status();
    assert!(unpacked.expect("gzip").success());
    record.rewind().expect("a file of its own");
    let record = Record::read(record).expect("whole");
    let text = fs::read_to_string(Path::new(SAMPLE).join("recorded_run.json")).expect("readable");
    (
        record,
        serde_json::from_str(&text).expect("as it was written"),
    )
}

/// A program of e2fsprogs; Debian installs them in /sbin, which is not in a user's PATH.
fn e2fsprogs(name: &str) -> Command {
    let path = PathBuf::from("/sbin").join(name);
    Command::new(if path.exists() { path } else { name.into() })
}

/// The lines of a.log after the cut, and after recovery.
fn recovered(states: &mut States, cut: Cut, directory: &Path) -> Vec<u64> {
    states.show(cut);
    let mut disk = vec![0; usize::try_from(states.size()).expect("8 MiB")];
    states.read(0, &mut disk).expect("readable");
    let (image, log) = (directory.join("image"), directory.join("a.log"));
    fs::write(&image, disk).expect("writable");
    let repaired = e2fsprogs("e2fsck")
        .arg("-fy")
        .arg(&image)
        .output()
        .expect("e2fsprogs");
    // 0: clean, 1: repaired (e2fsck(8)).
    assert!(repaired.status.code() <= Some(1), "{cut}: {repaired:?}");
    let _ = fs::remove_file(&log);
    let dump = format!("dump /a.log {}", log.display());
    e2fsprogs("debugfs")
        .args(["-R", &dump])
        .arg(&image)
        .output()
        .expect("e2fsprogs");
    let text = fs::read_to_string(&log).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn lost(states: &mut States, run: &Run, first: u64, cut: Cut, directory: &Path) -> usize {
    let found = recovered(states, cut, directory);
    let promised = run
        .acknowledgements
        .iter()
        .filter(|one| one.at <= first + cut.at);
    promised
        .filter(|one| !found.contains(&one.id.parse().expect("a number")))
        .count()
}

#[test]
fn a_recorded_log_loses_nothing_unless_the_disk_lies() {
    let (record, run) = sample();
    let first = record.entries()[0].start;
    let times: Vec<u64> = run.acknowledgements.iter().map(|one| one.at).collect();
    let cuts = cuts::choose(&record, &times, (run.from, run.to), 40, 7);
    let mut states = States::new(record, 4096);
    let place = tempfile::tempdir().expect("a directory");
    let mut promised = 0;
    for cut in &cuts {
        assert_eq!(
            lost(&mut states, &run, first, *cut, place.path()),
            0,
            "{cut}"
        );
        promised += times.iter().filter(|time| **time <= first + cut.at).count();
    }
    assert!(promised > 400, "{promised} lines were looked for");
    let lies = cuts::lying(&cuts, run.from - first, 10);
    assert!(lies.iter().any(|cut| cut.choice == Choice::Lying));
    let lossy = lies
        .iter()
        .filter(|cut| lost(&mut states, &run, first, **cut, place.path()) > 0)
        .count();
    assert!(lossy >= 5, "{lossy} of {}", lies.len());
}
