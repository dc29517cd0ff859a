//! The schemas of docs/ are those of the types that are read and written.
//!
//! After a change of such a type, `REFIT_WRITE_SCHEMAS=1 cargo test -p refit --test schemas`
//! writes them.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Columns of a line.
const WIDTH: usize = 120;

type Schema = fn() -> Value;

/// File below docs/, and what it has to hold.
const SCHEMAS: &[(&str, Schema)] = &[
    ("recipe.schema.json", refit_recipe::schema),
    ("result.schema.json", refit_report::proof::schema),
    ("series.schema.json", refit_run::series::schema),
    ("crash.schema.json", refit_crash::report::schema),
];

#[test]
fn the_schemas_of_docs_are_those_of_the_types() {
    for (name, schema) in SCHEMAS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs")
            .join(name);
        let mut schema = schema();
        on_one_line(&mut schema);
        let made = laid_out(&schema, 0) + "\n";
        if env::var_os("REFIT_WRITE_SCHEMAS").is_some() {
            fs::write(&path, made).unwrap();
            continue;
        }
        let shipped = fs::read_to_string(&path).unwrap();
        assert!(
            shipped == made,
            "docs/{name} is not the schema of the types; write it by\n  REFIT_WRITE_SCHEMAS=1 cargo test -p refit --test schemas"
        );
    }
}

/// Comments of the sources are broken into lines, and descriptions are not.
fn on_one_line(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            if let Some(Value::String(text)) = entries.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            entries.values_mut().for_each(on_one_line);
        }
        Value::Array(all) => all.iter_mut().for_each(on_one_line),
        _ => {}
    }
}

/// As JSON; what fits into a line is not broken.
fn laid_out(value: &Value, indent: usize) -> String {
    let line = value.to_string();
    if indent + line.chars().count() <= WIDTH {
        return line;
    }
    let inner = " ".repeat(indent + 1);
    let (parts, [open, close]): (Vec<String>, _) = match value {
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let key = Value::from(key.as_str());
                format!("{inner}{key}: {}", laid_out(value, indent + 1))
            });
            (entries.collect(), ["{", "}"])
        }
        Value::Array(all) => {
            let all = all.iter();
            let all = all.map(|value| format!("{inner}{}", laid_out(value, indent + 1)));
            (all.collect(), ["[", "]"])
        }
        _ => return line,
    };
    format!(
        "{open}\n{}\n{}{close}",
        parts.join(",\n"),
        " ".repeat(indent)
    )
}
