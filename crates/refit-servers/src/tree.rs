//! Where the files of a server are read.

use std::fs;
use std::io;

/// This machine, or a tree of files of another one.
pub trait Tree {
    /// Why a file or a directory cannot be read.
    type Error;

    /// The content of a file; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The names in a directory, in any order; none where it is missing.
    ///
    /// # Errors
    /// It cannot be read.
    fn names(&self, directory: &str) -> Result<Vec<String>, Self::Error>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine;

impl Tree for Machine {
    type Error = io::Error;

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        found(fs::read(path))
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        let entries = found(fs::read_dir(directory))?.into_iter().flatten();
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }
}

/// The names in a directory, sorted by bytes, with that of `ours` where it is a file of this directory, there or not.
pub fn names<T: Tree>(tree: &T, directory: &str, ours: &str) -> Result<Vec<String>, T::Error> {
    let mut names = tree.names(directory)?;
    let own = ours.rsplit_once('/').filter(|(of, _)| *of == directory);
    names.extend(own.map(|(_, name)| name.to_owned()));
    names.sort();
    names.dedup();
    Ok(names)
}

fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
