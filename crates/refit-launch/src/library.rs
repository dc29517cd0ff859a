//! Where refit's libraries lie: paths that `ld.so` of every program in the tree
//! can open, for as long as any of them may exec.
//!
//! The directory is named by the library's hash and never deleted by a run: a
//! missing or noexec preload makes ld.so complain on the *program's* stderr.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use refit_session::{LIBRARY_HASH, Library};
use rustix::fs::StatVfsMountFlags;
use rustix::process::geteuid;

use crate::LaunchError;

/// A directory in which libraries may be placed, in the order of preference.
fn candidates() -> Vec<PathBuf> {
    if geteuid().is_root() {
        return vec![
            Path::new("/var/lib/refit/lib").join(LIBRARY_HASH),
            Path::new("/var/tmp/refit-0").join(LIBRARY_HASH),
        ];
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .filter(|path| path.is_absolute());
    let own = Path::new("/var/tmp")
        .join(format!("refit-{}", geteuid().as_raw()))
        .join(LIBRARY_HASH);
    cache
        .map(|dir| dir.join("refit").join(LIBRARY_HASH))
        .into_iter()
        .chain([own])
        .collect()
}

/// Whether files below `path` may not be executed, nor mapped as code.
///
/// # Errors
/// When the file system cannot be asked.
pub fn is_noexec(path: &Path) -> io::Result<bool> {
    Ok(rustix::fs::statvfs(path)?
        .f_flag
        .contains(StatVfsMountFlags::NOEXEC))
}

/// The first character of a path that keeps `LD_PRELOAD` from naming it: ld.so splits the list at
/// blanks and colons, musl's at all white space, and both have no quotes; glibc's expands `$`
/// (ld.so(8)).
fn unloadable(path: &Path) -> Option<char> {
    let path = path.to_string_lossy();
    path.chars()
        .find(|letter| letter.is_ascii_whitespace() || [':', '$'].contains(letter))
}

/// Places these libraries and returns their directory: what is not needed is not
/// looked at, as this is done at each start.
///
/// # Errors
/// [`LaunchError::NoPlace`] with the reason for each place that was tried.
pub fn place_libraries(libraries: &[Library]) -> Result<PathBuf, LaunchError> {
    let mut reasons = Vec::new();
    for dir in candidates() {
        match place_in(&dir, libraries) {
            Ok(()) => return Ok(dir),
            Err(reason) => reasons.push(format!("{}: {reason}", dir.display())),
        }
    }
    Err(LaunchError::NoPlace {
        reasons: reasons.join("; "),
    })
}

fn place_in(dir: &Path, libraries: &[Library]) -> Result<(), String> {
    if let Some(letter) = unloadable(dir) {
        return Err(format!("LD_PRELOAD cannot name a path with {letter:?}"));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| error.to_string())?;
    ours_alone(dir)?;
    if geteuid().is_root() {
        open_to_all(dir).map_err(|error| error.to_string())?;
    }
    if is_noexec(dir).map_err(|error| error.to_string())? {
        return Err("mounted noexec".to_owned());
    }
    for library in libraries {
        let path = dir.join(library.name);
        if !is_whole(&path, library.bytes) {
            write_whole(&path, library.bytes).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Another user who could write here could put code into the program.
fn ours_alone(dir: &Path) -> Result<(), String> {
    let me = geteuid().as_raw();
    for at in [Some(dir), dir.parent()].into_iter().flatten() {
        let meta = fs::symlink_metadata(at).map_err(|error| error.to_string())?;
        if !meta.is_dir() || (meta.uid() != me && meta.uid() != 0) || meta.mode() & 0o022 != 0 {
            return Err(format!("{} is not this user's alone", at.display()));
        }
    }
    Ok(())
}

/// Programs that drop root load the library too, whatever umask it was placed under.
/// Up to the directory named refit, or refit-0: what is above is not refit's. Where none
/// has such a name, only `dir` is.
fn open_to_all(dir: &Path) -> io::Result<()> {
    let is_refits = |at: &Path| {
        let name = at.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("refit"))
    };
    let above = dir.ancestors().position(is_refits).unwrap_or(0);
    for at in dir.ancestors().take(above + 1) {
        if fs::symlink_metadata(at)?.mode() & 0o7777 != 0o755 {
            fs::set_permissions(at, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// The library is there, and can be loaded by all who can reach it.
fn is_whole(path: &Path, whole: &[u8]) -> bool {
    File::open(path)
        .and_then(|file| holds(&file, whole))
        .unwrap_or(false)
}

/// Whether the file has this content and may be loaded by all. Read in pieces, as this is
/// done at each start, and memory for all of it would be that many page faults.
fn holds(mut file: &File, content: &[u8]) -> io::Result<bool> {
    let about = file.metadata()?;
    if about.mode() & 0o7777 != 0o755 || about.len() != content.len() as u64 {
        return Ok(false);
    }
    let mut piece = [0; 16384];
    for expected in content.chunks(piece.len()) {
        let read = &mut piece[..expected.len()];
        file.read_exact(read)?;
        if read != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Temporary file and rename: a reader sees the old or the new, never a part. A
/// refit in another pid namespace may write the same at the same time.
fn write_whole(path: &Path, whole: &[u8]) -> io::Result<()> {
    let directory = path.parent().expect("it lies in one");
    let mut temporary = tempfile::Builder::new()
        .prefix("librefit")
        .tempfile_in(directory)?;
    temporary.write_all(whole)?;
    let mode = fs::Permissions::from_mode(0o755);
    temporary.as_file().set_permissions(mode)?;
    temporary.persist(path)?;
    Ok(())
}

/// Lets a small program load `libraries` (an `LD_PRELOAD` value) once, before
/// the user's program does. The result is remembered in `directory`, that of refit's
/// own, by the identity of each file.
///
/// # Errors
/// [`LaunchError::LibraryUnreadable`], or [`LaunchError::TestLoad`] when ld.so
/// printed anything or the program did not end with 0.
pub fn test_load(directory: &Path, libraries: &[PathBuf]) -> Result<(), LaunchError> {
    let mut identity = String::new();
    for path in libraries {
        let meta = File::open(path)
            .and_then(|file| file.metadata())
            .map_err(|cause| LaunchError::LibraryUnreadable {
                path: path.clone(),
                cause,
            })?;
        identity.push_str(&format!(
            "{} {} {} {} {}\n",
            path.display(),
            meta.dev(),
            meta.ino(),
            meta.size(),
            meta.ctime()
        ));
    }
    let remembered = directory.join(format!(
        "loaded-{}-{:016x}",
        geteuid().as_raw(),
        fnv(&identity)
    ));
    if fs::read(&remembered).is_ok_and(|text| text == identity.as_bytes()) {
        return Ok(());
    }
    let value = libraries
        .iter()
        .map(|p| p.display().to_string())
        .collect::<Vec<_>>()
        .join(":");
    let output = try_load(&value).map_err(|cause| LaunchError::NoTestLoad {
        libraries: value.clone(),
        cause,
    })?;
    if let Some(output) = output {
        return Err(LaunchError::TestLoad {
            libraries: value,
            output,
        });
    }
    // Without a place to remember it is only tried again the next time.
    let _ = fs::write(remembered, identity);
    Ok(())
}

fn try_load(value: &str) -> io::Result<Option<String>> {
    let output = Command::new("/bin/true")
        .env_clear()
        .env("LD_PRELOAD", value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok(match (output.status.success(), stderr.is_empty()) {
        (true, true) => None,
        (_, false) => Some(stderr),
        (false, true) => Some(output.status.to_string()),
    })
}

fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use refit_session::LIBRARIES;

    use super::*;

    #[test]
    fn what_is_not_refits_keeps_its_mode() {
        let outside = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        for (dir, opened) in [
            ("a/b", &["a/b"][..]),
            ("a/refit-0/b", &["a/refit-0", "a/refit-0/b"]),
        ] {
            let made = outside.path().join(dir);
            fs::create_dir_all(&made).unwrap();
            let all = made.ancestors().take_while(|at| *at != outside.path());
            let all: Vec<&Path> = all.chain([outside.path()]).collect();
            for at in &all {
                fs::set_permissions(at, fs::Permissions::from_mode(0o700)).unwrap();
            }
            open_to_all(&made).unwrap();
            for at in all {
                let is_opened = opened
                    .iter()
                    .any(|opened| at == outside.path().join(opened));
                assert_eq!(mode(at), if is_opened { 0o755 } else { 0o700 }, "{at:?}");
            }
        }
    }

    /// Where pid namespaces share the place, another refit may have the same pid.
    #[test]
    fn the_library_of_another_refit_is_not_written_into() {
        // Whose mode is set ends at this name.
        let place = tempfile::Builder::new().prefix("refit-").tempdir().unwrap();
        let dir = place.path().join("hash");
        fs::create_dir(&dir).unwrap();
        let theirs = LIBRARIES.map(|library| {
            let theirs = dir.join(format!("{}.{}", library.name, std::process::id()));
            fs::write(&theirs, "half").unwrap();
            theirs
        });
        place_in(&dir, &LIBRARIES).unwrap();
        for (library, theirs) in LIBRARIES.iter().zip(theirs) {
            assert!(is_whole(&dir.join(library.name), library.bytes));
            assert_eq!(fs::read_to_string(theirs).unwrap(), "half");
        }
        assert_eq!(fs::read_dir(dir).unwrap().count(), 2 * LIBRARIES.len());
    }
}
