//! One setting: a knob, perhaps a scope, a value.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use crate::error::Hint;
use crate::knob::Value;
use crate::word::Word;
use crate::{Class, ExeName, Explanation, Knob, Launch, SettingError};

/// A knob with a value. It only comes from parsing, so each one there is prints as a word that parses to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub(crate) scope: Option<ExeName>,
    pub(crate) value: Value,
}

impl Setting {
    /// Parses a word as the command line gives it.
    pub fn parse_os(word: &OsStr) -> Result<Self, SettingError> {
        match word.to_str() {
            Some(text) => text.parse(),
            None => Err(SettingError::NotUtf8 {
                word: word.to_string_lossy().into_owned(),
            }),
        }
    }

    /// The knob that is set.
    #[must_use]
    pub fn knob(&self) -> &'static Knob {
        self.value.behaviour().knob()
    }

    /// The executable that it is for; `None` means every one.
    #[must_use]
    pub fn scope(&self) -> Option<&ExeName> {
        self.scope.as_ref()
    }

    /// What it can cost.
    #[must_use]
    pub fn class(&self) -> Class {
        self.value.behaviour().class()
    }

    /// What it does, in prose.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        self.value
            .behaviour()
            .prose()
            .into_explanation(self.to_string(), self.class())
    }

    pub(crate) fn apply(&self, launch: &mut Launch) {
        self.value.behaviour().apply(self.scope(), launch);
    }

    /// The knob and its part, without scope and value: `sync`, `env.TZ`.
    pub(crate) fn target(&self) -> String {
        let name = self.knob().name;
        match self.value.behaviour().member() {
            Some(member) => format!("{name}.{member}"),
            None => name.to_owned(),
        }
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let word = Word::split(text)?;
        let scope = word.exe_name()?;
        Ok(Self {
            scope,
            value: (word.knob.parse)(&word)?,
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.behaviour();
        f.write_str(&self.target())?;
        if let Some(exe) = &self.scope {
            write!(f, "@exe:{exe}")?;
        }
        write!(f, "={value}")
    }
}

/// `word`, or what its own error suggests instead; `None` if that is not known.
///
/// Errors call this to make their suggestions, and it parses, so it must end: each candidate has to repair one
/// thing for good (the knob, the scope, the part, a value, one option of a table whose names may occur once).
pub(crate) fn mend(word: &str) -> Option<String> {
    match word.parse::<Setting>() {
        Ok(setting) => Some(setting.to_string()),
        Err(error) => match error.hint()? {
            Hint::DidYouMean(word) | Hint::Write(word) => Some(word.clone()),
            Hint::AsIn(_) => None,
        },
    }
}
