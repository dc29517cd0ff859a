//! A scan: one comparison at each of several values of a setting.

use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;

/// Version of the JSON schema (docs/scan.schema.json).
pub const SCAN_SCHEMA: u32 = 1;

/// The JSON Schema of a stored scan (docs/scan.schema.json).
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> serde_json::Value {
    refit_run::stored_schema::<Scan>()
}

/// A stored scan.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scan {
    /// Version of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCAN_SCHEMA)))]
    pub schema: u32,
    /// Always `scan`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "scan")))]
    pub kind: String,
    /// The version of refit.
    pub refit: String,
    /// The setting without its value: `load.sessions`.
    pub setting: String,
    /// In the order of the values as they were named; fewer than these where it was interrupted.
    pub points: Vec<ScanPoint>,
    /// How many values were named. The intervals hold together for all of them.
    pub named: usize,
}

/// One value.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScanPoint {
    /// The value of the setting, which every variant had.
    pub value: String,
    /// What was measured with it.
    pub comparison: Comparison,
}

impl Scan {
    /// A scan of a setting in which nothing was measured yet; `named`: how many values were named.
    #[must_use]
    pub fn new(setting: &str, named: usize) -> Scan {
        Scan {
            schema: SCAN_SCHEMA,
            kind: "scan".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            setting: setting.to_owned(),
            points: Vec::new(),
            named,
        }
    }
}
