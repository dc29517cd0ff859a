//! `load.NAME`: what is asked of a recipe's service, as the recipe declares it: by how many, how often, how large.

use std::fmt;

use crate::error::{Hint, SettingError};
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "load",
    form: "load.NAME=VALUE",
    about: "what is asked of the service, as its recipe declares it",
    example: "load.sessions=4",
    scoped: false,
    has_members: true,
    once: true,
    permanent: "load.NAME=",
    grounds: &[Ground::Load],
    values: |_| Vec::new(),
    aliases: &["workload"],
    opposites: &[],
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub name: String,
    pub value: String,
}

pub(crate) fn parse(word: &Word) -> Result<Asked, SettingError> {
    let name = word.member;
    if !is_name(name) {
        let mended = Some(name.to_lowercase().replace('-', "_"))
            .filter(|name| is_name(name))
            .and_then(|name| word.mend(&format!("load.{name}={}", word.value)));
        return Err(SettingError::BadLoad {
            name: name.to_owned(),
            hint: mended.map_or_else(|| word.as_in_example(), Hint::DidYouMean),
        });
    }
    Ok(Asked {
        name: name.to_owned(),
        value: word.value.to_owned(),
    })
}

/// Whether a recipe may use it: the name of a variable is made of it, as `REFIT_LOAD_SESSIONS`.
fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_of_name)
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl Behaviour for Asked {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn member(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// With another load the service does other work: a difference is not a gain.
    fn class(&self) -> Class {
        Class::ChangesBehaviour
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!(
                "$REFIT_LOAD_{} = {} for the commands of the recipe",
                self.name.to_uppercase(),
                self.value
            ),
            risk: "an answer holds for the load that it was measured under",
            backend: "the environment of the recipe's commands",
            covers: &["the load of a recipe, which declares it under [load.knobs]"],
            not_covered: &["the service itself, and commands"],
            notes: Vec::new(),
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.load.push((self.name.clone(), self.value.clone()));
    }
}
