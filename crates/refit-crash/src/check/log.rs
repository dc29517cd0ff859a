//! A file of lines.

use std::fs::File;
use std::io::{self, Read};

use regex_lite::Regex;

use crate::acknowledgement::Found;

/// The id in a line.
pub fn id(regex: Option<&Regex>, line: &str) -> Option<String> {
    match regex {
        None => Some(line.to_owned()),
        Some(regex) => {
            let found = regex.captures(line)?;
            let id = found.get(1).or(found.get(0))?;
            Some(id.as_str().to_owned())
        }
    }
}

/// The id of each whole line. A missing file holds none. A last line without a
/// newline is not whole; NUL bytes stand where data never arrived.
pub fn find(
    file: io::Result<File>,
    id: impl Fn(usize, &str) -> Option<String>,
) -> io::Result<Found> {
    let mut found = Found::default();
    let mut bytes = Vec::new();
    let read = file.and_then(|mut file| file.read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => {
            found.broken = Some(format!("the file cannot be read: {error}"));
            return Ok(found);
        }
    }
    let mut number = 0;
    let mut rest = bytes.as_slice();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        number += 1;
        let is_whole = !line.contains(&0);
        let text = String::from_utf8_lossy(line);
        if let (true, Some(id)) = (is_whole, id(number, &text)) {
            found.ids.insert(id);
        }
    }
    Ok(found)
}
