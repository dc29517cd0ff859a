//! What a load printed: numbers by regular expression or JSON pointer, and its
//! last lines for messages.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use refit_run::printable;
use regex_lite::Regex;

/// Where a metric is found in a load's output.
#[derive(Clone, Debug)]
pub enum Source {
    /// The first group of the first match.
    Regex(Regex),
    /// JSON Pointer.
    Pointer(String),
}

/// A metric that is read from the load's output.
#[derive(Clone, Debug)]
pub struct LoadMetric {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub source: Source,
    /// From the recipe's unit to the stored one.
    pub factor: f64,
}

/// How many operations the load does.
#[derive(Clone, Debug)]
pub enum Work {
    /// This number; and the number in a check.
    Number(u64, u64),
    /// Its output names the number.
    Read(Regex),
}

/// Where the number of operations done so far is found.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The first group of the last match.
    pub regex: Regex,
    /// In the instance's directory; `None`: the output of the load.
    pub file: Option<String>,
}

impl Progress {
    /// The number in this text; 0 before anything is told.
    #[must_use]
    pub(crate) fn last(&self, text: &str) -> f64 {
        let last = self.regex.captures_iter(text).last();
        let number = last.and_then(|groups| groups.get(1)?.as_str().parse().ok());
        number.unwrap_or(0.0)
    }
}

/// Bytes of an output that a message shows.
const TAIL: u64 = 400;

/// The end of a file on one line, as `: …`; nothing for an empty one.
pub fn last_lines(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    shown(&String::from_utf8_lossy(&read().unwrap_or_default()))
}

fn shown(text: &str) -> String {
    // Its lines are one beside the other.
    match text.replace(['\n', '\t'], " ").trim() {
        "" => String::new(),
        text => format!(": {}", printable(text)),
    }
}

fn tail(text: &str) -> String {
    let start = text.len().saturating_sub(200);
    let start = (start..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    shown(&text[start..])
}

fn first_group<'t>(regex: &Regex, text: &'t str) -> Option<&'t str> {
    Some(regex.captures(text)?.get(1)?.as_str())
}

fn plain(regex: &Regex) -> &str {
    regex.as_str().trim_start_matches("(?m)")
}

/// How many operations the output names.
pub fn read_operations(regex: &Regex, text: &str) -> Result<u64, String> {
    let found = first_group(regex, text).and_then(|number| number.parse().ok());
    found.filter(|number| *number > 0).ok_or_else(|| {
        format!(
            "load.operations: `{}` finds no number in the output of load.command{}",
            plain(regex),
            tail(text)
        )
    })
}

/// Every metric; a run without one of them does not count.
pub fn read_metrics(metrics: &[LoadMetric], text: &str) -> Result<BTreeMap<String, f64>, String> {
    let json = metrics
        .iter()
        .any(|metric| matches!(metric.source, Source::Pointer(_)))
        .then(|| serde_json::from_str::<serde_json::Value>(text));
    metrics
        .iter()
        .map(|metric| {
            let key = format!("load.metrics.{}", metric.name);
            let value = match (&metric.source, &json) {
                (Source::Regex(regex), _) => first_group(regex, text)
                    .and_then(|number| number.parse::<f64>().ok())
                    .ok_or_else(|| format!("{key}: `{}` finds no number in the output of load.command{}", plain(regex), tail(text)))?,
                (Source::Pointer(pointer), Some(Ok(json))) => json
                    .pointer(pointer)
                    .and_then(serde_json::Value::as_f64)
                    .ok_or_else(|| format!("{key}: there is no number at `{pointer}` in the output of load.command{}", tail(text)))?,
                (Source::Pointer(_), _) => {
                    return Err(format!("{key}: the output of load.command is not JSON{}", tail(text)));
                }
            };
            if value.is_finite() && value >= 0.0 {
                Ok((metric.name.clone(), value * metric.factor))
            } else {
                Err(format!("{key}: invalid measurement {value}"))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_the_last_number_so_far() {
        let regex = Regex::new(r"(?m)^(\d+) served$").unwrap();
        let progress = Progress { regex, file: None };
        assert_eq!(progress.last(""), 0.0);
        assert_eq!(progress.last("10 served\nx\n20 served\n30 ser"), 20.0);
    }

    fn metric(source: Source) -> [LoadMetric; 1] {
        [LoadMetric {
            name: "p99".to_owned(),
            source,
            factor: 1e6,
        }]
    }

    #[test]
    fn numbers_are_read_from_text_and_from_json() {
        let regex = Regex::new(r"(?m)^p99 ([0-9.]+)").unwrap();
        let read = read_metrics(&metric(Source::Regex(regex.clone())), "p50 1\np99 2.5 ms\n");
        assert_eq!(read.unwrap()["p99"], 2.5e6);
        let read = read_metrics(
            &metric(Source::Pointer("/l/p99".to_owned())),
            r#"{"l":{"p99":3}}"#,
        );
        assert_eq!(read.unwrap()["p99"], 3e6);
        assert_eq!(
            read_operations(&Regex::new(r"(\d+) done").unwrap(), "x 30 done"),
            Ok(30)
        );
        let error = read_metrics(&metric(Source::Regex(regex)), "no such\nline").unwrap_err();
        assert!(
            error.contains("load.metrics.p99") && error.contains("no such line"),
            "{error}"
        );
        let error = read_metrics(&metric(Source::Pointer("/a".to_owned())), "text").unwrap_err();
        assert!(error.contains("not JSON"), "{error}");
    }
}
