//! How long a flush takes: `8ms`.

use super::decimal;

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
