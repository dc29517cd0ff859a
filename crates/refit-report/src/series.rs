//! Metrics that are read side by side, as a recipe asks for it.

use refit_lab::experiment::{Experiment, Role, SeriesRecord};
use refit_lab::{Comparison, Metric};

use crate::format;
use crate::values::{median, value};

/// One series as a table: a line for each variant, a column for each metric.
pub struct Series {
    /// What it is.
    pub title: String,
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// Each with its name, and one cell for each metric.
    pub lines: Vec<(String, Vec<Cell>)>,
}

/// What a variant has of a metric.
pub struct Cell {
    /// Its median.
    pub value: String,
    /// `−8.1 % [−9.0 %, −7.2 %]`; empty for the baseline.
    pub effect: String,
}

/// Variants that count and are shown: neither the hidden baseline nor one that is out.
pub fn variants(experiment: &Experiment) -> impl Iterator<Item = usize> {
    let all = experiment.variants.iter().enumerate();
    let shown =
        all.filter(|(_, variant)| variant.role != Role::Hidden && variant.disqualified.is_none());
    shown.map(|(index, _)| index)
}

/// Those of the recipe; none of a command.
pub fn all(experiment: &Experiment) -> &[SeriesRecord] {
    let recipe = experiment.recipe.as_ref();
    recipe.map_or(&[], |recipe| &recipe.series)
}

/// Every series; without runs that count there is nothing to tell.
pub fn tables(comparison: &Comparison) -> Vec<Series> {
    if comparison.experiment.runs.counted(0).next().is_none() {
        return Vec::new();
    }
    let all = all(&comparison.experiment).iter();
    all.map(|series| table(comparison, series)).collect()
}

fn table(comparison: &Comparison, series: &SeriesRecord) -> Series {
    let names = series.metrics.iter();
    let metrics: Vec<Metric> = names
        .filter_map(|name| comparison.experiment.metric(name))
        .collect();
    let line = |variant: usize| {
        let cells = metrics
            .iter()
            .map(|metric| cell(comparison, variant, metric));
        let name = comparison.experiment.variants[variant].name.clone();
        (name, cells.collect())
    };
    Series {
        title: series.title.clone(),
        metrics: metrics
            .iter()
            .map(|metric| metric.name.to_string())
            .collect(),
        lines: variants(&comparison.experiment).map(line).collect(),
    }
}

fn cell(comparison: &Comparison, variant: usize, metric: &Metric) -> Cell {
    let median = median(&comparison.experiment, variant, metric);
    let effect = comparison
        .effects
        .get(variant, &metric.name)
        .filter(|_| variant > 0);
    Cell {
        value: median.map_or("unknown".to_owned(), |median| {
            value(&comparison.experiment, metric, median)
        }),
        effect: effect.map_or(String::new(), |effect| {
            let change = format::percent(effect.change);
            format!("{change} {}", format::interval(effect.interval))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_lab::experiment::Disqualified;

    use crate::{markdown, sample, terminal};

    #[test]
    fn a_series_is_told_of_every_variant_with_its_intervals() {
        let mut comparison = sample::service();
        assert!(tables(&comparison).is_empty());
        comparison.experiment.recipe.as_mut().unwrap().series = vec![SeriesRecord {
            title: "how | long".to_owned(),
            metrics: vec!["p99".to_owned(), "pss".to_owned(), "gone".to_owned()],
            at: Vec::new(),
            named: false,
        }];
        let tables = tables(&comparison);
        assert_eq!(tables[0].metrics, ["p99", "pss"]);
        let (name, cells) = &tables[0].lines[0];
        assert_eq!(
            (name.as_str(), cells[0].value.as_str()),
            ("baseline", "23.4 ms")
        );
        assert_eq!(cells[0].effect, "");
        let (_, cells) = &tables[0].lines[1];
        assert!(cells[0].effect.ends_with(" %]"), "{}", cells[0].effect);

        let text = markdown(&comparison);
        assert!(
            text.contains("| how \\| long | p99 | pss |\n|:--|--:|--:|\n"),
            "{text}"
        );
        assert!(text.contains("| `baseline` | 23.4 ms | "), "{text}");
        let style = |width| crate::Style {
            width,
            colour: false,
        };
        let text = terminal(&comparison, &style(300));
        assert!(
            text.contains("how | long, p99: baseline 23.4 ms · "),
            "{text}"
        );
        let text = terminal(&comparison, &style(60));
        let folded = "how | long, pss: baseline 44 MiB · sync@exe:cleanup=off\n  44 MiB +0.4 %";
        assert!(text.contains(folded), "{text}");

        comparison.experiment.variants[1].disqualified =
            Some(Disqualified::Failed("exit code 1".to_owned()));
        let left = super::tables(&comparison);
        assert_eq!(left[0].lines.len(), tables[0].lines.len() - 1);
    }
}
