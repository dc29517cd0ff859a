//! `tz`: the time zone that the program believes in.

use std::fmt;

use crate::error::SettingError;
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::Launch;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "tz",
    form: "tz=ZONE",
    about: "the time zone, by setting TZ",
    example: "tz=right/Japan",
    scoped: false,
    has_members: false,
    once: true,
    permanent: "tz=",
    grounds: &[
        Ground::Unit,
        Ground::ServerEnvironment,
        Ground::Wrapper,
        Ground::Container,
        Ground::Pod,
    ],
    values: |_| Vec::new(),
    aliases: &["timezone", "time_zone", "zone", "zoneinfo"],
    opposites: &[],
};

pub(crate) fn parse(word: &Word) -> Result<Zone, SettingError> {
    match word.value {
        "" => Err(word.unknown_value("a time zone".to_owned(), None)),
        zone => Ok(Zone {
            zone: zone.to_owned(),
        }),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Zone {
    pub zone: String,
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.zone)
    }
}

impl Behaviour for Zone {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        Class::ChangesBehaviour
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        Prose {
            swaps: format!("TZ={} in the program's environment", self.zone),
            risk: "the program reads, prints and perhaps stores local times of another zone",
            backend: "the environment",
            covers: &["every process that gets TZ handed down, static and setuid ones included"],
            not_covered: &[
                "processes whose parent clears or replaces the environment",
                "programs that read /etc/localtime themselves",
            ],
            notes: vec![
                "the C library takes a zone that it cannot find for UTC, without a word; refit refuses one that \
                 this machine does not have"
                    .to_owned(),
                "zones below right/ count leap seconds".to_owned(),
            ],
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.tz = Some(self.zone.clone());
    }
}
