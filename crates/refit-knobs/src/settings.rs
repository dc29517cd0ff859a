//! The settings of one command, which must agree with one another; and the same as one word, a variant.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::error::{Hint, SettingError};
use crate::explain::Class;
use crate::joined;
use crate::launch::Launch;
use crate::setting::{Setting, as_text, parse_joined};

/// Settings in command order. Display joins them with blanks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(pub Vec<Setting>);

/// The settings of a word. What is proposed where it begins with a `+` has to hold by itself.
fn parse_word(word: &str) -> Result<Vec<Setting>, SettingError> {
    parse_joined(word).map_err(|error| {
        let SettingError::NothingBefore {
            hint: Hint::Write(rest),
        } = &error
        else {
            return error;
        };
        let rest = parse_joined(rest).and_then(Settings::agreeing);
        rest.err().unwrap_or(error)
    })
}

impl Settings {
    /// Parses words, each of one setting or of several joined by `+`, and refuses two that cannot both hold.
    pub fn parse<I: IntoIterator<Item = OsString>>(words: I) -> Result<Self, SettingError> {
        let mut settings = Vec::new();
        for word in words {
            settings.extend(parse_word(as_text(&word)?)?);
        }
        Self::agreeing(settings)
    }

    /// These and then more of them, which have the last word: one of these that could not hold beside them is left
    /// out, and of matching `sync` or `odirect` settings the last one counts.
    #[must_use]
    pub fn join(&self, more: &Self) -> Self {
        let replaced = |one: &&Setting| more.0.iter().any(|other| excludes(one, other));
        let kept = self.0.iter().filter(|one| !replaced(one));
        Self(kept.chain(&more.0).cloned().collect())
    }

    pub(crate) fn agreeing(settings: Vec<Setting>) -> Result<Self, SettingError> {
        let settings = Self(settings);
        settings.refuse_repeats()?;
        settings.refuse_shared_variables()?;
        Ok(settings)
    }

    /// The class of the riskiest setting; none at all is safe.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0
            .iter()
            .map(Setting::class)
            .max()
            .unwrap_or(Class::Safe)
    }

    /// What the launcher has to prepare.
    #[must_use]
    pub fn launch(&self) -> Launch {
        let mut launch = Launch::default();
        self.0.iter().for_each(|setting| setting.apply(&mut launch));
        launch
    }

    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn refuse_repeats(&self) -> Result<(), SettingError> {
        let mut seen: HashMap<String, &Setting> = HashMap::new();
        for second in self.0.iter().filter(|setting| setting.knob().once) {
            if let Some(first) = seen.insert(second.target(), second) {
                let (what, first, second) =
                    (second.target(), first.to_string(), second.to_string());
                return Err(SettingError::GivenTwice {
                    what,
                    first,
                    second,
                });
            }
        }
        Ok(())
    }

    /// `tz=UTC env.TZ=Japan`: each is fine, but only one of them could hold.
    fn refuse_shared_variables(&self) -> Result<(), SettingError> {
        let mut seen: HashMap<String, &Setting> = HashMap::new();
        for second in &self.0 {
            for variable in variables(second) {
                if let Some(first) = seen.insert(variable.clone(), second) {
                    let (first, second) = (first.to_string(), second.to_string());
                    return Err(SettingError::SameVariable {
                        variable,
                        first,
                        second,
                    });
                }
            }
        }
        Ok(())
    }
}

/// The variables that a setting sets.
fn variables(setting: &Setting) -> Vec<String> {
    let mut launch = Launch::default();
    setting.apply(&mut launch);
    let all = launch.variables();
    all.into_iter().map(|one| one.name).collect()
}

/// Whether only one of them could hold.
fn excludes(one: &Setting, other: &Setting) -> bool {
    let is_repeat = one.knob().once && one.target() == other.target();
    let others = variables(other);
    is_repeat || variables(one).iter().any(|name| others.contains(name))
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, setting) in self.0.iter().enumerate() {
            let blank = if nth == 0 { "" } else { " " };
            write!(f, "{blank}{setting}")?;
        }
        Ok(())
    }
}

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
        let settings = Settings::agreeing(parse_word(word)?)?;
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
