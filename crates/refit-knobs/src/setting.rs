//! One setting: a knob, perhaps a scope, a value.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Hint, SettingError};
use crate::explain::{Class, Explanation};
use crate::grammar::{self, head_and_value};
use crate::ground::Ground;
use crate::joined;
use crate::knob::Knob;
use crate::knobs::Value;
use crate::launch::Launch;
use crate::scope::{self, Scope};
use crate::word::Word;

/// A knob with a value. It only comes from parsing, so each one there is prints as a word that parses to it:
/// with a backslash before each `+` that would join another setting (see [`Variant::parse`](crate::Variant::parse)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Setting {
    pub(crate) scope: Option<Scope>,
    pub(crate) value: Value,
}

impl Setting {
    /// Parses a word of one setting as the command line gives it.
    pub fn parse_os(word: &OsStr) -> Result<Self, SettingError> {
        as_text(word)?.parse()
    }

    /// Parses what [`fmt::Display`] escapes: here a `+` is a `+` and a backslash is a backslash.
    pub(crate) fn from_text(text: &str) -> Result<Self, SettingError> {
        let word = grammar::split(text, reprint)?;
        let scope = word.scope()?;
        let value = Value::parse(&word).map_err(|error| scope_cut_short(&word, error))?;
        Ok(Self { scope, value })
    }

    /// The knob that is set.
    #[must_use]
    pub fn knob(&self) -> &'static Knob {
        self.value.behaviour().knob()
    }

    /// What it is for; `None` means everything.
    #[must_use]
    pub fn scope(&self) -> Option<&Scope> {
        self.scope.as_ref()
    }

    /// `KNOB@SCOPE`, as a run names a scope that matched nothing; `None` where it means everything.
    #[must_use]
    pub fn scoped_knob(&self) -> Option<String> {
        let scope = self.scope()?;
        Some(format!("{}@{scope}", self.knob().name))
    }

    /// Name and value of a `conf.NAME=VALUE`, whose meaning and class a recipe declares.
    #[must_use]
    pub fn conf(&self) -> Option<(&str, &str)> {
        match &self.value {
            Value::Conf(conf) => Some((&conf.name, &conf.value)),
            _ => None,
        }
    }

    /// Name and value of a `load.NAME=VALUE`, which a recipe declares.
    #[must_use]
    pub fn load(&self) -> Option<(&str, &str)> {
        match &self.value {
            Value::Load(load) => Some((&load.name, &load.value)),
            _ => None,
        }
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
            .prose(self.scope())
            .into_explanation(self.to_string(), self.class())
    }

    /// Whether it can be made permanent in one of these.
    #[must_use]
    pub fn acts_on(&self, grounds: &[Ground]) -> bool {
        let knob = self.knob();
        let is_whole = self.scope.is_none()
            && (knob.permanent.ends_with('=') || self.to_string() == knob.permanent);
        is_whole && knob.grounds.iter().any(|one| grounds.contains(one))
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

    fn from_str(word: &str) -> Result<Self, SettingError> {
        let mut settings = parse_joined(word)?;
        match (settings.pop(), settings.first()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(SettingError::Empty),
            (_, Some(first)) => Err(SettingError::Several {
                word: word.to_owned(),
                first: first.to_string(),
            }),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, value) = (self.target(), self.value.behaviour());
        let text = match &self.scope {
            Some(scope) => format!("{target}@{scope}={value}"),
            None => format!("{target}={value}"),
        };
        f.write_str(&joined::escape(&text))
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> String {
        setting.to_string()
    }
}

impl TryFrom<String> for Setting {
    type Error = SettingError;

    fn try_from(word: String) -> Result<Self, SettingError> {
        word.parse()
    }
}

pub(crate) fn as_text(word: &OsStr) -> Result<&str, SettingError> {
    word.to_str().ok_or_else(|| SettingError::NotUtf8 {
        word: word.to_string_lossy().into_owned(),
    })
}

/// All the settings of a word, at least one.
pub(crate) fn parse_joined(word: &str) -> Result<Vec<Setting>, SettingError> {
    let texts = joined::split(word);
    match texts.split_first() {
        Some((first, rest)) if first.is_empty() && !rest.is_empty() => {
            let rest = parse_each(rest)?;
            let word = joined::join(rest.iter().map(ToString::to_string));
            Err(SettingError::NothingBefore {
                hint: Hint::Write(word),
            })
        }
        _ => parse_each(&texts),
    }
}

fn parse_each(texts: &[String]) -> Result<Vec<Setting>, SettingError> {
    let parse = |text: &String| Setting::from_text(text).map_err(|error| after_a_plus(text, error));
    texts.iter().map(parse).collect()
}

/// `sync=off+maloc=jemalloc`: for want of a knob's name the plus did not join, but what is wrong is after it.
fn after_a_plus(mut text: &str, mut error: SettingError) -> SettingError {
    // Values of these kinds never hold a plus; paths and variables may.
    while matches!(
        error,
        SettingError::UnknownValue { .. }
            | SettingError::BadOptionValue { .. }
            | SettingError::BadPart { .. }
            | SettingError::ScopeCutShort { .. }
    ) {
        let plus =
            head_and_value(text).and_then(|(head, value)| Some(head.len() + 1 + value.find('+')?));
        let Some((before, after)) = plus.map(|at| (&text[..at], &text[at + 1..])) else {
            break;
        };
        if !after.contains('=') || Setting::from_text(before).is_err() {
            break;
        }
        match Setting::from_text(after) {
            Err(of_after) => (text, error) = (after, of_after),
            Ok(_) => break,
        }
    }
    error
}

/// What suggestions are checked by.
fn reprint(text: &str) -> Result<String, SettingError> {
    Setting::from_text(text).map(|setting| setting.to_string())
}

/// `sync@/a=b/=off`: what is wrong may be that the first `=` ended the scope, if with a later one all is well.
fn scope_cut_short(word: &Word, error: SettingError) -> SettingError {
    // Other errors are about a value that this knob knows.
    let of_the_whole_value = matches!(
        error,
        SettingError::UnknownValue { .. } | SettingError::RelativeProfile { .. }
    );
    let (Some(typed), true) = (word.scope, of_the_whole_value) else {
        return error;
    };
    let typed = scope::unescape(typed);
    // A path with more of them is not a typing error.
    let mut ends = word.value.match_indices('=').take(16);
    let meant = ends.find_map(|(end, _)| {
        let scope = Scope::new(&format!("{typed}={}", &word.value[..end]))?;
        let value = &word.value[end + 1..];
        let value = Value::parse(&Word { value, ..*word }).ok()?;
        let scope = Some(scope);
        Some(Setting { scope, value }.to_string())
    });
    match meant {
        Some(meant) => SettingError::ScopeCutShort {
            knob: word.knob.name,
            value: word.value.to_owned(),
            hint: Hint::DidYouMean(meant),
        },
        None => error,
    }
}
