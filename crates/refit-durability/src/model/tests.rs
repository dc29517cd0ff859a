//! Sequences of events, and what they break.

use super::data::O_CREAT;
use super::names::is_copy;
use super::*;
use crate::finding::Level;
use crate::rule::Rule;

const DIRECTORY: FileId = FileId {
    device: 1,
    inode: 2,
};

/// Makes events of one process, each with the number that follows.
struct Story {
    model: Model,
    number: u64,
    /// What lies under each path in the end.
    at: HashMap<String, FileFacts>,
}

impl Story {
    fn new() -> Story {
        Story {
            model: Model::new(Ignored::default()),
            number: 0,
            at: HashMap::new(),
        }
    }

    fn take(&mut self, operation: Operation, inode: u64, change: impl FnOnce(&mut FileEvent)) {
        let mut event = FileEvent {
            number: self.number,
            began: self.number,
            image: 1,
            pid: 7,
            parent: 1,
            operation,
            flags: 0,
            result: 0,
            descriptor: -1,
            open_flags: 0,
            file: regular(inode),
            other: FileFacts::default(),
            directory: DIRECTORY,
            old_directory: DIRECTORY,
            at: 0,
            length: 0,
            registers: [0; 3],
            path: format!("/d/{inode}"),
            old_path: String::new(),
            stack: Vec::new(),
            script: Vec::new(),
        };
        change(&mut event);
        self.number += 1;
        self.model.take(&event, None);
        self.at.insert(event.path, event.file);
    }

    fn create(&mut self, inode: u64) {
        self.take(Operation::Opened, inode, |event| {
            event.open_flags = O_CREAT;
        });
    }

    fn write(&mut self, inode: u64) {
        self.take(Operation::Wrote, inode, |_| {});
    }

    fn sync(&mut self, inode: u64) {
        self.take(Operation::Synced, inode, |_| {});
    }

    fn rename_over(&mut self, inode: u64, replaced: u64) {
        self.take(Operation::Renamed, inode, |event| {
            event.other = regular(replaced);
            event.path = format!("/d/{replaced}");
            event.old_path = format!("/d/{inode}");
        });
    }

    /// Rules that are broken, but for notes.
    fn broken(self) -> Vec<Rule> {
        let at = self.at;
        let judgement = self.model.finish(|path| at.get(path).copied());
        let groups = judgement.groups();
        let heavy = groups.iter().filter(|one| one.first.level != Level::Note);
        heavy.map(|one| one.first.rule).collect()
    }
}

fn regular(inode: u64) -> FileFacts {
    FileFacts {
        id: FileId { device: 1, inode },
        size: 10,
        changed_ns: 5,
        links: 1,
        mode: 0o100_644,
    }
}

#[test]
fn a_rename_over_a_file_needs_a_sync_before() {
    let mut story = Story::new();
    story.create(5);
    story.write(5);
    story.rename_over(5, 6);
    assert_eq!(story.broken(), [Rule::ReplacedUnsynced]);

    let mut story = Story::new();
    story.create(5);
    story.write(5);
    story.sync(5);
    story.rename_over(5, 6);
    assert_eq!(story.broken(), [Rule::NameUnsynced]);
}

#[test]
fn a_sync_covers_what_ended_before_it_began() {
    let mut story = Story::new();
    story.create(5);
    let began = story.number;
    story.write(5);
    // Another thread's sync had begun before the write ended.
    story.take(Operation::Synced, 5, |event| event.began = began);
    story.rename_over(5, 6);
    assert_eq!(story.broken(), [Rule::ReplacedUnsynced]);
}

#[test]
fn a_write_that_was_not_told_is_seen_by_size_or_time() {
    for change in [
        (|file: &mut FileFacts| file.size += 1) as fn(&mut FileFacts),
        |file| file.changed_ns += 1,
    ] {
        let mut story = Story::new();
        story.create(5);
        story.write(5);
        story.sync(5);
        story.take(Operation::Renamed, 5, |event| {
            change(&mut event.file);
            event.other = regular(6);
            event.old_path = "/d/5".to_owned();
            event.path = "/d/6".to_owned();
        });
        assert_eq!(story.broken(), [Rule::ReplacedUnsynced]);
    }
}

#[test]
fn a_time_that_was_set_is_no_write() {
    let mut story = Story::new();
    story.create(5);
    story.write(5);
    story.sync(5);
    story.take(Operation::Timed, 5, |event| event.file.changed_ns = 1);
    story.take(Operation::Renamed, 5, |event| {
        event.file.changed_ns = 1;
        event.other = regular(6);
        event.old_path = "/d/5".to_owned();
        event.path = "/d/6".to_owned();
    });
    assert_eq!(story.broken(), [Rule::NameUnsynced]);
}

#[test]
fn the_number_of_an_inode_may_be_another_files() {
    // File 6 was replaced, and another process made a file with its number before that was told.
    let mut story = Story::new();
    story.create(5);
    let began = story.number;
    story.create(6);
    story.write(6);
    story.take(Operation::Renamed, 5, |event| {
        event.began = began;
        event.other = regular(6);
        event.old_path = "/d/5".to_owned();
        event.path = "/d/9".to_owned();
    });
    story.rename_over(6, 8);
    assert!(story.broken().contains(&Rule::ReplacedUnsynced));
}

#[test]
fn what_was_replaced_stays_durable_although_its_inode_is_another_files() {
    // File 6 was there before the run, and is known.
    let mut story = Story::new();
    story.take(Operation::Opened, 6, |event| event.other = regular(6));
    story.create(5);
    story.write(5);
    let began = story.number;
    story.create(6);
    story.take(Operation::Renamed, 5, |event| {
        event.began = began;
        event.other = regular(6);
        event.old_path = "/d/5".to_owned();
        event.path = "/d/9".to_owned();
    });
    assert!(story.broken().contains(&Rule::ReplacedUnsynced));
}

#[test]
fn a_sync_of_the_file_system_covers_all_of_it() {
    for operation in [Operation::AllSynced, Operation::FileSystemSynced] {
        let mut story = Story::new();
        story.create(5);
        story.write(5);
        story.take(operation, 6, |_| {});
        story.rename_over(5, 6);
        story.take(operation, 6, |_| {});
        assert_eq!(story.broken(), []);
    }
    // Another one's does not.
    let mut story = Story::new();
    story.create(5);
    story.write(5);
    story.take(Operation::FileSystemSynced, 6, |event| {
        event.file.id.device = 2;
    });
    story.rename_over(5, 6);
    assert_eq!(story.broken(), [Rule::ReplacedUnsynced]);
}

#[test]
fn a_descriptor_that_cannot_be_synced_is_no_lost_data() {
    let mut story = Story::new();
    story.create(5);
    story.write(5);
    story.take(Operation::Synced, 5, |event| event.result = -22);
    assert_eq!(story.broken(), []);
    let mut story = Story::new();
    story.create(5);
    story.write(5);
    story.take(Operation::Synced, 5, |event| event.result = -5);
    assert_eq!(story.broken(), [Rule::ErrorIgnored]);
}

#[test]
fn copies_are_known_by_their_names() {
    for (old, new) in [("a", "a.gz"), ("a.gz", "a"), ("a", "a")] {
        assert!(is_copy(old, new), "{old} {new}");
    }
    for (old, new) in [("a", "b"), ("a", "ab"), ("", "x"), ("a.gz", "a.xz")] {
        assert!(!is_copy(old, new), "{old} {new}");
    }
}

/// The ring is written by other processes: each field may hold anything.
#[test]
fn whatever_is_told_is_judged() {
    let mut state = 7_u64;
    let mut next = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let mut story = Story::new();
    let operations = [
        Operation::Opened,
        Operation::Wrote,
        Operation::Resized,
        Operation::Renamed,
        Operation::Linked,
        Operation::Made,
        Operation::Removed,
        Operation::Synced,
        Operation::DataSynced,
        Operation::AllSynced,
        Operation::FileSystemSynced,
        Operation::RangeSynced,
        Operation::Mapped,
        Operation::MapSynced,
        Operation::Timed,
        Operation::Acknowledged,
    ];
    for _ in 0..50_000 {
        let operation = operations[next(16) as usize];
        let huge = [0, 1, u64::MAX, 1 << 63][next(4) as usize];
        let mut facts = |_| FileFacts {
            id: FileId {
                device: next(2),
                inode: next(8),
            },
            size: next(3).wrapping_mul(huge),
            changed_ns: huge,
            links: u32::try_from(next(3)).unwrap(),
            mode: [0o100_644, 0o40_755, 0o120_777, 0][next(4) as usize],
        };
        let (file, other) = (facts(0), facts(1));
        let (flags, began, names) = (next(16), next(60_000), [next(4), next(4)]);
        let (result, open_flags) = (next(40) as i32 - 35, next(4096) as i32);
        story.take(operation, 5, |event| {
            (event.file, event.other) = (file, other);
            (event.flags, event.result, event.open_flags) = (flags as u32, result, open_flags);
            (event.at, event.length) = (huge, u64::MAX - huge / 2);
            event.began = began.min(event.number);
            event.path = ["", "/", "/d/x", "/d/x.gz"][names[0] as usize].to_owned();
            event.old_path = ["", "x", "/d/y", "//"][names[1] as usize].to_owned();
        });
    }
    assert!(!story.broken().is_empty());
}

/// Each sync and acknowledgement costs what belongs to it: a look at all names for each would be 5,000,000,000 looks.
#[test]
fn a_hundred_thousand_names_that_stay_pending_are_judged() {
    let mut story = Story::new();
    for inode in 10..100_010 {
        story.create(inode);
        story.write(inode);
        story.sync(inode);
        story.take(Operation::Acknowledged, 1, |_| {});
    }
    let counts = story.model.judgement.counts;
    assert_eq!((counts.events, counts.syncs), (400_000, 100_000));
}
