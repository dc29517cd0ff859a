//! What a change would do, before any of it is done.

use refit_knobs::Settings;
use serde::{Deserialize, Serialize};

use crate::file_state::temporary;
use crate::kind::{Kind, kind_of};
use crate::library::LibraryFile;
use crate::undo::{self, Undo, Until};
use crate::{Error, FileState, System};

/// One file of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    /// As services know it.
    pub path: String,
    /// `None`: there is no file.
    pub before: Option<FileState>,
    /// Likewise.
    pub after: Option<FileState>,
}

/// What a change consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The service, by its full name.
    pub service: String,
    /// Its kind.
    pub kind: String,
    /// As they print.
    pub settings: Vec<String>,
    /// Whether a reboot takes it back.
    pub trial: bool,
    /// Whether the service ran before: where it fails now, it is started again.
    pub was_active: bool,
    /// Directories that are made, from the outermost.
    pub directories: Vec<String>,
    /// Libraries that are placed.
    pub libraries: Vec<LibraryFile>,
    /// Files that are edited.
    pub files: Vec<FileEdit>,
    /// Variables that the service's processes will have.
    pub variables: Vec<(String, String)>,
    /// What takes it back unless it is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

impl Change {
    /// All files that are edited, those that take it back last.
    pub fn edits(&self) -> impl Iterator<Item = &FileEdit> {
        let of_undo = self.undo.iter().flat_map(|undo| &undo.files);
        self.files.iter().chain(of_undo)
    }

    /// All files that are placed by their content.
    pub fn placed(&self) -> impl Iterator<Item = &LibraryFile> {
        let of_undo = self.undo.iter().flat_map(|undo| &undo.program);
        self.libraries.iter().chain(of_undo)
    }
}

/// A change, and what to know before it is made.
pub struct Plan {
    /// What it consists of.
    pub change: Change,
    /// Its class.
    pub class: refit_knobs::Class,
    /// The commands that put it into effect, for people.
    pub commands: Vec<String>,
    /// What it does not cover, and what surprises in such a service.
    pub notes: Vec<String>,
    /// Content of what is placed, in its order.
    pub(crate) contents: Vec<Vec<u8>>,
    pub(crate) kind: &'static dyn Kind,
}

/// What applying these settings to a service would do. Nothing is changed.
///
/// # Errors
/// Where it cannot be done: [`Error`] says why.
pub fn plan(system: &System, word: &str, settings: &Settings, until: Until) -> Result<Plan, Error> {
    let (kind, service) = kind_of(system, word)?;
    if settings.is_empty() {
        return Err(Error::NoSettings { service });
    }
    let mut plan = kind.plan(system, &service, settings, until.is_trial())?;
    if let Until::Confirmed(within) = until {
        undo::add(system, &mut plan, within)?;
    }
    for edit in plan.change.edits() {
        let path = system.path(&edit.path)?;
        let new = temporary(&path);
        if new.symlink_metadata().is_ok() {
            return Err(Error::InTheWay { path: new });
        }
    }
    plan.change.directories = missing(system, &plan.change)?;
    Ok(plan)
}

/// Directories above the change's files that are not there, from the outermost.
pub fn missing(system: &System, change: &Change) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for edit in change.edits() {
        let mut above = edit.path.as_str();
        let mut of_this = Vec::new();
        while let Some((dir, _)) = above.rsplit_once('/')
            && !dir.is_empty()
            && !system.path(dir)?.exists()
        {
            of_this.push(dir.to_owned());
            above = dir;
        }
        for dir in of_this.into_iter().rev() {
            if !found.contains(&dir) {
                found.push(dir);
            }
        }
    }
    Ok(found)
}
