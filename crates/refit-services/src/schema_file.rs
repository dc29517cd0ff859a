//! The file that declares a schema.

use std::io::Read;
use std::sync::OnceLock;

use refit_schema::{File, SchemaError};

use crate::Error;

/// The standard input is read once, and a plan is made more than once.
static INPUT: OnceLock<String> = OnceLock::new();

/// Reads it; `-` is the standard input.
///
/// # Errors
/// [`SchemaError::File`].
pub fn read(path: &str) -> Result<File, Error> {
    let failed = |cause| SchemaError::File {
        path: path.to_owned(),
        cause,
    };
    let text = match (path, INPUT.get()) {
        ("-", Some(text)) => text.clone(),
        ("-", None) => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(failed)?;
            INPUT.get_or_init(|| text).clone()
        }
        _ => std::fs::read_to_string(path).map_err(failed)?,
    };
    let path = match path {
        "-" => "standard input",
        path => path,
    };
    Ok(File {
        path: path.to_owned(),
        text,
    })
}
