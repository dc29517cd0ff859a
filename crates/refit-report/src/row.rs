//! A variant as every format shows it.

use refit_lab::experiment::{Class, Experiment, Role, VariantRecord};
use refit_lab::{Comparison, EffectRecord, Metric, Verdict};
use refit_run::metric::{OF_LOADS, built_in};
use refit_stats::OVERALL_ALPHA;

use crate::bar::Bars;
use crate::format;
use crate::paint::Tone;
use crate::table::{Column, Content, Table};
use crate::values::{shown, syncs};

/// What a comparison is about, by the name of its metric.
pub fn main_metric(experiment: &Experiment) -> String {
    experiment.main_metric().name.into_owned()
}

/// Whether the processes of a service are measured, and not those of a command.
pub fn is_service(experiment: &Experiment) -> bool {
    let recipe = experiment.recipe.as_ref();
    recipe.is_some_and(|recipe| recipe.is_service)
}

/// Whether one start of it served all runs.
pub fn keeps_service(experiment: &Experiment) -> bool {
    let recipe = experiment.recipe.as_ref();
    recipe.is_some_and(|recipe| recipe.keeps_service)
}

/// Title and metric of what stands beside the main one, before the syncs: the first that has a column, and is not that.
fn side(experiment: &Experiment) -> [&'static str; 2] {
    let own = built_in(is_service(experiment)).iter();
    let columns = own.chain(OF_LOADS);
    let mut columns = columns.filter_map(|metric| Some([metric.column()?, metric.name]));
    let side = columns.find(|[_, name]| *name != experiment.main);
    side.expect("two metrics have a column, and one of them is not the main one")
}

/// Titles of what stands beside the main metric.
pub fn side_titles(experiment: &Experiment) -> [&'static str; 2] {
    [side(experiment)[0], "syncs"]
}

/// One line of a table.
pub struct Row<'a> {
    /// Index into the experiment's variants.
    pub index: usize,
    /// The variant's record.
    pub variant: &'a VariantRecord,
    /// The effect on the main metric; none for the baseline, and for a disqualified variant.
    pub effect: Option<&'a EffectRecord>,
    /// The variant's settings, as typed.
    pub name: String,
    /// Median of the main metric over the runs that count.
    pub value: String,
    /// `−58.5 %`.
    pub change: String,
    /// `[−59.9 %, −57.2 %]`.
    pub interval: String,
    /// `9.7× faster`, `same (±1 %)`, `disqualified` …
    pub verdict: String,
    /// What the verdict says.
    pub tone: Tone,
    /// Medians of the [`side_titles`].
    pub sides: [String; 2],
    /// The classes of its settings, the riskiest first: one does not stand for the
    /// other, as a disk that is another says nothing of what is lost.
    pub class: String,
}

/// The baseline first, then the candidates, then `bare`. The hidden baseline
/// is told of in the notes.
pub fn rows(comparison: &Comparison) -> Vec<Row<'_>> {
    let variants = comparison.experiment.variants.iter().enumerate();
    variants
        .filter(|(_, variant)| variant.role != Role::Hidden)
        .map(|(index, variant)| row(comparison, index, variant))
        .collect()
}

/// The rows of variants that were not disqualified.
pub fn counting(comparison: &Comparison) -> Vec<Row<'_>> {
    let mut rows = rows(comparison);
    rows.retain(|row| row.variant.disqualified.is_none());
    rows
}

/// All rows with names that explain themselves, and that of the hidden baseline: what an
/// effect of nothing looks like today.
pub fn with_noise(comparison: &Comparison) -> Vec<Row<'_>> {
    let mut all = rows(comparison);
    for row in all.iter_mut().filter(|row| row.variant.role == Role::Bare) {
        row.name = format!("{}: the program without refit", row.name);
    }
    let mut variants = comparison.experiment.variants.iter().enumerate();
    let hidden = variants.find(|(_, variant)| variant.role == Role::Hidden);
    all.extend(hidden.map(|(index, variant)| Row {
        name: "a second baseline: today's noise".to_owned(),
        value: String::new(),
        verdict: String::new(),
        tone: Tone::Plain,
        sides: Default::default(),
        ..row(comparison, index, variant)
    }));
    all
}

/// Rows as a table.
pub fn table<'a>(experiment: &Experiment, rows: &[Row<'a>]) -> Table<'a> {
    let cells =
        |of: for<'b> fn(&'b Row<'a>) -> &'b str| rows.iter().map(move |row| of(row).to_owned());
    let [side, syncs] = side_titles(experiment);
    // Of small programs the kernel does not tell the memory: a column of it says nothing.
    let is_known = |row: &Row| !["", "unknown"].contains(&&*row.sides[0]);
    let is_known = rows.iter().any(is_known);
    let side =
        is_known.then(|| Column::numbers(side, cells(|row| &row.sides[0])).with(Content::Side));
    let level = format!("{} interval", format::magnitude(1.0 - OVERALL_ALPHA));
    let verdicts = rows.iter().map(|row| (row.verdict.clone(), row.tone));
    Table {
        name: Column::code("variant", cells(|row| &row.name)).with(Content::Name),
        numbers: vec![
            Column::numbers(&main_metric(experiment), cells(|row| &row.value)).with(Content::Value),
            Column::numbers("vs baseline", cells(|row| &row.change)).with(Content::Change),
            Column::numbers(&level, cells(|row| &row.interval)).with(Content::Interval),
        ],
        bars: Some(Bars::new(
            rows.iter().map(|row| row.effect),
            experiment.delta,
        )),
        verdict: Column::verdicts("verdict", verdicts).with(Content::Verdict),
        extras: side
            .into_iter()
            .chain([
                Column::words(syncs, cells(|row| &row.sides[1])).with(Content::Side),
                Column::words("class", cells(|row| &row.class)).with(Content::Class),
            ])
            .collect(),
    }
}

fn row<'a>(experiment: &'a Comparison, index: usize, variant: &'a VariantRecord) -> Row<'a> {
    let is_out = variant.disqualified.is_some();
    let effect = experiment
        .effects
        .get(index, &experiment.experiment.main)
        .filter(|_| variant.role != Role::Baseline && !is_out);
    let (verdict, tone) = verdict(experiment, variant, effect);
    // A variant that is out has no numbers: fast and wrong is wrong.
    let of = |metric: Option<Metric>| match metric {
        Some(metric) if !is_out => shown(&experiment.experiment, index, &metric),
        _ => String::new(),
    };
    Row {
        index,
        variant,
        effect,
        name: variant.name.clone(),
        value: of(Some(experiment.experiment.main_metric())),
        change: effect.map_or(String::new(), |effect| format::percent(effect.change)),
        interval: effect.map_or(String::new(), |effect| format::interval(effect.interval)),
        verdict,
        tone,
        sides: [
            of(experiment
                .experiment
                .metric(side(&experiment.experiment)[1])),
            if is_out {
                String::new()
            } else {
                syncs(&experiment.experiment, index)
            },
        ],
        class: match variant.role {
            Role::Candidate => classes(variant),
            _ => String::new(),
        },
    }
}

/// `changes-behaviour, loses-on-crash`.
fn classes(variant: &VariantRecord) -> String {
    let words: Vec<String> = variant.classes().iter().map(Class::to_string).collect();
    words.join(", ")
}

/// The classes that its settings declare, whatever its runs show.
pub fn declared(variant: &VariantRecord) -> String {
    classes(&VariantRecord {
        fewer_durable: None,
        ..variant.clone()
    })
}

fn verdict(
    comparison: &Comparison,
    variant: &VariantRecord,
    effect: Option<&EffectRecord>,
) -> (String, Tone) {
    let Comparison {
        experiment,
        effects,
        ..
    } = comparison;
    if variant.disqualified.is_some() {
        return ("disqualified".to_owned(), Tone::Bad);
    }
    let Some((effect, word)) = effect.and_then(|effect| Some((effect, effect.verdict?))) else {
        return (String::new(), Tone::Plain);
    };
    match word {
        Verdict::Same => (
            format!("same (±{})", format::margin(experiment.delta)),
            Tone::Plain,
        ),
        Verdict::Inconclusive => (word.to_string(), Tone::Unsure),
        _ if effects.is_within_noise(experiment, effect) => {
            (format!("{word}, within noise"), Tone::Unsure)
        }
        _ => (
            difference(effect, word),
            if effect.gain { Tone::Good } else { Tone::Bad },
        ),
    }
}

/// `faster`; `9.7× faster` where it is twice and more.
pub fn difference(effect: &EffectRecord, word: Verdict) -> String {
    match format::factor(effect.change) {
        Some(factor) => format!("{factor} {word}"),
        None => word.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_lab::experiment::Disqualified;

    use crate::sample;

    #[test]
    fn no_class_stands_for_another() {
        let mut comparison = sample::experiment();
        let variant = &mut comparison.experiment.variants[1];
        variant.class = Class::ChangesBehaviour;
        let mut also =
            |setting: &str, class: Class| variant.settings.push(sample::setting(setting, class));
        also("disk=8ms", Class::ChangesBehaviour);
        also("malloc=jemalloc", Class::Safe);
        let rows = rows(&comparison);
        assert_eq!(rows[1].class, "changes-behaviour, loses-on-crash");
    }

    #[test]
    fn the_hidden_baseline_has_no_row_and_what_bare_synced_is_unknown() {
        let comparison = sample::experiment();
        let rows = rows(&comparison);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "baseline",
                "sync=off",
                "malloc=jemalloc",
                "thp=never",
                "bare"
            ]
        );
        assert_eq!(rows[4].sides[1], "unknown");
        assert_eq!((rows[0].change.as_str(), rows[0].class.as_str()), ("", ""));
    }

    #[test]
    fn what_it_is_about_is_not_repeated() {
        let mut comparison = sample::service();
        assert_eq!(side_titles(&comparison.experiment), ["PSS", "syncs"]);
        assert_eq!(rows(&comparison)[1].sides[0], "44 MiB");
        comparison.experiment.main = "pss".to_owned();
        assert_eq!(side_titles(&comparison.experiment), ["rate", "syncs"]);
        assert_eq!(rows(&comparison)[1].sides[0], "1,004 mail/s");
        assert_eq!(rows(&comparison)[1].value, "44 MiB");
    }

    #[test]
    fn what_one_run_does_not_have_is_unknown() {
        let mut comparison = sample::experiment();
        let last = comparison
            .experiment
            .runs
            .as_mut_slice()
            .iter_mut()
            .rfind(|run| run.variant == 0);
        last.unwrap().run.metrics.usage.max_rss_bytes = None;
        let rows = rows(&comparison);
        assert_eq!(
            [&rows[0].sides[0], &rows[1].sides[0]],
            ["unknown", "38 MiB"]
        );
    }

    #[test]
    fn what_is_unknown_of_all_has_no_column() {
        let mut comparison = sample::experiment();
        let titles = |comparison: &Comparison| {
            let rows = rows(comparison);
            let table = table(&comparison.experiment, &rows);
            let columns = table.extras.into_iter();
            columns.map(|column| column.title).collect::<Vec<_>>()
        };
        assert_eq!(titles(&comparison), ["max RSS", "syncs", "class"]);
        for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
            run.run.metrics.usage.max_rss_bytes = None;
        }
        assert_eq!(titles(&comparison), ["syncs", "class"]);
    }

    #[test]
    fn a_variant_that_is_out_has_no_numbers() {
        let mut comparison = sample::experiment();
        comparison.experiment.variants[1].disqualified =
            Some(Disqualified::Failed("exit code 1".to_owned()));
        let row = &rows(&comparison)[1];
        assert_eq!(row.verdict, "disqualified");
        assert!(row.effect.is_none());
        assert_eq!(
            [&row.value, &row.change, &row.sides[0], &row.sides[1]],
            ["", "", "", ""]
        );
    }
}
