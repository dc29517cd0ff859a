//! The JSON schema of results, made from the types that are written.

use refit_run::{RunReport, stored_schema};
use schemars::JsonSchema;
use serde_json::Value;

use crate::comparison::Comparison;

/// refit result
///
/// What refit writes with --json: one run, or a comparison of variants.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "a schema is made of it, and no value")]
enum Stored {
    Run(RunReport),
    Comparison(Comparison),
}

/// docs/result.schema.json.
#[must_use]
pub fn schema() -> Value {
    stored_schema::<Stored>()
}
