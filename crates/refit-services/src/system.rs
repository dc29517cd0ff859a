//! The system that is changed: this one, or a tree below a directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use refit_servers::matching;
use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use crate::ask::input;
use crate::{Error, FileError, FileState, Place};

/// Where the files lie, and whether services run there.
#[derive(Clone, Debug)]
pub struct System {
    /// `None`: this machine.
    root: Option<PathBuf>,
    /// Held open: whatever has that path later, files are found below this directory.
    top: Arc<OwnedFd>,
    without: Option<Arc<Without>>,
}

/// A change that is looked away from.
#[derive(Debug)]
pub struct Without {
    /// What its files were before it.
    pub files: BTreeMap<String, Option<FileState>>,
    /// A program that it moved, and the script in its place.
    pub script: Option<(String, FileState)>,
    /// The settings of the service's own that it sets.
    pub conf: Vec<String>,
}

impl System {
    /// This machine; or the tree below `root`, in which nothing is started or asked.
    ///
    /// # Errors
    /// [`Error::Root`] when `root` is no directory; [`Error::OthersTree`] when it is another user's, who
    /// could write there what is read as refit's own.
    pub fn new(root: Option<&Path>) -> Result<System, Error> {
        let root = root.unwrap_or(Path::new("/"));
        let failed = |cause: io::Error| Error::Root {
            path: root.to_owned(),
            cause,
        };
        let found = fs::canonicalize(root).map_err(failed)?;
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(&found, how, Mode::empty());
        let top = top.map_err(|errno| failed(errno.into()))?;
        let uid = fstat(&top).map_err(|errno| failed(errno.into()))?.st_uid;
        let is_own = found == Path::new("/");
        if !is_own && !is_ours(uid) {
            return Err(Error::OthersTree { path: found, uid });
        }
        Ok(System {
            root: (!is_own).then_some(found),
            top: Arc::new(top),
            without: None,
        })
    }

    /// The system as it would be without a change that is applied: its files are found as they were before. Only what is
    /// read is so; [`System::place`] and [`System::path`] name what is there.
    pub(crate) fn without(&self, change: Without) -> System {
        System {
            without: Some(Arc::new(change)),
            ..self.clone()
        }
    }

    /// The change that is looked away from.
    pub(crate) fn looked_away_from(&self) -> Option<&Without> {
        self.without.as_deref()
    }

    /// What a file was before the change that is looked away from; `None`: that does not have it.
    fn before(&self, absolute: &str) -> Option<Option<&FileState>> {
        let files = &self.without.as_ref()?.files;
        files.get(absolute).map(Option::as_ref)
    }

    /// The script that the change which is looked away from put in a program's place.
    pub(crate) fn script(&self, absolute: &str) -> Option<&FileState> {
        let (path, script) = self.without.as_ref()?.script.as_ref()?;
        (path == absolute).then_some(script)
    }

    /// Whether services run here.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.root.is_none()
    }

    fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    /// What a path that the services know by this name is called here, for programs that are given it. No
    /// directory on the way may be a symbolic link: in a foreign tree it could lead out of it.
    ///
    /// # Errors
    /// [`Error::Link`].
    pub fn path(&self, absolute: &str) -> Result<PathBuf, Error> {
        let mut place = self.root().to_owned();
        let names: Vec<_> = names(absolute).collect();
        for (i, name) in names.iter().enumerate() {
            place.push(name);
            let is_link = || fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_symlink());
            if i + 1 < names.len() && is_link() {
                return Err(Error::Link { path: place });
            }
        }
        Ok(place)
    }

    /// Where a file of this name lies, or would lie: to read and to write it as it is. No directory on
    /// the way may be a symbolic link.
    ///
    /// # Errors
    /// [`Error::Link`], [`Error::File`].
    pub fn place(&self, absolute: &str) -> Result<Place, Error> {
        let path = self.root().join(names(absolute).collect::<PathBuf>());
        let above = path.parent().unwrap_or(self.root());
        let inside = above.strip_prefix(self.root()).unwrap_or(Path::new(""));
        let dir = match self.open_directory(inside) {
            Ok(dir) => Some(dir),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(Errno::LOOP) => {
                self.path(absolute)?;
                // It was one when it was opened.
                return Err(Error::Link {
                    path: above.to_owned(),
                });
            }
            Err(errno) => return Err(FileError::at(&path)(errno.into()).into()),
        };
        Ok(Place::new(dir, path))
    }

    /// `inside`: below the root.
    fn open_directory(&self, inside: &Path) -> Result<OwnedFd, Errno> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let inside = match inside.as_os_str().is_empty() {
            true => Path::new("."),
            false => inside,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(&self.top, inside, how, Mode::empty(), resolve)
    }

    /// The file of this name as it is; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Link`], [`Error::File`].
    pub fn state(&self, absolute: &str) -> Result<Option<FileState>, Error> {
        match self.before(absolute) {
            Some(before) => Ok(before.cloned()),
            None => Ok(self.place(absolute)?.state()?),
        }
    }

    /// What kind of file has this name, links not followed; `None`: none that can be looked at.
    ///
    /// # Errors
    /// [`Error::Link`].
    pub fn metadata(&self, absolute: &str) -> Result<Option<fs::Metadata>, Error> {
        let found = fs::symlink_metadata(self.path(absolute)?).ok();
        Ok(found.filter(|_| self.before(absolute) != Some(None)))
    }

    /// Refuses where a file of this name is there.
    ///
    /// # Errors
    /// [`Error::InTheWay`], [`Error::Link`], [`Error::File`].
    pub fn refuse_there(&self, absolute: &str) -> Result<(), Error> {
        let place = self.place(absolute)?;
        match place.stat()? {
            None => Ok(()),
            Some(_) if self.before(absolute) == Some(None) => Ok(()),
            Some(_) => Err(Error::InTheWay {
                path: place.path().to_owned(),
            }),
        }
    }

    /// The place of a path that a server reported: one of this machine's that runs in the tree names
    /// the whole path, and one of a container the path in it.
    ///
    /// # Errors
    /// [`Error::Link`].
    pub fn as_reported(&self, path: &str) -> Result<String, Error> {
        match &self.root {
            Some(root) if !Path::new(path).starts_with(root) => {
                Ok(self.path(path)?.display().to_string())
            }
            _ => Ok(path.to_owned()),
        }
    }

    /// A directory into which nobody else can put a library.
    ///
    /// # Errors
    /// [`Error::NotAlone`] when it, or one above it, is another user's or writable for others.
    pub fn is_ours_alone(&self, absolute: &str) -> Result<(), Error> {
        let place = self.path(absolute)?;
        let me = rustix::process::geteuid().as_raw();
        let top = self.root.as_deref();
        let inside = place
            .ancestors()
            .take_while(|dir| top.is_none_or(|top| dir.starts_with(top)));
        for dir in inside {
            let Ok(meta) = fs::symlink_metadata(dir) else {
                continue;
            };
            let is_open = meta.mode() & 0o022 != 0;
            if is_open || (meta.uid() != 0 && meta.uid() != me) {
                return Err(Error::NotAlone {
                    path: dir.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// A file that may be missing. Links are followed as the services see them, and never out of
    /// the tree.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn open(&self, absolute: &str) -> Result<Option<File>, Error> {
        let failed = FileError::at(Path::new(absolute));
        match self.before(absolute) {
            None => self.open_there(absolute),
            Some(None) => Ok(None),
            Some(Some(before)) => Ok(Some(input(&before.bytes()).map_err(failed)?)),
        }
    }

    /// As [`System::open`], of what is there.
    fn open_there(&self, absolute: &str) -> Result<Option<File>, Error> {
        let failed = FileError::at(Path::new(absolute));
        let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat2(
            &self.top,
            absolute,
            how,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        );
        match opened {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(failed(errno.into()).into()),
        }
    }

    /// The path of a file that may be missing, with no link on the way.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn resolved(&self, absolute: &str) -> Result<Option<String>, Error> {
        let Some(file) = self.open_there(absolute)? else {
            return Ok(None);
        };
        let failed = FileError::at(Path::new(absolute));
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let place = fs::read_link(link).map_err(failed)?;
        let inside = place.strip_prefix(self.root()).ok();
        Ok(inside.map(|path| format!("/{}", path.to_string_lossy())))
    }

    /// The content of a file that may be missing, as [`System::open`] finds it; none of a device or
    /// a pipe, which may not end.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn read(&self, absolute: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut file) = self.open(absolute)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let failed = FileError::at(Path::new(absolute));
        let kind = file.metadata().map_err(&failed)?.file_type();
        if kind.is_file() || kind.is_dir() {
            file.read_to_end(&mut bytes).map_err(&failed)?;
        }
        Ok(Some(bytes))
    }

    /// The names in a directory, which may be missing.
    ///
    /// # Errors
    /// [`Error::Link`], [`Error::File`].
    pub fn names(&self, absolute: &str) -> Result<Vec<String>, Error> {
        let mut names = self.place(&format!("{absolute}/x"))?.names()?;
        names.retain(|name| self.before(&format!("{absolute}/{name}")) != Some(None));
        Ok(names)
    }

    /// The files that a pattern means, as [`matching`] finds them.
    ///
    /// # Errors
    /// As [`System::names`].
    pub fn matching(&self, pattern: &str, ours: &str) -> Result<Vec<String>, Error> {
        matching(|directory| self.names(directory), "/", pattern, ours)
    }
}

/// The names of a path below a root: no `..` leads out of it.
fn names(absolute: &str) -> impl Iterator<Item = &OsStr> {
    let parts = Path::new(absolute).components();
    parts.filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

/// Whether a file of this user's can be read as refit's own.
pub fn is_ours(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}
