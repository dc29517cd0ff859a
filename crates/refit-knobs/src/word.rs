//! The grammar of one setting: `KNOB[@exe:NAME|@/PATH][.NAME]=VALUE`, in which a `+` is a `+`.

use crate::SettingError;
use crate::error::Hint;
use crate::knob::{KNOBS, Knob};
use crate::nearest::{Known, named, nearest};
use crate::scope::{self, ExeName, PathProblem, Scope};
use crate::setting::{Setting, mend};

/// A word whose knob is known, taken apart; scope and value are as typed.
pub(crate) struct Word<'a> {
    pub knob: &'static Knob,
    /// From behind the `@` to before the `=`.
    scope: Option<&'a str>,
    /// After the dot; given exactly where the knob wants it.
    pub member: &'a str,
    pub value: &'a str,
    /// All before the `=`.
    pub head: &'a str,
}

impl<'a> Word<'a> {
    pub(crate) fn split(text: &'a str) -> Result<Self, SettingError> {
        if text.is_empty() {
            return Err(SettingError::Empty);
        }
        if text.contains('\0') {
            return Err(SettingError::Nul {
                word: text.replace('\0', "\\0"),
            });
        }
        let (head, value) = head_and_value(text).ok_or_else(|| not_a_setting(text))?;
        let (name, rest) = head.split_at(head.find(['@', '.']).unwrap_or(head.len()));
        let knob = find(name).ok_or_else(|| unknown_knob(name, rest, value))?;
        let word = Self {
            knob,
            scope: None,
            member: "",
            value,
            head,
        };
        match rest.strip_prefix('@') {
            Some(scope) => word.scoped(scope),
            None => word.with_member(rest.strip_prefix('.')),
        }
    }

    /// A suggestion: this word with another value.
    pub(crate) fn with_value(&self, value: &str) -> Option<String> {
        mend(&format!("{}={value}", self.head))
    }

    pub(crate) fn as_in_example(&self) -> Hint {
        Hint::AsIn(self.knob.example.to_owned())
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
        let hint = if let Some((_, behind)) = scope.split_once(':') {
            // `@path:/x`, `@EXE:x`
            let kind = if behind.starts_with('/') { "" } else { "exe:" };
            let mended = self.with_scope(&format!("{kind}{behind}"));
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
        mend(&format!("{name}@{scope}={}", self.value))
    }

    /// The knob's example for such a scope.
    fn as_in_scoped(&self, scope: &str) -> Hint {
        let (name, value) = self.knob.example.split_once('=').unwrap_or_default();
        Hint::AsIn(format!("{name}@{scope}={value}"))
    }

    /// `sync@/a=b/=off`: what is wrong may be that the first `=` ended the scope, if with a later one all is well.
    pub(crate) fn scope_cut_short(&self, error: SettingError) -> SettingError {
        // Other errors are about a value that this knob knows.
        let of_the_whole_value = matches!(
            error,
            SettingError::UnknownValue { .. } | SettingError::RelativeProfile { .. }
        );
        let (Some(typed), true) = (self.scope, of_the_whole_value) else {
            return error;
        };
        let typed = scope::unescape(typed);
        // A path with more of them is no slip.
        let mut ends = self.value.match_indices('=').take(16);
        let meant = ends.find_map(|(end, _)| {
            let scope = Scope::new(&format!("{typed}={}", &self.value[..end]))?;
            let value = &self.value[end + 1..];
            let value = (self.knob.parse)(&Self { value, ..*self }).ok()?;
            let scope = Some(scope);
            Some(Setting { scope, value }.to_string())
        });
        match meant {
            Some(meant) => SettingError::ScopeCutShort {
                knob: self.knob.name,
                value: self.value.to_owned(),
                hint: Hint::DidYouMean(meant),
            },
            None => error,
        }
    }

    fn scoped(self, scope: &'a str) -> Result<Self, SettingError> {
        if self.knob.scoped {
            Ok(Self {
                scope: Some(scope),
                ..self
            })
        } else {
            Err(self.no_scope(&format!("@{scope}"), ""))
        }
    }

    fn with_member(self, member: Option<&'a str>) -> Result<Self, SettingError> {
        match (self.knob.has_members, member) {
            (false, None) => Ok(self),
            (true, Some(member)) => match member.find('@') {
                Some(at) => Err(self.no_scope(&member[at..], &format!(".{}", &member[..at]))),
                None => Ok(Self { member, ..self }),
            },
            (false, Some(member)) => {
                let mended = mend(&format!("{}={}", self.knob.name, self.value));
                let hint = mended.map_or_else(|| self.as_in_example(), Hint::Write);
                Err(SettingError::NoMember {
                    knob: self.knob.name,
                    member: member.to_owned(),
                    hint,
                })
            }
            (true, None) => {
                // `env=NAME=VALUE`
                let mended = mend(&format!("{}.{}", self.knob.name, self.value));
                let hint = mended.map_or_else(|| self.as_in_example(), Hint::DidYouMean);
                Err(SettingError::NeedsMember {
                    knob: self.knob.name,
                    hint,
                })
            }
        }
    }

    fn no_scope(&self, scope: &str, member: &str) -> SettingError {
        let mended = mend(&format!("{}{member}={}", self.knob.name, self.value));
        let hint = mended.map_or_else(|| self.as_in_example(), Hint::Write);
        SettingError::NoScope {
            knob: self.knob.name,
            scope: scope.to_owned(),
            hint,
        }
    }
}

fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().copied().find(|knob| knob.name == name)
}

fn known() -> impl Iterator<Item = Known> + Clone {
    KNOBS.iter().map(|knob| (knob.name, knob.aliases))
}

/// What stands before and behind the `=`: in a scope, the first one without a backslash.
pub(crate) fn head_and_value(text: &str) -> Option<(&str, &str)> {
    match text.find(['@', '.', '=']) {
        Some(at) if text[at..].starts_with('@') => scope::split(text),
        _ => text.split_once('='),
    }
}

fn not_a_setting(text: &str) -> SettingError {
    let word = text.to_owned();
    match text.split(['@', '.']).next().and_then(find) {
        Some(_) if text.contains("\\=") => {
            let hint = mend(&scope::unescape(text));
            SettingError::ScopeWithoutEnd {
                word,
                hint: hint.map_or_else(
                    || Hint::AsIn("sync@/PATH/=off".to_owned()),
                    Hint::DidYouMean,
                ),
            }
        }
        Some(knob) => SettingError::KnobAlone {
            word,
            example: knob.example,
        },
        None => SettingError::NotASetting { word },
    }
}

fn unknown_knob(name: &str, rest: &str, value: &str) -> SettingError {
    let known_as = |knob: &str| {
        mend(&format!("{knob}{rest}={value}"))
            .or_else(|| find(knob).map(|knob| knob.example.to_owned()))
    };
    let opposite = KNOBS.iter().find(|knob| {
        knob.opposites
            .iter()
            .any(|word| word.eq_ignore_ascii_case(name))
    });
    // NAME=VALUE as env(1) takes it: such names are upper case by habit, knobs are not.
    let variable = |upper: bool| {
        let fits = rest.is_empty() && (!upper || !name.contains(|c: char| c.is_ascii_lowercase()));
        let setting = Setting::from_text(&format!("env.{name}={value}")).ok();
        setting.filter(|_| fits).map(|setting| setting.to_string())
    };
    let meant = opposite
        .map(|knob| knob.example.to_owned())
        .or_else(|| named(name, known()).and_then(known_as))
        .or_else(|| variable(true))
        .or_else(|| nearest(name, known()).and_then(known_as))
        .or_else(|| variable(false));
    let known = KNOBS
        .iter()
        .map(|knob| knob.name)
        .collect::<Vec<_>>()
        .join(", ");
    let hint = meant.map_or_else(|| Hint::AsIn("sync=off".to_owned()), Hint::DidYouMean);
    SettingError::UnknownKnob {
        knob: name.to_owned(),
        known,
        hint,
    }
}
