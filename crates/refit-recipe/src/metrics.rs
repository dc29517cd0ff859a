//! Metrics by name: those that refit measures itself in the runs of a recipe, and the units of
//! those that a load reports.

use refit_run::metric::{OF_COMMANDS, OF_LOADS, OF_SERVICES, built_in};
use serde::{Deserialize, Serialize};

/// Whether refit measures it in the runs of a recipe with a service, or of one without.
#[must_use]
pub fn is_built_in_for(name: &str, is_service: bool) -> bool {
    let own = built_in(is_service).iter();
    OF_LOADS.iter().chain(own).any(|known| known.name == name)
}

/// What refit measures in the runs of any recipe, by name: a load's metric cannot have such a name.
pub fn all_built_in() -> Vec<&'static str> {
    let tables = [OF_COMMANDS, OF_LOADS, OF_SERVICES].into_iter().flatten();
    let mut all: Vec<&str> = tables.map(|metric| metric.name).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The unit in which a load prints a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LoadUnit {
    /// A duration in nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A duration in microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// A duration in milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// A duration in seconds.
    #[serde(rename = "s")]
    Seconds,
    /// A size in bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// A size in units of 1024 bytes.
    #[serde(rename = "KiB")]
    Kibibytes,
    /// A size in units of 1024 KiB.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// A size in units of 1024 MiB.
    #[serde(rename = "GiB")]
    Gibibytes,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
    /// Things in a second.
    #[serde(rename = "per-second")]
    PerSecond,
    /// Parts of a hundred.
    #[serde(rename = "percent")]
    Percent,
}

impl LoadUnit {
    /// From this unit to the one in which values are stored: nanoseconds, bytes, or the unit
    /// itself.
    #[must_use]
    pub fn factor(self) -> f64 {
        match self {
            LoadUnit::Microseconds => 1e3,
            LoadUnit::Milliseconds => 1e6,
            LoadUnit::Seconds => 1e9,
            LoadUnit::Kibibytes => 1024.0,
            LoadUnit::Mebibytes => 1_048_576.0,
            LoadUnit::Gibibytes => 1_073_741_824.0,
            LoadUnit::Nanoseconds
            | LoadUnit::Bytes
            | LoadUnit::Count
            | LoadUnit::PerSecond
            | LoadUnit::Percent => 1.0,
        }
    }
}

/// Which values of a metric are the better ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The lower ones.
    #[default]
    Less,
    /// The higher ones.
    More,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_built_in_for_the_runs_that_have_it() {
        assert!(is_built_in_for("rate", true) && is_built_in_for("rate", false));
        assert!(is_built_in_for("pss", true) && !is_built_in_for("pss", false));
        assert!(!is_built_in_for("wall", true) && is_built_in_for("wall", false));
    }

    #[test]
    fn units_become_those_in_which_values_are_stored() {
        let factor = |text: &str| serde_json::from_str::<LoadUnit>(text).map(LoadUnit::factor);
        assert_eq!(factor("\"ms\"").unwrap(), 1e6);
        assert_eq!(factor("\"MiB\"").unwrap(), 1024.0 * 1024.0);
        assert!(factor("\"furlongs\"").is_err());
    }
}
