//! `env.NAME`: one variable of the program's environment.

use std::fmt;

use crate::error::{Hint, SettingError};
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "env",
    form: "env.NAME=VALUE",
    about: "one variable of the environment",
    example: "env.NAME=VALUE",
    scoped: false,
    has_members: true,
    once: true,
    permanent: "env.NAME=",
    grounds: &[
        Ground::Unit,
        Ground::ServerEnvironment,
        Ground::Wrapper,
        Ground::Container,
        Ground::Pod,
    ],
    values: |_| Vec::new(),
    aliases: &["environment", "environ", "setenv", "export", "variable"],
    opposites: &[],
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub name: String,
    pub value: String,
}

pub(crate) fn parse(word: &Word) -> Result<Variable, SettingError> {
    let name = word.member;
    if !is_portable(name) {
        let mended =
            portable(name).and_then(|name| word.mend(&format!("env.{name}={}", word.value)));
        let hint = mended.map_or_else(|| word.as_in_example(), Hint::DidYouMean);
        return Err(SettingError::BadVariable {
            name: name.to_owned(),
            hint,
        });
    }
    if name == "LD_PRELOAD" {
        let mended = word.mend(&format!("preload={}", word.value));
        let hint = mended.map_or_else(
            || Hint::AsIn("preload=/abs/path.so".to_owned()),
            Hint::Write,
        );
        return Err(SettingError::LdPreload { hint });
    }
    if name.starts_with("REFIT_") {
        return Err(SettingError::RefitVariable {
            name: name.to_owned(),
        });
    }
    Ok(Variable {
        name: name.to_owned(),
        value: word.value.to_owned(),
    })
}

/// What POSIX calls a name (XBD 3.216): what every shell can pass on.
fn is_portable(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The same with `_` for what cannot stand in a name, if that makes one.
fn portable(name: &str) -> Option<String> {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    Some(name.chars().map(letter).collect()).filter(|name: &String| is_portable(name))
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl Behaviour for Variable {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn member(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn class(&self) -> Class {
        Class::ChangesBehaviour
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!("{}={} in the program's environment", self.name, self.value),
            risk: "whatever the program makes of that variable; refit does not know",
            backend: "the environment",
            covers: &["every process that gets the variable handed down"],
            not_covered: &["processes whose parent clears or replaces the environment"],
            notes: Vec::new(),
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.env.push((self.name.clone(), self.value.clone()));
    }
}
