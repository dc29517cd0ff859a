//! `conf.NAME`: what a recipe declares under that name: an edit of the service's configuration, or a command.

use std::fmt;

use crate::error::{Hint, SettingError};
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "conf",
    form: "conf.NAME=VALUE",
    about: "a part of the service's configuration, as its recipe declares it",
    example: "conf.queue=tmpfs",
    scoped: false,
    has_members: true,
    once: true,
    permanent: "conf.NAME=",
    grounds: &[Ground::Configuration],
    values: |_| Vec::new(),
    aliases: &["config", "configuration", "option"],
    opposites: &[],
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub name: String,
    pub value: String,
}

pub(crate) fn parse(word: &Word) -> Result<Declared, SettingError> {
    let name = word.member;
    if !is_name(name) {
        let lower = name.to_lowercase();
        let mended: String = lower.chars().filter(|c| is_of_name(*c)).collect();
        // What has another letter before it is another name.
        let mended = if name.contains(['.', '/']) {
            String::new()
        } else {
            mended
        };
        let mended = Some(mended)
            .filter(|name| is_name(name))
            .and_then(|name| word.mend(&format!("conf.{name}={}", word.value)));
        return Err(SettingError::BadConf {
            name: name.to_owned(),
            hint: mended.map_or_else(|| word.as_in_example(), Hint::DidYouMean),
        });
    }
    Ok(Declared {
        name: name.to_owned(),
        value: word.value.to_owned(),
    })
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.".contains(c)
}

/// What recipes may call a knob of theirs, and services their settings: `vm.swappiness`. After a dot there may be
/// others' names, of network interfaces for one, whose own dots sysctl(8) writes as slashes:
/// `net.ipv4.conf.enP2s0/100.rp_filter`.
fn is_name(name: &str) -> bool {
    let (own, others) = name.split_once('.').unwrap_or((name, ""));
    let is_of_others = |c: char| is_of_name(c) || c.is_ascii_uppercase() || c == '/';
    !name.is_empty() && own.chars().all(is_of_name) && others.chars().all(is_of_others)
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl Behaviour for Declared {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn member(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// Only the recipe knows; until it is asked, the program is meant to behave differently.
    fn class(&self) -> Class {
        Class::ChangesBehaviour
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!(
                "what the recipe declares as {} under [conf.{}]",
                self.value, self.name
            ),
            risk: "the recipe declares it: refit recipes show RECIPE",
            backend: "an edit of the private instance's configuration, or a command",
            covers: &["the private instance of a recipe, before it starts"],
            not_covered: &["commands, and servers that refit did not set up"],
            notes: Vec::new(),
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.conf.push((self.name.clone(), self.value.clone()));
    }
}
