//! Metrics by name: those that refit measures itself in the runs of a recipe, and the units of
//! those that a load reports.

use serde::{Deserialize, Serialize};

/// What refit measures of a command, and of a recipe whose load is the program.
pub const COMMAND_METRICS: [&str; 20] = [
    "wall",
    "cpu",
    "user",
    "system",
    "max-rss",
    "heap-requested",
    "heap-usable",
    "heap-rounding",
    "heap-left",
    "allocations",
    "minor-faults",
    "major-faults",
    "voluntary-switches",
    "involuntary-switches",
    "written",
    "psi-cpu",
    "psi-io",
    "psi-memory",
    "syncs",
    "sync-wait",
];

/// What refit measures of any load.
pub const LOAD_METRICS: [&str; 1] = ["rate"];

/// What refit measures of a service over the measured window.
pub const SERVICE_METRICS: [&str; 16] = [
    "ready",
    "cpu",
    "written",
    "psi-cpu",
    "psi-io",
    "psi-memory",
    "syncs",
    "sync-wait",
    "pss",
    "pss-parent",
    "pss-children",
    "pss-peak",
    "rss",
    "vsz",
    "fork-copies",
    "memory-used",
];

/// Whether refit measures it in the runs of a recipe with a service, or of one without.
#[must_use]
pub fn is_built_in_for(name: &str, is_service: bool) -> bool {
    let own: &[&str] = if is_service {
        &SERVICE_METRICS
    } else {
        &COMMAND_METRICS
    };
    LOAD_METRICS.iter().chain(own).any(|known| *known == name)
}

/// What refit measures in the runs of any recipe: a load's metric cannot have such a name.
pub fn built_in() -> Vec<&'static str> {
    let tables: [&[&str]; 3] = [&COMMAND_METRICS, &LOAD_METRICS, &SERVICE_METRICS];
    let mut all = tables.concat();
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
    fn every_name_is_told_once() {
        let all = built_in();
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
        let known = |name: &&str| all.contains(name);
        assert!(COMMAND_METRICS.iter().all(known));
        assert!(LOAD_METRICS.iter().chain(&SERVICE_METRICS).all(known));
    }

    #[test]
    fn units_become_those_in_which_values_are_stored() {
        let factor = |text: &str| serde_json::from_str::<LoadUnit>(text).map(LoadUnit::factor);
        assert_eq!(factor("\"ms\"").unwrap(), 1e6);
        assert_eq!(factor("\"MiB\"").unwrap(), 1024.0 * 1024.0);
        assert!(factor("\"furlongs\"").is_err());
    }
}
