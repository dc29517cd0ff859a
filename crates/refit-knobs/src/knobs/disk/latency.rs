//! How long a flush takes: `8ms`, or a distribution by some of its percentiles: `p50=4ms,p99=30ms`.

use std::fmt;

use super::decimal;
use crate::error::SettingError;
use crate::word::Word;

/// Units with their size in nanoseconds and its decimals, the greatest first.
const UNITS: [(&str, u64, u32); 4] = [
    ("s", 1_000_000_000, 9),
    ("ms", 1_000_000, 6),
    ("us", 1_000, 3),
    ("ns", 1, 0),
];

/// What others call them.
const ALIASES: [(&str, &str); 14] = [
    ("", "ms"),
    ("µs", "us"),
    ("μs", "us"),
    ("usec", "us"),
    ("usecs", "us"),
    ("micros", "us"),
    ("msec", "ms"),
    ("msecs", "ms"),
    ("millis", "ms"),
    ("nsec", "ns"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
];

/// No disk that works takes longer; Linux gives up on a SCSI command after 30 s, and tries again.
const MAX_NS: u64 = 60 * 1_000_000_000;

/// What a latency has to be.
pub(super) const EXPECTED: &str =
    "a latency of more than 0 and at most 60s, such as `8ms` or `500us`";

/// In nanoseconds.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let &(_, _, decimals) = UNITS.iter().find(|(name, ..)| *name == unit)?;
    decimal::parse(number, decimals).filter(|ns| (1..=MAX_NS).contains(ns))
}

/// In the greatest unit of which it is at least one.
pub(super) fn print(ns: u64) -> String {
    let unit = UNITS.iter().find(|(_, size, _)| *size <= ns);
    let (name, _, decimals) = unit.copied().unwrap_or(("ns", 1, 0));
    decimal::print(ns, decimals) + name
}

/// The latency that was most likely meant: another spelling of the unit, or none.
pub(super) fn meant(text: &str) -> Option<String> {
    let text = text.to_lowercase().replace([' ', '_'], "");
    let (number, unit) = split(&text);
    let known = ALIASES.iter().find(|(alias, _)| *alias == unit);
    let unit = known.map_or(unit, |(_, unit)| unit);
    parse(&format!("{number}{unit}")).map(print)
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    text.split_at(end.unwrap_or(text.len()))
}

const EXPECTED_NAME: &str =
    "a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`";
const EXAMPLE: &str = "p50=4ms,p99=30ms";

/// Hundredths of a percent and nanoseconds, both in the order in which they rise.
pub(super) fn parse_percentiles(word: &Word) -> Result<Vec<(u32, u64)>, SettingError> {
    let parts: Vec<&str> = word.value.split(',').collect();
    // A mended part may leave others to be mended; each is repaired for good.
    let with = |nth: usize, part: &str| {
        let mut parts = parts.clone();
        parts[nth] = part;
        Some(parts.join(","))
    };
    let mut points: Vec<(u32, u64)> = Vec::new();
    for (nth, &part) in parts.iter().enumerate() {
        let bad = |expected: &str, meant: Option<String>| {
            let meant = meant.and_then(|part| with(nth, &part));
            word.bad_part(part, expected, meant, EXAMPLE)
        };
        let Some((name, value)) = part.split_once('=') else {
            // `8ms,p99=30ms`
            let median = parse(part).filter(|_| nth == 0);
            let median = median.map(|ns| format!("p50={}", print(ns)));
            return Err(bad(EXPECTED_NAME, median));
        };
        let percentile = percentile(name).ok_or_else(|| bad(EXPECTED_NAME, None))?;
        let ns = parse(value).ok_or_else(|| {
            let meant = meant(value).map(|latency| format!("{name}={latency}"));
            bad(EXPECTED, meant)
        })?;
        match points.last() {
            Some(&(before, _)) if percentile <= before => {
                return Err(bad("percentiles that rise from one to the next", None));
            }
            Some(&(_, before)) if ns < before => {
                return Err(bad(
                    "a latency that is not less than that of the percentile before",
                    None,
                ));
            }
            _ => points.push((percentile, ns)),
        }
    }
    match points.as_slice() {
        [(_, ns)] => Err(word.bad_part(
            word.value,
            "at least two percentiles, or one latency for all flushes",
            Some(print(*ns)),
            EXAMPLE,
        )),
        _ => Ok(points),
    }
}

/// `p99.9` is 9990.
fn percentile(name: &str) -> Option<u32> {
    let number = decimal::parse(name.strip_prefix('p')?, 2)?;
    u32::try_from(number)
        .ok()
        .filter(|number| (100..=9999).contains(number))
}

/// Writes what [`parse_percentiles`] reads as these points.
pub(super) fn print_percentiles(points: &[(u32, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (nth, &(percentile, ns)) in points.iter().enumerate() {
        let before = if nth == 0 { "" } else { "," };
        let percentile = decimal::print(percentile.into(), 2);
        write!(f, "{before}p{percentile}={}", print(ns))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_prints_in_the_unit_that_suits_it() {
        for (text, ns, printed) in [
            ("8ms", 8_000_000, "8ms"),
            ("1500us", 1_500_000, "1.5ms"),
            ("0.5ms", 500_000, "500us"),
            ("60s", 60_000_000_000, "60s"),
            ("0.000001ms", 1, "1ns"),
            ("1000ns", 1000, "1us"),
        ] {
            assert_eq!(parse(text), Some(ns), "{text}");
            assert_eq!(print(ns), printed);
        }
        for text in [
            "0ms", "60.1s", "8", "ms", "8m", "8 ms", "-8ms", "0.5ns", "8µs",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn other_spellings_of_a_unit_are_known() {
        for (text, latency) in [
            ("8", Some("8ms")),
            ("8 MS", Some("8ms")),
            ("500µs", Some("500us")),
            ("2sec", Some("2s")),
            ("0", None),
            ("ms", None),
            ("1m", None),
        ] {
            assert_eq!(meant(text).as_deref(), latency, "{text}");
        }
    }
}
