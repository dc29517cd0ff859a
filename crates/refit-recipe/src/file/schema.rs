//! The JSON Schema of recipe.toml, made from its types.

use serde_json::{Value, json};

use super::RecipeFile;

/// The JSON Schema of recipe.toml.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(RecipeFile).to_value();
    without_null(&mut schema);
    schema
}

/// TOML has no null: what is optional is left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            if let Some(Value::Array(types)) = entries.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    entries.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(all)) = entries.get_mut("anyOf") {
                all.retain(|one| *one != json!({ "type": "null" }));
                if let [Value::Object(only)] = &all[..] {
                    let only = only.clone();
                    entries.remove("anyOf");
                    entries.extend(only);
                }
            }
            // An optional key has no default of null either.
            if entries.get("default") == Some(&Value::Null) {
                entries.remove("default");
            }
            entries.values_mut().for_each(without_null);
        }
        Value::Array(all) => all.iter_mut().for_each(without_null),
        _ => {}
    }
}
