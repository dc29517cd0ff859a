//! The schema of what is stored as JSON, made from its type.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The JSON Schema of a stored type.
#[must_use]
pub fn stored_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
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
