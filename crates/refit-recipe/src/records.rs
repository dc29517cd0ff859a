//! What of a recipe goes into a stored result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::{Direction, LoadUnit};

/// A recipe, as far as a reader of the result needs it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecipeRecord {
    /// Its name.
    pub name: String,
    /// The folder as it was named on the command line; `None` for a recipe that refit carries.
    pub folder: Option<String>,
    /// What it is to answer.
    pub question: String,
    /// One operation, in the singular.
    pub unit: String,
    /// What was asked of it, where that can be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadValue>,
    /// It stands for replicas on other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<ReplicasRecord>,
    /// It starts a service; otherwise its load is the program.
    pub is_service: bool,
    /// One start of the service served all runs: the round is the replicate, not the start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_service: bool,
    /// It says what it acknowledges, so that its power can be cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_promise: bool,
    /// What is read from the load's output.
    pub metrics: Vec<LoadMetricRecord>,
    /// Metrics that are read side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<SeriesRecord>,
    /// Why each of its variants is worth trying, by canonical text.
    pub why: BTreeMap<String, String>,
    /// The service of a machine that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies_to: Option<String>,
    /// The command that ends with 0 where the real service does its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// What is applied for a setting that a service names otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub applied: BTreeMap<String, String>,
    /// The packages of the programs that it needs, each with its version; none where dpkg is not installed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
    /// What settings stand for in SQL, by `conf.NAME=VALUE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ddl: BTreeMap<String, DdlRecord>,
    /// Its whole result is a table of exact answers: nothing is measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_exact: bool,
    /// Where the question comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the note answered, by variant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub then: BTreeMap<String, Vec<AnswerRecord>>,
}

/// Replicas of a service elsewhere, and the load on them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplicasRecord {
    /// What runs them: `kubernetes`.
    pub on: String,
    /// The load, a shell command.
    pub load: String,
    /// The machines that they ran on, one for each round pair in turn.
    pub nodes: Vec<String>,
}

/// The statements of SQL that a setting stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DdlRecord {
    /// They make the change.
    pub apply: String,
    /// They take it back.
    pub inverse: String,
}

/// One line of an exact table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerRecord {
    /// The question.
    pub question: String,
    /// Its answer.
    pub answer: String,
}

/// metrics to be read side by side: percentiles, or one metric at several sizes
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SeriesRecord {
    /// what they are
    pub title: String,
    /// names of load.metrics, or of refit's own (code)
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub metrics: Vec<String>,
    /// where each of them lies on the axis of a curve: rising, as many as metrics (code)
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("items" = { "type": "number", "exclusiveMinimum": 0 })))]
    pub at: Vec<f64>,
    /// the axis of the curve has the names of the metrics and not the numbers of `at`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

/// A metric that a recipe reads from its load's output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadMetricRecord {
    /// Its name.
    pub name: String,
    /// The unit in which the load prints it.
    pub unit: LoadUnit,
    /// Which values are the better ones.
    pub better: Direction,
    /// What it is, for people.
    pub about: String,
}

/// A variant of a recipe that cannot be tried here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnavailableRecord {
    /// The settings as the recipe has them.
    pub settings: String,
    /// Why not.
    pub reason: String,
}

/// What was asked of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadValue {
    /// `sessions` of `load.sessions`.
    pub name: String,
    /// The value in every run, but for those of a variant that sets another one.
    pub value: String,
    /// What the number counts, in the singular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl LoadValue {
    /// `20 sessions`, or `mix=reads`.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.unit {
            Some(unit) if self.value == "1" => format!("1 {unit}"),
            Some(unit) => format!("{} {unit}s", self.value),
            None => format!("{}={}", self.name, self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_with_what_it_counts() {
        for (value, unit, words) in [
            ("1", Some("session"), "1 session"),
            ("20", Some("session"), "20 sessions"),
            ("reads", None, "mix=reads"),
        ] {
            let one = LoadValue {
                name: "mix".to_owned(),
                value: value.to_owned(),
                unit: unit.map(str::to_owned),
            };
            assert_eq!(one.words(), words);
        }
    }
}
