//! A pool as it is stored.

use std::collections::BTreeMap;

use refit_run::metric::{MeasureRecord, Unit};
use serde::{Deserialize, Serialize};

use crate::tune::Risk;
use crate::verdict::Verdict;

/// Version of the JSON schema (docs/pool.schema.json).
pub const POOL_SCHEMA: u32 = 1;

/// The JSON Schema of a stored pool (docs/pool.schema.json).
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> serde_json::Value {
    refit_run::stored_schema::<Pool>()
}

/// Comparisons of the same thing on several machines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pool {
    /// Version of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = POOL_SCHEMA)))]
    pub schema: u32,
    /// Always `pool`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "pool")))]
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// Its options and results, as they were typed after `refit pool`; `None`: they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<String>>,
    /// The command's words; of a recipe its name.
    pub command: Vec<String>,
    /// What a recipe is to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The metric that is pooled: the main one of the results.
    pub main: String,
    /// Which way of it is better.
    pub measure: MeasureRecord,
    /// The unit of its values.
    pub unit: Unit,
    /// One operation of a recipe, in the singular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_name: Option<String>,
    /// The subject is a recipe, and not a command.
    pub is_recipe: bool,
    /// Settings under every variant, in canonical text.
    pub with: Vec<String>,
    /// Two variants within ± this relative change are the same.
    pub delta: f64,
    /// The results, in the order of their start.
    pub results: Vec<ResultRecord>,
    /// The machines, in the order of their first result.
    pub machines: Vec<MachineRecord>,
    /// Each variant that a result has.
    pub variants: Vec<PooledVariant>,
}

/// One result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResultRecord {
    /// Its file, as it was named.
    pub file: String,
    /// Index into `machines`.
    pub machine: usize,
    /// Seconds since 1970 when it began.
    pub started_unix: u64,
    /// Its seed.
    pub seed: u64,
    /// Version of the refit that measured it.
    pub refit: String,
    /// Round pairs that count.
    pub pairs: usize,
    /// It was interrupted before the end of its plan.
    pub interrupted: bool,
}

/// One machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineRecord {
    /// Its name; without one its processor, cores and memory.
    pub name: String,
    /// What of it does not change, as its first result has it.
    pub fixed: BTreeMap<String, String>,
    /// The main metric of the baseline: the median of the medians of its results.
    pub baseline: Option<f64>,
    /// How long a sync call of the baseline took, in nanoseconds: the median of the means of its results. `None` where
    /// there were none, or they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_ns: Option<f64>,
}

/// A variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledVariant {
    /// The variant's settings, in canonical text.
    pub name: String,
    /// What it risks on any of the machines.
    pub risk: Risk,
    /// Of each machine that has it.
    pub machines: Vec<MachineEffect>,
    /// Across machines; `None` of fewer than two.
    pub pooled: Option<PooledEffect>,
    /// By what machines differ that have different effects: what tells them apart best first.
    pub factors: Vec<FactorRecord>,
    /// Results that do not count for it.
    pub not_pooled: Vec<NotPooled>,
}

/// The effect on one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineEffect {
    /// Index into `machines`.
    pub machine: usize,
    /// Relative change that was estimated: −0.02 is 2 % less.
    pub change: f64,
    /// Its 95 % interval, as relative changes.
    pub interval: Option<[f64; 2]>,
    /// What the interval proves.
    pub verdict: Verdict,
    /// The variant is proven better there.
    pub gain: bool,
    /// From how many results.
    pub results: usize,
    /// From how many round pairs in all.
    pub pairs: usize,
}

/// The effect across machines, each counted once.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledEffect {
    /// Relative change that was estimated.
    pub change: f64,
    /// Where the mean of all machines of this kind lies: the 95 % interval.
    pub interval: [f64; 2],
    /// Where another machine of this kind will measure it, in 95 % of cases.
    pub next: [f64; 2],
    /// How likely effects that scatter so or more are where all machines have the same.
    pub p_equal: f64,
    /// Machines differ: that is less likely than 5 %.
    pub differ: bool,
    /// What the interval proves.
    pub verdict: Verdict,
    /// The variant is proven better.
    pub gain: bool,
}

/// A property by which machines differ.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorRecord {
    /// `disk`, `kernel`, `sync time`, …
    pub name: String,
    /// Machines by its value, the smallest effect first.
    pub groups: Vec<GroupRecord>,
    /// How likely it is that groups differ so by chance; `None` where fewer than two groups have two machines.
    pub p_equal: Option<f64>,
    /// It is less likely than 5 %, the number of properties taken into account (Holm).
    pub explains: bool,
}

/// Machines with the same value of a property.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupRecord {
    /// The value.
    pub value: String,
    /// Indexes into `machines`.
    pub machines: Vec<usize>,
    /// Their mean effect, as a relative change.
    pub change: f64,
}

/// A result that does not count for a variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotPooled {
    /// Its file.
    pub file: String,
    /// Why.
    pub why: String,
}
