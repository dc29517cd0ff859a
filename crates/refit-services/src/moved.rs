//! A program that is kept under another name while a script has its place.
//!
//! At every moment a file that starts the program has its name: it gets a second name before the
//! script is renamed over the first, and the way back is one rename, which takes the script away.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::check::{Check, Layer};
use crate::file_state::{Staged, hex, remove, sync_directory, temporary};
use crate::{Error, FileError, FileState, System};

/// The program and the script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The program's place before, which the script has.
    pub path: String,
    /// Its second name, in the same directory.
    pub kept: String,
    /// Of the program's content.
    pub sha256: String,
    /// The script.
    pub script: FileState,
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The program has its first name only.
    Before,
    /// The program has both names.
    Linked,
    /// The script has the first name, the program the second.
    After,
    /// Somebody else changed one of them.
    Other,
}

impl Moved {
    /// A regular file that is to move.
    ///
    /// # Errors
    /// [`Error::InTheWay`] where its second name is taken, or why it cannot be read.
    pub fn new(system: &System, path: &str, script: FileState) -> Result<Moved, Error> {
        let kept = format!("{path}.refit-real");
        let place = system.path(path)?;
        for taken in [system.path(&kept)?, temporary(&place)] {
            if metadata(&taken)?.is_some() {
                return Err(Error::InTheWay { path: taken });
            }
        }
        let digest = digest(&place).map_err(FileError::at(&place))?;
        Ok(Moved {
            path: path.to_owned(),
            kept,
            sha256: digest,
            script,
        })
    }

    fn state(&self, system: &System) -> Result<State, Error> {
        let (path, kept) = (system.path(&self.path)?, system.path(&self.kept)?);
        let (at_path, at_kept) = (metadata(&path)?, metadata(&kept)?);
        let is_program = |place: &Path, meta: Option<&Metadata>| {
            let digest = meta.filter(|meta| meta.is_file()).map(|_| digest(place));
            let digest = digest.transpose().map_err(FileError::at(place))?;
            Ok::<_, FileError>(digest.as_ref() == Some(&self.sha256))
        };
        let is_one =
            |one: &Metadata, other: &Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        let path_is_program = is_program(&path, at_path.as_ref())?;
        Ok(match (&at_path, &at_kept) {
            (Some(_), None) if path_is_program => State::Before,
            (Some(one), Some(other)) if path_is_program && is_one(one, other) => State::Linked,
            (Some(_), Some(_)) => {
                let has_script = self.has_script(system)?;
                match has_script && is_program(&kept, at_kept.as_ref())? {
                    true => State::After,
                    false => State::Other,
                }
            }
            _ => State::Other,
        })
    }

    fn has_script(&self, system: &System) -> Result<bool, Error> {
        let path = system.path(&self.path)?;
        let is_file = metadata(&path)?.is_some_and(|meta| meta.is_file());
        Ok(is_file && FileState::read(&path)?.as_ref() == Some(&self.script))
    }

    /// Gives the program its second name, and writes the script, which is put in its place by one
    /// rename.
    ///
    /// # Errors
    /// [`Error::File`], also where the file system has no second names.
    pub fn stage(&self, system: &System) -> Result<Staged, Error> {
        let (path, kept) = (system.path(&self.path)?, system.path(&self.kept)?);
        fs::hard_link(&path, &kept).map_err(FileError::at(&kept))?;
        sync_directory(&kept)?;
        Ok(self.script.stage(&path)?)
    }

    /// Puts the program back in its place; whether it was there already.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::File`].
    pub fn take_back(&self, system: &System) -> Result<bool, Error> {
        let (path, kept) = (system.path(&self.path)?, system.path(&self.kept)?);
        let state = self.state(system)?;
        match state {
            State::Other => return Err(self.replaced()),
            State::Before => {}
            // rename(2) of two names of one file does nothing.
            State::Linked => remove(&kept)?,
            State::After => {
                fs::rename(&kept, &path).map_err(FileError::at(&path))?;
                sync_directory(&path)?;
            }
        }
        remove(&temporary(&path))?;
        Ok(state == State::Before)
    }

    /// Refuses what [`Moved::take_back`] would.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::File`].
    pub fn refuse_other(&self, system: &System) -> Result<(), Error> {
        match self.state(system)? {
            State::Other => Err(self.replaced()),
            _ => Ok(()),
        }
    }

    fn replaced(&self) -> Error {
        Error::Replaced {
            path: self.path.clone(),
            kept: self.kept.clone(),
        }
    }

    /// What has which name.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn checks(&self, system: &System) -> Result<[Check; 2], Error> {
        let state = self.state(system)?;
        let check = |key: &String, expected: &str, holds, found: &str| Check {
            layer: Layer::File,
            key: key.clone(),
            expected: expected.to_owned(),
            found: if holds { expected } else { found }.to_owned(),
            holds: Some(holds),
        };
        let is_there =
            |path: &str| -> Result<bool, Error> { Ok(metadata(&system.path(path)?)?.is_some()) };
        let found = match (state, is_there(&self.path)?) {
            (State::Before | State::Linked, _) => "the program, as before the change",
            (_, true) => "other content, mode or owner",
            (_, false) => "not there",
        };
        let script = check(&self.path, "as applied", self.has_script(system)?, found);
        let found = match is_there(&self.kept)? {
            true => "other content",
            false => "not there",
        };
        let kept = system.path(&self.kept)?;
        let is_file = metadata(&kept)?.is_some_and(|meta| meta.is_file());
        let holds = is_file && digest(&kept).map_err(FileError::at(&kept))? == self.sha256;
        Ok([script, check(&self.kept, "the program", holds, found)])
    }
}

fn metadata(path: &Path) -> Result<Option<Metadata>, FileError> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::at(path)(error)),
    }
}

/// Of a file's content, which may be large.
fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}
