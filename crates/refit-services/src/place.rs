//! The place of a file: its name in a directory that is held open.
//!
//! All that refit writes into a system goes through here. The directory was opened from the system's
//! own root with no symbolic link on the way (openat2(2)), and nothing is opened by a path again: who
//! swaps a directory meanwhile leads nowhere. A file goes to its place by an exchange (renameat2(2)),
//! and what came out is looked at: what somebody else wrote there meanwhile is put back.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::Write;
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
    /// `None` where there is no such directory.
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

    fn dir(&self) -> Result<BorrowedFd<'_>, FileError> {
        let dir = self.dir.as_ref().ok_or_else(|| self.failed(Errno::NOENT));
        dir.map(|dir| dir.as_fd())
    }

    /// The name under which a file is written before it is renamed. No program reads files with
    /// such a name from its configuration directory.
    fn temporary(&self) -> Place {
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
    fn rename(&self, to: &Place, how: RenameFlags) -> Result<(), Errno> {
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
    fn rename_over(&self, old: &Place) -> Result<(), FileError> {
        let renamed = self.rename(old, RenameFlags::empty());
        renamed.map_err(|errno| old.failed(errno))
    }

    /// What has the name, held open so that no other file gets its number. Neither read nor written.
    fn hold(&self) -> Result<OwnedFd, FileError> {
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
    fn exchange_back(&self, place: &Place, mut put: OwnedFd) -> Result<(), FileError> {
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
    fn give_back(&self, place: &Place) -> Result<(), FileError> {
        match self.rename(place, RenameFlags::NOREPLACE) {
            Ok(()) => place.sync(),
            Err(Errno::EXIST) => self.remove(),
            Err(errno) => Err(place.failed(errno)),
        }
    }

    /// Removes what was put there, and nothing that somebody put there since then.
    fn remove_held(&self, put: &OwnedFd) -> Result<(), FileError> {
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
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::System;

    struct Tree {
        dir: tempfile::TempDir,
        system: System,
    }

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("etc")).unwrap();
            for (name, text) in files {
                fs::write(dir.path().join("etc").join(name), text).unwrap();
            }
            let system = System::new(Some(dir.path())).unwrap();
            Tree { dir, system }
        }

        fn place(&self, name: &str) -> Place {
            self.system.place(&format!("/etc/{name}")).unwrap()
        }

        fn edit(&self, name: &str, to: Option<&str>) -> Edit {
            let place = self.place(name);
            let from = place.state().unwrap();
            let to = to.map(|text| FileState::own(text.into()));
            Edit::stage(place, from, to.as_ref()).unwrap().unwrap()
        }

        /// All names in the directory, with their content.
        fn files(&self) -> Vec<(String, String)> {
            let mut names = self.place("x").names().unwrap();
            names.sort();
            let read = |name: &String| fs::read_to_string(self.dir.path().join("etc").join(name));
            let content = |name: String| (name.clone(), read(&name).unwrap());
            names.into_iter().map(content).collect()
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.dir.path().join("etc").join(name), text).unwrap();
        }
    }

    fn files(all: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        all.iter().map(owned).collect()
    }

    #[test]
    fn files_go_to_their_places_together() {
        let tree = Tree::new(&[("a", "1"), ("c", "3")]);
        let edits = vec![
            tree.edit("a", Some("one")),
            tree.edit("b", Some("two")),
            tree.edit("c", None),
        ];
        make_all(edits).unwrap();
        assert_eq!(tree.files(), files(&[("a", "one"), ("b", "two")]));
    }

    #[test]
    fn what_somebody_wrote_meanwhile_stays_and_all_else_goes_back() {
        // Which file is edited, and what it holds then; the names are of a file that is replaced, one that is
        // made and one that is removed.
        for (name, text) in [("a", "edited"), ("b", "edited"), ("c", "edited")] {
            let tree = Tree::new(&[("a", "1"), ("c", "3")]);
            let edits = vec![
                tree.edit("a", Some("one")),
                tree.edit("b", Some("two")),
                tree.edit("c", None),
            ];
            tree.write(name, text);
            let expected = tree.files().into_iter();
            let expected: Vec<_> = expected
                .filter(|(name, _)| !name.starts_with('.'))
                .collect();
            let error = make_all(edits).unwrap_err();
            assert!(
                matches!(&error, FileError::Edited { path } if path.ends_with(name)),
                "{error}"
            );
            assert_eq!(tree.files(), expected, "{name}");
        }
    }

    #[test]
    fn a_file_that_was_removed_or_is_a_link_now_was_edited() {
        let tree = Tree::new(&[("a", "1"), ("b", "2")]);
        let edits = vec![tree.edit("b", Some("two")), tree.edit("a", Some("one"))];
        fs::remove_file(tree.dir.path().join("etc/a")).unwrap();
        make_all(edits).unwrap_err();
        assert_eq!(tree.files(), files(&[("b", "2")]));
        let edit = tree.edit("b", Some("two"));
        fs::remove_file(tree.dir.path().join("etc/b")).unwrap();
        symlink("/etc/passwd", tree.dir.path().join("etc/b")).unwrap();
        make_all(vec![edit]).unwrap_err();
        let link = fs::read_link(tree.dir.path().join("etc/b")).unwrap();
        assert_eq!(link, Path::new("/etc/passwd"));
    }

    #[test]
    fn the_last_of_many_edits_is_never_lost() {
        let tree = Tree::new(&[("a", "edit 0")]);
        let (path, new) = (tree.dir.path().join("etc/a"), tree.dir.path().join("new"));
        let ended = AtomicBool::new(false);
        let (edits, made, refused) = std::thread::scope(|scope| {
            let editor = scope.spawn(|| {
                let mut count = 0;
                while !ended.load(Ordering::Relaxed) {
                    count += 1;
                    fs::write(&new, format!("edit {count}")).unwrap();
                    fs::rename(&new, &path).unwrap();
                    std::thread::sleep(std::time::Duration::from_micros(count % 7 * 40));
                }
                count
            });
            let (mut made, mut refused) = (0, 0);
            while made + refused < 300 {
                let place = tree.place("a");
                let was = place.state().unwrap().unwrap();
                let mut bytes = was.bytes();
                if !bytes.ends_with(b" by refit") {
                    bytes.extend(b" by refit");
                    let to = was.with_bytes(bytes);
                    let edit = Edit::stage(place, Some(was), Some(&to)).unwrap().unwrap();
                    match make_all(vec![edit]) {
                        Ok(()) => made += 1,
                        Err(FileError::Edited { .. }) => refused += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            ended.store(true, Ordering::Relaxed);
            (editor.join().unwrap(), made, refused)
        });
        let last = format!("edit {edits}");
        let (_, text) = &tree.files()[0];
        assert!(
            text.strip_suffix(" by refit").unwrap_or(text) == last,
            "{text}, not {last}"
        );
        assert!(
            made > 0 && refused > 0,
            "{made} made, {refused} refused: nothing was tried"
        );
    }

    #[test]
    fn no_name_leads_out_of_the_tree() {
        let outside = tempfile::tempdir().unwrap();
        let tree = Tree::new(&[]);
        let etc = tree.dir.path().join("etc");
        // Opened before somebody swaps the directory for a link.
        let place = tree.place("a");
        fs::rename(&etc, tree.dir.path().join("etc.away")).unwrap();
        symlink(outside.path(), &etc).unwrap();
        place.write(&FileState::own(b"x".to_vec())).unwrap();
        assert!(fs::exists(tree.dir.path().join("etc.away/a")).unwrap());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let error = tree.system.place("/etc/a").unwrap_err();
        assert!(matches!(error, crate::Error::Link { .. }), "{error}");
    }
}
