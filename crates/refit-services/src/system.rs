//! The system that is changed: this one, or a tree below a directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use refit_servers::{matching, names};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::{Error, FileError};

/// Where the files lie, and whether services run there.
#[derive(Clone, Debug)]
pub struct System {
    root: Option<PathBuf>,
}

impl System {
    /// This machine; or the tree below `root`, in which nothing is started or asked.
    ///
    /// # Errors
    /// When `root` is no directory.
    pub fn new(root: Option<&Path>) -> Result<System, Error> {
        let Some(root) = root else {
            return Ok(System { root: None });
        };
        let found = fs::canonicalize(root).and_then(|found| {
            let is_dir = fs::metadata(&found)?.is_dir();
            is_dir
                .then_some(found)
                .ok_or(io::ErrorKind::NotADirectory.into())
        });
        let found = found.map_err(|cause| Error::Root {
            path: root.to_owned(),
            cause,
        })?;
        let is_own = found == Path::new("/");
        Ok(System {
            root: (!is_own).then_some(found),
        })
    }

    /// Whether services run here.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.root.is_none()
    }

    /// The place of a path that the services know by this name. No directory on the way may
    /// be a symbolic link: in a foreign tree it could lead out of it.
    ///
    /// # Errors
    /// [`Error::Link`].
    pub fn path(&self, absolute: &str) -> Result<PathBuf, Error> {
        let mut place = self.root.clone().unwrap_or_else(|| PathBuf::from("/"));
        let names: Vec<_> = Path::new(absolute)
            .components()
            .filter(|part| matches!(part, Component::Normal(_)))
            .collect();
        for (i, name) in names.iter().enumerate() {
            place.push(name);
            let is_link = || fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_symlink());
            if i + 1 < names.len() && is_link() {
                return Err(Error::Link { path: place });
            }
        }
        Ok(place)
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
        let top = self.root.as_deref().unwrap_or(Path::new("/"));
        let top = File::open(top).map_err(&failed)?;
        let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat2(top, absolute, how, Mode::empty(), ResolveFlags::IN_ROOT);
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
        let Some(file) = self.open(absolute)? else {
            return Ok(None);
        };
        let failed = FileError::at(Path::new(absolute));
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let place = fs::read_link(link).map_err(failed)?;
        let top = self.root.as_deref().unwrap_or(Path::new("/"));
        let inside = place.strip_prefix(top).ok();
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
        let dir = self.path(&format!("{absolute}/x"))?;
        let dir = dir.parent().expect("it has one");
        Ok(names(dir).map_err(FileError::at(dir))?)
    }

    /// The files that a pattern means, as [`matching`] finds them.
    ///
    /// # Errors
    /// As [`System::names`].
    pub fn matching(&self, pattern: &str, ours: &str) -> Result<Vec<String>, Error> {
        matching(|directory| self.names(directory), "/", pattern, ours)
    }
}
