//! The names that are not durable, found by their directory, by their file, and by whether they were judged.

use std::collections::{BTreeSet, HashMap};

use refit_session::file_events::FileId;

use super::name_state::NameState;

/// A name: its directory, and its last part.
pub type Key = (FileId, String);

/// Each call costs what belongs to its directory or file, however many names there are besides.
#[derive(Default)]
pub struct NameTable {
    of_directory: HashMap<FileId, HashMap<String, NameState>>,
    /// Names of a file that a sync of it may cover.
    of_file: HashMap<FileId, Vec<Key>>,
    /// Names that no acknowledgement has judged, by the number of their event: a rename changes two.
    unjudged: BTreeSet<(u64, Key)>,
}

impl NameTable {
    /// The state of a name; `None`: it is as the disk has it.
    pub fn get(&self, key: &Key) -> Option<&NameState> {
        self.of_directory.get(&key.0)?.get(&key.1)
    }

    /// The names in a directory that are not durable.
    pub fn in_directory(&self, directory: FileId) -> impl Iterator<Item = &NameState> {
        self.of_directory
            .get(&directory)
            .into_iter()
            .flat_map(HashMap::values)
    }

    /// Takes a name out.
    pub fn remove(&mut self, key: &Key) -> Option<NameState> {
        let state = self.of_directory.get_mut(&key.0)?.remove(&key.1)?;
        self.unjudged.remove(&(state.number, key.clone()));
        if let Some(names) = self.of_file.get_mut(&state.file) {
            names.retain(|name| name != key);
        }
        Some(state)
    }

    /// Puts in a name that has changed.
    pub fn insert(&mut self, key: Key, state: NameState) {
        self.unjudged.insert((state.number, key.clone()));
        if state.file.inode != 0 {
            self.of_file
                .entry(state.file)
                .or_default()
                .push(key.clone());
        }
        let names = self.of_directory.entry(key.0).or_default();
        names.insert(key.1, state);
    }

    /// A directory was synced, by a sync that began when there were so many events. Whether that made a name durable.
    pub fn directory_synced(&mut self, directory: FileId, began: u64) -> bool {
        let names = self.of_directory.get(&directory);
        let covered = names.into_iter().flatten();
        let covered: Vec<Key> = covered
            .filter(|(_, state)| state.number < began)
            .map(|(name, _)| (directory, name.clone()))
            .collect();
        covered.iter().for_each(|key| {
            self.remove(key);
        });
        !covered.is_empty()
    }

    /// A file was synced. Whether Linux writes a name with it that it did not write before; `is_full`: by fsync.
    pub fn file_synced(&mut self, file: FileId, began: u64, is_full: bool) -> bool {
        let mut covers_some = false;
        let Some(keys) = self.of_file.remove(&file) else {
            return false;
        };
        let left = keys.into_iter().filter(|(directory, name)| {
            let names = self.of_directory.get_mut(directory);
            let Some(state) = names.and_then(|names| names.get_mut(name)) else {
                return false;
            };
            let is_covered = state.number < began && state.is_covered_by_file(is_full);
            covers_some |= is_covered;
            state.is_file_synced |= is_covered;
            !is_covered
        });
        let left: Vec<Key> = left.collect();
        if !left.is_empty() {
            self.of_file.insert(file, left);
        }
        covers_some
    }

    /// File systems were synced.
    pub fn all_synced(&mut self, is_meant: impl Fn(&FileId) -> bool, began: u64) {
        let directories = self.of_directory.keys().copied();
        let directories: Vec<FileId> = directories.filter(is_meant).collect();
        for directory in directories {
            self.directory_synced(directory, began);
        }
    }

    /// Those that were changed before an event, were not judged yet and are to be now, in the order in which they were
    /// changed.
    pub fn unjudged(&self, before: u64, is_meant: impl Fn(&NameState) -> bool) -> Vec<Key> {
        let end = (before, (FileId::default(), String::new()));
        let keys = self.unjudged.range(..end).map(|(_, key)| key);
        let meant = keys.filter(|key| self.get(key).is_some_and(&is_meant));
        meant.cloned().collect()
    }

    /// Somebody was told that the name is there.
    pub fn judged(&mut self, key: &Key) {
        let names = self.of_directory.get_mut(&key.0);
        if let Some(state) = names.and_then(|names| names.get_mut(&key.1)) {
            state.is_acknowledged = true;
            self.unjudged.remove(&(state.number, key.clone()));
        }
    }

    /// Leaves out names whose files are gone.
    pub fn retain(&mut self, is_there: impl Fn(&NameState) -> bool) {
        let gone: Vec<Key> = self
            .of_directory
            .iter()
            .flat_map(|(directory, names)| {
                let gone = names.iter().filter(|(_, state)| !is_there(state));
                gone.map(|(name, _)| (*directory, name.clone()))
            })
            .collect();
        gone.iter().for_each(|key| {
            self.remove(key);
        });
    }
}
