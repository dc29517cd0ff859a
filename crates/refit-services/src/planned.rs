//! A change before it is made.

use refit_knobs::Settings;

use crate::{Change, Error, Record};

/// A change, and what to know before it is made.
pub struct Plan {
    /// What it consists of.
    pub change: Change,
    /// The change that is there, from which it goes on.
    pub first: Option<Box<Record>>,
    /// The class of each setting.
    pub classes: Vec<refit_knobs::Class>,
    /// Why it must not be applied yet: a risk that nobody accepted.
    pub gate: Option<Error>,
    /// The commands that put it into effect, for people.
    pub commands: Vec<String>,
    /// What it does not cover, and what surprises in such a service.
    pub notes: Vec<String>,
    /// How large the data is and what is free, which changes while the service runs.
    pub sizes: Vec<String>,
    /// The content of each file of [`Change::placed`], in the same order.
    pub(crate) contents: Vec<Vec<u8>>,
}

impl Plan {
    /// The scripts of [`Change::programs`], each with its path and text.
    pub fn scripts(&self) -> impl Iterator<Item = (&str, std::borrow::Cow<'_, str>)> {
        let first = self.change.libraries.len();
        let texts = self.contents.iter().skip(first);
        let programs = self.change.programs.iter().zip(texts);
        programs.map(|(file, text)| (&*file.path, String::from_utf8_lossy(text)))
    }

    /// Whether it does what another plan of the same request does. Not compared are its time, which
    /// is counted from its beginning, the directories that it has to make, and sizes.
    pub(crate) fn does_as(&self, other: &Plan) -> bool {
        let change = |plan: &Plan| Change {
            directories: Vec::new(),
            undo: None,
            ..plan.change.clone()
        };
        change(self) == change(other)
            && self.first == other.first
            && (&self.commands, &self.notes) == (&other.commands, &other.notes)
    }

    /// Whether the database has all of the schema that it shall have.
    pub(crate) fn is_declared_already(&self) -> bool {
        let declared = self.change.declared.as_ref();
        declared.is_some_and(|declared| declared.steps().is_empty())
    }

    /// A plan that does nothing yet.
    pub(crate) fn new(service: &str, kind: &str, settings: &Settings) -> Plan {
        Plan {
            change: Change {
                service: service.to_owned(),
                word: String::new(),
                kind: kind.to_owned(),
                packages: Vec::new(),
                settings: settings.0.iter().map(ToString::to_string).collect(),
                trial: false,
                was_active: false,
                directories: Vec::new(),
                libraries: Vec::new(),
                programs: Vec::new(),
                moved: None,
                launcher: None,
                files: Vec::new(),
                variables: Vec::new(),
                conf: Vec::new(),
                schema: Vec::new(),
                declared: None,
                undo: None,
                evidence: None,
                accepted: None,
                health: None,
            },
            first: None,
            classes: Vec::new(),
            gate: None,
            commands: Vec::new(),
            notes: Vec::new(),
            sizes: Vec::new(),
            contents: Vec::new(),
        }
    }
}
