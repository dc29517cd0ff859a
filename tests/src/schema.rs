//! The schemas that are shipped, and what they accept and refuse.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::locations::source_dir;

/// A shipped schema, and a place to compile it into.
fn schema_of(name: &str) -> (Schemas, SchemaIndex) {
    let file = source_dir().join("docs").join(name);
    let mut schemas = Schemas::new();
    let index = Compiler::new()
        .compile(&file.display().to_string(), &mut schemas)
        .expect("the schema is a schema");
    (schemas, index)
}

pub fn schema() -> (Schemas, SchemaIndex) {
    schema_of("result.schema.json")
}

#[track_caller]
pub fn expect_valid(result: &Value) {
    expect_valid_by("result.schema.json", result);
}

#[track_caller]
pub fn expect_valid_by(name: &str, result: &Value) {
    let (schemas, index) = schema_of(name);
    if let Err(error) = schemas.validate(result, index) {
        panic!("{error:#}\n{result:#}");
    }
}

#[track_caller]
pub fn refuses_more(result: &Value, place: &str) {
    refuses_more_by("result.schema.json", result, place);
}

/// With one key more at this place it is not a result.
#[track_caller]
pub fn refuses_more_by(name: &str, result: &Value, place: &str) {
    let (schemas, index) = schema_of(name);
    let mut more = result.clone();
    let object = more.pointer_mut(place).and_then(Value::as_object_mut);
    object
        .unwrap_or_else(|| panic!("no object {place}"))
        .insert("more".to_owned(), json!(1));
    assert!(schemas.validate(&more, index).is_err(), "{place}");
}
