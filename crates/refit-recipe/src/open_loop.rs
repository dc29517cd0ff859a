//! An open loop: requests at their times, where `load.rate` is set.

use std::time::Duration;

use refit_load::Arrivals;

use crate::metrics::{Direction, LoadUnit};
use crate::records::{LoadMetricRecord, SeriesRecord};

/// How many requests are due in a second: `load.rate=200/s`.
pub(crate) const RATE_KNOB: &str = "rate";
/// How they follow each other: `load.arrivals=poisson`.
pub(crate) const ARRIVALS_KNOB: &str = "arrivals";

/// The highest rate.
const MOST: u32 = 1_000_000;
/// The most requests of a run: their times are kept.
pub(crate) const MOST_REQUESTS: u64 = 20_000_000;
/// How long requests are sent, unless the recipe has another time.
pub(crate) const LENGTH: Duration = Duration::from_secs(5);
/// How long in a check.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);
/// Connections, unless the recipe has another number.
pub(crate) const CONNECTIONS: u32 = 100;

/// Quantiles that are metrics: name, part, and the fewest independent requests, ln(0.05)/ln(part), of which one is slower than
/// the quantile in 95 % of cases.
const QUANTILES: [(&str, f64, u64); 5] = [
    ("p50", 0.5, 5),
    ("p90", 0.9, 29),
    ("p99", 0.99, 299),
    ("p99.9", 0.999, 2_995),
    ("max", 1.0, 1),
];

/// An open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenLoop {
    /// How many requests are due in a second.
    pub rate: u32,
    /// How they follow each other.
    pub arrivals: Arrivals,
    /// How many there are in a run.
    pub requests: u64,
}

impl OpenLoop {
    /// Its metrics: name, and the part of the requests that was answered within it.
    pub fn quantiles(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let requests = self.requests;
        let all = QUANTILES.into_iter();
        let told = all.filter(move |(_, _, fewest)| requests >= *fewest);
        told.map(|(name, part, _)| (name, part))
    }

    /// The metric that an answer is about: of the tail, as far as the requests tell of it.
    #[must_use]
    pub fn main(&self) -> &'static str {
        let mut names = self.quantiles().map(|(name, _)| name);
        names.find(|name| *name == "p99").unwrap_or("max")
    }

    pub(crate) fn metrics(self) -> Vec<LoadMetricRecord> {
        let about = |name: &str, part: f64| match name {
            "max" => "the longest time from when a request was due to its answer".to_owned(),
            _ => format!(
                "time from when a request was due to its answer, within which {} % of them were answered",
                part * 100.0
            ),
        };
        let metric = |(name, part): (&str, f64)| LoadMetricRecord {
            name: name.to_owned(),
            unit: LoadUnit::Nanoseconds,
            better: Direction::Less,
            about: about(name, part),
        };
        self.quantiles().map(metric).collect()
    }

    pub(crate) fn series(self) -> SeriesRecord {
        // Each further digit of the percentile is as far as the one before it.
        let at = |part: f64| match part {
            1.0 => self.requests.max(2) as f64,
            part => 1.0 / (1.0 - part),
        };
        let (metrics, at) = (self.quantiles())
            .map(|(name, part)| (name.to_owned(), at(part)))
            .unzip();
        SeriesRecord {
            title: "latency by percentile".to_owned(),
            metrics,
            at,
            named: true,
        }
    }
}

/// `200/s`, or `200`.
pub(crate) fn rate(text: &str) -> Option<u32> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let rate = number.parse().ok().filter(|_| is_plain)?;
    (1..=MOST).contains(&rate).then_some(rate)
}

/// How many requests are due within this time.
pub(crate) fn requests(rate: u32, length: Duration) -> u64 {
    ((f64::from(rate) * length.as_secs_f64()) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_in_a_second() {
        for (text, expected) in [
            ("200/s", Some(200)),
            ("200", Some(200)),
            ("1000000/s", Some(1_000_000)),
            ("1000001/s", None),
            ("0/s", None),
            ("+2", None),
            ("2.5/s", None),
            ("200/m", None),
            ("", None),
        ] {
            assert_eq!(rate(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_percentile_needs_requests_beyond_it() {
        let names = |requests| {
            let open = OpenLoop {
                rate: 1,
                arrivals: Arrivals::Poisson,
                requests,
            };
            (
                open.quantiles().map(|(name, _)| name).collect::<Vec<_>>(),
                open.main(),
            )
        };
        assert_eq!(names(298), (vec!["p50", "p90", "max"], "max"));
        assert_eq!(names(299), (vec!["p50", "p90", "p99", "max"], "p99"));
        assert_eq!(names(2_995).0, ["p50", "p90", "p99", "p99.9", "max"]);
    }
}
