//! A variant: what is compared with the baseline, as one word.

use std::ffi::OsStr;
use std::fmt;

use crate::setting::{as_text, parse_joined};
use crate::{Class, SettingError, Settings, joined};

/// Settings that hold together, written as one word: `sync=off+malloc=jemalloc`.
///
/// Display is that word, which parses to the same variant. Only the baseline has none: it prints as a name that
/// is refused when typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    settings: Settings,
}

impl Variant {
    /// The one that swaps nothing.
    #[must_use]
    pub fn baseline() -> Self {
        Self {
            settings: Settings::default(),
        }
    }

    /// Parses a word of one setting or several and refuses two that cannot both hold.
    ///
    /// A `+` joins where a knob's name and `=`, `@` or `.` follow, any other is a plus, and `\+` is one always.
    /// Backslashes directly before a `+` stand for half as many; anywhere else a backslash is itself.
    pub fn parse(word: &str) -> Result<Self, SettingError> {
        if word.eq_ignore_ascii_case("baseline") {
            return Err(SettingError::Baseline);
        }
        if word.eq_ignore_ascii_case("bare") {
            return Err(SettingError::Bare);
        }
        let settings = Settings::agreeing(parse_joined(word)?)?;
        Ok(Self { settings })
    }

    /// Parses a word as the command line gives it.
    pub fn parse_os(word: &OsStr) -> Result<Self, SettingError> {
        Self::parse(as_text(word)?)
    }

    /// What it swaps; nothing for the baseline.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The class of its riskiest setting.
    #[must_use]
    pub fn class(&self) -> Class {
        self.settings.class()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.settings.is_empty() {
            return f.pad("baseline");
        }
        let words = self.settings.0.iter().map(ToString::to_string);
        f.pad(&joined::join(words))
    }
}
