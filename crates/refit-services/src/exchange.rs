//! Files that go to their places together, by an exchange with what is there.
//!
//! What comes out is looked at: where it is not what was read there, all files go back.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use crate::{FileError, FileState, Place};

impl Place {
    /// Writes a file beside it. Nothing is in its place yet, but all that needs space is done.
    ///
    /// # Errors
    /// What the system reports; nothing is left then.
    pub fn stage(self, state: &FileState) -> Result<Staged, FileError> {
        let temporary = self.temporary();
        let made = temporary.open_any(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
        let mut file = File::from(made.map_err(|errno| temporary.failed(errno))?);
        let staged = Staged(Some(self));
        let written = file
            .write_all(&state.bytes())
            .and_then(|()| state.put_on(&file))
            .and_then(|()| file.sync_all());
        written.map_err(FileError::at(staged.place().path()))?;
        Ok(staged)
    }

    /// Puts a file there: a reader sees the old file or this one, never a part, and so does whoever
    /// looks after a power cut.
    ///
    /// # Errors
    /// What the system reports. The file there is then the old one.
    pub fn write(self, state: &FileState) -> Result<(), FileError> {
        self.stage(state)?.put()
    }
}

/// A file that is whole and on the disk under its temporary name. Dropped, it is removed.
#[must_use]
pub struct Staged(Option<Place>);

impl Staged {
    fn place(&self) -> &Place {
        self.0.as_ref().expect("it is taken by what puts it")
    }

    /// It has its place.
    fn was_put(mut self) -> Place {
        self.0.take().expect("it is taken by what puts it")
    }

    /// Puts it in its place, whatever is there, for good. Needs no space.
    ///
    /// # Errors
    /// What the system reports.
    pub fn put(self) -> Result<(), FileError> {
        let place = self.place();
        place.temporary().rename_over(place)?;
        self.was_put().sync()
    }

    /// Puts it in its place, for good, where what is there is as expected. Needs no space.
    ///
    /// # Errors
    /// As [`Place::replace`].
    pub fn put_over(
        self,
        is_expected: impl Fn(&Place) -> Result<bool, FileError>,
    ) -> Result<(), FileError> {
        let place = self.place();
        place.temporary().replace(place, is_expected)?;
        drop(self.was_put());
        Ok(())
    }

    /// Puts it in its place where that holds `over`.
    fn swap(self, over: Option<FileState>) -> Result<Swapped, FileError> {
        let place = self.place();
        let put = place.temporary().hold()?;
        let how = match over {
            Some(_) => RenameFlags::EXCHANGE,
            None => RenameFlags::NOREPLACE,
        };
        match (place.temporary().rename(place, how), over) {
            (Ok(()), None) => Ok(Swapped::Made(self.was_put(), put)),
            (Ok(()), Some(was)) => Swapped::Exchanged(self.was_put(), put).checked(&was),
            // A file system without these flags: the moment between the look and the rename stays.
            (Err(Errno::INVAL), over) if place.is(over.as_ref())? => {
                place.temporary().rename_over(place)?;
                Ok(match over {
                    None => Swapped::Made(self.was_put(), put),
                    Some(was) => Swapped::Replaced(self.was_put(), was),
                })
            }
            (Err(Errno::INVAL | Errno::NOENT | Errno::EXIST), _) => Err(place.edited()),
            (Err(errno), _) => Err(place.failed(errno)),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            let _ = place.remove_temporary();
        }
    }
}

/// What happens to one file.
pub enum Edit {
    /// It goes to its place, where `over` is; `None`: nothing is there.
    Put {
        /// The new file.
        staged: Staged,
        /// What was read there.
        over: Option<FileState>,
    },
    /// It is removed.
    Remove {
        /// Where it is.
        place: Place,
        /// What was read there.
        was: FileState,
    },
}

impl Edit {
    /// The way from what was read to what is to be there; `None` where that is the same. All that
    /// needs space is done.
    ///
    /// # Errors
    /// What the system reports.
    pub fn stage(
        place: Place,
        from: Option<FileState>,
        to: Option<&FileState>,
    ) -> Result<Option<Edit>, FileError> {
        Ok(match (from, to) {
            (from, to) if from.as_ref() == to => None,
            (over, Some(to)) => Some(Edit::Put {
                staged: place.stage(to)?,
                over,
            }),
            (from, None) => from.map(|was| Edit::Remove { place, was }),
        })
    }

    fn swap(self) -> Result<Swapped, FileError> {
        let (place, was) = match self {
            Edit::Put { staged, over } => return staged.swap(over),
            Edit::Remove { place, was } => (place, was),
        };
        match place.rename(&place.temporary(), RenameFlags::NOREPLACE) {
            Ok(()) => Swapped::Removed(place).checked(&was),
            Err(Errno::INVAL) if place.is(Some(&was))? => {
                place.remove()?;
                Ok(Swapped::Replaced(place, was))
            }
            Err(Errno::INVAL | Errno::NOENT) => Err(place.edited()),
            Err(errno) => Err(place.failed(errno)),
        }
    }
}

/// A file that has its place, and the way back.
enum Swapped {
    /// What was there has the temporary name.
    Exchanged(Place, OwnedFd),
    /// Nothing was there.
    Made(Place, OwnedFd),
    /// What was there has the temporary name, and nothing is there.
    Removed(Place),
    /// Where the file system cannot exchange: what was there.
    Replaced(Place, FileState),
}

impl Swapped {
    fn place(&self) -> &Place {
        match self {
            Swapped::Exchanged(place, _)
            | Swapped::Made(place, _)
            | Swapped::Removed(place)
            | Swapped::Replaced(place, _) => place,
        }
    }

    /// Goes back where what came out is not what was read there.
    fn checked(self, was: &FileState) -> Result<Swapped, FileError> {
        let place = self.place();
        let error = match place.temporary().is(Some(was)) {
            Ok(true) => return Ok(self),
            Ok(false) => place.edited(),
            Err(error) => error,
        };
        self.back()?;
        Err(error)
    }

    /// Lets what was there be there again.
    fn back(self) -> Result<(), FileError> {
        match self {
            Swapped::Exchanged(place, put) => place.temporary().exchange_back(&place, put),
            Swapped::Made(place, put) => place.remove_held(&put),
            Swapped::Removed(place) => place.temporary().give_back(&place),
            Swapped::Replaced(place, was) => place.write(&was),
        }
    }

    /// Removes what was there.
    fn keep(self) -> Result<(), FileError> {
        self.place().remove_temporary()
    }
}

/// Makes all edits, in their order, for good; or none, where one of the files is not as it was read.
///
/// # Errors
/// [`FileError::Edited`]: nothing is changed then. Or what the system reports.
pub fn make_all(edits: Vec<Edit>) -> Result<(), FileError> {
    let mut made = Vec::new();
    for edit in edits {
        let done = edit.swap().and_then(|swapped| {
            let synced = swapped.place().sync();
            made.push(swapped);
            synced
        });
        if let Err(error) = done {
            let back = made.into_iter().rev().map(Swapped::back);
            back.fold(Ok(()), Result::and)?;
            return Err(error);
        }
    }
    made.into_iter().try_for_each(Swapped::keep)
}

#[cfg(test)]
mod tests;
