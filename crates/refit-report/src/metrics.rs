//! Metrics for a monitoring system, as text: the Prometheus text format 0.0.4, which node_exporter's textfile collector
//! and promtool read, or OpenMetrics 1.0, for a scraper that asks for it.
//!
//! Promises: no time stamps, which the textfile collector refuses; what is unknown has no sample; no two samples have the
//! same name and labels; the values of labels are names of others, and cannot end a line or a label.

mod status;
mod watch;

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use refit_run::printable;

pub use status::of_status;
pub use watch::WatchMetrics;

/// How a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows while refit runs, and begins at 0 again.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Samples with the same name.
#[derive(Debug)]
pub struct Family {
    /// Its name in OpenMetrics: that of a counter is without the `_total` of its samples.
    pub name: &'static str,
    /// How it changes.
    pub kind: Kind,
    /// The unit, with which the name ends; empty for a plain number.
    pub unit: &'static str,
    /// What it is, on one line.
    pub help: &'static str,
}

impl Family {
    const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Family {
        Family {
            name,
            kind: Kind::Counter,
            unit,
            help,
        }
    }

    const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Family {
        Family {
            kind: Kind::Gauge,
            ..Family::counter(name, unit, help)
        }
    }

    /// The name of its samples.
    #[must_use]
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge => self.name.to_owned(),
        }
    }
}

/// The format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4. The lines of OpenMetrics for units and for the end are comments in it.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// Labels as they stand in a text, made once for many samples.
#[derive(Debug, Default)]
struct Labels(String);

impl Labels {
    fn of(labels: &[(&str, &str)]) -> Labels {
        let labels = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        Labels(format!("{{{}}}", labels.collect::<Vec<_>>().join(",")))
    }
}

/// Samples of a family.
#[derive(Debug)]
struct Samples {
    family: &'static Family,
    name: String,
    lines: String,
}

/// Samples, by family.
#[derive(Debug)]
pub struct Metrics(Vec<Samples>);

impl Metrics {
    /// None yet of these families, in whose order they will be.
    fn of(families: &[&'static Family]) -> Metrics {
        let samples = families.iter().map(|family| Samples {
            family,
            name: family.sample_name(),
            lines: String::new(),
        });
        Metrics(samples.collect())
    }

    /// Adds a sample. What is not a finite number is unknown, and is left out.
    fn add(&mut self, family: &'static Family, labels: &Labels, value: f64) {
        if !value.is_finite() {
            return;
        }
        let mut all = self.0.iter_mut();
        let samples = all
            .find(|one| one.family.name == family.name)
            .expect("it is in the table of those that tell it");
        samples.lines.push_str(&samples.name);
        samples.lines.push_str(&labels.0);
        writeln!(samples.lines, " {value}").expect("a String takes all");
    }

    /// Every metric that has a value, as text.
    #[must_use]
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        let told = self.0.iter().filter(|one| !one.lines.is_empty());
        for Samples {
            family,
            name,
            lines,
        } in told
        {
            let name = match format {
                Format::Prometheus => name,
                Format::OpenMetrics => family.name,
            };
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            text += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n", family.help);
            if !family.unit.is_empty() {
                text += &format!("# UNIT {name} {}\n", family.unit);
            }
            text += lines;
        }
        text + "# EOF\n"
    }
}

/// Characters of a label's value: no path that the kernel takes is longer.
const LONGEST: usize = 4096;

/// Of a longer one, those kept at its end.
const AT_THE_END: usize = 512;

/// The value of a label; one that is too long is cut, and tells how much was left out.
pub(crate) fn escaped(value: &str) -> String {
    let length = value.chars().count();
    let cut = (length > LONGEST).then(|| {
        let head: String = value.chars().take(LONGEST - AT_THE_END).collect();
        let tail: String = value.chars().skip(length - AT_THE_END).collect();
        // Values that differ only in what is left out stay two.
        let mut hash = DefaultHasher::new();
        value.hash(&mut hash);
        let left_out = length - LONGEST;
        format!(
            "{head} … ({left_out} characters left out, {:x}) … {tail}",
            hash.finish()
        )
    });
    // It has no line feed any more, the third character that would have to be escaped.
    let value = printable(cut.as_deref().unwrap_or(value));
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    static WAIT: Family = Family::counter("refit_wait_seconds", "seconds", "Time that was waited.");
    static PLAIN: Family = Family::gauge("refit_plain", "", "A number.");

    fn metrics() -> Metrics {
        let mut metrics = Metrics::of(&[&WAIT, &PLAIN]);
        metrics.add(&WAIT, &Labels::of(&[("service", "a")]), 0.25);
        metrics.add(&PLAIN, &Labels::default(), 1.0);
        metrics.add(
            &WAIT,
            &Labels::of(&[("service", "b"), ("layer", "file")]),
            3e9,
        );
        metrics
    }

    #[test]
    fn a_value_of_any_length_is_cut_and_told_and_two_stay_two() {
        let long = |middle: &str| format!("{0}{middle}{0}", "a\u{202e}\"".repeat(1_000_000));
        let [one, other] = ["1", "2"].map(|middle| escaped(&long(middle)));
        assert!(one.len() < 16 * LONGEST, "{}", one.len());
        assert!(
            one.contains("… (5995905 characters left out, "),
            "{}",
            &one[one.len() / 2..]
        );
        assert_ne!(one, other);
        let path = "/é".repeat(LONGEST / 2);
        assert_eq!(escaped(&path), path);
    }

    #[test]
    fn samples_stand_below_their_family_and_the_end_is_marked() {
        let expected = "\
# HELP refit_wait_seconds_total Time that was waited.
# TYPE refit_wait_seconds_total counter
# UNIT refit_wait_seconds_total seconds
refit_wait_seconds_total{service=\"a\"} 0.25
refit_wait_seconds_total{service=\"b\",layer=\"file\"} 3000000000
# HELP refit_plain A number.
# TYPE refit_plain gauge
refit_plain 1
# EOF
";
        assert_eq!(metrics().text(Format::Prometheus), expected);
        let text = metrics().text(Format::OpenMetrics);
        assert!(
            text.starts_with("# HELP refit_wait_seconds Time"),
            "a counter's family has no _total: {text}"
        );
        assert!(text.contains("# UNIT refit_wait_seconds seconds\nrefit_wait_seconds_total{"));
    }

    #[test]
    fn no_name_ends_a_label_or_a_line() {
        let mut metrics = Metrics::of(&[&WAIT, &PLAIN]);
        let hostile = "a\"} 7\nrefit_plain{x=\"\\\u{1b}[2J\r\u{2028}";
        metrics.add(&PLAIN, &Labels::of(&[("service", hostile)]), 1.0);
        let text = metrics.text(Format::Prometheus);
        let line = text.lines().nth(2).unwrap();
        let expected =
            r#"refit_plain{service="a\"} 7\\nrefit_plain{x=\"\\\\u{1b}[2J\\r\\u{2028}"} 1"#;
        assert_eq!(line, expected);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut metrics = Metrics::of(&[&WAIT, &PLAIN]);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            metrics.add(&PLAIN, &Labels::default(), value);
        }
        assert_eq!(metrics.text(Format::Prometheus), "# EOF\n");
    }
    /// The names in a text.
    fn names(text: &str) -> BTreeSet<&str> {
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        let words = text.split(|c| !is_part(c));
        let mut names: BTreeSet<&str> = words.filter(|word| word.starts_with("refit_")).collect();
        names.remove("refit_");
        names
    }

    #[test]
    fn each_family_keeps_the_rules_of_both_formats() {
        let all: Vec<&Family> = [&watch::FAMILIES[..], &status::FAMILIES].concat();
        let distinct: BTreeSet<String> = all.iter().map(|family| family.sample_name()).collect();
        // Both texts may lie in one directory, and a name in two files is refused there.
        assert_eq!(distinct.len(), all.len());
        for family in all {
            let Family {
                name, unit, help, ..
            } = family;
            assert!(
                unit.is_empty() || name.ends_with(&format!("_{unit}")),
                "{name}"
            );
            assert!(
                !name.ends_with("_total") && name.starts_with("refit_"),
                "{name}"
            );
            assert!(
                !help.contains(['\\', '"', '\n']) && help.ends_with(['.', '0', '1']),
                "{help}"
            );
        }
    }

    #[test]
    fn the_manual_and_the_dashboard_name_what_there_is() {
        let all = [&watch::FAMILIES[..], &status::FAMILIES].concat();
        let known: BTreeSet<String> = all.iter().map(|family| family.sample_name()).collect();
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let manual = include_str!("../../../docs/metrics.md");
        assert_eq!(names(manual), known);
        let dashboard = include_str!("../../../docs/grafana.json");
        serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
        let shown = names(dashboard);
        assert!(shown.len() > 5 && shown.is_subset(&known), "{shown:?}");
    }
}
