//! What a change of a service consists of, as a record holds it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Error, FileState, Moved, Package, SchemaEdit, System};

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

impl FileEdit {
    /// New content for a file of which `read` was read when the new content was made; where there is none, a new one.
    ///
    /// # Errors
    /// [`FileError::Edited`] where it holds something else by now, or why it cannot be read.
    pub(crate) fn of(
        system: &System,
        path: &str,
        read: &[u8],
        new: Vec<u8>,
    ) -> Result<FileEdit, Error> {
        let before = system.state(path)?;
        let after = match &before {
            Some(before) if before.bytes() != read => {
                return Err(system.place(path)?.edited().into());
            }
            Some(before) => before.with_bytes(new),
            None => FileState::own(new),
        };
        Ok(FileEdit {
            path: path.to_owned(),
            before,
            after: Some(after),
        })
    }
}

/// A library or program that is placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryFile {
    /// Where it is placed.
    pub path: String,
    /// Of its content.
    pub sha256: String,
    /// What was copied.
    pub from: String,
    /// Whose that was; `None` where no package owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
}

/// By what a change takes itself back unless it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// When, in seconds since 1970; `None`: at the next start of the machine alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_unix: Option<u64>,
    /// The units, without `.timer` and `.service`.
    pub unit: String,
    /// The files of the units.
    pub files: Vec<FileEdit>,
    /// The copy of refit; `None` in a tree, where nothing runs.
    pub program: Option<LibraryFile>,
}

/// A program of refit's that is started instead of a service's own, which it then becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launcher {
    /// That program.
    pub program: LibraryFile,
    /// What the unit's own files say of `ExecStart=`: an upgrade may change that. `None` where a script
    /// starts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_start: Option<String>,
}

/// What was measured before a change, as its record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The stored results.
    pub files: Vec<String>,
    /// What was gained, in words.
    pub gain: String,
    /// The same as numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<MeasuredEffect>,
    /// What was different then, in words: another kernel, another version of refit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// What simulated power cuts took, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// The packages of the programs that were measured, each with its version.
    #[serde(skip)]
    pub packages: BTreeMap<String, String>,
    /// Fewer durable calls were made than at the baseline, and no cuts showed that nothing is lost.
    #[serde(skip)]
    pub fewer_durable: bool,
    /// Why it is not enough to accept a risk by, in words.
    #[serde(skip)]
    pub lacks: Vec<String>,
}

/// The effect on the main metric of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEffect {
    /// The metric.
    pub metric: String,
    /// The metric with the settings, divided by the metric without.
    pub ratio: f64,
    /// Lower and upper end of its interval.
    pub interval: Option<[f64; 2]>,
}

/// The risk that a person accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its class.
    pub class: refit_knobs::Class,
    /// Whether a stored result stood for the gain and the loss.
    pub evidence: bool,
}

/// One of the service's own settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfValue {
    /// Its name.
    pub name: String,
    /// Its value as the service itself prints it; in a tree, as it was typed.
    pub value: String,
    /// What the running service had, where it can be set back without a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl ConfValue {
    /// As it was typed.
    pub(crate) fn typed((name, value): (String, String)) -> ConfValue {
        ConfValue {
            name,
            value,
            before: None,
        }
    }
}

/// What a change consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The service, by its full name.
    pub service: String,
    /// The service, as it was typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub word: String,
    /// Its kind.
    pub kind: String,
    /// The packages that it comes from; none where dpkg is not installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<Package>,
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
    /// Scripts that are placed, which start a program in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<LibraryFile>,
    /// A program that a script takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// What starts the service; `None` where that is the unit's own program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Launcher>,
    /// Files that are edited.
    pub files: Vec<FileEdit>,
    /// Variables that the service's processes will have.
    pub variables: Vec<(String, String)>,
    /// Settings of its own that the service will have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conf: Vec<ConfValue>,
    /// Indexes that are made in a database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema: Vec<SchemaEdit>,
    /// The schema that a database gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Box<refit_schema::Declared>>,
    /// By what it takes itself back; `None` if it stays without a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// `None` where none was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// `None` where nothing risks data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Accepted>,
    /// A command that ends with 0 where the service does its work; `None` where none was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

impl Change {
    /// All files that are edited: the service's first, then the units that take the change back.
    pub fn edits(&self) -> impl Iterator<Item = &FileEdit> {
        let of_undo = self.undo.iter().flat_map(|undo| &undo.files);
        self.files.iter().chain(of_undo)
    }

    /// Likewise.
    pub(crate) fn edits_mut(&mut self) -> impl Iterator<Item = &mut FileEdit> {
        let of_undo = self.undo.iter_mut().flat_map(|undo| &mut undo.files);
        self.files.iter_mut().chain(of_undo)
    }

    /// All files that are placed by their content.
    pub fn placed(&self) -> impl Iterator<Item = &LibraryFile> {
        let of_launcher = self.launcher.iter().map(|launcher| &launcher.program);
        let of_undo = self.undo.iter().flat_map(|undo| &undo.program);
        let all = self.libraries.iter().chain(&self.programs);
        all.chain(of_launcher).chain(of_undo)
    }
}
