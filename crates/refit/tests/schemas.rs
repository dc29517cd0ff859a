//! The schemas of docs/ are those of the types that are read and written.
//!
//! After a change of such a type, `REFIT_WRITE_SCHEMAS=1 cargo test -p refit --test schemas`
//! writes them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Columns of a line.
const WIDTH: usize = 2000;

type Schema = fn() -> Value;

/// File below docs/, and what it has to hold.
const SCHEMAS: &[(&str, Schema)] = &[
    ("recipe.schema.json", refit_recipe::schema),
    ("result.schema.json", refit_report::proof::schema),
    ("series.schema.json", refit_run::series::schema),
    ("crash.schema.json", refit_crash::report::schema),
    ("tune.schema.json", refit_lab::tuning_schema),
    ("pool.schema.json", refit_lab::pool_schema),
    ("scan.schema.json", refit_lab::scan_schema),
];

#[test]
fn the_schemas_of_docs_are_those_of_the_types() {
    for (name, schema) in SCHEMAS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs")
            .join(name);
        let mut schema = schema();
        on_one_line(&mut schema);
        if [
            "crash.schema.json",
            "scan.schema.json",
            "series.schema.json",
            "tune.schema.json",
        ]
        .contains(name)
        {
            let mut results = refit_report::proof::schema();
            on_one_line(&mut results);
            refer(&mut schema, &results);
        }
        let made = laid_out(&schema) + "\n";
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

/// Definitions that the schema of results has too, with all that they refer to, are left to that.
fn refer(schema: &mut Value, results: &Value) {
    const OWN: &str = "#/$defs/";
    let Some(Value::Object(own)) = schema.get("$defs").cloned() else {
        return;
    };
    let mut shared: BTreeSet<&String> = own
        .iter()
        .filter(|(name, own)| results["$defs"].get(name) == Some(own))
        .map(|(name, _)| name)
        .collect();
    loop {
        let known = shared.clone();
        shared.retain(|name| {
            let mut is_whole = true;
            each_reference(&mut own[*name].clone(), &mut |to| {
                is_whole &= known.iter().any(|name| *to == format!("{OWN}{name}"));
            });
            is_whole
        });
        if shared == known {
            break;
        }
    }
    let definitions = schema["$defs"].as_object_mut().expect("it is one");
    definitions.retain(|name, _| !shared.contains(name));
    each_reference(schema, &mut |to| {
        if to
            .strip_prefix(OWN)
            .is_some_and(|name| shared.contains(&name.to_owned()))
        {
            *to = format!("result.schema.json{to}");
        }
    });
}

fn each_reference(schema: &mut Value, look: &mut impl FnMut(&mut String)) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value {
                    Value::String(to) if key == "$ref" => look(to),
                    value => each_reference(value, look),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| each_reference(value, look)),
        _ => {}
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

/// As JSON, not indented; what fits into a line is not broken.
fn laid_out(value: &Value) -> String {
    let line = value.to_string();
    if line.chars().count() <= WIDTH {
        return line;
    }
    let (parts, [open, close]): (Vec<String>, _) = match value {
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let key = Value::from(key.as_str());
                format!("{key}:{}", laid_out(value))
            });
            (entries.collect(), ["{", "}"])
        }
        Value::Array(all) => {
            let all = all.iter();
            let all = all.map(laid_out);
            (all.collect(), ["[", "]"])
        }
        _ => return line,
    };
    format!("{open}\n{}\n{close}", parts.join(",\n"))
}
