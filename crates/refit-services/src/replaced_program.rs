//! A program that is kept under another name while a script has its place.
//!
//! At every moment a file that starts the program has its name: it gets a second name before the
//! script is exchanged with the first, and on the way back both names are exchanged.

use std::io::Read;

use rustix::fs::Stat;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::check::{Check, Layer};
use crate::exchange::Staged;
use crate::file_state::hex;
use crate::{Error, FileError, FileState, Place, System};

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
    /// The script of an earlier form of the change, in whose place this one goes; `None`: the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<FileState>,
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The program has its first name only; or the script that this one goes over has it.
    Before,
    /// The program has its first name, and the second one is the program's too, before the script is put, or the script's
    /// after both were exchanged: it has to go.
    Back,
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
        let over = system.script(path).cloned();
        let program = match &over {
            Some(_) => system.place(&kept)?,
            None => {
                system.refuse_there(&kept)?;
                system.place(path)?
            }
        };
        system.place(path)?.refuse_taken()?;
        let digest = digest(&program)?.ok_or_else(|| program.failed(Errno::NOENT))?;
        Ok(Moved {
            path: path.to_owned(),
            kept,
            sha256: digest,
            script,
            over,
        })
    }

    fn state(&self, system: &System) -> Result<State, Error> {
        let (path, kept) = (system.place(&self.path)?, system.place(&self.kept)?);
        let (at_path, at_kept) = (path.stat()?, kept.stat()?);
        let path_is_program = self.is_program(&path)?;
        Ok(match (&at_path, &at_kept) {
            (Some(_), None) if path_is_program => State::Before,
            (Some(_), Some(_))
                if path_is_program
                    && (is_one(at_path.as_ref(), at_kept.as_ref())
                        || kept.is(Some(&self.script))?) =>
            {
                State::Back
            }
            (Some(_), Some(_)) if self.over.is_some() && path.is(self.over.as_ref())? => {
                match self.is_program(&kept)? {
                    true => State::Before,
                    false => State::Other,
                }
            }
            (Some(_), Some(_)) => {
                let has_script = self.has_script(system)?;
                match has_script && self.is_program(&kept)? {
                    true => State::After,
                    false => State::Other,
                }
            }
            _ => State::Other,
        })
    }

    fn has_script(&self, system: &System) -> Result<bool, Error> {
        Ok(system.place(&self.path)?.is(Some(&self.script))?)
    }

    fn is_program(&self, place: &Place) -> Result<bool, FileError> {
        match digest(place) {
            Err(FileError::NotRegular { .. }) => Ok(false),
            other => Ok(other?.as_ref() == Some(&self.sha256)),
        }
    }

    /// Gives the program its second name, and writes the script, which is put in its place by one
    /// rename.
    ///
    /// # Errors
    /// [`Error::File`], also where the file system has no second names.
    pub fn stage(&self, system: &System) -> Result<Staged, Error> {
        let (path, kept) = (system.place(&self.path)?, system.place(&self.kept)?);
        if self.over.is_some() {
            return Ok(path.stage(&self.script)?);
        }
        path.link(&kept)?;
        if !self.is_program(&kept)? {
            kept.remove()?;
            return Err(path.edited().into());
        }
        Ok(path.stage(&self.script)?)
    }

    /// Puts the script in the program's place.
    ///
    /// # Errors
    /// [`FileError::Edited`] where another program is there by now, or what the system reports.
    pub fn put(&self, system: &System, script: Staged) -> Result<(), Error> {
        if self.over.is_some() {
            return Ok(script.put_over(|out| out.is(self.over.as_ref()))?);
        }
        let kept = system.place(&self.kept)?;
        let program = kept.stat()?;
        let put = script.put_over(|out| Ok(is_one(out.stat()?.as_ref(), program.as_ref())));
        if let Err(FileError::Edited { .. }) = &put {
            kept.remove()?;
        }
        Ok(put?)
    }

    /// Whether the script has the program's place.
    pub fn is_put(&self, system: &System) -> bool {
        self.has_script(system).is_ok_and(|has_script| has_script)
    }

    /// Puts the program back in its place; whether it was there already.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::File`].
    pub fn take_back(&self, system: &System) -> Result<bool, Error> {
        let (path, kept) = (system.place(&self.path)?, system.place(&self.kept)?);
        let state = self.state(system)?;
        match state {
            State::Other => return Err(self.replaced()),
            State::Before => {}
            State::Back => kept.remove()?,
            State::After => match &self.over {
                Some(over) => {
                    path.remove_temporary()?;
                    let staged = system.place(&self.path)?.stage(over)?;
                    staged.put_over(|out| out.is(Some(&self.script)))?;
                }
                None => kept.replace(&path, |out| out.is(Some(&self.script)))?,
            },
        }
        path.remove_temporary()?;
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
            |path: &str| -> Result<bool, Error> { Ok(system.place(path)?.stat()?.is_some()) };
        let found = match (state, is_there(&self.path)?) {
            (State::Before | State::Back, _) => "the program, as before the change",
            (_, true) => "other content, mode or owner",
            (_, false) => "not there",
        };
        let script = check(&self.path, "as applied", self.has_script(system)?, found);
        let found = match is_there(&self.kept)? {
            true => "other content",
            false => "not there",
        };
        let holds = self.is_program(&system.place(&self.kept)?)?;
        Ok([script, check(&self.kept, "the program", holds, found)])
    }
}

/// Whether two names are of one file.
fn is_one(one: Option<&Stat>, other: Option<&Stat>) -> bool {
    let which = |stat: &Stat| (stat.st_dev, stat.st_ino);
    one.is_some() && one.map(which) == other.map(which)
}

/// The SHA-256 of a file's content, in hexadecimal digits; `None` where there is no file. It is read in parts, as it may be
/// large.
fn digest(place: &Place) -> Result<Option<String>, FileError> {
    let Some(mut file) = place.open()? else {
        return Ok(None);
    };
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file
            .read(&mut buffer)
            .map_err(FileError::at(place.path()))?
        {
            0 => return Ok(Some(hex(&hasher.finalize()))),
            count => hasher.update(&buffer[..count]),
        }
    }
}
