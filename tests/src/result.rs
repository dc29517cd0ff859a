//! The JSON result: valid against the schema that is shipped, and complete.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::lab::{Lab, expect_code, source_dir};
use crate::runner::{Outcome, Test};
use crate::test;

pub const TESTS: &[Test] = &[
    test!(every_kind_of_result_is_valid),
    test!(the_schema_refuses_what_is_not_documented),
];

/// The shipped schema, and a place to compile it into.
fn schema() -> (Schemas, SchemaIndex) {
    let file = source_dir().join("docs/result.schema.json");
    let mut schemas = Schemas::new();
    let index = Compiler::new()
        .compile(&file.display().to_string(), &mut schemas)
        .expect("the schema is a schema");
    (schemas, index)
}

#[track_caller]
pub fn expect_valid(result: &Value) {
    let (schemas, index) = schema();
    if let Err(error) = schemas.validate(result, index) {
        panic!("{error:#}\n{result:#}");
    }
}

fn every_kind_of_result_is_valid(lab: &Lab) -> Outcome {
    let file = lab.path("file");
    let fsync = lab.program("fsync_once");
    let observed = lab.report(&["run", "--", &fsync, &file]);
    assert_eq!(observed["totals"]["fsync"]["real"], 1);
    expect_valid(&observed);
    let script = format!("{fsync} {file}; {} {file}", lab.program("static_fsync"));
    let swapped = lab.report(&["run", "sync=off", "thp=never", "--", "sh", "-c", &script]);
    assert_eq!(swapped["totals"]["fsync"]["suppressed"], 1);
    assert_eq!(swapped["coverage"]["unreached"][0]["reason"], "static");
    expect_valid(&swapped);
    let (output, failed) = lab.refit_json(&["run", "--", "sh", "-c", "exit 3"]);
    expect_code(&output, 3);
    assert_eq!(failed["exit"], json!({"code": 3}));
    expect_valid(&failed);
    let (_, killed) = lab.refit_json(&["run", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed["exit"], json!({"signal": 9}));
    expect_valid(&killed);
    let ring = lab.report(&["run", "--", &lab.program("io_uring_fsync"), &file]);
    assert_eq!(ring["coverage"]["unknown"][0]["what"], "io_uring");
    expect_valid(&ring);
    Outcome::Pass
}

fn the_schema_refuses_what_is_not_documented(lab: &Lab) -> Outcome {
    let mut result = lab.report(&["run", "--", "true"]);
    expect_valid(&result);
    let (schemas, index) = schema();
    result["extra"] = json!(1);
    assert!(schemas.validate(&result, index).is_err());
    result.as_object_mut().expect("an object").remove("extra");
    result["exit"] = json!({"code": "0"});
    assert!(schemas.validate(&result, index).is_err());
    Outcome::Pass
}
