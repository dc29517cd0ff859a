//! Files that a result is written into. Whoever else may write into the directory
//! (/tmp) can neither have refit write through a link or into a file of theirs, nor
//! guess the name of a temporary file.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_run::interruptions;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fcntl_getfl, fcntl_setfl, linkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use super::print;

/// What becomes a file when it is written: until then the name holds what it held.
pub enum ResultFile {
    /// Written without a name, so that nothing stays of a refit that is killed; it has the owner and the mode of a new
    /// file.
    New(File, PathBuf),
    /// Written beside the name, under one that nobody can guess, and renamed: where the file system has no files
    /// without a name.
    Beside(NamedTempFile, PathBuf),
    /// A pipe, a terminal, a device and what a link names are written as they are.
    InPlace(File, PathBuf),
    /// `-`, as elsewhere.
    Stdout,
}

/// Whether this is the name of standard output.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether one of these options writes to standard output, where nothing else goes then.
///
/// # Errors
/// Two do.
pub fn to_stdout<'a>(
    files: impl IntoIterator<Item = (&'static str, &'a Option<PathBuf>)>,
) -> Result<bool> {
    let files = files.into_iter();
    let given = files.filter(|(_, path)| path.as_deref().is_some_and(is_stdout));
    let options: Vec<&str> = given.map(|(option, _)| option).collect();
    match *options {
        [] => Ok(false),
        [_] => Ok(true),
        [first, second, ..] => bail!(
            "{first} - and {second} - would both write to stdout\n  name a file for one of them: {second} FILE"
        ),
    }
}

/// Refuses `-` where standard output is the command's own.
///
/// # Errors
/// The option that names it.
pub fn refuse_stdout<'a>(
    files: impl IntoIterator<Item = (&'static str, &'a Option<PathBuf>)>,
) -> Result<()> {
    for (option, path) in files {
        if path.as_deref().is_some_and(is_stdout) {
            bail!("{option} -: stdout is the command's\n  name a file: {option} FILE");
        }
    }
    Ok(())
}

impl ResultFile {
    /// Looks whether it can be written, and makes ready for it.
    ///
    /// # Errors
    /// No such directory, a directory of that name, one that cannot be written, or a
    /// name that is a link or a device of another user where others may write.
    pub fn create(path: &Path) -> Result<ResultFile> {
        if is_stdout(path) {
            return Ok(ResultFile::Stdout);
        }
        let parent = directory(path)?;
        if path.is_dir() {
            bail!(
                "cannot write {}: it is a directory; name a file in it",
                path.display()
            );
        }
        let before = fs::metadata(path);
        if path.is_symlink() || before.as_ref().is_ok_and(|meta| !meta.is_file()) {
            return Ok(ResultFile::InPlace(stream(path)?, path.to_owned()));
        }
        // Whom a file was kept from is not shown the new one; else as the umask has it.
        let mode = before.map_or(0o666, |meta| meta.mode() & 0o777);
        let how = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(parent, how, Mode::from_raw_mode(mode));
        if let Some(file) = file.ok().filter(|_| Path::new(DESCRIPTORS).exists()) {
            return Ok(ResultFile::New(file.into(), path.to_owned()));
        }
        let temporary = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(parent);
        match temporary {
            Err(error) if error.kind() == ErrorKind::PermissionDenied && path.is_file() => {
                Ok(ResultFile::InPlace(stream(path)?, path.to_owned()))
            }
            made => {
                let made = made.with_context(|| format!("cannot write {}", path.display()))?;
                Ok(ResultFile::Beside(made, path.to_owned()))
            }
        }
    }

    /// A reader sees the old or the new, never a part.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(self, bytes: &[u8]) -> Result<()> {
        let (written, path) = match self {
            ResultFile::Stdout => return print::result_file(bytes),
            ResultFile::InPlace(mut file, path) => (write_in_place(&mut file, bytes), path),
            ResultFile::New(mut file, path) => {
                let written = file.write_all(bytes);
                (written.and_then(|()| give_name(&file, &path)), path)
            }
            ResultFile::Beside(mut temporary, path) => {
                let written = temporary
                    .write_all(bytes)
                    .and_then(|()| Ok(temporary.persist(&path).map(drop)?));
                (written, path)
            }
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Puts a file without a name in the place of what has the name: linkat(2) replaces nothing, so that it gets another
/// name first, for a moment.
fn give_name(file: &File, path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let from = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
    let named = tempfile::Builder::new()
        .prefix(PREFIX)
        .make_in(directory_of(parent), |name| {
            linkat(CWD, &from, CWD, name, AtFlags::SYMLINK_FOLLOW)?;
            Ok(())
        })?;
    named.into_temp_path().persist(path)?;
    Ok(())
}

/// By which linkat(2) finds a file without a name.
const DESCRIPTORS: &str = "/proc/self/fd";

/// How the names of files begin that are renamed at once.
const PREFIX: &str = ".refit-";

fn directory_of(parent: &Path) -> &Path {
    match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    }
}

/// Both in one.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    ResultFile::create(path)?.write(bytes)
}

/// A file that grows while it is read, empty. A link is followed where it is this
/// user's or root's, or where nobody else could have made it.
///
/// # Errors
/// As for [`ResultFile::create`].
pub fn stream(path: &Path) -> Result<File> {
    let file = in_place(path, File::options().write(true))?;
    let is_file = file.metadata().is_ok_and(|opened| opened.is_file());
    if is_file {
        let failed = || format!("cannot write {}", path.display());
        file.set_len(0).with_context(failed)?;
    }
    Ok(file)
}

/// A file that keeps what it holds, for more at its end. Links are followed as by [`stream`].
///
/// # Errors
/// As for [`ResultFile::create`].
pub fn appended(path: &Path) -> Result<File> {
    in_place(path, File::options().append(true))
}

fn in_place(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let parent = fs::metadata(directory(path)?);
    let link = fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
    let mut follow = OFlags::NOFOLLOW;
    if let Some(link) = &link {
        refuse_foreign(path, &parent, link)?;
        follow = OFlags::empty();
    }
    let failed = || format!("cannot write {}", path.display());
    // A pipe that nobody reads would be waited for, whoever made it.
    let file = options
        .create(true)
        .custom_flags((follow | OFlags::NONBLOCK).bits().cast_signed())
        .open(path);
    let file = match file {
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => bail!(
            "cannot write {}: nobody reads this pipe\n  start its reader first",
            path.display()
        ),
        file => file.with_context(failed)?,
    };
    let opened = file.metadata().with_context(failed)?;
    if link.is_none() {
        refuse_foreign(path, &parent, &opened)?;
    }
    let flags = fcntl_getfl(&file).map_err(io::Error::from);
    let flags = flags.with_context(failed)? - OFlags::NONBLOCK;
    let set = fcntl_setfl(&file, flags).map_err(io::Error::from);
    set.with_context(failed)?;
    Ok(file)
}

/// A pipe whose reader does not read holds this up until a signal comes, and then for a second.
fn write_in_place(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    let mut read = Instant::now();
    fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(count) => (bytes, read) = (&bytes[count..], Instant::now()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if interruptions() > 0 && read.elapsed() > A_SECOND {
                    return Err(io::Error::other(
                        "its reader does not read, and a signal came",
                    ));
                }
                let _ = poll(&mut [PollFd::new(file, PollFlags::OUT)], Some(&A_MOMENT));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const A_SECOND: Duration = Duration::from_secs(1);
/// How often a signal is looked for meanwhile: ten times a second.
const A_MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

fn directory(path: &Path) -> Result<&Path> {
    let parent = directory_of(path.parent().unwrap_or(Path::new("")));
    if path.file_name().is_none_or(OsStr::is_empty) || !parent.is_dir() {
        bail!(
            "cannot write {}: there is no directory {}",
            path.display(),
            parent.display()
        );
    }
    Ok(parent)
}

/// What another user put where several may write was put there for refit to follow.
fn refuse_foreign(path: &Path, parent: &io::Result<Metadata>, found: &Metadata) -> Result<()> {
    let is_own = |uid: u32| uid == 0 || uid == geteuid().as_raw();
    let is_shared = |parent: &Metadata| parent.mode() & 0o022 != 0 || !is_own(parent.uid());
    if parent.as_ref().is_ok_and(is_shared) && !is_own(found.uid()) {
        bail!(
            "cannot write {}: it belongs to another user, in a directory where others may write; name another file",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_ones_own_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "longer than the new").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(link.is_symlink());
    }

    #[test]
    fn a_new_file_has_the_mode_of_any_and_nothing_is_left_of_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let [plain, out] = ["plain", "out"].map(|name| dir.path().join(name));
        File::create(&plain).unwrap();
        replace(&out, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&plain), mode(&out));
        drop(ResultFile::create(&out).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert!(replace(dir.path(), b"x").is_err());
        assert!(replace(&dir.path().join("no/file"), b"x").is_err());
    }
}
