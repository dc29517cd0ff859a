//! A recipe of a service as it is configured: a private instance with a copy of its configuration.
//!
//! Ports, sockets and directories are moved into the instance; what could not be moved is left out
//! of the copy and named. Only configuration is read, never the data of the service, and nothing
//! of it is started. Keys and passwords are not copied.

mod by_unit;
mod copy;
mod mariadb;
mod postfix;
mod postgresql;
mod redis;
mod rsyslog;

use std::path::{Path, PathBuf};

use refit_run::printable;

use crate::checker::invalid_name;
use crate::error::RecipeError;
use crate::folder::{Folder, FolderFile};
use crate::recipe::Recipe;
pub use by_unit::from_unit;
use copy::Copy;

/// A recipe that was made from a configuration.
#[derive(Debug)]
pub struct Made {
    /// Its files, without those that it takes from `scripts`.
    pub folder: Folder,
    /// What was done to the configuration.
    pub notes: Notes,
}

/// What was done to a configuration so that an instance with it is private.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Settings that have another value in the instance.
    pub moved: Vec<String>,
    /// Settings and files that the instance does without.
    pub left_out: Vec<String>,
    /// What still points out of the instance: programs and libraries.
    pub outside: Vec<String>,
    /// What else one should know of it.
    pub remarks: Vec<String>,
}

/// Why there is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum FromError {
    /// No such file or directory, or it cannot be read.
    #[error("cannot read {}: {cause}\n  {KNOWN}", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// Not the configuration of a service that refit knows.
    #[error("{} is not a configuration that refit knows\n  {KNOWN}\n  a service: refit recipes new NAME --from-unit UNIT; another program: refit recipes new NAME --template daemon", path.display())]
    UnknownKind {
        /// What.
        path: PathBuf,
    },
    /// A recipe cannot have it.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// What.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
    /// No unit, or not one of a service that refit knows.
    #[error("--from-unit {unit}: {problem}")]
    Unit {
        /// The unit, as typed.
        unit: String,
        /// Why, and what to do.
        problem: String,
    },
    /// What was made is no recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
}

const KNOWN: &str = "refit knows: /etc/redis/redis.conf, /etc/postgresql/15/main, /etc/mysql, /etc/postfix, /etc/rsyslog.conf";

/// One kind of configuration.
#[derive(Debug)]
struct Kind {
    /// The main file of a configuration at this path, if it is one of this kind.
    main: fn(&Path) -> Option<PathBuf>,
    make: fn(&Path, Copy) -> Result<Parts, FromError>,
}

const KINDS: &[Kind] = &[
    redis::KIND,
    postgresql::KIND,
    mariadb::KIND,
    postfix::KIND,
    rsyslog::KIND,
];

/// What a kind makes of a configuration.
struct Parts {
    copy: Copy,
    /// The shipped recipe with its load.
    scripts: &'static str,
    /// The server's name for people.
    server: &'static str,
    /// Files beside recipe.toml and the copies.
    files: Vec<(&'static str, String)>,
    /// Texts of the shipped recipe.toml and what stands in their places.
    replaced: Vec<(&'static str, String)>,
    /// What settings of the shipped recipe.toml have in this configuration; a `conf.` that has it already goes.
    now: Vec<(&'static str, String)>,
    /// The copy has the lines that settings of the shipped recipe.toml replace; otherwise these add lines.
    replaces_lines: bool,
    /// Tables after those of the shipped recipe.toml.
    more: String,
}

/// The recipe `name` of the service that is configured at `path`.
///
/// # Errors
/// [`FromError`]; nothing was written.
pub fn from_path(path: &Path, name: &str) -> Result<Made, FromError> {
    let typed = format!("--from {}", path.display());
    configured(path, None, Copy::default(), name, &printable(&typed))
}

/// The same, of a kind that may be known, where a copy may have settings of a command line already.
fn configured(
    path: &Path,
    kind: Option<&'static Kind>,
    copy: Copy,
    name: &str,
    typed: &str,
) -> Result<Made, FromError> {
    valid(name)?;
    let unreadable = |cause| FromError::Unreadable {
        path: path.to_owned(),
        cause,
    };
    let mut path = std::path::absolute(path).map_err(unreadable)?;
    std::fs::metadata(&path).map_err(unreadable)?;
    copy::without_parents(&mut path);
    let found = match kind {
        // Its file may have any name.
        Some(kind) if path.is_file() => Some((kind, path.clone())),
        Some(kind) => (kind.main)(&path).map(|main| (kind, main)),
        None => {
            let mut kinds = KINDS.iter();
            kinds.find_map(|kind| Some((kind, (kind.main)(&path)?)))
        }
    };
    let (kind, main) = found.ok_or_else(|| FromError::UnknownKind { path: path.clone() })?;
    let parts = (kind.make)(&main, copy)?;
    let text = parts.recipe_toml(name, typed, &main);
    let mut files: Vec<FolderFile> = parts.copy.folder_files();
    let own = parts.files.into_iter();
    files.extend(own.map(|(path, text)| folder_file(path, text)));
    files.push(folder_file("recipe.toml", text));
    files.push(folder_file("configure.sh", CONFIGURE.to_owned()));
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let folder = Folder {
        origin: None,
        files,
    };
    Recipe::new(folder.clone())?;
    Ok(Made {
        folder,
        notes: parts.copy.notes,
    })
}

fn valid(name: &str) -> Result<(), FromError> {
    invalid_name(name).map_or(Ok(()), |problem| {
        Err(FromError::Recipe(RecipeError::Key {
            file: "recipe.toml".to_owned(),
            key: "name".to_owned(),
            problem,
        }))
    })
}

fn folder_file(path: &str, text: String) -> FolderFile {
    FolderFile {
        path: path.into(),
        bytes: text.into_bytes(),
        executable: false,
    }
}

/// Puts the configuration into the instance.
const CONFIGURE: &str = r#"#!/bin/sh
# Puts the configuration into the instance: root/ holds the files that were copied, under their old paths.
# usage: configure.sh FILE...
set -eu
mkdir root
[ ! -e "$REFIT_RECIPE/root" ] || cp -r "$REFIT_RECIPE/root/." root
for file; do cp "$REFIT_RECIPE/$file" "$file"; done
find root "$@" -type f -exec sed -i "s|@DIR@|$REFIT_DIR|g" {} +
"#;

impl Parts {
    fn recipe_toml(&self, name: &str, typed: &str, main: &Path) -> String {
        let folder = Folder::shipped(self.scripts).expect("it is one of the shipped ones");
        let shipped = folder.file("recipe.toml").expect("a recipe has one");
        let shipped = String::from_utf8_lossy(shipped);
        let mut text = format!(
            "# From `refit recipes new {name} {typed}`; docs/recipes.md describes each key.\n\
             # After a change: refit recipes check ./{name}\n"
        );
        for (title, notes) in self.copy.notes.titled() {
            text += &format!("#\n# {title}:\n");
            for note in notes {
                text += &format!("# - {}\n", printable(note));
            }
        }
        let (server, main) = (self.server, main.display());
        let question = format!(
            "What would {server} gain with the configuration {main}, and what would a power cut then take?"
        );
        let question_ja =
            format!("設定{main}の{server}は何によって速くなり、そのとき電源断で何を失うか");
        let scripts = self.scripts;
        text += &format!(
            "name = \"{name}\"\nscripts = \"{scripts}\"\nquestion.en = {}\nquestion.ja = {}\n",
            quoted(&question),
            quoted(&question_ja)
        );
        for paragraph in shipped.split("\n\n") {
            if !self.is_dropped(paragraph) {
                for line in paragraph.lines() {
                    text += &self.line(line);
                }
                text += "\n";
            }
        }
        text += &self.more;
        for (old, new) in &self.replaced {
            text = text.replace(old, new);
        }
        text.trim_end().to_owned() + "\n"
    }

    fn is_dropped(&self, paragraph: &str) -> bool {
        paragraph.starts_with("[note]")
            || self.now.iter().any(|(name, value)| {
                let table = format!("[conf.{name}.{value}]").to_lowercase();
                let setting = format!("conf.{name}={value}").to_lowercase();
                let is_variant = paragraph.starts_with("[[variant]]");
                paragraph.lines().any(|line| {
                    line == table
                        || is_variant && line.split(['"', '+']).any(|word| word == setting)
                })
            })
    }

    fn line(&self, line: &str) -> String {
        let goes = ["name ", "question.", "answer."];
        let adds = line.starts_with("from = ") && !self.replaces_lines;
        if goes.iter().any(|key| line.starts_with(key)) || adds {
            return String::new();
        }
        match line.split_once("; the baseline is") {
            Some((about, _)) => format!("{about}\"\n"),
            _ => format!("{line}\n"),
        }
    }
}

impl Notes {
    /// Those that there are, under what they are.
    #[must_use]
    pub fn titled(&self) -> Vec<(&'static str, &[String])> {
        let all = [
            ("Has another value in the private instance", &*self.moved),
            ("Left out of the private instance", &*self.left_out),
            ("Points out of the private instance", &*self.outside),
            ("Remarks", &*self.remarks),
        ];
        all.into_iter()
            .filter(|(_, notes)| !notes.is_empty())
            .collect()
    }
}

/// A text as TOML writes it, which is how JSON writes it except for DEL.
#[must_use]
pub fn quoted(text: &str) -> String {
    let text = serde_json::Value::from(text).to_string();
    text.replace('\u{7f}', "\\u007f")
}
