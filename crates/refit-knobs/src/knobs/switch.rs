//! A knob that is either on, the real thing, or off: `sync`, `odirect`.

use std::fmt;

use super::choice::{Choice, choose};
use crate::error::SettingError;
use crate::explain::{Class, Prose, scope_notes};
use crate::knob::{Behaviour, Knob};
use crate::launch::{Launch, SwitchRule};
use crate::scope::Scope;
use crate::word::Word;

/// What distinguishes one switch from another.
#[derive(Debug)]
pub(crate) struct Kind {
    pub knob: &'static Knob,
    pub on: Texts,
    pub off: Texts,
    /// Notes on a setting that is scoped to paths.
    pub of_paths: &'static [&'static str],
    /// Where the launcher looks for its rules.
    pub rules: fn(&mut Launch) -> &mut Vec<SwitchRule>,
}

/// What one position of a switch does.
#[derive(Debug)]
pub(crate) struct Texts {
    pub swaps: &'static str,
    pub risk: &'static str,
    pub backend: &'static str,
    pub covers: &'static [&'static str],
    pub not_covered: &'static [&'static str],
    pub notes: &'static [&'static str],
}

/// A position of a switch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switch {
    pub kind: &'static Kind,
    pub on: bool,
}

impl PartialEq for Switch {
    fn eq(&self, other: &Self) -> bool {
        (self.kind.knob, self.on) == (other.kind.knob, other.on)
    }
}

impl Eq for Switch {}

const ON_OFF: &[Choice<bool>] = &[
    Choice {
        name: "on",
        aliases: &["yes", "true", "1", "real", "enable", "enabled"],
        value: true,
    },
    Choice {
        name: "off",
        aliases: &[
            "drop",
            "none",
            "eatmydata",
            "no",
            "false",
            "0",
            "disable",
            "disabled",
            "nosync",
        ],
        value: false,
    },
];

/// Both positions, the one that swaps something first.
pub(super) fn words(_: &str) -> Vec<String> {
    let names = ON_OFF.iter().rev();
    names.map(|choice| choice.name.to_owned()).collect()
}

/// The word's value as a position of this switch.
pub(super) fn parse(word: &Word, kind: &'static Kind) -> Result<Switch, SettingError> {
    let on = choose(word, ON_OFF)?;
    Ok(Switch { kind, on })
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.on { "on" } else { "off" })
    }
}

impl Behaviour for Switch {
    fn knob(&self) -> &'static Knob {
        self.kind.knob
    }

    fn class(&self) -> Class {
        if self.on {
            Class::Safe
        } else {
            Class::LosesOnCrash
        }
    }

    fn prose(&self, scope: Option<&Scope>) -> Prose {
        let texts = if self.on {
            &self.kind.on
        } else {
            &self.kind.off
        };
        let of_paths = match scope {
            Some(Scope::Path(_)) => self.kind.of_paths,
            _ => &[],
        };
        let notes = texts.notes.iter().chain(of_paths);
        let notes = notes.map(|&note| note.to_owned());
        Prose {
            swaps: texts.swaps.to_owned(),
            risk: texts.risk,
            backend: texts.backend,
            covers: texts.covers,
            not_covered: texts.not_covered,
            notes: notes.chain(scope_notes(scope)).collect(),
        }
    }

    fn apply(&self, scope: Option<&Scope>, launch: &mut Launch) {
        (self.kind.rules)(launch).push(SwitchRule {
            scope: scope.cloned(),
            on: self.on,
        });
    }
}
