//! Libraries for services: copied to /usr/lib/refit, below a name of their content.
//!
//! Not below /var/lib: hardened units cannot execute there (Debian's redis has
//! `NoExecPaths=/`), nor below /home, /root or /tmp, which units often do not see.

use std::fs;
use std::path::Path;

use refit_knobs::{AllocatorKind, NamedAllocator, Preload};
use refit_run::LAUNCHER;
use refit_run::allocator::{self, is_shared_object};
use sha2::{Digest, Sha256};

use crate::file_state::hex;
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
    for dir in above(&file.path) {
        system.place(dir)?.make_directory(0o755)?;
    }
    system.is_ours_alone(&file.path)?;
    let place = system.place(&file.path)?;
    place.remove_temporary()?;
    match place.state()? {
        None => Ok(place.write(&FileState::executable(content.to_vec()))?),
        Some(there) if there.bytes() == content => Ok(()),
        Some(_) => Err(Error::InTheWay {
            path: place.path().to_owned(),
        }),
    }
}

/// [`PLACE`] and the directory of the content.
fn above(path: &str) -> [&str; 2] {
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    [PLACE, dir]
}

/// Whether it is there with its content; `None` where it is not there.
///
/// # Errors
/// [`Error::File`].
pub fn is_whole(system: &System, file: &LibraryFile) -> Result<Option<bool>, Error> {
    let found = system.state(&file.path)?;
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
    let place = system.place(&file.path)?;
    place.remove_temporary()?;
    let has_it = |record: &crate::Record| {
        record.change.service != service
            && record.change.placed().any(|other| other.path == file.path)
    };
    let records = store.all()?;
    // One that cannot be read may have it too.
    if !records.unreadable.is_empty() || records.readable.iter().any(has_it) {
        return Ok(());
    }
    place.remove()?;
    // Those of other contents may be there.
    for dir in above(&file.path).into_iter().rev() {
        system.place(dir)?.remove_directory()?;
    }
    Ok(())
}
