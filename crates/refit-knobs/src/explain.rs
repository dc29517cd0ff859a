//! What a setting can cost and what it does, in prose, before anyone uses it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::scope::Scope;

/// The risk of a setting, printed whenever the setting is used. Ordered: the greater is the riskier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No data at risk, no promise of the program weakened.
    Safe,
    /// A power cut can take what the program acknowledged in the last moments, and no more.
    BoundedLoss,
    /// What the program acknowledged can be gone after a power cut or a kernel crash.
    LosesOnCrash,
    /// The program is meant to behave differently.
    ChangesBehaviour,
    /// The change itself destroys data, and taking it back does not bring that back.
    LosesData,
}

impl Class {
    /// All of them, the least risky first.
    pub const ALL: [Class; 5] = [
        Class::Safe,
        Class::BoundedLoss,
        Class::LosesOnCrash,
        Class::ChangesBehaviour,
        Class::LosesData,
    ];

    /// Whether a power cut may take what the program acknowledged.
    #[must_use]
    pub fn risks_data(self) -> bool {
        matches!(self, Class::BoundedLoss | Class::LosesOnCrash)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safe => "safe",
            Self::BoundedLoss => "bounded-loss",
            Self::LosesOnCrash => "loses-on-crash",
            Self::ChangesBehaviour => "changes-behaviour",
            Self::LosesData => "loses-data",
        })
    }
}

/// Everything that refit has to say about one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The setting in canonical words.
    pub setting: String,
    /// What is swapped for what.
    pub swaps: String,
    /// Its class.
    pub class: Class,
    /// What the class means here.
    pub risk: String,
    /// By what means the program is reached.
    pub backend: String,
    /// What is reached.
    pub covers: Vec<String>,
    /// What is not.
    pub not_covered: Vec<String>,
    /// What else a careful reader would want to know.
    pub notes: Vec<String>,
}

/// The part of an [`Explanation`] that a knob writes itself.
pub(crate) struct Prose {
    pub swaps: String,
    pub risk: &'static str,
    pub backend: &'static str,
    pub covers: &'static [&'static str],
    pub not_covered: &'static [&'static str],
    pub notes: Vec<String>,
}

impl Prose {
    pub(crate) fn into_explanation(self, setting: String, class: Class) -> Explanation {
        let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
        Explanation {
            setting,
            swaps: self.swaps,
            class,
            risk: self.risk.to_owned(),
            backend: self.backend.to_owned(),
            covers: owned(self.covers),
            not_covered: owned(self.not_covered),
            notes: self.notes,
        }
    }
}

/// What its scope means, for a setting of a knob that can have one.
pub(crate) fn scope_notes(scope: Option<&Scope>) -> impl Iterator<Item = String> {
    let notes = match scope {
        None => NO_SCOPE,
        Some(Scope::Exe(_)) => EXE_SCOPE,
        Some(Scope::Path(_)) => PATH_SCOPE,
    };
    notes.iter().map(|&note| note.to_owned())
}

/// Not covered by any knob that reaches a program by its calls.
pub(crate) const OWN_SECCOMP: &str =
    "processes that installed a seccomp filter of their own: from then on their calls are real";

const NO_SCOPE: &[&str] = &[
    "`@exe:NAME` before the `=` narrows it to programs of that name, `@/PATH` to files; of several matching settings \
     the last one counts",
];

const EXE_SCOPE: &[&str] = &[
    "`@exe:NAME` compares the last part of /proc/self/exe, so a script matches its interpreter; of several matching \
     settings the last one counts",
];

const PATH_SCOPE: &[&str] = &[
    "with a `/` at its end the path is the tree below it; `*` and `?` match within a name, `**` across names; links in it \
     are resolved when the run starts; of several matching settings the last one counts",
    "where a file's path cannot be determined, as in a chroot without root, the call is real (counted)",
];
