//! Libraries for services: copied to /usr/lib/refit, below a name of their content.
//!
//! Not below /var/lib: hardened units cannot execute there (Debian's redis has
//! `NoExecPaths=/`), nor below /home, /root or /tmp, which units often do not see.

use std::fs;
use std::io;
use std::path::Path;

use refit_knobs::{AllocatorKind, NamedAllocator, Preload};
use refit_run::LAUNCHER;
use refit_run::allocator::{self, is_shared_object};
use sha2::{Digest, Sha256};

use crate::file_state::{hex, remove, sync_directory};
use crate::store::Store;
use crate::{Error, FileError, FileState, Launcher, LibraryFile, System};

/// Directory that holds all that refit places.
pub const PLACE: &str = "/usr/lib/refit";

/// The library that is meant, and its content; `None` for the C library's own allocator.
///
/// # Errors
/// [`Error::NoAllocator`], [`Error::NotALibrary`], or why it cannot be read.
pub fn find(system: &System, preload: Preload) -> Result<Option<(LibraryFile, Vec<u8>)>, Error> {
    let from = match preload {
        Preload::File(path) => path.to_string_lossy().into_owned(),
        Preload::Allocator(malloc) => match &malloc.kind {
            AllocatorKind::Path(path) => path.to_string_lossy().into_owned(),
            AllocatorKind::Named(named) if named.is_c_librarys() => return Ok(None),
            AllocatorKind::Named(named) => {
                let open = |path: &Path| system.open(&path.to_string_lossy()).ok()?;
                let found = allocator::find(named, None, open)?;
                found.to_string_lossy().into_owned()
            }
        },
    };
    let Some(content) = system.read(&from)? else {
        return Err(Error::NoLibrary { path: from });
    };
    let file = from.rsplit('/').next().unwrap_or(&from);
    if NamedAllocator::of_file(file).is_some_and(NamedAllocator::is_c_librarys) {
        return Err(Error::CLibrary { path: from });
    }
    if !is_shared_object(&content) {
        return Err(Error::NotALibrary { path: from });
    }
    let name = from.rsplit('/').next().unwrap_or(&from).to_owned();
    Ok(Some((named(from, &name, &content), content)))
}

fn named(from: String, name: &str, content: &[u8]) -> LibraryFile {
    let sha256 = hash(content);
    LibraryFile {
        path: format!("{PLACE}/{}/{name}", &sha256[..16]),
        sha256,
        from,
        package: None,
    }
}

/// Of a content, as a record has it.
pub fn hash(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// A script of refit's own.
pub fn script(name: &str, content: &[u8]) -> LibraryFile {
    named("refit".to_owned(), name, content)
}

/// The launcher of this refit, and its content.
pub fn launcher(exec_start: Option<String>) -> (Launcher, Vec<u8>) {
    let content = LAUNCHER.to_vec();
    let program = script("launcher", &content);
    (
        Launcher {
            program,
            exec_start,
        },
        content,
    )
}

/// A copy of refit itself: it takes a change back even if the installed refit is gone by then.
pub fn own_program(from: &Path) -> Result<(LibraryFile, Vec<u8>), Error> {
    // This is right even if the file was replaced or removed since this process began.
    let content = fs::read("/proc/self/exe").map_err(FileError::at(from))?;
    Ok((
        named(from.to_string_lossy().into_owned(), "refit", &content),
        content,
    ))
}

/// Places it, for good. Where it is already, it is left as it is.
///
/// # Errors
/// [`Error::NotAlone`], [`Error::InTheWay`], [`Error::File`].
pub fn place(system: &System, file: &LibraryFile, content: &[u8]) -> Result<(), Error> {
    let path = system.path(&file.path)?;
    let dir = path.parent().expect("it has one");
    let above = dir.parent().expect("it has one");
    for dir in [above, dir] {
        make_directory(dir)?;
    }
    system.is_ours_alone(&file.path)?;
    remove(&crate::file_state::temporary(&path))?;
    match FileState::read(&path)? {
        None => Ok(FileState::executable(content.to_vec()).write(&path)?),
        Some(there) if there.bytes() == content => Ok(()),
        Some(_) => Err(Error::InTheWay { path }),
    }
}

/// Makes a directory that is there perhaps, for good.
pub fn make_directory(dir: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::PermissionsExt;
    let made = fs::create_dir(dir)
        // Whatever the umask is.
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o755)));
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Ok(()) => sync_directory(dir),
        Err(cause) => Err(FileError::at(dir)(cause)),
    }
}

/// Whether it is there with its content; `None` where it is not there.
///
/// # Errors
/// [`Error::File`].
pub fn is_whole(system: &System, file: &LibraryFile) -> Result<Option<bool>, Error> {
    let found = FileState::read(&system.path(&file.path)?)?;
    Ok(found.map(|found| hash(&found.bytes()) == file.sha256))
}

/// Removes it where no other service has it.
///
/// # Errors
/// [`Error::File`], or why the records cannot be read.
pub fn withdraw(
    system: &System,
    store: &Store,
    service: &str,
    file: &LibraryFile,
) -> Result<(), Error> {
    let path = system.path(&file.path)?;
    remove(&crate::file_state::temporary(&path))?;
    let has_it = |record: &crate::Record| {
        record.change.service != service
            && record.change.placed().any(|other| other.path == file.path)
    };
    if store.all()?.iter().any(has_it) {
        return Ok(());
    }
    remove(&path)?;
    // Those of other contents may be there.
    for dir in path.ancestors().skip(1).take(2) {
        remove_directory(dir)?;
    }
    Ok(())
}

/// Removes a directory that is empty, for good.
pub fn remove_directory(dir: &Path) -> Result<(), FileError> {
    let is_empty = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    // A read-only file system refuses to remove what is not there, or not empty, too.
    if !is_empty {
        return Ok(());
    }
    fs::remove_dir(dir).map_err(FileError::at(dir))?;
    sync_directory(dir)
}
