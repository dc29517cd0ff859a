//! Metrics for a monitoring system, as text: the Prometheus text format 0.0.4, which node_exporter's textfile collector
//! and promtool read, or OpenMetrics 1.0, for a scraper that asks for it.
//!
//! Promises: no time stamps, which the textfile collector refuses; what is unknown has no sample; no two samples have the
//! same name and labels; the values of labels are names of others, and cannot end a line or a label.

mod watch;

use refit_run::printable;

pub use watch::{WATCH, WatchMetrics};

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

/// Samples, by family.
#[derive(Debug, Default)]
pub struct Metrics(Vec<(&'static Family, Vec<String>)>);

impl Metrics {
    /// Adds a sample. What is not a finite number is unknown, and is left out.
    fn add(&mut self, family: &'static Family, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let line = match labels.is_empty() {
            true => format!("{} {value}\n", family.sample_name()),
            false => format!("{}{{{}}} {value}\n", family.sample_name(), labels.join(",")),
        };
        match self.0.iter_mut().find(|(of, _)| of.name == family.name) {
            Some((_, lines)) => lines.push(line),
            None => self.0.push((family, vec![line])),
        }
    }

    /// All of them.
    #[must_use]
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        for (family, lines) in &self.0 {
            let name = match format {
                Format::Prometheus => family.sample_name(),
                Format::OpenMetrics => family.name.to_owned(),
            };
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            text += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n", family.help);
            if !family.unit.is_empty() {
                text += &format!("# UNIT {name} {}\n", family.unit);
            }
            text.extend(lines.iter().map(String::as_str));
        }
        text + "# EOF\n"
    }
}

/// The value of a label.
fn escaped(value: &str) -> String {
    // It has no line feed any more, the third character that would have to be escaped.
    printable(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    static WAIT: Family = Family::counter("refit_wait_seconds", "seconds", "Time that was waited.");
    static PLAIN: Family = Family::gauge("refit_plain", "", "A number.");

    fn metrics() -> Metrics {
        let mut metrics = Metrics::default();
        metrics.add(&WAIT, &[("service", "a")], 0.25);
        metrics.add(&PLAIN, &[], 1.0);
        metrics.add(&WAIT, &[("service", "b"), ("layer", "file")], 3e9);
        metrics
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
        let mut metrics = Metrics::default();
        let hostile = "a\"} 7\nrefit_plain{x=\"\\\u{1b}[2J\r\u{2028}";
        metrics.add(&PLAIN, &[("service", hostile)], 1.0);
        let text = metrics.text(Format::Prometheus);
        let line = text.lines().nth(2).unwrap();
        let expected =
            r#"refit_plain{service="a\"} 7\\nrefit_plain{x=\"\\\\u{1b}[2J\\r\\u{2028}"} 1"#;
        assert_eq!(line, expected);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut metrics = Metrics::default();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            metrics.add(&PLAIN, &[], value);
        }
        assert_eq!(metrics.text(Format::Prometheus), "# EOF\n");
    }
}
