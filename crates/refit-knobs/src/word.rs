//! The grammar of one setting: `KNOB[@exe:NAME][.NAME]=VALUE`, in which a `+` is a `+`.

use crate::SettingError;
use crate::error::Hint;
use crate::knob::{KNOBS, Knob};
use crate::nearest::{Known, named, nearest};
use crate::scope::ExeName;
use crate::setting::{Setting, mend};

/// A word whose knob is known, taken apart; scope and value are as typed.
pub(crate) struct Word<'a> {
    pub knob: &'static Knob,
    /// From `@` to before the `=`.
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
        let (head, value) = text.split_once('=').ok_or_else(|| not_a_setting(text))?;
        let (name, rest) = head.split_at(head.find(['@', '.']).unwrap_or(head.len()));
        let knob = find(name).ok_or_else(|| unknown_knob(name, rest, value))?;
        let word = Self {
            knob,
            scope: None,
            member: "",
            value,
            head,
        };
        if rest.starts_with('@') {
            word.with_scope(rest)
        } else {
            word.with_member(rest.strip_prefix('.'))
        }
    }

    /// A suggestion: this word with another value.
    pub(crate) fn with_value(&self, value: &str) -> Option<String> {
        mend(&format!("{}={value}", self.head))
    }

    pub(crate) fn as_in_example(&self) -> Hint {
        Hint::AsIn(self.knob.example.to_owned())
    }

    pub(crate) fn exe_name(&self) -> Result<Option<ExeName>, SettingError> {
        let Some(scope) = self.scope else {
            return Ok(None);
        };
        let name = self.knob.name;
        // Not the example itself, which has no scope.
        let as_in = || Hint::AsIn(format!("{name}@exe:NAME=off"));
        let Some(exe) = scope.strip_prefix("@exe:") else {
            let hint =
                mend(&format!("{name}@exe:NAME={}", self.value)).map_or_else(as_in, Hint::AsIn);
            return Err(SettingError::UnknownScope {
                scope: scope.to_owned(),
                hint,
            });
        };
        ExeName::new(exe).map(Some).map_err(|problem| {
            let last = exe
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .filter(|last| *last != exe);
            let mended = last.and_then(|last| mend(&format!("{name}@exe:{last}={}", self.value)));
            let hint = mended.map_or_else(as_in, Hint::DidYouMean);
            SettingError::BadExeName {
                name: exe.to_owned(),
                problem,
                hint,
            }
        })
    }

    fn with_scope(self, scope: &'a str) -> Result<Self, SettingError> {
        if self.knob.scoped {
            Ok(Self {
                scope: Some(scope),
                ..self
            })
        } else {
            Err(self.no_scope(scope, ""))
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

fn not_a_setting(text: &str) -> SettingError {
    let word = text.to_owned();
    match text.split(['@', '.']).next().and_then(find) {
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
