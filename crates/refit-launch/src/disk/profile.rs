//! Profiles of a disk, as `refit doctor --probe-disk DIR --json FILE` writes them: one JSON object with `schema`, `kind`
//! and `samples_ns`, the nanoseconds of each flush in the order in which they came; all else is for people.
//!
//! A profile may come from anywhere, so nothing in it is believed before it is checked.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use refit_session::open_regular;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::quantiles::MAX_NS;

/// The value of the field `kind`.
pub const KIND: &str = "disk-profile";
/// The value of the field `schema`.
pub const SCHEMA: u64 = 1;
/// No profile is longer: 16 MiB.
const MAX_BYTES: u64 = 16 << 20;

/// What is wrong with a profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileProblem {
    /// The kernel's reason.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// A directory, a pipe, a device.
    #[error("is not a regular file")]
    NotAFile,
    /// More than 16 MiB.
    #[error("has more than 16 MiB")]
    TooLong,
    /// Bytes that are not text.
    #[error("is not UTF-8")]
    NotUtf8,
    /// It ends in the middle.
    #[error("is cut short: {0}")]
    CutShort(serde_json::Error),
    /// Not JSON.
    #[error("is not JSON: {0}")]
    NotJson(serde_json::Error),
    /// JSON, but with a value that cannot be.
    #[error("is damaged: {0}")]
    Damaged(serde_json::Error),
    /// Something else of refit's, or of anyone's.
    #[error("is not a profile of a disk: its `kind` is {0}, not `disk-profile`")]
    Kind(String),
    /// Another version's.
    #[error("has schema {0}, and this refit reads 1")]
    Schema(String),
    /// No samples.
    #[error("holds no samples (`samples_ns`)")]
    Empty,
}

/// The samples of a profile in nanoseconds, in the order of the file: at least one, each from 1 to 60 s.
///
/// # Errors
/// What is wrong with the file.
pub fn read(path: &Path) -> Result<Vec<u64>, ProfileProblem> {
    let file = open_regular(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => ProfileProblem::NotAFile,
        _ => ProfileProblem::Unreadable(error),
    })?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(ProfileProblem::Unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ProfileProblem::TooLong);
    }
    parse(&bytes)
}

/// The fields that matter.
#[derive(Deserialize)]
struct Profile {
    schema: Option<serde_json::Number>,
    kind: Option<String>,
    samples_ns: Option<Vec<Latency>>,
}

/// As [`read`], of the bytes of a file.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<u64>, ProfileProblem> {
    let text = std::str::from_utf8(bytes).map_err(|_| ProfileProblem::NotUtf8)?;
    let profile: Profile = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => ProfileProblem::CutShort(error),
        serde_json::error::Category::Data => ProfileProblem::Damaged(error),
        _ => ProfileProblem::NotJson(error),
    })?;
    if profile.kind.as_deref() != Some(KIND) {
        let kind = profile.kind.map(|kind| format!("`{}`", shortened(&kind)));
        return Err(ProfileProblem::Kind(
            kind.unwrap_or_else(|| "missing".to_owned()),
        ));
    }
    match profile.schema {
        Some(schema) if schema.as_u64() == Some(SCHEMA) => {}
        Some(schema) => return Err(ProfileProblem::Schema(schema.to_string())),
        None => return Err(ProfileProblem::Schema("none".to_owned())),
    }
    let samples = profile.samples_ns.unwrap_or_default();
    if samples.is_empty() {
        return Err(ProfileProblem::Empty);
    }
    Ok(samples.into_iter().map(|Latency(ns)| ns).collect())
}

/// Enough of a foreign text to recognise it, on one line.
fn shortened(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

/// Nanoseconds, from 1 to [`MAX_NS`].
struct Latency(u64);

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(LatencyVisitor)
    }
}

struct LatencyVisitor;

impl Visitor<'_> for LatencyVisitor {
    type Value = Latency;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number of nanoseconds from 1 to {MAX_NS} (60 s)")
    }

    fn visit_u64<E: de::Error>(self, ns: u64) -> Result<Latency, E> {
        if (1..=MAX_NS).contains(&ns) {
            Ok(Latency(ns))
        } else {
            Err(E::invalid_value(de::Unexpected::Unsigned(ns), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::disk::quantiles::of_samples;

    const GOOD: &str = r#"{"schema":1,"kind":"disk-profile","refit":"0.1.0","device":{"name":"vda"},"samples_ns":[812000,60000000000,1,950000]}"#;

    #[test]
    fn samples_keep_their_order() {
        let samples = parse(GOOD.as_bytes()).unwrap();
        assert_eq!(samples, [812_000, 60_000_000_000, 1, 950_000]);
    }

    #[test]
    fn each_fault_has_its_sentence() {
        let instead = |old: &str, new: &str| GOOD.replace(old, new);
        let nested = instead("\"vda\"", &("[".repeat(100_000) + &"]".repeat(100_000)));
        let number =
            "expected a whole number of nanoseconds from 1 to 60000000000 (60 s) at line 1";
        for (text, sentence) in [
            (
                String::new(),
                "is cut short: EOF while parsing a value at line 1 column 0",
            ),
            (GOOD[..GOOD.len() - 9].to_owned(), "is cut short: EOF"),
            ("[]".to_owned(), "is damaged: "),
            ("p50=4ms".to_owned(), "is not JSON: "),
            (
                instead("1,950000", "-5"),
                &format!("integer `-5`, {number}"),
            ),
            (instead("1,950000", "0"), &format!("integer `0`, {number}")),
            (
                instead("1,950000", "60000000001"),
                &format!("integer `60000000001`, {number}"),
            ),
            (
                instead("1,950000", "1e400"),
                "is not JSON: number out of range",
            ),
            (
                instead("1,950000", "1.5"),
                &format!("floating point `1.5`, {number}"),
            ),
            (
                instead("1,950000", "\"1\""),
                &format!("string \"1\", {number}"),
            ),
            (
                instead("812000,60000000000,1,950000", ""),
                "holds no samples (`samples_ns`)",
            ),
            (
                instead("samples_ns", "samples"),
                "holds no samples (`samples_ns`)",
            ),
            (
                instead("disk-profile", "compare"),
                "is not a profile of a disk: its `kind` is `compare`, not `disk-profile`",
            ),
            (
                instead("disk-profile", "\\n\\u0000"),
                "its `kind` is `\\n\\0`, not",
            ),
            (
                instead("kind", "sort"),
                "is not a profile of a disk: its `kind` is missing, not `disk-profile`",
            ),
            (
                instead("\"schema\":1", "\"schema\":2"),
                "has schema 2, and this refit reads 1",
            ),
            (
                instead("\"schema\":1,", ""),
                "has schema none, and this refit reads 1",
            ),
            (
                instead("\"refit\"", "\"kind\""),
                "is damaged: duplicate field `kind`",
            ),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(sentence), "{error}\nfor {text}");
        }
        // What does not matter may be nested as deep as it likes.
        assert_eq!(parse(nested.as_bytes()).unwrap().len(), 4);
        assert_eq!(
            parse(b"{\"a\":\xff}").unwrap_err().to_string(),
            "is not UTF-8"
        );
    }

    #[test]
    fn only_a_short_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let error_of = |path: &Path| read(path).unwrap_err().to_string();
        assert_eq!(error_of(dir.path()), "is not a regular file");
        assert_eq!(error_of(Path::new("/dev/zero")), "is not a regular file");
        assert!(error_of(&dir.path().join("none")).starts_with("cannot be read: No such file"));
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        assert_eq!(error_of(&pipe), "is not a regular file");
        let long = dir.path().join("long");
        File::create(&long).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(error_of(&long), "has more than 16 MiB");
        File::options()
            .write(true)
            .open(&long)
            .unwrap()
            .set_len(MAX_BYTES)
            .unwrap();
        assert!(error_of(&long).starts_with("is not JSON"));
    }

    /// xorshift64 (Marsaglia 2003).
    fn next(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state >> 32).unwrap()
    }

    #[test]
    fn a_damaged_profile_is_refused_or_in_bounds() {
        let pieces: [&[u8]; 12] = [
            b"-",
            b"0",
            b"9999999999999999999999",
            b"1e999",
            b"[",
            b"]",
            b"{",
            b"}",
            b"\"",
            b"null",
            b"\xff",
            b"\\u",
        ];
        let mut state = 0x5eed;
        let (mut read, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut bytes = GOOD.as_bytes().to_vec();
            for _ in 0..=next(&mut state) % 4 {
                let at = next(&mut state) % (bytes.len() + 1);
                let end = (at + next(&mut state) % 8).min(bytes.len());
                match next(&mut state) % 4 {
                    0 => bytes.truncate(at),
                    1 => drop(bytes.drain(at..end)),
                    2 => drop(bytes.splice(at..end, pieces[next(&mut state) % 12].to_vec())),
                    _ => bytes[at..end]
                        .iter_mut()
                        .for_each(|byte| *byte ^= 1 << (at % 8)),
                }
            }
            match parse(&bytes) {
                Ok(samples) => {
                    read += 1;
                    let table = of_samples(samples);
                    assert!(table.is_sorted() && table.iter().all(|ns| (1..=MAX_NS).contains(ns)));
                }
                Err(problem) => {
                    refused += 1;
                    assert!(!problem.to_string().contains('\n'));
                }
            }
        }
        assert!(
            read > 100 && refused > 100,
            "{read} read, {refused} refused"
        );
    }
}
