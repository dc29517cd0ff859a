//! A distribution of latencies by some of its percentiles: `p50=4ms,p99=30ms`.

use std::fmt;

use super::{BadPart, decimal, latency};

const EXPECTED_NAME: &str =
    "a percentile from `p1` to `p99.99` and its latency, such as `p99=30ms`";
const EXAMPLE: &str = "p50=4ms,p99=30ms";

/// Hundredths of a percent and nanoseconds, both in the order in which they rise.
pub(super) fn parse(text: &str) -> Result<Vec<(u32, u64)>, BadPart> {
    let parts: Vec<&str> = text.split(',').collect();
    // A mended part may leave others to be mended; each is repaired for good.
    let with = |nth: usize, part: &str| {
        let mut parts = parts.clone();
        parts[nth] = part;
        Some(parts.join(","))
    };
    let mut points: Vec<(u32, u64)> = Vec::new();
    for (nth, &part) in parts.iter().enumerate() {
        let bad = |expected: &str, meant: Option<String>| BadPart {
            part: part.to_owned(),
            expected: expected.to_owned(),
            meant: meant.and_then(|part| with(nth, &part)),
            example: EXAMPLE,
        };
        let Some((name, value)) = part.split_once('=') else {
            // `8ms,p99=30ms`
            let median = latency::parse(part).filter(|_| nth == 0);
            let median = median.map(|ns| format!("p50={}", latency::print(ns)));
            return Err(bad(EXPECTED_NAME, median));
        };
        let percentile = percentile(name).ok_or_else(|| bad(EXPECTED_NAME, None))?;
        let ns = latency::parse(value).ok_or_else(|| {
            let meant = latency::meant(value).map(|latency| format!("{name}={latency}"));
            bad(latency::EXPECTED, meant)
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
        [(_, ns)] => Err(BadPart {
            part: text.to_owned(),
            expected: "at least two percentiles, or one latency for all flushes".to_owned(),
            meant: Some(latency::print(*ns)),
            example: EXAMPLE,
        }),
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

/// Writes what [`parse`] reads as these points.
pub(super) fn print(points: &[(u32, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (nth, &(percentile, ns)) in points.iter().enumerate() {
        let before = if nth == 0 { "" } else { "," };
        let percentile = decimal::print(percentile.into(), 2);
        write!(f, "{before}p{percentile}={}", latency::print(ns))?;
    }
    Ok(())
}
