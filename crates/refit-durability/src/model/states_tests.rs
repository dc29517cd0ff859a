//! Random sequences of calls: what is found equals what the states say that a power cut may leave, all of them listed.
//!
//! A state takes for each file one of its contents since it was synced, and for each name one of the files that it led to
//! since the directory was synced. That is all that POSIX promises.

use std::collections::{BTreeMap, BTreeSet};

use super::data::O_CREAT;
use super::*;
use crate::rule::Rule;

const NAMES: [&str; 3] = ["a", "b", "c"];
const DIRECTORY: FileId = FileId {
    device: 1,
    inode: 2,
};
const SEQUENCES: u64 = 40000;

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)) % end
    }
}

/// The number of a file's content; 0: nothing was written.
type Content = u64;
type State = BTreeMap<&'static str, Content>;

/// What may be on the disk, and what is in memory.
#[derive(Default)]
struct Disk {
    /// Since its last sync, the durable one first.
    contents: BTreeMap<u64, Vec<Content>>,
    synced: BTreeSet<u64>,
    /// Since the last sync of the directory, the durable one first; `None`: no file.
    names: BTreeMap<&'static str, Vec<Option<u64>>>,
}

impl Disk {
    fn file(&self, name: &str) -> Option<u64> {
        *self.names.get(name)?.last()?
    }

    fn lead(&mut self, name: &'static str, to: Option<u64>) {
        self.names
            .entry(name)
            .or_insert_with(|| vec![None])
            .push(to);
    }

    fn content(&self, file: u64) -> Content {
        *self.contents[&file].last().expect("it has one")
    }

    fn memory(&self) -> State {
        let there = NAMES
            .iter()
            .filter_map(|name| Some((*name, self.file(name)?)));
        there
            .map(|(name, file)| (name, self.content(file)))
            .collect()
    }

    /// All that a power cut may leave.
    fn states(&self) -> Vec<State> {
        let mut states = vec![(State::new(), BTreeMap::<u64, Content>::new())];
        for (name, files) in &self.names {
            let mut next = Vec::new();
            for (state, chosen) in &states {
                for file in files {
                    let Some(file) = file else {
                        next.push((state.clone(), chosen.clone()));
                        continue;
                    };
                    // One file has one content, whatever leads to it.
                    let contents = match chosen.get(file) {
                        Some(content) => vec![*content],
                        None => self.contents[file].clone(),
                    };
                    for content in contents {
                        let (mut state, mut chosen) = (state.clone(), chosen.clone());
                        state.insert(name, content);
                        chosen.insert(*file, content);
                        next.push((state, chosen));
                    }
                }
            }
            states = next;
        }
        states.into_iter().map(|(state, _)| state).collect()
    }

    /// Whether some state lacks what is in memory, or has what was durable and was removed. What was never durable and is
    /// gone may be left over: a temporary file.
    fn may_differ(&self) -> bool {
        let memory = self.memory();
        let was_durable = |name: &str| self.names[name].first().is_some_and(Option::is_some);
        self.states().iter().any(|state| {
            let differs = |name: &&&str| state.get(**name) != memory.get(**name);
            NAMES
                .iter()
                .filter(differs)
                .any(|name| memory.contains_key(name) || was_durable(name))
        })
    }

    /// Whether a power cut may leave something under the name that was synced; not what the program itself has removed or
    /// moved away from there.
    fn has_synced(&self, name: &str) -> bool {
        let files = self.names.get(name).into_iter().flatten().rev();
        let mut files = files.map_while(|file| *file);
        files.any(|file| self.synced.contains(&file))
    }

    fn is_synced(&self, file: u64) -> bool {
        self.contents[&file].len() == 1 && self.synced.contains(&file)
    }
}

/// Both beside each other.
struct Run {
    disk: Disk,
    model: Model,
    number: u64,
    next_file: u64,
    /// Renames over something durable, with data that was not.
    replaced: usize,
    words: Vec<String>,
}

const MAIN: u32 = 10;

impl Run {
    fn tell(&mut self, operation: Operation, file: u64, change: impl FnOnce(&mut FileEvent)) {
        let content = self
            .disk
            .contents
            .get(&file)
            .map_or(0, |all| all.len() as u64);
        let mut event = FileEvent {
            number: self.number,
            began: self.number,
            image: 1,
            // Each call comes from a process of its own: the model takes a later sync of the same process for a journal's.
            pid: 100 + u32::try_from(self.number).unwrap(),
            parent: MAIN,
            operation,
            flags: 0,
            result: 0,
            descriptor: -1,
            open_flags: 0,
            file: facts(file, content),
            other: FileFacts::default(),
            directory: DIRECTORY,
            old_directory: DIRECTORY,
            at: 0,
            length: 0,
            registers: [0; 3],
            path: String::new(),
            old_path: String::new(),
            stack: Vec::new(),
            script: Vec::new(),
        };
        change(&mut event);
        self.number += 1;
        self.model.take(&event, None);
    }

    fn step(&mut self, random: &mut Random) {
        let name = NAMES[random.below(3) as usize];
        let file = self.disk.file(name);
        match (random.below(6), file) {
            (0 | 1, None) => {
                let file = self.next_file;
                self.next_file += 1;
                self.words.push(format!("make {name}"));
                self.disk.contents.insert(file, vec![0]);
                self.disk.lead(name, Some(file));
                self.tell(Operation::Opened, file, |event| {
                    event.open_flags = O_CREAT;
                    event.path = format!("/d/{name}");
                });
                self.write(name, file);
            }
            (0 | 1, Some(file)) => self.write(name, file),
            (2, Some(file)) => {
                self.words.push(format!("sync {name}"));
                let last = self.disk.content(file);
                self.disk.contents.insert(file, vec![last]);
                self.disk.synced.insert(file);
                self.tell(Operation::Synced, file, |event| {
                    event.path = format!("/d/{name}");
                    event.file.changed_ns = last;
                });
            }
            (3, Some(file)) => {
                let to = NAMES[random.below(3) as usize];
                if to != name {
                    self.rename(name, to, file);
                }
            }
            (4, Some(file)) => {
                self.words.push(format!("remove {name}"));
                self.disk.lead(name, None);
                self.tell(Operation::Removed, file, |event| {
                    event.path = format!("/d/{name}");
                });
            }
            (5, _) => {
                self.words.push("sync directory".to_owned());
                for files in self.disk.names.values_mut() {
                    files.drain(..files.len() - 1);
                }
                self.tell(Operation::Synced, DIRECTORY.inode, |event| {
                    event.file.mode = 0o40_755;
                    event.path = "/d".to_owned();
                });
            }
            _ => {}
        }
    }

    fn write(&mut self, name: &str, file: u64) {
        self.words.push(format!("write {name}"));
        let content = self.disk.content(file) + 1;
        self.disk.contents.get_mut(&file).unwrap().push(content);
        self.tell(Operation::Wrote, file, |event| {
            event.path = format!("/d/{name}");
            event.file.changed_ns = content;
        });
    }

    fn rename(&mut self, from: &'static str, to: &'static str, file: u64) {
        self.words.push(format!("rename {from} {to}"));
        let other = self.disk.file(to);
        let loses = other.is_some() && self.disk.has_synced(to) && !self.disk.is_synced(file);
        self.replaced += usize::from(loses);
        self.disk.lead(from, None);
        self.disk.lead(to, Some(file));
        let content = self.disk.content(file);
        self.tell(Operation::Renamed, file, |event| {
            event.file.changed_ns = content;
            event.other = other.map(|other| facts(other, 0)).unwrap_or_default();
            event.path = format!("/d/{to}");
            event.old_path = format!("/d/{from}");
        });
    }
}

fn facts(inode: u64, changed_ns: u64) -> FileFacts {
    FileFacts {
        id: FileId { device: 1, inode },
        size: 10,
        changed_ns,
        links: 1,
        mode: 0o100_644,
    }
}

#[test]
fn what_is_found_is_what_the_states_after_a_power_cut_say() {
    let (mut differed, mut replaced) = (0, 0);
    for seed in 0..SEQUENCES {
        let random = &mut Random(seed);
        let mut run = Run {
            disk: Disk::default(),
            model: Model::new(Ignored::default()),
            number: 0,
            next_file: 100,
            replaced: 0,
            words: Vec::new(),
        };
        for _ in 0..3 + random.below(10) {
            run.step(random);
        }
        run.tell(Operation::Acknowledged, 1, |event| event.pid = MAIN);
        let may_differ = run.disk.may_differ();
        let groups = run.model.judgement.groups();
        let at_write = |one: &&&Group| one.first.acknowledged == Some(AcknowledgedBy::Write);
        let found = groups.iter().filter(at_write).count() > 0;
        assert_eq!(found, may_differ, "{seed}: {:?}: {groups:#?}", run.words);
        let of_rule = |one: &&&Group| one.first.rule == Rule::ReplacedUnsynced;
        let found: u64 = groups.iter().filter(of_rule).map(|one| one.count).sum();
        assert_eq!(found, run.replaced as u64, "{seed}: {:?}", run.words);
        differed += usize::from(may_differ);
        replaced += run.replaced;
    }
    // Both answers were given, and often.
    let all = SEQUENCES as usize;
    assert!((all / 10..all - all / 10).contains(&differed), "{differed}");
    assert!(replaced > 100, "{replaced}");
}
