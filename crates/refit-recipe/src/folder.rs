//! A recipe's folder: its files, wherever they come from.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use refit_run::open_regular;
use sha2::{Digest, Sha256};

use crate::error::RecipeError;

/// A folder holds scripts and a few sources; a larger one is a mistake, such as a home directory.
const MOST_BYTES: u64 = 16 << 20;
const MOST_FILES: usize = 500;

/// A file that refit carries.
pub struct ShippedFile {
    /// Below the folder.
    pub path: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Whether it is to be executable.
    pub executable: bool,
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// One file of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFile {
    /// Below the folder.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

impl FolderFile {
    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// All files of a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// `None` for one that refit carries.
    pub origin: Option<PathBuf>,
    /// Sorted by path.
    pub files: Vec<FolderFile>,
}

/// Names of the recipes that refit carries, sorted.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

impl Folder {
    /// One that refit carries.
    #[must_use]
    pub fn shipped(name: &str) -> Option<Folder> {
        let (_, files) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        let files = files.iter().map(|file| FolderFile {
            path: file.path.into(),
            bytes: file.bytes.to_vec(),
            executable: file.executable,
        });
        Some(Folder {
            origin: None,
            files: files.collect(),
        })
    }

    /// Adds the files of a shipped recipe that this folder does not have itself; `None` where none is shipped under
    /// that name.
    #[must_use]
    pub(crate) fn with_scripts_of(mut self, name: &str) -> Option<Folder> {
        let mut shipped = Folder::shipped(name)?.files;
        shipped.retain(|file| {
            let is_script = !file.path.ends_with("README.md");
            is_script && self.files.iter().all(|own| own.path != file.path)
        });
        self.files.extend(shipped);
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        Some(self)
    }

    /// Reads one from a disk.
    ///
    /// # Errors
    /// [`RecipeError::Unreadable`], [`RecipeError::TooLarge`].
    pub fn read(path: &Path) -> Result<Folder, RecipeError> {
        let mut folder = Folder {
            origin: Some(path.to_owned()),
            files: Vec::new(),
        };
        let mut bytes = 0;
        folder.read_below(path, path, &mut bytes)?;
        folder.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(folder)
    }

    fn read_below(&mut self, top: &Path, dir: &Path, sum: &mut u64) -> Result<(), RecipeError> {
        let failed = |cause| RecipeError::Unreadable {
            path: dir.to_owned(),
            cause,
        };
        for entry in fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let failed = |cause| RecipeError::Unreadable {
                path: path.clone(),
                cause,
            };
            let meta = fs::metadata(&path).map_err(failed)?;
            if meta.is_dir() {
                self.read_below(top, &path, sum)?;
                continue;
            }
            *sum += meta.len();
            if !meta.is_file() || *sum > MOST_BYTES || self.files.len() >= MOST_FILES {
                return Err(RecipeError::TooLarge {
                    path: top.to_owned(),
                    at: path,
                });
            }
            let mut bytes = Vec::new();
            open_regular(&path)
                .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes))
                .map_err(failed)?;
            self.files.push(FolderFile {
                path: path.strip_prefix(top).unwrap_or(&path).to_owned(),
                bytes,
                executable: meta.permissions().mode() & 0o111 != 0,
            });
        }
        Ok(())
    }

    /// The content of a file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        let file = self.files.iter().find(|file| file.path == Path::new(path));
        file.map(|file| &*file.bytes)
    }

    /// Writes all files below `to`, which must not exist: all of them or nothing.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn write(&self, to: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o755).create(to)?;
        self.write_files(to).inspect_err(|_| {
            let _ = fs::remove_dir_all(to);
        })
    }

    /// As [`Folder::write`], readable whatever the umask: services drop their privileges, and read it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_for_services(&self, to: &Path) -> io::Result<()> {
        self.write(to)?;
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set(to, 0o755)?;
        for file in &self.files {
            set(&to.join(&file.path), file.mode())?;
            let parents = file.path.ancestors().skip(1);
            for parent in parents.filter(|parent| !parent.as_os_str().is_empty()) {
                set(&to.join(parent), 0o755)?;
            }
        }
        Ok(())
    }

    fn write_files(&self, to: &Path) -> io::Result<()> {
        for file in &self.files {
            let path = to.join(&file.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut new = fs::File::options();
            let new = new.write(true).create_new(true).mode(file.mode());
            io::Write::write_all(&mut new.open(&path)?, &file.bytes)?;
        }
        Ok(())
    }

    /// By the name of each file, with unusual bytes escaped: its mode and the SHA-256
    /// of its bytes.
    #[must_use]
    pub fn digests(&self) -> BTreeMap<String, String> {
        let digest = |file: &FolderFile| {
            let name = file.path.as_os_str().as_encoded_bytes();
            let mode = if file.executable { 755 } else { 644 };
            let hash = Sha256::digest(&file.bytes);
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            (name.escape_ascii().to_string(), format!("{mode} {hash}"))
        };
        self.files.iter().map(digest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str, bool)]) -> Folder {
        let file = |(path, text, executable): &(&str, &str, bool)| FolderFile {
            path: path.into(),
            bytes: text.as_bytes().to_vec(),
            executable: *executable,
        };
        Folder {
            origin: None,
            files: files.iter().map(file).collect(),
        }
    }

    #[test]
    fn digests_tell_names_modes_and_bytes_apart() {
        let one = folder(&[("a", "abc", false)]).digests();
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(one["a"], format!("644 {abc}"));
        let others = [
            folder(&[("b", "abc", false)]),
            folder(&[("a", "abc", true)]),
            folder(&[("a", "abd", false)]),
            folder(&[("a", "abc", false), ("b", "", false)]),
        ];
        for other in others {
            assert_ne!(other.digests(), one);
        }
        // A byte, and how it is escaped.
        let escaped = folder(&[("\n", "", false), ("\\n", "", false)]).digests();
        assert_eq!(escaped.len(), 2);
    }
    #[test]
    fn what_cannot_be_written_whole_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("new");
        folder(&[("a", "", false), ("a", "", false)])
            .write(&to)
            .unwrap_err();
        assert!(!to.exists());
        fs::create_dir(&to).unwrap();
        folder(&[("a", "", false)]).write(&to).unwrap_err();
        assert!(to.is_dir());
    }
}
