//! A word of one setting, taken apart: what a knob parses its value from, and what it suggests instead.

use crate::error::{Hint, SettingError};
use crate::knob::Knob;
use crate::scope::{self, ExeName, PathProblem, Scope};

/// Parses the text of one setting and prints it again.
///
/// Suggestions are checked by it: what refit tells people to type has to be right. It is handed down, since the
/// grammar lies above the knobs.
pub(crate) type Reprint = fn(&str) -> Result<String, SettingError>;

/// A word whose knob is known, taken apart; scope and value are as typed.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    pub knob: &'static Knob,
    /// From after the `@` to before the `=`.
    pub scope: Option<&'a str>,
    /// After the dot; given exactly where the knob wants it.
    pub member: &'a str,
    pub value: &'a str,
    /// All before the `=`.
    pub head: &'a str,
    pub reprint: Reprint,
}

/// The word for this text, or what its own error suggests instead; `None` if that is not known.
///
/// Errors call this to make their suggestions, and it parses, so it must end: each candidate has to repair one
/// thing for good (the knob, the scope, the part, a value, one option of a table whose names may occur once).
pub(crate) fn mend(reprint: Reprint, text: &str) -> Option<String> {
    match reprint(text) {
        Ok(word) => Some(word),
        Err(error) => match error.hint()? {
            Hint::DidYouMean(word) | Hint::Write(word) => Some(word.clone()),
            Hint::AsIn(_) => None,
        },
    }
}

impl Word<'_> {
    /// A suggestion: this text in place of the word.
    pub(crate) fn mend(&self, text: &str) -> Option<String> {
        mend(self.reprint, text)
    }

    /// A suggestion: this word with another value.
    pub(crate) fn with_value(&self, value: &str) -> Option<String> {
        self.mend(&format!("{}={value}", self.head))
    }

    pub(crate) fn as_in_example(&self) -> Hint {
        Hint::AsIn(self.knob.example.to_owned())
    }

    /// The error for a value that is none, or not one of those.
    pub(crate) fn unknown_value(&self, expected: String, meant: Option<String>) -> SettingError {
        let hint = meant.map_or_else(|| self.as_in_example(), Hint::DidYouMean);
        if self.value.is_empty() {
            return SettingError::NoValue {
                word: format!("{}=", self.head),
                expected,
                hint,
            };
        }
        SettingError::UnknownValue {
            knob: self.knob.name,
            value: self.value.to_owned(),
            expected,
            hint,
        }
    }

    /// The error for a part of a value that cannot stand there. `meant` is the whole value that was most likely
    /// meant.
    pub(crate) fn bad_part(
        &self,
        part: &str,
        expected: &str,
        meant: Option<String>,
        example: &str,
    ) -> SettingError {
        let meant = meant.and_then(|value| self.with_value(&value));
        let example = || Hint::AsIn(format!("{}={example}", self.knob.name));
        SettingError::BadPart {
            knob: self.knob.name,
            part: part.to_owned(),
            expected: expected.to_owned(),
            hint: meant.map_or_else(example, Hint::DidYouMean),
        }
    }

    /// The scope, if one was typed.
    pub(crate) fn scope(&self) -> Result<Option<Scope>, SettingError> {
        let Some(typed) = self.scope else {
            return Ok(None);
        };
        let scope = scope::unescape(typed);
        if let Some(name) = scope.strip_prefix("exe:") {
            self.exe(name).map(Some)
        } else if scope.starts_with('/') {
            self.path(scope).map(Some)
        } else {
            Err(self.unknown_scope(&scope))
        }
    }

    fn exe(&self, name: &str) -> Result<Scope, SettingError> {
        ExeName::new(name).map(Scope::Exe).map_err(|problem| {
            let last = name.trim_end_matches('/').rsplit('/').next();
            let mended = last
                .filter(|last| *last != name)
                .and_then(|last| self.with_scope(&format!("exe:{last}")));
            SettingError::BadExeName {
                name: name.to_owned(),
                problem,
                hint: mended.map_or_else(|| self.as_in_scoped("exe:NAME"), Hint::DidYouMean),
            }
        })
    }

    fn path(&self, path: String) -> Result<Scope, SettingError> {
        match PathProblem::of(&path) {
            None => Ok(Scope::Path(path)),
            Some(problem) => {
                let plain = scope::plain(&path);
                let mended = Some(plain).filter(|plain| PathProblem::of(plain).is_none());
                let mended = mended.and_then(|plain| self.with_scope(&plain));
                let hint = mended.map_or_else(|| self.as_in_scoped("/PATH"), Hint::Write);
                Err(SettingError::BadPath {
                    path,
                    problem,
                    hint,
                })
            }
        }
    }

    fn unknown_scope(&self, scope: &str) -> SettingError {
        let hint = if let Some((_, after)) = scope.split_once(':') {
            // `@path:/x`, `@EXE:x`
            let kind = if after.starts_with('/') { "" } else { "exe:" };
            let mended = self.with_scope(&format!("{kind}{after}"));
            mended.map_or_else(|| self.as_in_scoped("exe:NAME"), Hint::DidYouMean)
        } else if scope.contains('/') {
            let mended = self.with_scope(&format!("/PATH/{scope}"));
            mended.map_or_else(|| self.as_in_scoped("/PATH/"), Hint::AsIn)
        } else {
            let name = Some(scope).filter(|name| !matches!(*name, "" | "exe"));
            let mended = name.and_then(|name| self.with_scope(&format!("exe:{name}")));
            mended.map_or_else(|| self.as_in_scoped("exe:NAME"), Hint::DidYouMean)
        };
        SettingError::UnknownScope {
            scope: format!("@{scope}"),
            hint,
        }
    }

    /// A suggestion: this word with another scope, which has to be a good one.
    fn with_scope(&self, scope: &str) -> Option<String> {
        let (name, scope) = (self.knob.name, scope::escape(scope));
        self.mend(&format!("{name}@{scope}={}", self.value))
    }

    /// The knob's example for such a scope.
    fn as_in_scoped(&self, scope: &str) -> Hint {
        let (name, value) = self.knob.example.split_once('=').unwrap_or_default();
        Hint::AsIn(format!("{name}@{scope}={value}"))
    }
}
