//! The keys of recipe.toml, from the schema that is made of the types which read it.

use std::fmt::Write;

use serde_json::Value;

use crate::settings::literal;

const SCHEMA: &str = include_str!("../../../docs/recipe.schema.json");

/// Each table with its keys: what they are, whether they have to be there.
pub(crate) fn markdown() -> String {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    let mut out = "## The keys of recipe.toml\n\n".to_owned();
    write_table(&mut out, &schema);
    let tables = schema["$defs"].as_object().into_iter().flatten();
    for (name, table) in tables {
        let Some(key) = key_of(&schema, name) else {
            continue;
        };
        let about = table["description"].as_str().unwrap_or_default();
        let _ = write!(out, "### {key}\n\n{}\n\n", literal(about));
        write_table(&mut out, table);
    }
    out
}

/// The table of the file that has this type, as TOML writes it.
fn key_of(schema: &Value, name: &str) -> Option<String> {
    // Types of values that hold keys, and what leads to them.
    const WITHIN: &[(&str, &str)] = &[
        ("ConfEntry", "[conf.NAME.VALUE]"),
        ("OperationsRegex", "load.operations"),
        ("MetricEntry", "[load.metrics.NAME]"),
        ("LoadKnob", "[load.knobs.NAME]"),
        ("OpenEntry", "[load.open]"),
        ("ProgressEntry", "load.progress"),
        ("ReadyEntry", "service.ready"),
        ("Needs", "[needs] and [promise.needs]"),
        ("VariantEntry", "[[variant]]"),
        ("SeriesRecord", "[[series]]"),
    ];
    schema["$defs"][name]["properties"].as_object()?;
    if let Some((_, key)) = WITHIN.iter().find(|(of, _)| *of == name) {
        return Some((*key).to_owned());
    }
    let reference = format!("#/$defs/{name}");
    let properties = schema["properties"].as_object()?;
    let found = properties
        .iter()
        .find(|(_, value)| value["$ref"].as_str() == Some(&reference));
    found.map(|(key, _)| format!("[{key}]"))
}

fn write_table(out: &mut String, table: &Value) {
    let required: Vec<&str> = table["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, value) in table["properties"].as_object().into_iter().flatten() {
        let about = value["description"].as_str().unwrap_or_default();
        let needed = if required.contains(&key.as_str()) {
            " (required)"
        } else {
            ""
        };
        let _ = writeln!(out, "- `{key}`{needed}: {}", literal(about));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_schema_is_there() {
        let schema: Value = serde_json::from_str(SCHEMA).expect("it is JSON");
        let page = markdown();
        for (key, value) in schema["properties"].as_object().expect("it has keys") {
            assert!(page.contains(&format!("- `{key}`")), "{key}");
            assert!(value["description"].is_string(), "{key}");
        }
        let tables = schema["$defs"].as_object().expect("it has types");
        for (name, table) in tables {
            // `about` and any names of values.
            if name == "Conf" || table["properties"].is_null() {
                continue;
            }
            let heading = key_of(&schema, name).unwrap_or_else(|| panic!("{name} has no heading"));
            assert!(page.contains(&format!("### {heading}\n")), "{heading}");
        }
    }
}
