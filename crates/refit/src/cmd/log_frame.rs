//! A result in the log of a pod, between whatever else is printed there.
//!
//! ```text
//! refit-result v1 begin INDEX BYTES SHA256
//! refit-result v1 0 BASE64
//! refit-result v1 1 BASE64
//! refit-result v1 end INDEX SHA256
//! ```
//!
//! Lines stay below the 16 KiB at which containerd splits them, and below the limits of collectors. What is cut off at
//! either end, changed, or printed by something else in these words is recognised: a log with two beginnings, as any
//! other that is not exactly this, has no result.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use thiserror::Error;

const MARK: &str = "refit-result v1 ";

/// What all versions begin with.
const MARK_OF_ANY: &[u8] = b"refit-result v";

/// Bytes of a result in one line, a multiple of 3: 4 KiB of base64.
const CHUNK: usize = 3072;

/// Larger results are refused.
const MOST_BYTES: usize = 256 << 20;

/// Why a log holds no result that can be trusted.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// No marked line.
    #[error("holds no result")]
    Missing,
    /// A line between the first and the last is missing, or the first or the last itself.
    #[error("is truncated: {0} is missing")]
    Truncated(String),
    /// Something else than refit printed marked lines.
    #[error("holds a second result, or another program prints `refit-result`")]
    Second,
    /// The result of another pod.
    #[error("holds the result of index {0}")]
    OtherIndex(u32),
    /// Of a newer refit.
    #[error("holds a result in another form than this refit reads")]
    OtherVersion,
    /// Bytes are not those that were written.
    #[error("is damaged: {0}")]
    Damaged(&'static str),
}

/// The lines that carry a text. The first is empty: what was printed before may have no end of line.
#[must_use]
pub fn framed(index: u32, text: &str) -> String {
    let sum = checksum(text.as_bytes());
    let mut lines = format!("\n{MARK}begin {index} {} {sum}\n", text.len());
    for (number, chunk) in text.as_bytes().chunks(CHUNK).enumerate() {
        let chunk = BASE64_STANDARD.encode(chunk);
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{MARK}{number} {chunk}");
    }
    let _ = writeln!(lines, "{MARK}end {index} {sum}");
    lines
}

/// The text that a log carries for this index.
///
/// # Errors
/// A log that holds none, a part of one, or more than one.
pub fn unframed(index: u32, log: &[u8]) -> Result<String, FrameError> {
    let mut begun: Option<Begun> = None;
    let mut ended = false;
    for line in log.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.starts_with(MARK_OF_ANY) {
            continue;
        }
        let Some(words) = line.strip_prefix(MARK.as_bytes()) else {
            return Err(FrameError::OtherVersion);
        };
        let words = str::from_utf8(words).map_err(|_| NOT_MARKED)?;
        let words: Vec<&str> = words.split(' ').collect();
        match (words.as_slice(), &mut begun) {
            (["begin", ..], Some(_)) => return Err(FrameError::Second),
            (["begin", of, bytes, sum], None) => begun = Some(Begun::new(index, of, bytes, sum)?),
            (_, None) => return Err(FrameError::Truncated("its beginning".to_owned())),
            (_, Some(_)) if ended => return Err(FrameError::Second),
            (["end", of, sum], Some(begun)) => {
                begun.end(index, of, sum)?;
                ended = true;
            }
            ([number, chunk], Some(begun)) => begun.take(number, chunk)?,
            _ => return Err(NOT_MARKED),
        }
    }
    match begun {
        None => Err(FrameError::Missing),
        Some(_) if !ended => Err(FrameError::Truncated("its end".to_owned())),
        Some(begun) => {
            String::from_utf8(begun.text).map_err(|_| FrameError::Damaged("it is not UTF-8"))
        }
    }
}

const NOT_MARKED: FrameError = FrameError::Damaged("a marked line is none of refit's");

/// A result whose end has not been read.
struct Begun {
    bytes: usize,
    sum: String,
    chunks: usize,
    text: Vec<u8>,
}

impl Begun {
    fn new(index: u32, of: &str, bytes: &str, sum: &str) -> Result<Begun, FrameError> {
        is_of(index, of)?;
        let bytes = bytes.parse().map_err(|_| NOT_MARKED)?;
        if bytes > MOST_BYTES {
            return Err(FrameError::Damaged("it is larger than any result"));
        }
        Ok(Begun {
            bytes,
            sum: sum.to_owned(),
            chunks: 0,
            text: Vec::new(),
        })
    }

    fn take(&mut self, number: &str, chunk: &str) -> Result<(), FrameError> {
        let number: usize = number.parse().map_err(|_| NOT_MARKED)?;
        if number > self.chunks {
            return Err(FrameError::Truncated(format!("line {}", self.chunks)));
        }
        if number < self.chunks {
            return Err(FrameError::Second);
        }
        let chunk = BASE64_STANDARD.decode(chunk).map_err(|_| NOT_MARKED)?;
        self.text.extend(chunk);
        self.chunks += 1;
        if self.text.len() > self.bytes {
            return Err(FrameError::Damaged(
                "it is longer than its first line tells",
            ));
        }
        Ok(())
    }

    fn end(&self, index: u32, of: &str, sum: &str) -> Result<(), FrameError> {
        is_of(index, of)?;
        if self.text.len() < self.bytes {
            return Err(FrameError::Truncated(format!("line {}", self.chunks)));
        }
        if sum != self.sum || checksum(&self.text) != self.sum {
            return Err(FrameError::Damaged("its checksum is another"));
        }
        Ok(())
    }
}

fn is_of(index: u32, of: &str) -> Result<(), FrameError> {
    match of.parse() {
        Ok(of) if of == index => Ok(()),
        Ok(of) => Err(FrameError::OtherIndex(of)),
        Err(_) => Err(NOT_MARKED),
    }
}

fn checksum(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> String {
        "{\"schema\": 1, \"name\": \"ä\"}".repeat(300)
    }

    /// A log in which the lines of the result are changed by this.
    fn log(change: impl FnOnce(&mut Vec<String>)) -> Vec<u8> {
        let mut lines: Vec<String> = framed(3, &text()).lines().map(str::to_owned).collect();
        lines.insert(0, "refit: some words".to_owned());
        change(&mut lines);
        lines.join("\n").into_bytes()
    }

    #[test]
    fn a_result_is_found_between_other_lines_and_after_one_without_an_end() {
        assert_eq!(unframed(3, &log(|_| ())), Ok(text()));
        let mixed = log(|lines| {
            lines[0].push_str("\u{1b}[2J \r");
            lines.insert(5, "no refit-result v1 end 3".to_owned());
            lines.iter_mut().for_each(|line| line.push('\r'));
        });
        assert_eq!(unframed(3, &mixed), Ok(text()));
        let glued = [b"without an end".as_slice(), framed(0, "").as_bytes()].concat();
        assert_eq!(unframed(0, &glued), Ok(String::new()));
    }

    #[test]
    fn lines_are_shorter_than_any_collector_splits() {
        let longest = framed(u32::MAX, &text()).lines().map(str::len).max();
        assert!(longest < Some(8192), "{longest:?}");
    }

    #[test]
    fn a_log_that_lost_any_line_is_truncated() {
        let whole = log(|_| ());
        let lines = whole.split(|byte| *byte == b'\n').count();
        for lost in 2..lines {
            let log = log(|lines| drop(lines.remove(lost)));
            let found = unframed(3, &log);
            assert!(
                matches!(found, Err(FrameError::Truncated(_))),
                "{lost}: {found:?}"
            );
        }
        for kept in 0..whole.len() {
            assert!(unframed(3, &whole[..kept]).is_err(), "{kept}");
        }
        for from in 20..whole.len() {
            assert!(unframed(3, &whole[from..]).is_err(), "{from}");
        }
    }

    #[test]
    fn a_changed_byte_is_never_taken() {
        let whole = log(|_| ());
        let begin = whole
            .windows(6)
            .position(|at| at == b"refit-")
            .expect("it is there");
        for at in begin..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            // The mark itself may be gone: then the line is.
            let found = unframed(3, &changed);
            assert!(found.is_err(), "{at}: {found:?}");
        }
    }

    #[test]
    fn what_another_program_prints_in_refits_words_is_no_result() {
        let forged = framed(3, "{}");
        let cases: [(Vec<u8>, FrameError); 8] = [
            (Vec::new(), FrameError::Missing),
            (
                [forged.as_bytes(), &log(|_| ())].concat(),
                FrameError::Second,
            ),
            (
                [log(|_| ()).as_slice(), forged.as_bytes()].concat(),
                FrameError::Second,
            ),
            (
                log(|lines| lines.insert(0, "refit-result v1 begin 3 0 0".to_owned())),
                FrameError::Second,
            ),
            (framed(4, "{}").into_bytes(), FrameError::OtherIndex(4)),
            (
                b"refit-result v2 begin 3".to_vec(),
                FrameError::OtherVersion,
            ),
            (
                format!("{MARK}begin 3 {} 0", usize::MAX).into_bytes(),
                FrameError::Damaged("it is larger than any result"),
            ),
            (
                log(|lines| lines[3] = format!("{MARK}0 {}", "/".repeat(8192 << 2))),
                FrameError::Damaged("it is longer than its first line tells"),
            ),
        ];
        for (number, (log, error)) in cases.into_iter().enumerate() {
            assert_eq!(unframed(3, &log), Err(error), "{number}");
        }
        for line in [
            "\u{fffd}", "1", "0 %", "-1 QQ==", "begin", "end", "end 3", "0 QQ== x",
        ] {
            let log = log(|lines| lines.insert(3, format!("{MARK}{line}")));
            assert!(unframed(3, &log).is_err(), "{line}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;

    /// A log with a result in it, and the lines of another program around it.
    #[test]
    fn logs_of_pods() {
        let text = "{\"schema\": 1}".repeat(500);
        let words = [
            MARK,
            "begin 3 ",
            "end 3 ",
            "refit-result v2 ",
            "\r\n",
            "\n",
            "QQ==",
        ];
        refit_fuzz::Target::new(env!("CARGO_MANIFEST_DIR"), "logs_of_pods")
            .seeds([
                framed(3, &text),
                framed(3, ""),
                format!("{}x\n", framed(4, "{}")),
            ])
            .words(words)
            .run(|input| {
                if let Ok(found) = unframed(3, input) {
                    assert_eq!(unframed(3, framed(3, &found).as_bytes()), Ok(found));
                }
                // Whatever a text is, it comes out as it went in, between lines that are not marked.
                let text = String::from_utf8_lossy(input);
                let noise: String = text
                    .split('\n')
                    .filter(|line| !line.as_bytes().starts_with(MARK_OF_ANY))
                    .collect::<Vec<_>>()
                    .join("\n");
                let log = format!("{noise}\n{}{noise}", framed(3, &text));
                assert_eq!(unframed(3, log.as_bytes()).as_deref(), Ok(&*text));
            });
    }
}
