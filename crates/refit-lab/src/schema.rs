//! The JSON schema of results, made from the types that are written.

use refit_run::RunReport;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
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
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Stored>();
    RecursiveTransform(closed).transform(&mut schema);
    schema.to_value()
}

/// A record has the fields that are documented, and no other.
fn closed(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    // `uint64` and the like are not formats of JSON Schema.
    schema.remove("format");
}
