//! Syncs of files of which no name outlives the run.

use std::collections::{BTreeMap, HashMap};

use super::name_state::base_of;
use crate::finding::RemovedSyncs;

/// Names and directories beyond this number are not kept.
const MOST: usize = 10_000;

/// Syncs that had something to write.
#[derive(Default)]
pub struct ShortLived {
    /// How many syncs there were of files that had no name, and got none.
    unnamed: u64,
    /// How many syncs there were of files that the run made and removed, by the name that was removed.
    removed: HashMap<String, u64>,
    /// How many syncs there were of files with a name, by the file's directory.
    of_directory: BTreeMap<String, u64>,
    /// Syncs of files in further directories.
    elsewhere: u64,
}

impl ShortLived {
    /// A file with a name was synced.
    pub fn synced(&mut self, path: &str) {
        let directory = directory_of(path);
        if let Some(count) = self.of_directory.get_mut(directory) {
            *count += 1;
        } else if self.of_directory.len() < MOST {
            self.of_directory.insert(directory.to_owned(), 1);
        } else {
            self.elsewhere += 1;
        }
    }

    /// A file that the run made, and synced so often, lost its last name.
    pub fn removed(&mut self, path: &str, syncs: u64) {
        if syncs == 0 {
            return;
        }
        if let Some(count) = self.removed.get_mut(path) {
            *count += syncs;
        } else if self.removed.len() < MOST {
            self.removed.insert(path.to_owned(), syncs);
        }
    }

    /// A file that never got a name is gone, and was synced so often.
    pub fn vanished(&mut self, syncs: u64) {
        self.unnamed += syncs;
    }

    /// Syncs of files without a name, and those of removed files by directory, most first; `is_there`: whether something
    /// has a name at the end.
    pub fn at_the_end(&self, is_there: impl Fn(&str) -> bool) -> (u64, Vec<RemovedSyncs>) {
        let mut by_directory: BTreeMap<&str, u64> = BTreeMap::new();
        for (path, syncs) in self.removed.iter().filter(|(path, _)| !is_there(path)) {
            *by_directory.entry(directory_of(path)).or_default() += syncs;
        }
        let mut removed: Vec<RemovedSyncs> = by_directory
            .into_iter()
            .map(|(directory, syncs)| RemovedSyncs {
                directory: directory.to_owned(),
                syncs,
                of: self.below(directory),
            })
            .collect();
        removed.sort_by_key(|one| std::cmp::Reverse(one.syncs));
        (self.unnamed, removed)
    }

    /// At most so many syncs were made of files with a name in the tree below a directory.
    fn below(&self, directory: &str) -> u64 {
        let from = self.of_directory.range(directory.to_owned()..);
        let tree = from.take_while(|(path, _)| path.starts_with(directory));
        tree.map(|(_, syncs)| syncs).sum::<u64>() + self.elsewhere
    }
}

/// With the slash at its end; empty where a path has no directory.
fn directory_of(path: &str) -> &str {
    &path[..path.len() - base_of(path).len().min(path.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_at_the_end_is_no_removed_one() {
        let mut all = ShortLived::default();
        for path in ["/a/x", "/a/x", "/a/y", "/a/below/y", "/a-b/y", "/b/z"] {
            all.synced(path);
        }
        all.removed("/a/x", 2);
        all.removed("/b/z", 1);
        all.removed("/b/never-synced", 0);
        all.vanished(3);
        let (unnamed, removed) = all.at_the_end(|path| path == "/b/z");
        let expected = [RemovedSyncs {
            directory: "/a/".to_owned(),
            syncs: 2,
            of: 4,
        }];
        assert_eq!((unnamed, removed), (3, expected.to_vec()));
    }
}
