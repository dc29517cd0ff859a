//! Every run as a line of comma-separated values (RFC 4180, with a header).

use refit_lab::experiment::{Experiment, Outcome, Role, RunRecord};
use refit_lab::{Comparison, Metric};
use refit_run::metric::Unit;

use refit_run::printable;

use crate::values::{is_unseen, median};

/// One row for each run, in the order of the runs, those of the confirmation
/// last. What a run does not have, or nobody could see, is empty.
#[must_use]
pub fn csv(comparison: &Comparison) -> String {
    let fixed = [
        "variant",
        "role",
        "pair",
        "round",
        "slot",
        "warmup",
        "confirmation",
        "at_s",
        "failure",
        "exit",
        "ratio",
    ];
    let metrics = comparison.experiment.metrics();
    let titles = fixed.into_iter().map(str::to_owned);
    let mut lines = vec![line(titles.chain(metrics.iter().map(column)))];
    let runs = comparison.experiment.runs.iter();
    lines.extend(runs.map(|run| row(&comparison.experiment, &metrics, run, false)));
    if let Some(again) = &comparison.confirmation {
        let runs = again.experiment.runs.iter();
        lines.extend(runs.map(|run| row(&again.experiment, &metrics, run, true)));
    }
    lines.concat()
}

/// A metric's name with its unit: `wall_ns`.
fn column(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Nanoseconds => "_ns",
        Unit::Microseconds => "_us",
        Unit::Bytes => "_bytes",
        Unit::Count => "",
        Unit::PerSecond => "_per_second",
        Unit::Percent => "_percent",
    };
    metric.name.replace('-', "_") + unit
}

fn row(
    experiment: &Experiment,
    metrics: &[Metric],
    record: &RunRecord,
    confirmation: bool,
) -> String {
    let variant = experiment.variants.get(record.variant);
    let role = match variant.map(|variant| variant.role) {
        Some(Role::Baseline) => "baseline",
        Some(Role::Candidate) => "candidate",
        Some(Role::Bare) => "bare",
        Some(Role::Hidden) => "hidden",
        None => "",
    };
    let exit = match record.run.exit {
        Outcome::Code(code) => code.to_string(),
        Outcome::Signal(signal) => format!("signal {signal}"),
    };
    let fixed = [
        variant.map_or(String::new(), |variant| variant.name.clone()),
        role.to_owned(),
        record.pair.to_string(),
        record.round.to_string(),
        record.slot.to_string(),
        record.warmup.to_string(),
        confirmation.to_string(),
        format!("{:.3}", record.at_s),
        record.failure.clone().unwrap_or_default(),
        exit,
        ratio(experiment, record).map_or(String::new(), |ratio| format!("{ratio:.6}")),
    ];
    let seen = |metric: &&Metric| !is_unseen(experiment, record.variant, metric);
    let metrics = metrics.iter().map(|metric| {
        let value = Some(metric)
            .filter(seen)
            .and_then(|metric| metric.of(record));
        value.map_or(String::new(), |value| value.to_string())
    });
    line(fixed.into_iter().chain(metrics))
}

/// Of the run's main metric to the baseline's median.
fn ratio(experiment: &Experiment, record: &RunRecord) -> Option<f64> {
    let metric = experiment.main_metric();
    let base = median(experiment, 0, &metric).filter(|base| *base > 0.0)?;
    Some(metric.of(record)? / base)
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    fields.join(",") + "\n"
}

/// One field. A program that opens the file would run text that begins like a formula:
/// an apostrophe before it says that it is text. Numbers stay numbers.
fn quoted(field: &str) -> String {
    let field = printable(field);
    let is_formula = field.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠'])
        && field.parse::<f64>().is_err();
    let text = if is_formula { "'" } else { "" }.to_owned() + &field;
    if text.contains([',', '"']) || text != field {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_run_has_a_row_with_every_metric() {
        let mut comparison = sample::experiment();
        comparison.confirmation = Some(Box::new(sample::confirmation()));
        let text = csv(&comparison);
        let lines: Vec<&str> = text.lines().collect();
        let head: Vec<&str> = lines[0].split(',').collect();
        let first: Vec<&str> = lines[1].split(',').collect();
        let of = |column: &str| first[head.iter().position(|title| *title == column).unwrap()];
        assert_eq!(
            head[..13].join(","),
            "variant,role,pair,round,slot,warmup,confirmation,at_s,failure,exit,ratio,wall_ns,cpu_ns"
        );
        assert_eq!(
            first[..13].join(","),
            "malloc=jemalloc,candidate,0,0,0,true,false,0.000,,0,1.050781,433200630,120000000"
        );
        let columns = [
            "user_ns",
            "max_rss_bytes",
            "minor_faults",
            "psi_cpu_us",
            "syncs",
        ];
        assert_eq!(columns.map(of), ["90000000", "46137344", "9000", "", "812"]);
        let again = comparison
            .confirmation
            .as_ref()
            .map_or(0, |again| again.experiment.runs.len());
        assert!(comparison.experiment.runs.len() > 100 && again > 10);
        assert_eq!(lines.len(), 1 + comparison.experiment.runs.len() + again);
        for line in &lines {
            assert_eq!(
                line.matches(',').count(),
                10 + comparison.experiment.metrics().len(),
                "{line}"
            );
        }
        let bare = lines.iter().find(|line| line.starts_with("bare,")).unwrap();
        let syncs = head.iter().position(|title| *title == "syncs").unwrap();
        assert_eq!(bare.split(',').nth(syncs), Some(""), "{bare}");
    }

    #[test]
    fn a_service_has_the_columns_of_its_load() {
        let text = csv(&sample::service());
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].contains(",exit,ratio,rate_per_second,p99_ns,ready_ns,cpu_ns,written_bytes,"),
            "{}",
            lines[0]
        );
        let off = lines.iter().find(|line| line.starts_with("sync@exe:"));
        assert!(off.unwrap().contains(",9100000,310000000,1400000000,"));
    }

    #[test]
    fn commas_quotes_and_lines_stay_within_their_field() {
        assert_eq!(quoted("env.A=1,2"), "\"env.A=1,2\"");
        assert_eq!(quoted("said \"no\"\n"), "\"said \"\"no\"\"\\n\"");
        assert_eq!(quoted("a\u{1b}[2J\u{202e}"), r"a\u{1b}[2J\u{202e}");
        assert_eq!(quoted("exit code 1"), "exit code 1");
    }

    #[test]
    fn no_text_is_a_formula_and_every_number_is_a_number() {
        for (field, cell) in [
            ("=1+1", "\"'=1+1\""),
            ("@SUM(A1,\"x\")", "\"'@SUM(A1,\"\"x\"\")\""),
            ("-cmd", "\"'-cmd\""),
            ("-1.2", "-1.2"),
            ("+3e9", "+3e9"),
            ("sync=off", "sync=off"),
        ] {
            assert_eq!(quoted(field), cell);
        }
    }
}
