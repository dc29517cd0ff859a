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
