//! What a repetition of a command has to restore: its standard input, and the files that
//! its own run left or took away.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::run::{Outcome, Run};

/// Words of a command that are looked at as paths.
const WORDS: usize = 64;
/// A directory with more entries, or more bytes, is not copied for each run.
const MOST_ENTRIES: usize = 2_000;
const MOST_BYTES: u64 = 64 << 20;

/// What a program had as standard input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A file, by its path.
    File(String),
    /// A pipe, a socket or a deleted file: it can be read once.
    Stream,
}

/// What a repetition of a command has to restore, as far as it can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repetition {
    /// The standard input, unless it is a terminal or /dev/null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// The program wrote below its current directory, which is small enough for a copy.
    pub fresh_copy: bool,
    /// Arguments that named nothing before the run, and name a file now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<String>,
    /// Arguments that named a file before the run, and name nothing now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// What was there before the run.
pub struct Before {
    input: Option<Input>,
    /// Paths among the arguments, and whether they named a file.
    arguments: Vec<(String, bool)>,
}

impl Before {
    /// Now.
    #[must_use]
    pub fn look(command: &[OsString]) -> Before {
        let arguments = command.iter().skip(1).take(WORDS);
        let paths = arguments.filter_map(|word| path_in(word.to_str()?));
        Before {
            input: input(Path::new("/proc/self/fd/0")),
            arguments: paths.map(|path| (path.to_owned(), exists(path))).collect(),
        }
    }

    /// What has changed when the program has ended.
    #[must_use]
    pub fn compare(self, run: &Run) -> Repetition {
        let changed = |now: bool| {
            let changed = self.arguments.iter();
            let changed = changed.filter(|(path, before)| *before != now && exists(path) == now);
            changed.map(|(path, _)| path.clone()).collect::<Vec<_>>()
        };
        let (created, removed) = (changed(true), changed(false));
        let mut both = created.iter().chain(&removed);
        let wrote = both.any(|path| Path::new(path).is_relative()) || wrote_below(run);
        Repetition {
            fresh_copy: wrote && is_small(Path::new(".")),
            input: self.input,
            created,
            removed,
        }
    }
}

impl Repetition {
    /// What `refit compare` needs in order to restore it.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.fresh_copy {
            words.extend(["--fresh-copy", "."].map(str::to_owned));
        }
        if self.fresh_copy && !self.created.is_empty() {
            words.extend([
                "--prepare".to_owned(),
                format!("rm -rf {}", self.created.join(" ")),
            ]);
        }
        words.extend(self.input.iter().flat_map(|input| {
            let file = match input {
                Input::File(path) => path,
                Input::Stream => "FILE",
            };
            ["--input", file].map(str::to_owned)
        }));
        words
    }

    /// Why a comparison would not do what this run did.
    #[must_use]
    pub fn obstacle(&self, exit: Outcome) -> Option<String> {
        match exit {
            Outcome::Code(0) => {}
            Outcome::Code(code) => {
                return Some(format!("the command failed with exit code {code}"));
            }
            Outcome::Signal(signal) => return Some(format!("signal {signal} killed the command")),
        }
        // A copy has what was there before; of another place refit removes nothing.
        let restored = |path: &&String| self.fresh_copy && is_plain(path);
        let mut removed = self.removed.iter().filter(|path| !restored(path));
        let mut created = self.created.iter().filter(|path| !restored(path));
        if let Some(path) = removed.next() {
            return Some(format!(
                "the command removed {path}, which each run needs; restore it with --prepare"
            ));
        }
        let path = created.next()?;
        Some(format!(
            "the command created {path}, which was not there before; remove it with --prepare"
        ))
    }
}

/// A relative path that a shell takes as it is.
fn is_plain(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    Path::new(path).is_relative() && path.chars().all(plain) && !path.contains("..")
}

/// `dd of=FILE`, `--output=FILE`, FILE.
fn path_in(word: &str) -> Option<&str> {
    let path = word.rsplit_once('=').map_or(word, |(_, path)| path);
    (!path.is_empty() && !path.starts_with('-')).then_some(path)
}

fn exists(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// What a descriptor is, by its link in /proc.
fn input(link: &Path) -> Option<Input> {
    let kind = fs::metadata(link).ok()?.file_type();
    if kind.is_char_device() {
        return None;
    }
    if !kind.is_file() {
        return Some(Input::Stream);
    }
    let path = fs::read_link(link).ok();
    let path = path.filter(|path| path.exists());
    let path = path.and_then(|path| path.into_os_string().into_string().ok());
    Some(path.map_or(Input::Stream, Input::File))
}

/// Whether syncs of the run waited below the current directory.
fn wrote_below(run: &Run) -> bool {
    let Ok(here) = std::env::current_dir() else {
        return false;
    };
    let mut directories = run.executables.iter().flat_map(|one| &one.directories);
    directories.any(|one| Path::new(&one.path).starts_with(&here))
}

/// Whether a directory can be copied for each run at a low price.
fn is_small(directory: &Path) -> bool {
    let (mut entries, mut bytes) = (0_usize, 0_u64);
    let mut left: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let Ok(all) = fs::read_dir(&directory) else {
            return false;
        };
        for entry in all.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            entries += 1;
            bytes = bytes.saturating_add(meta.len());
            if entries > MOST_ENTRIES || bytes > MOST_BYTES {
                return false;
            }
            if meta.is_dir() {
                left.push(entry.path());
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repetition(fresh_copy: bool, created: &[&str], removed: &[&str]) -> Repetition {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Repetition {
            input: None,
            fresh_copy,
            created: owned(created),
            removed: owned(removed),
        }
    }

    #[test]
    fn what_was_created_in_a_copy_is_removed_before_each_run() {
        let one = repetition(true, &["t.db"], &[]);
        assert_eq!(
            one.options(),
            ["--fresh-copy", ".", "--prepare", "rm -rf t.db"]
        );
        assert_eq!(one.obstacle(Outcome::Code(0)), None);
    }

    #[test]
    fn what_cannot_be_restored_is_an_obstacle() {
        for (repetition, expected) in [
            (repetition(true, &[], &["in.txt"]), None),
            (repetition(false, &[], &["in.txt"]), Some("removed in.txt")),
            (repetition(true, &["/srv/x"], &[]), Some("created /srv/x")),
            (repetition(true, &["a b"], &[]), Some("created a b")),
            (repetition(true, &["../x"], &[]), Some("created ../x")),
        ] {
            let obstacle = repetition.obstacle(Outcome::Code(0));
            assert_eq!(obstacle.is_some(), expected.is_some(), "{obstacle:?}");
            let text = obstacle.unwrap_or_default();
            assert!(text.contains(expected.unwrap_or_default()), "{text}");
        }
        let failed = repetition(false, &[], &[]).obstacle(Outcome::Code(3));
        assert_eq!(
            failed.as_deref(),
            Some("the command failed with exit code 3")
        );
    }

    #[test]
    fn standard_input_is_a_file_or_a_stream_or_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("rows");
        fs::write(&file, "x").expect("a file");
        let link = directory.path().join("link");
        let of = |target: &Path| {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(target, &link).expect("a link");
            input(&link)
        };
        assert_eq!(of(&file), Some(Input::File(file.display().to_string())));
        assert_eq!(of(Path::new("/dev/null")), None);
        assert_eq!(of(directory.path()), Some(Input::Stream));
    }

    #[test]
    fn paths_are_found_in_words() {
        for (word, path) in [
            ("of=/x/f", Some("/x/f")),
            ("--out=f", Some("f")),
            ("-v", None),
            ("f", Some("f")),
            ("", None),
        ] {
            assert_eq!(path_in(word), path);
        }
    }
}
