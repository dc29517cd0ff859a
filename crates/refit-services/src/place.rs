//! The place of a file: its name in a directory that is held open.
//!
//! All files that refit writes into a system are written here and in `exchange.rs`. The directory was
//! opened from the system's own root with no symbolic link on the way (openat2(2)), and nothing is opened
//! by a path again: where somebody swaps a directory meanwhile, refit stays in the one that it opened.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, StatxAttributes, StatxFlags, mkdirat,
    openat, renameat_with, statat, statx, unlinkat,
};
use rustix::io::Errno;

use crate::{FileError, FileState};

/// A name in a directory.
#[derive(Debug)]
pub struct Place {
    /// `None` where the directory does not exist.
    dir: Option<Arc<OwnedFd>>,
    name: OsString,
    path: PathBuf,
}

impl Place {
    /// The last name of `path` in `dir`, its directory; `None`: that is not there.
    #[must_use]
    pub fn new(dir: Option<OwnedFd>, path: PathBuf) -> Place {
        let name = path.file_name().unwrap_or_default().to_owned();
        let dir = dir.map(Arc::new);
        Place { dir, name, path }
    }

    /// Its path, for messages and for programs that are given it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn failed(&self, errno: Errno) -> FileError {
        FileError::at(&self.path)(errno.into())
    }

    pub(crate) fn dir(&self) -> Result<BorrowedFd<'_>, FileError> {
        let dir = self.dir.as_ref().ok_or_else(|| self.failed(Errno::NOENT));
        dir.map(|dir| dir.as_fd())
    }

    /// The name under which a file is written before it is renamed. No program reads files with
    /// such a name from its configuration directory.
    pub(crate) fn temporary(&self) -> Place {
        let name = OsString::from(format!(".{}.refit-new", self.name.to_string_lossy()));
        Place {
            dir: self.dir.clone(),
            path: self.path.with_file_name(&name),
            name,
        }
    }

    /// Refuses where the name is taken under which a file is written first.
    ///
    /// # Errors
    /// [`FileError::Taken`], or what the system reports.
    pub fn refuse_taken(&self) -> Result<(), FileError> {
        let temporary = self.temporary();
        match temporary.stat()? {
            None => Ok(()),
            Some(_) => Err(FileError::Taken {
                path: temporary.path,
            }),
        }
    }

    /// What stat(2) tells of it, of a link itself; `None` where nothing has the name.
    ///
    /// # Errors
    /// What the system reports.
    pub fn stat(&self) -> Result<Option<Stat>, FileError> {
        let Some(dir) = &self.dir else {
            return Ok(None);
        };
        match statat(dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    pub(crate) fn not_regular(&self) -> FileError {
        FileError::NotRegular {
            path: self.path.clone(),
        }
    }

    /// Whatever has the name, opened without waiting; no link. A file that is made is its user's alone.
    pub(crate) fn open_any(&self, how: OFlags) -> Result<OwnedFd, Errno> {
        let dir = self.dir.as_ref().ok_or(Errno::NOENT)?;
        let how = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(dir, &self.name, how, Mode::RUSR | Mode::WUSR)
    }

    /// The regular file, opened to be read; `None` where nothing has the name.
    ///
    /// # Errors
    /// [`FileError::NotRegular`], or what the system reports.
    pub fn open(&self) -> Result<Option<File>, FileError> {
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let Some(found) = self.stat()? else {
            return Ok(None);
        };
        // Opening a device can do something by itself.
        if !is_file(&found) {
            return Err(self.not_regular());
        }
        let file = match self.open_any(OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.not_regular()),
            Err(errno) => return Err(self.failed(errno)),
        };
        let now = rustix::fs::fstat(&file).map_err(|errno| self.failed(errno))?;
        match is_file(&now) {
            true => Ok(Some(file.into())),
            false => Err(self.not_regular()),
        }
    }

    /// The file as it is; `None` where nothing has the name.
    ///
    /// # Errors
    /// As [`Place::open`].
    pub fn state(&self) -> Result<Option<FileState>, FileError> {
        let failed = FileError::at(&self.path);
        let file = self.open()?;
        file.map(|file| FileState::of(file).map_err(failed))
            .transpose()
    }

    /// Removes the file, which may be gone already, for good.
    ///
    /// # Errors
    /// What the system reports.
    pub fn remove(&self) -> Result<(), FileError> {
        // A read-only file system refuses to remove what is not there, too.
        if self.stat()?.is_none() {
            return Ok(());
        }
        match unlinkat(self.dir()?, &self.name, AtFlags::empty()) {
            Ok(()) => self.sync(),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Removes what a killed process left under the name under which a file is written first.
    ///
    /// # Errors
    /// What the system reports.
    pub fn remove_temporary(&self) -> Result<(), FileError> {
        self.temporary().remove()
    }

    /// Lets what was made or removed in the directory be so after a power cut too.
    ///
    /// # Errors
    /// What the system reports.
    pub fn sync(&self) -> Result<(), FileError> {
        let synced = rustix::fs::fsync(self.opened(".")?);
        synced.map_err(|errno| self.failed(errno))
    }

    /// The names in the directory that holds it; none where that is not there.
    ///
    /// # Errors
    /// What the system reports.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        match &self.dir {
            Some(_) => names(self.opened(".")?).map_err(|errno| self.failed(errno)),
            None => Ok(Vec::new()),
        }
    }

    /// A directory, opened to be read; no link.
    fn opened(&self, name: impl rustix::path::Arg) -> Result<OwnedFd, FileError> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(self.dir()?, name, how, Mode::empty());
        opened.map_err(|errno| self.failed(errno))
    }

    /// Makes a directory of it, which may be there, for good.
    ///
    /// # Errors
    /// What the system reports.
    pub fn make_directory(&self, mode: u32) -> Result<(), FileError> {
        // Killed before the next call, it has the mode already under the usual umask.
        match mkdirat(self.dir()?, &self.name, Mode::from_raw_mode(mode)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(()),
            Err(errno) => return Err(self.failed(errno)),
        }
        let made = File::from(self.opened(&self.name)?);
        // Whatever the umask is.
        made.set_permissions(Permissions::from_mode(mode))
            .map_err(FileError::at(&self.path))?;
        self.sync()
    }

    /// Removes the directory where it is empty, for good.
    ///
    /// # Errors
    /// What the system reports.
    pub fn remove_directory(&self) -> Result<(), FileError> {
        // A read-only file system refuses to remove what is not there, or not empty, too.
        if self.stat()?.is_none() {
            return Ok(());
        }
        match unlinkat(self.dir()?, &self.name, AtFlags::REMOVEDIR) {
            Ok(()) => self.sync(),
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(Errno::ROFS)
                if names(self.opened(&self.name)?).is_ok_and(|all| !all.is_empty()) =>
            {
                Ok(())
            }
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Refuses a file that cannot be replaced: it or its directory is immutable or append-only.
    ///
    /// # Errors
    /// [`FileError::Immutable`].
    pub fn refuse_fixed(&self) -> Result<(), FileError> {
        let Some(dir) = &self.dir else {
            return Ok(());
        };
        let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        let above = self.path.parent().unwrap_or(Path::new("/"));
        let names = [
            (OsStr::new(""), AtFlags::EMPTY_PATH, above),
            (&self.name, AtFlags::SYMLINK_NOFOLLOW, &self.path),
        ];
        for (name, flags, path) in names {
            let found = statx(dir, name, flags, StatxFlags::BASIC_STATS);
            if found.is_ok_and(|found| found.stx_attributes.intersects(fixed)) {
                return Err(FileError::Immutable {
                    path: path.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Refuses a file whose other names would keep the old content.
    ///
    /// # Errors
    /// [`FileError::OtherNames`].
    pub fn refuse_other_names(&self) -> Result<(), FileError> {
        match self.stat()? {
            Some(stat) if stat.st_nlink > 1 => Err(FileError::OtherNames {
                path: self.path.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Renames it to another name of its directory.
    pub(crate) fn rename(&self, to: &Place, how: RenameFlags) -> Result<(), Errno> {
        let dir = self.dir.as_ref().ok_or(Errno::NOENT)?;
        renameat_with(dir, &self.name, dir, &to.name, how)
    }

    /// Puts it in the place of another file of its directory, for good, where that one is as expected.
    ///
    /// # Errors
    /// [`FileError::Edited`], or what the system reports; both are as before then.
    pub fn replace(
        &self,
        old: &Place,
        is_expected: impl Fn(&Place) -> Result<bool, FileError>,
    ) -> Result<(), FileError> {
        let held = self.hold()?;
        match self.rename(old, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::INVAL) if is_expected(old)? => {
                self.rename_over(old)?;
                return old.sync();
            }
            Err(Errno::INVAL | Errno::NOENT) => return Err(old.edited()),
            Err(errno) => return Err(old.failed(errno)),
        }
        let error = match is_expected(self) {
            Ok(true) => return self.remove(),
            Ok(false) => old.edited(),
            Err(error) => error,
        };
        self.exchange_back(old, held)?;
        Err(error)
    }

    /// For a file system that cannot exchange.
    pub(crate) fn rename_over(&self, old: &Place) -> Result<(), FileError> {
        let renamed = self.rename(old, RenameFlags::empty());
        renamed.map_err(|errno| old.failed(errno))
    }

    /// What has the name, held open so that no other file gets its number. Neither read nor written.
    pub(crate) fn hold(&self) -> Result<OwnedFd, FileError> {
        let held = self.open_any(OFlags::PATH);
        held.map_err(|errno| self.failed(errno))
    }

    fn has(&self, held: &OwnedFd) -> Result<bool, FileError> {
        let held = rustix::fs::fstat(held).map_err(|errno| self.failed(errno))?;
        let now = self.stat()?;
        Ok(now.is_some_and(|now| (now.st_dev, now.st_ino) == (held.st_dev, held.st_ino)))
    }

    /// Puts what it has back into `place`, where `put` was put. What somebody put there since then is newer than
    /// both, and gets the place.
    pub(crate) fn exchange_back(&self, place: &Place, mut put: OwnedFd) -> Result<(), FileError> {
        loop {
            let next = self.hold()?;
            let back = self.rename(place, RenameFlags::EXCHANGE);
            back.map_err(|errno| place.failed(errno))?;
            if self.has(&put)? {
                return self.remove();
            }
            put = next;
        }
    }

    /// Gives what it has back to `place`, where nothing was put; what is there by now is newer.
    pub(crate) fn give_back(&self, place: &Place) -> Result<(), FileError> {
        match self.rename(place, RenameFlags::NOREPLACE) {
            Ok(()) => place.sync(),
            Err(Errno::EXIST) => self.remove(),
            Err(errno) => Err(place.failed(errno)),
        }
    }

    /// Removes what was put there, and nothing that somebody put there since then.
    pub(crate) fn remove_held(&self, put: &OwnedFd) -> Result<(), FileError> {
        let temporary = self.temporary();
        match self.rename(&temporary, RenameFlags::NOREPLACE) {
            Ok(()) if temporary.has(put)? => temporary.remove(),
            Ok(()) => temporary.give_back(self),
            Err(Errno::INVAL) if self.has(put)? => self.remove(),
            Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Gives the file a second name in its directory.
    ///
    /// # Errors
    /// What the system reports, also where the file system has no second names.
    pub fn link(&self, second: &Place) -> Result<(), FileError> {
        let linked = rustix::fs::linkat(
            self.dir()?,
            &self.name,
            second.dir()?,
            &second.name,
            AtFlags::empty(),
        );
        linked.map_err(|errno| second.failed(errno))?;
        self.sync()
    }

    /// Whether the file is as `state`; `None`: nothing has the name.
    pub(crate) fn is(&self, state: Option<&FileState>) -> Result<bool, FileError> {
        match self.state() {
            Ok(now) => Ok(now.as_ref() == state),
            // Somebody made a link or a directory of it.
            Err(FileError::NotRegular { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn edited(&self) -> FileError {
        FileError::Edited {
            path: self.path.clone(),
        }
    }
}

fn names(dir: OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::new(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != "." && name != "..");
    Ok(names)
}
