//! recipe.toml as it is written. docs/recipes.md describes every key.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use std::time::Duration;

use crate::metrics::{Direction, LoadUnit};
use crate::records::SeriesRecord;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeFile {
    /// The folder's name.
    pub name: String,
    /// What it is to answer.
    pub question: Text,
    /// What was measured.
    pub answer: Option<Text>,
    /// Debian's packages.
    #[serde(default)]
    pub packages: Vec<String>,
    /// The metric that the verdict is about.
    pub main: Option<String>,
    /// How long a comparison may take, as `10m`.
    pub budget: Option<String>,
    /// Where the question comes from.
    pub note: Option<Note>,
    /// What has to be there.
    #[serde(default)]
    pub needs: Needs,
    /// The server.
    #[serde(default)]
    pub service: Service,
    /// What is done to it, or the program itself.
    pub load: Load,
    /// Metrics to be read side by side.
    #[serde(default)]
    pub series: Vec<SeriesRecord>,
    /// What has to come out.
    pub check: Check,
    /// What is exact.
    pub table: Option<Table>,
    /// Knobs of its configuration.
    #[serde(default)]
    pub conf: BTreeMap<String, Conf>,
    /// What is worth trying.
    #[serde(default, rename = "variant")]
    pub variants: Vec<VariantEntry>,
}

/// One text in two languages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// English.
    pub en: String,
    /// Japanese.
    pub ja: Option<String>,
}

/// What an operator once wrote.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What about, and when.
    pub title: String,
    /// What was seen then.
    pub then: String,
}

/// What has to be there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// It cannot work as another user.
    #[serde(default)]
    pub root: bool,
    /// Programs on the PATH.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Absolute paths, or patterns.
    #[serde(default)]
    pub files: Vec<String>,
}

/// A private instance of a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Service {
    /// Names of free ports.
    #[serde(default)]
    pub ports: Vec<String>,
    /// As root, whom everything runs as.
    pub user: Option<String>,
    /// One instance and one start of it for all runs.
    pub keep: Option<bool>,
    /// Makes the instance.
    pub setup: Option<String>,
    /// What is swapped beneath; without it the load is.
    pub start: Option<String>,
    /// When it is ready.
    pub ready: Option<ReadyEntry>,
    /// Ends it.
    pub stop: Option<String>,
    /// How long to wait for `ready`.
    pub ready_timeout: Option<String>,
    /// How long to wait for the end.
    pub stop_timeout: Option<String>,
}

/// Exactly one of the first four.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyEntry {
    /// Somebody listens on this port (a name of `ports`).
    pub tcp: Option<String>,
    /// Somebody listens on this socket.
    pub unix: Option<String>,
    /// A line of the service's output, or of `file`, matches.
    pub log: Option<String>,
    /// A file in the instance's directory.
    pub file: Option<String>,
    /// A command succeeds.
    pub command: Option<String>,
}

/// The load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Before the window.
    pub warmup: Option<String>,
    /// The measured window.
    pub command: String,
    /// After it.
    pub drain: Option<String>,
    /// How many.
    pub operations: Operations,
    /// How many in a check.
    pub brief: Option<u64>,
    /// One of them.
    pub unit: String,
    /// Of each of the three commands.
    pub timeout: Option<String>,
    /// What its output tells.
    #[serde(default)]
    pub metrics: BTreeMap<String, MetricEntry>,
}

/// How many operations a load does.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "operations: a number, or { regex = \"(\\\\d+) done\" }"
)]
pub enum Operations {
    /// So many.
    Number(u64),
    /// The load's output says.
    Read(OperationsRegex),
}

/// Where the output says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationsRegex {
    /// The first group is the number.
    pub regex: String,
}

/// One metric of a load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricEntry {
    /// The first group is the value.
    pub regex: Option<String>,
    /// JSON Pointer (RFC 6901) into the output.
    pub pointer: Option<String>,
    /// Of the value.
    pub unit: LoadUnit,
    /// Which values are the better ones.
    #[serde(default)]
    pub better: Direction,
    /// What it is.
    #[serde(default)]
    pub about: String,
}

/// What has to come out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Succeeds, and prints the same in every run.
    pub command: String,
}

/// Exact answers: no statistics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Prints lines of a question, a tab, and its answer.
    pub command: String,
    /// They are the whole result.
    #[serde(default)]
    pub only: bool,
    /// A file with what the note answered.
    pub then: Option<String>,
}

/// A variant worth trying.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantEntry {
    /// As on the command line.
    pub settings: String,
    /// Why.
    pub why: String,
}

/// A knob of the configuration: what it is, and its values.
#[derive(Clone, Debug, Default)]
pub struct Conf {
    /// What it is.
    pub about: String,
    /// By name.
    pub values: BTreeMap<String, ConfEntry>,
}

/// One value: an edit, or a command and its inverse.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfEntry {
    /// What it risks.
    pub class: String,
    /// The file to edit.
    pub file: Option<String>,
    /// The lines that go.
    pub from: Option<String>,
    /// The lines that come.
    pub to: Option<String>,
    /// Does it.
    pub command: Option<String>,
    /// Takes it back.
    pub inverse: Option<String>,
}

impl<'de> Deserialize<'de> for Conf {
    /// By hand: beside `about` every key is a value, and a wrong one keeps its line.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Conf, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Conf;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `about` and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Conf, A::Error> {
                let mut conf = Conf::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "about" {
                        conf.about = map.next_value()?;
                    } else {
                        conf.values.insert(key, map.next_value()?);
                    }
                }
                if conf.values.is_empty() {
                    return Err(de::Error::custom("a knob needs at least one value"));
                }
                Ok(conf)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

/// `90s`, `3m`, `500ms`.
#[must_use]
pub fn parse_time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] = [
        ("ms", 1e-3),
        ("min", 60.0),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("", 1.0),
    ];
    UNITS
        .iter()
        .find_map(|(unit, seconds)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok()
        })
        .filter(|time| !time.is_zero())
}
