//! Flushes that fail: `fail:EIO,every=100`.

use std::fmt;

use super::decimal;
use crate::error::SettingError;
use crate::knobs::choice::one_of;
use crate::launch::When;
use crate::nearest::{Known, nearest};
use crate::word::Word;

/// Errors of fsync(2) and msync(2) that come from a disk, by name and number (asm-generic/errno.h, as on x86-64 and
/// AArch64), and what others call them.
const ERRORS: [(&str, i32, &[&str]); 4] = [
    ("EIO", 5, &["5", "io", "error"]),
    ("ENOSPC", 28, &["28", "full", "nospace", "enospace"]),
    ("EDQUOT", 122, &["122", "quota", "equota"]),
    ("EROFS", 30, &["30", "readonly", "ro"]),
];

const OPTIONS: [Known; 3] = [
    ("every", &["nth", "each", "interval"]),
    ("after", &["from", "skip", "first"]),
    ("p", &["prob", "probability", "chance", "rate"]),
];

const EXPECTED_OPTION: &str = "`every=N`, `after=N` or `p=0.01`";
const EXAMPLE: &str = "fail:EIO,every=100";

/// Decimals of a chance: it is counted in millionths.
const DECIMALS: u32 = 6;

/// Number and name of the error, and which flushes it is for, from what follows `fail:`.
pub(super) fn parse(word: &Word, text: &str) -> Result<((i32, &'static str), When), SettingError> {
    let (name, option) = match text.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (text, None),
    };
    let bad = |part: &str, expected: &str, meant: Option<String>| {
        word.bad_part(
            part,
            expected,
            meant.map(|text| format!("fail:{text}")),
            EXAMPLE,
        )
    };
    let Some((name, number, _)) = ERRORS.iter().find(|(known, ..)| *known == name) else {
        let known = ERRORS.iter().map(|(name, _, aliases)| (*name, *aliases));
        let meant = nearest(name, known).map(|name| match option {
            Some(option) => format!("{name},{option}"),
            None => name.to_owned(),
        });
        let names = ERRORS.map(|(name, ..)| name);
        let expected = format!("an error that a disk gives fsync(2): {}", one_of(&names));
        return Err(bad(&format!("fail:{name}"), &expected, meant));
    };
    let when = match option {
        None => When::Always,
        Some(option) => parse_when(option).map_err(|(expected, meant)| {
            let meant = meant.map(|option| format!("{name},{option}"));
            bad(option, expected, meant)
        })?,
    };
    Ok(((*number, name), when))
}

/// Or what was expected, and what was meant.
fn parse_when(option: &str) -> Result<When, (&'static str, Option<String>)> {
    if let Some((first, _)) = option.split_once(',') {
        let first = Some(first).filter(|first| parse_when(first).is_ok());
        return Err(("only one of them", first.map(str::to_owned)));
    }
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let count = || {
        let expected = "a whole number of 1 or more, such as `every=100`";
        decimal::parse(value, 0)
            .filter(|count| *count > 0)
            .ok_or((expected, None))
    };
    match name {
        "every" => count().map(When::Every),
        "after" => count().map(When::After),
        "p" => chance(value).map(When::Chance).ok_or_else(|| {
            // `p=5`
            let meant = Some(format!("{value}%")).filter(|value| chance(value).is_some());
            let expected = "a chance from 0.000001 to 1, such as `p=0.01` or `p=1%`";
            (expected, meant.map(|value| format!("p={value}")))
        }),
        _ => {
            let meant = nearest(name, OPTIONS.into_iter());
            let meant = meant.map(|name| format!("{name}={value}"));
            Err((EXPECTED_OPTION, meant))
        }
    }
}

/// In millionths; `1%` is 10,000 of them.
fn chance(text: &str) -> Option<u32> {
    let millionths = match text.strip_suffix('%') {
        Some(percent) => decimal::parse(percent, DECIMALS - 2),
        None => decimal::parse(text, DECIMALS),
    };
    u32::try_from(millionths?)
        .ok()
        .filter(|millionths| (1..=1_000_000).contains(millionths))
}

/// Writes what [`parse`] reads as this, `fail:` included.
pub(super) fn print(error: &str, when: When, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "fail:{error}")?;
    match when {
        When::Always => Ok(()),
        When::Every(count) => write!(f, ",every={count}"),
        When::After(count) => write!(f, ",after={count}"),
        When::Chance(millionths) => {
            write!(f, ",p={}", decimal::print(millionths.into(), DECIMALS))
        }
    }
}
