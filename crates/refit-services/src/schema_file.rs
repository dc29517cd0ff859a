//! The file that declares a schema.

use std::fs::File as OpenFile;
use std::io::{self, Read, stdin};
use std::sync::OnceLock;

use refit_schema::{File, SchemaError};

use crate::Error;

/// A longer file is refused: none of a schema is, and what lies under a name may have no end.
const MOST_BYTES: u64 = 64 << 20;

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
            let text = limited(stdin().lock()).map_err(failed)?;
            INPUT.get_or_init(|| text).clone()
        }
        _ => OpenFile::open(path).and_then(limited).map_err(failed)?,
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

fn limited(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    if from.take(MOST_BYTES + 1).read_to_end(&mut bytes)? as u64 > MOST_BYTES {
        let limit = MOST_BYTES >> 20;
        return Err(io::Error::other(format!("it is longer than {limit} MiB")));
    }
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read("/dev/zero").unwrap_err().to_string();
        assert!(error.contains("longer than 64 MiB"), "{error}");
    }
}
