//! The copy of a configuration: its files, and what became of each line.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use refit_servers::files;

use super::{FromError, Notes};
use crate::folder::FolderFile;

/// A configuration is smaller.
const MOST_BYTES: u64 = 4 << 20;
const MOST_FILES: usize = 300;

/// Names of settings, also within a value, that hold a secret.
const NAMED_SECRETS: &[&str] = &["passw", "passphrase", "secret", "token", "credential"];

/// Files of a configuration as they are copied. `@DIR@` in them stands for the instance's
/// directory, where the file `/PATH` becomes `@DIR@/root/PATH`.
#[derive(Default)]
pub struct Copy {
    files: BTreeMap<PathBuf, String>,
    /// Settings that a command line adds, as lines of the configuration.
    arguments: Vec<String>,
    pub notes: Notes,
}

/// The file of [`Copy::command_line`] among the copies.
pub const COMMAND_LINE: &str = "/command-line";

/// What becomes of a line.
pub enum Line {
    Keep,
    /// It has another value in the instance: `NAME VALUE`.
    Moved(String),
    /// The instance does without it: what, and why.
    LeftOut(String),
    /// Another line in its place.
    Replaced(String),
}

/// Names of settings, separated by blanks. One that ends in `-` or `_` stands for all that begin so.
pub struct Tables {
    /// Have another value in the instance.
    pub moved: &'static str,
    /// Are left out, and why. Their values are not repeated: they may be secrets.
    pub left_out: &'static [(&'static str, &'static str)],
}

impl Copy {
    /// One that has settings of a command line already.
    pub fn with(arguments: Vec<String>) -> Copy {
        Copy {
            arguments,
            ..Copy::default()
        }
    }

    /// The main file.
    ///
    /// # Errors
    /// [`FromError::Unreadable`], [`FromError::Unusable`].
    pub fn main(path: &Path) -> Result<String, FromError> {
        if !is_plain(path) {
            return Err(FromError::Unusable {
                path: path.to_owned(),
                problem:
                    "a configuration cannot name it without quotation\n  copy it: cp -r … /tmp/copy"
                        .to_owned(),
            });
        }
        read(path).map_err(|cause| FromError::Unreadable {
            path: path.to_owned(),
            cause,
        })
    }

    /// A file that the configuration includes; `None` where it is left out, which is noted.
    pub fn included(&mut self, path: &Path) -> Option<String> {
        if self.files.contains_key(path) {
            return None;
        }
        if self.files.len() >= MOST_FILES {
            let why = format!("more than {MOST_FILES} files");
            self.left_out(format!("{}: {why}", path.display()));
            return None;
        }
        if !is_plain(path) {
            self.left_out(format!(
                "{}: a configuration cannot name it without quotation",
                path.display()
            ));
            return None;
        }
        let text = match read(path) {
            Ok(text) => text,
            Err(cause) => {
                self.left_out(format!("{}: {cause}", path.display()));
                return None;
            }
        };
        if is_private(path) && holds_secret(&text) {
            self.left_out(format!(
                "{}: not everybody may read it, and it holds a password or a key",
                path.display()
            ));
            return None;
        }
        Some(text)
    }

    /// The lines that a command line adds; they are to be the file [`COMMAND_LINE`].
    pub fn command_line(&mut self) -> String {
        std::mem::take(&mut self.arguments).join("\n")
    }

    /// Keeps the text of a file, with what becomes of each of its lines. A comment tells
    /// of each line that goes.
    pub fn rewrite(
        &mut self,
        path: &Path,
        text: &str,
        mut line: impl FnMut(&mut Copy, &str) -> Line,
    ) {
        // Known before it is read: an include of itself ends here.
        self.files.insert(path.to_owned(), String::new());
        let mut copied = String::new();
        // A comment often is a setting of before, a password among them.
        let is_private = is_private(path);
        for (number, old) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            match line(self, old) {
                Line::Keep if is_private && old.trim_start().starts_with(['#', ';']) => {
                    copied.push('#');
                }
                Line::Keep => copied += old,
                Line::Replaced(new) => copied += &new,
                Line::Moved(what) => {
                    copied += &format!("# refit: another value in the private instance: {what}");
                    self.notes.moved.push(format!("{what} ({place})"));
                }
                Line::LeftOut(what) => {
                    copied += &format!("# refit: left out: {what}");
                    self.notes.left_out.push(format!("{what} ({place})"));
                }
            }
            copied += "\n";
        }
        self.files.insert(path.to_owned(), copied);
    }

    /// What becomes of a setting. A path of the machine does not stay, unless it is one of code.
    pub fn setting(&mut self, tables: &Tables, name: &str, value: &str) -> Line {
        let known = |names: &str| {
            names.split_whitespace().any(|start| {
                name == start || start.ends_with(['-', '_']) && name.starts_with(start)
            })
        };
        if known(tables.moved) {
            return Line::Moved(format!("{name} {value}"));
        }
        if let Some((_, why)) = tables.left_out.iter().find(|(names, _)| known(names)) {
            return Line::LeftOut(format!("{name}: {why}"));
        }
        let text = format!("{name}={value}").to_lowercase();
        if NAMED_SECRETS.iter().any(|word| text.contains(word)) {
            return Line::LeftOut(format!("{name}: it may be a password or a key"));
        }
        let mut words = value.split([' ', '\t', '"', '\'', ',', '=', ';']);
        let Some(path) = words.find(|word| word.starts_with('/') && word.len() > 1) else {
            return Line::Keep;
        };
        if name == "loadmodule" || is_shared_code(path) {
            self.notes.outside.push(format!("{name} {path}"));
            return Line::Keep;
        }
        Line::LeftOut(format!("{name} {path}: it is not the instance's"))
    }

    /// Copies what an include names, each file by `file`: the lines in its place, by `line`. A relative pattern begins at
    /// `directory`.
    pub fn include(
        &mut self,
        directory: &Path,
        pattern: &str,
        mut file: impl FnMut(&mut Copy, &Path, &str),
        line: impl Fn(&str) -> String,
    ) -> Line {
        let mut lines = Vec::new();
        for mut path in files(directory, pattern) {
            without_parents(&mut path);
            if let Some(text) = self.included(&path) {
                file(self, &path, &text);
                lines.push(line(&copy_of(&path)));
            }
        }
        match lines.is_empty() {
            true if pattern.contains('*') => {
                Line::Replaced(format!("# refit: nothing to include: {pattern}"))
            }
            true => Line::LeftOut(format!("include {pattern}: nothing to read")),
            false => Line::Replaced(lines.join("\n")),
        }
    }

    /// Keeps a file with a text that has been made of it.
    pub fn put(&mut self, path: &Path, text: String) {
        self.files.insert(path.to_owned(), text);
    }

    /// The text of a copy that goes to another place.
    pub fn take(&mut self, path: &Path) -> String {
        self.files.remove(path).unwrap_or_default()
    }

    pub fn left_out(&mut self, what: String) {
        self.notes.left_out.push(what);
    }

    /// The copies, for the folder.
    pub fn folder_files(&self) -> Vec<FolderFile> {
        let file = |(path, text): (&PathBuf, &String)| FolderFile {
            path: Path::new("root").join(path.strip_prefix("/").unwrap_or(path)),
            bytes: text.clone().into_bytes(),
            executable: false,
        };
        self.files.iter().map(file).collect()
    }
}

/// Where the copy of a file lies in the instance.
pub fn copy_of(path: &Path) -> String {
    format!("@DIR@/root{}", path.display())
}

/// Whether a path may stay: programs, libraries and data of packages, which nobody writes to.
fn is_shared_code(path: &str) -> bool {
    ["/usr", "/lib"]
        .iter()
        .any(|start| Path::new(path).starts_with(start))
}

/// Replaces a path with `..` in it, which a copy cannot have.
pub fn without_parents(path: &mut PathBuf) {
    let has_parents = path.components().any(|part| part == Component::ParentDir);
    if has_parents && let Ok(real) = fs::canonicalize(&*path) {
        *path = real;
    }
}

/// Whether a path can stand in a line of a configuration as it is.
fn is_plain(path: &Path) -> bool {
    path.to_str().is_some_and(|text| {
        let odd = |c: char| c.is_control() || "\"'\\#".contains(c);
        !text.contains(odd) && !text.contains("@DIR@")
    })
}

fn is_private(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o004 == 0)
}

fn holds_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "passw",
        "requirepass",
        "masterauth",
        "secret",
        "private key",
        "token",
        "auth",
    ]
    .iter()
    .any(|word| text.contains(word))
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let meta = fs::metadata(path)?;
    if !meta.is_file() || meta.size() > MOST_BYTES {
        return Err(std::io::Error::other(
            "not a file of a configuration, or too large for one",
        ));
    }
    fs::File::open(path)?
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)?;
    // A server may read what follows it as if the line had not ended (Redis, by fgets(3)).
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        return Err(std::io::Error::other(format!("a NUL byte in line {line}")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
