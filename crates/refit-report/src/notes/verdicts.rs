//! The notes on one candidate.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord, Metric, Verdict};
use refit_run::InEffect;
use refit_run::metric::BuiltIn;
use refit_stats::{ADVISABLE_TIMES, FEWEST_PAIRS};

use super::note::{Note, note};
use crate::answers;
use crate::format;
use crate::paint::Tone;
use crate::row::{Row, main_metric, rows};
use crate::values::{median, value};

/// Of what a recipe measures itself, the answer names so many as a cost.
const MOST_COSTS: usize = 2;

/// What a verdict may say of them.
const DIFFERENCES: [Verdict; 4] = [
    Verdict::Faster,
    Verdict::Slower,
    Verdict::Less,
    Verdict::More,
];

/// Metrics beside the main one that are worth a word where they changed: the rate of a load and what it prints, then
/// those of the table, in their order.
fn secondary_metrics(experiment: &Experiment) -> Vec<Metric> {
    let line = |metric: &Metric| metric.built_in.map_or(Some(0), BuiltIn::line);
    let mut metrics = experiment.metrics();
    metrics.retain(|metric| line(metric).is_some() && metric.name != experiment.main);
    metrics.sort_by_key(line);
    metrics
}

/// `syncs −100 %`; `syncs 0 → 1,405` where there was nothing to be a percentage of, and `syncs 4 → 0` where nothing is
/// left: a ratio is made of at least one then.
fn changed(experiment: &Experiment, row: &Row, effect: &EffectRecord) -> String {
    let name = &effect.metric;
    let with_nothing = experiment.metric(&effect.metric).and_then(|metric| {
        let of = |variant| median(experiment, variant, &metric);
        let ends = [of(0)?, of(row.index)?];
        let from_nothing = ends[0] == 0.0 && effect.change > 0.0;
        let to_nothing = ends[0] > 0.0 && ends[1] == 0.0 && effect.change > -0.995;
        (from_nothing || to_nothing).then(|| ends.map(|middle| value(experiment, &metric, middle)))
    });
    match with_nothing {
        Some([before, now]) => format!("{name} {before} → {now}"),
        None => {
            // Of what went down to nothing there is none.
            let factor = format::factor(effect.change).filter(|_| effect.change > -0.995);
            let factor = factor.map_or_else(String::new, |factor| format!(" ({factor})"));
            format!("{name} {}{factor}", format::percent_short(effect.change))
        }
    }
}

/// What else changed, in one line: `less: syncs −100 %; more: max-rss +12 %`.
pub fn secondary(comparison: &Comparison, row: &Row) -> Option<Note> {
    row.effect?;
    let metrics = secondary_metrics(&comparison.experiment);
    let with = |verdict: Verdict| {
        let effects = metrics
            .iter()
            .filter_map(|metric| comparison.effects.get(row.index, &metric.name));
        // What is only one of many metrics that chance moved is left out.
        let shown =
            effects.filter(|effect| effect.verdict == Some(verdict) && effect.is_difference());
        let texts: Vec<String> = shown
            .map(|effect| changed(&comparison.experiment, row, effect))
            .collect();
        (!texts.is_empty()).then(|| format!("{verdict}: {}", texts.join(", ")))
    };
    let parts: Vec<String> = DIFFERENCES.into_iter().filter_map(with).collect();
    (!parts.is_empty()).then(|| note(&format!("{} ", row.name), Tone::Plain, parts.join("; ")))
}

/// Variants of a recipe that this machine cannot try.
pub fn unavailable(experiment: &Experiment) -> impl Iterator<Item = Note> {
    experiment.unavailable.iter().map(|variant| {
        let text = format!("{}: {}", variant.settings, variant.reason);
        note("unavailable:", Tone::Unsure, text)
    })
}

/// Why a variant was disqualified.
pub fn disqualified(row: &Row) -> Option<Note> {
    let reason = row.variant.disqualified.as_ref()?;
    Some(note(
        "disqualified:",
        Tone::Bad,
        format!("{}: {}", row.name, reason),
    ))
}

/// Settings of a candidate that were in effect in some processes only, or in none.
pub fn in_part(row: &Row) -> Option<Note> {
    if row.variant.disqualified.is_some() {
        return None;
    }
    let settings = row.variant.settings.iter();
    let reasons: Vec<String> = settings
        .filter_map(|record| match &record.in_effect {
            Some(InEffect::Partly(reasons)) => Some(reasons.to_string()),
            Some(InEffect::Nowhere(reasons)) => {
                Some(format!("{} is not in effect: {reasons}", record.setting))
            }
            _ => None,
        })
        .collect();
    (!reasons.is_empty()).then(|| {
        let text = format!("{}: {}", row.name, reasons.join("; "));
        note("in effect in part:", Tone::Unsure, text)
    })
}

/// What it makes worse of what the recipe measures, the largest changes first, and what of processor and memory it takes
/// more of: `write +1,050 % (12×), max-rss +12 %`.
pub fn worsened(comparison: &Comparison, row: &Row) -> Vec<String> {
    let experiment = &comparison.experiment;
    let worse = |name: &str| {
        let effect = comparison.effects.get(row.index, name)?;
        let is_worse = matches!(effect.verdict, Some(Verdict::More | Verdict::Slower));
        (is_worse && effect.is_difference() && name != experiment.main).then_some(effect)
    };
    let recipe = experiment.recipe.iter();
    let own = recipe.flat_map(|recipe| &recipe.metrics);
    let mut own: Vec<&EffectRecord> = own.filter_map(|metric| worse(&metric.name)).collect();
    own.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    let metrics = experiment.metrics();
    let costs = metrics
        .iter()
        .filter(|metric| metric.built_in.is_some_and(BuiltIn::is_cost));
    let built_in = costs.filter_map(|metric| worse(&metric.name));
    let all = own.into_iter().take(MOST_COSTS).chain(built_in);
    all.map(|effect| changed(experiment, row, effect)).collect()
}

/// What would make it conclusive.
pub fn inconclusive(experiment: &Experiment, row: &Row) -> Option<Note> {
    let effect = row
        .effect
        .filter(|effect| effect.verdict == Some(Verdict::Inconclusive))?;
    let remedy = match effect.pairs_needed {
        Some(needed) => remedy(experiment, effect, needed),
        None => format!(
            "more round pairs would not settle it; {}",
            less_noise(experiment)
        ),
    };
    let text = format!("{}: {remedy}", row.name);
    Some(note("inconclusive:", Tone::Unsure, text))
}

/// What was measured of each variant, where there are too few round pairs for an interval.
pub fn ranges(comparison: &Comparison) -> Option<Note> {
    let metric = comparison.experiment.main_metric();
    let rows = rows(comparison);
    // Without a single round pair there is not even an effect.
    let unbounded = |row: &Row| match row.effect {
        Some(effect) => effect.interval.is_none(),
        None => row.variant.is_candidate(),
    };
    // Exact answers are compared, and not measured.
    if answers::is_exact(&comparison.experiment)
        || !rows.iter().any(unbounded)
        || comparison.experiment.runs.is_empty()
    {
        return None;
    }
    let of = |row: &Row| {
        let values = comparison
            .experiment
            .runs
            .counted(row.index)
            .filter_map(|run| metric.of(run));
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        (low <= high).then(|| {
            let [low, high] = [low, high].map(|end| value(&comparison.experiment, &metric, end));
            format!("{} {low} to {high}", row.name)
        })
    };
    let all: Vec<String> = rows.iter().filter_map(of).collect();
    if all.is_empty() {
        return None;
    }
    let few = match comparison.experiment.plan.pairs {
        0 => format!(
            "a verdict needs {FEWEST_PAIRS} round pairs, and none was completed: --budget {}",
            format::option_time(time_for(&comparison.experiment, FEWEST_PAIRS))
        ),
        made => format!(
            "an interval needs more than {}",
            format::plural(made, "round pair")
        ),
    };
    let text = format!("{few}; {} ranged: {}", metric.name, all.join(", "));
    Some(note("too few runs:", Tone::Unsure, text))
}

/// What helps where more round pairs do not.
fn less_noise(experiment: &Experiment) -> String {
    let longer = match experiment.recipe {
        Some(_) => "more operations in each run",
        None => "a longer command",
    };
    format!("try a quieter machine, {longer}, or a larger --delta")
}

/// Seconds for so many round pairs and the warm-up, by what the runs took.
fn time_for(experiment: &Experiment, pairs: usize) -> f64 {
    let run_s = experiment.plan.took_s / experiment.runs.len().max(1) as f64;
    let runs = 2 * experiment.variants.len() * pairs.saturating_add(1);
    run_s * runs as f64
}

fn remedy(experiment: &Experiment, effect: &EffectRecord, needed: usize) -> String {
    let plan = &experiment.plan;
    // The warm-up is one of them where it does not count.
    let made = experiment.runs.iter().map(|run| run.pair).max();
    let pair_s = plan.took_s / made.map_or(1, |pair| pair.saturating_add(1)) as f64;
    let total_s = pair_s * needed.saturating_add(1) as f64;
    let cost = format!(
        "{} ({})",
        format::plural(needed, "round pair"),
        format::about(total_s)
    );
    if effect.pairs > 0 && needed > ADVISABLE_TIMES.saturating_mul(effect.pairs) {
        return format!("it would take about {cost}; {}", less_noise(experiment));
    }
    let option = if experiment.interrupted && plan.looks.last().is_some_and(|&last| needed <= last)
    {
        "let it run to its end".to_owned()
    } else if total_s > plan.budget_s {
        format!("--budget {}", format::option_time(total_s))
    } else {
        format!("--rounds {}", needed.saturating_mul(2))
    };
    format!("about {cost} would probably settle it: {option}")
}

/// `bare` against the baseline, turned round: what refit adds.
pub fn weight(experiment: &Experiment, row: &Row) -> Option<Note> {
    let effect = row.effect.filter(|_| row.variant.role == Role::Bare)?;
    let turned = |change: f64| 1.0 / (1.0 + change) - 1.0;
    let interval = effect
        .interval
        .map(|[low, high]| [turned(high), turned(low)]);
    let text = format!(
        "{}{} {} (the baseline compared with bare, the program without refit)",
        match main_metric(experiment).as_str() {
            "wall" => String::new(),
            name => format!("{name} "),
        },
        format::percent(turned(effect.change)),
        format::interval(interval)
    );
    Some(note("overhead of refit:", Tone::Plain, text))
}

/// What is to be reported of a winner: it was picked for being the best, and
/// so its first number flatters it.
pub fn confirmed(again: &Comparison) -> Vec<Note> {
    let rows = rows(again);
    let candidates = rows
        .iter()
        .filter(|row| row.variant.role == Role::Candidate);
    candidates
        .map(|row| {
            let Some(effect) = row.effect else {
                let text = format!("{} has no result", row.name);
                return note("confirmation:", Tone::Unsure, text);
            };
            let result = format!(
                "{} {} {} {}",
                row.name, row.change, row.interval, row.verdict
            );
            let source = format!(
                "{}, seed {}",
                format::plural(effect.pairs, "new round pair"),
                format::seed(again.experiment.seed)
            );
            let advice = if effect.gain {
                "report this number: the one above was picked for being the best"
            } else {
                "the gain above is not confirmed"
            };
            note(
                "confirmation:",
                row.tone,
                format!("{result} ({source}); {advice}"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use refit_lab::Verdict;
    use refit_lab::experiment::Disqualified;

    use crate::notes::tests::{has, texts};
    use crate::sample;

    #[test]
    fn what_was_not_there_before_is_a_count_and_no_percentage() {
        let mut comparison = sample::experiment();
        for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
            let syncs = if run.variant == 1 { 1405 } else { 0 };
            for calls in run.run.totals.values_mut() {
                calls.real = syncs;
            }
        }
        let effect = sample::effect_mut(&mut comparison, 1, "syncs");
        (effect.change, effect.verdict) = (1405.13, Some(Verdict::More));
        has(
            &comparison,
            "sync=off  less: written −35 %; more: syncs 0 → 1,405, max-rss +12 %",
        );
    }

    #[test]
    fn of_nothing_left_there_is_no_ratio() {
        for (syncs, change, text) in [
            (4, -0.75, "syncs 4 → 0"),
            (145, -0.993, "syncs 145 → 0"),
            (812, -0.9988, "syncs −100 %"),
        ] {
            let mut comparison = sample::experiment();
            for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
                for calls in run.run.totals.values_mut() {
                    calls.real = 0;
                }
                let fdatasync = run.run.totals.values_mut().next();
                if let (Some(calls), false) = (fdatasync, run.variant == 1) {
                    calls.real = syncs;
                }
            }
            sample::effect_mut(&mut comparison, 1, "syncs").change = change;
            let text = format!("sync=off  less: {text}, written −35 %; more: max-rss +12 %");
            has(&comparison, &text);
        }
    }

    #[test]
    fn a_side_metric_that_does_not_stand_among_all_is_left_out() {
        let mut comparison = sample::experiment();
        sample::effect_mut(&mut comparison, 1, "max-rss").stands = Some(false);
        has(&comparison, "sync=off  less: syncs −100 %, written −35 %");
        sample::effect_mut(&mut comparison, 1, "max-rss").stands = Some(true);
        has(
            &comparison,
            "sync=off  less: syncs −100 %, written −35 %; more: max-rss +12 %",
        );
    }

    #[test]
    fn the_remedy_fits_what_ended_it() {
        let mut comparison = sample::experiment();
        has(
            &comparison,
            "inconclusive: thp=never: about 31 round pairs (2 min) would probably settle it: --budget 3m",
        );
        comparison.experiment.plan.budget_s = 600.0;
        has(
            &comparison,
            "inconclusive: thp=never: about 31 round pairs (2 min) would probably settle it: --rounds 62",
        );
        comparison.experiment.interrupted = true;
        has(
            &comparison,
            "inconclusive: thp=never: about 31 round pairs (2 min) would probably settle it: let it run to its end",
        );
        has(
            &comparison,
            "interrupted: 14 of up to 74 round pairs were completed",
        );
        let effect = sample::effect_mut(&mut comparison, 3, "wall");
        effect.pairs_needed = Some(9000);
        has(
            &comparison,
            "inconclusive: thp=never: it would take about 9,000 round pairs (10 h); \
             try a quieter machine, a longer command, or a larger --delta",
        );
    }

    #[test]
    fn a_variant_that_is_out_is_named_with_its_reason_only() {
        let mut comparison = sample::experiment();
        comparison.experiment.variants[1].disqualified =
            Some(Disqualified::Failed("exit code 1 (disk\nfull)".to_owned()));
        has(
            &comparison,
            "disqualified: sync=off: exit code 1 (disk\\nfull)",
        );
        assert!(
            !texts(&comparison)
                .iter()
                .any(|line| line.starts_with("sync=off"))
        );
    }

    #[test]
    fn the_number_to_report_is_the_confirmed_one() {
        let mut comparison = sample::experiment();
        comparison.confirmation = Some(Box::new(sample::confirmation()));
        has(
            &comparison,
            "confirmation: sync=off −58.1 % [−59.0 %, −57.0 %] 2.4× faster (8 new round pairs, seed 0x5eee); \
             report this number: the one above was picked for being the best",
        );
        let again = comparison.confirmation.as_deref_mut().unwrap();
        let effect = sample::effect_mut(again, 1, "wall");
        (effect.gain, effect.verdict) = (false, Some(Verdict::Inconclusive));
        has(
            &comparison,
            "confirmation: sync=off −58.1 % [−59.0 %, −57.0 %] inconclusive (8 new round pairs, seed 0x5eee); \
             the gain above is not confirmed",
        );
    }
}
