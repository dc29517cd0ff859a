//! Lines as main.cf and master.cf have them: one that begins with white space continues the one
//! before, and comments and empty lines stand between (postconf(5), master(5)).

use std::ops::Range;

/// A logical line, by its physical ones: each without its newline, as a range of the file's bytes.
pub struct LogicalLine {
    /// Of the first physical line, from 1.
    pub number: usize,
    /// The physical lines, without those that stand between.
    pub parts: Vec<Range<usize>>,
}

impl LogicalLine {
    /// Its text, of which the parts are joined by a space.
    pub fn text(&self, file: &[u8]) -> String {
        let parts = self.parts.iter().map(|part| {
            let text = String::from_utf8_lossy(&file[part.clone()]);
            text.trim().to_owned()
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// All logical lines of a file.
pub fn logical_lines(file: &[u8]) -> Vec<LogicalLine> {
    let mut found: Vec<LogicalLine> = Vec::new();
    let mut start = 0;
    for (index, line) in file.split(|byte| *byte == b'\n').enumerate() {
        let part = start..start + line.len();
        start = part.end + 1;
        let text = line.trim_ascii_start();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        match found.last_mut() {
            Some(last) if text.len() < line.len() => last.parts.push(part),
            _ => found.push(LogicalLine {
                number: index + 1,
                parts: vec![part],
            }),
        }
    }
    found
}
