//! How a recipe writes times and sizes.

use std::time::Duration;

use serde::Deserialize;

/// as 90s, 3m or 500ms; more than nothing
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(extend(
    "pattern" = r"^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*(ms|s|m|min|h)?\s*$",
    "not" = { "pattern": r"^\s*\+?[0.]+([eE][+-]?[0-9]+)?\s*(ms|s|m|min|h)?\s*$" },
)))]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Time, String> {
        let time = parse_time(&text);
        time.map(Time)
            .ok_or_else(|| format!("invalid time `{text}`; write it as 90s, 3m or 500ms"))
    }
}

/// Reads `90s`, `3m`, `500ms`.
#[must_use]
pub fn parse_time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] = [
        ("ms", 1e-3),
        ("min", 60.0),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("", 1.0),
    ];
    UNITS
        .iter()
        .find_map(|(unit, seconds)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok()
        })
        .filter(|time| !time.is_zero())
}

/// as 512M or 2G: a multiple of 4096 bytes, without a unit in bytes
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = r"^[0-9]+[KMG]?$")))]
pub struct Size(pub u64);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Size, String> {
        parse_size(&text).map(Size)
    }
}

/// Reads `512M` or `2G`.
///
/// # Errors
/// What to write.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes > 0 && bytes % 4096 == 0)
        .ok_or_else(|| format!("invalid size {text:?}; write it as 512M or 2G"))
}
