//! The answer of a comparison in a sentence: the first line of every format.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord, Verdict};
use refit_run::printable;
use refit_stats::Measure;

use crate::answers::{self, is_exact};
use crate::format;
use crate::markup::Markup;
use crate::row::{Row, main_metric, rows};

/// More variants than this are left to the table.
pub const MOST: usize = 4;

/// What each variant gains, the most first, and what is not known.
pub fn sentence(comparison: &Comparison) -> String {
    printable(&answer(comparison))
}

fn answer(comparison: &Comparison) -> String {
    let experiment = &comparison.experiment;
    if is_exact(experiment) {
        return exact(experiment);
    }
    let mut rows = rows(comparison);
    rows.retain(|row| row.variant.role == Role::Candidate);
    let with = |is: fn(&EffectRecord, Verdict) -> bool| -> Vec<&Row> {
        let has = |row: &&Row| {
            row.effect
                .is_some_and(|e| e.verdict.is_some_and(|v| is(e, v)))
        };
        rows.iter().filter(has).collect()
    };
    let mut gaining = with(|effect, _| effect.gain);
    let size = |row: &Row| row.effect.map_or(0.0, |effect| effect.change.abs());
    gaining.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let losing = with(|effect, verdict| {
        !effect.gain && !matches!(verdict, Verdict::Same | Verdict::Inconclusive)
    });
    let same = with(|_, verdict| verdict == Verdict::Same);
    let open = with(|_, verdict| verdict == Verdict::Inconclusive);
    let is_early = |row: &&Row| {
        row.variant.disqualified.is_none() && row.effect.and_then(|e| e.verdict).is_none()
    };
    let early: Vec<&Row> = rows.iter().filter(is_early).collect();
    let out: Vec<&Row> = (rows.iter())
        .filter(|row| row.variant.disqualified.is_some())
        .collect();

    let mut parts: Vec<String> = gaining
        .iter()
        .take(MOST)
        .map(|row| gain(comparison, row))
        .collect();
    if gaining.len() > MOST {
        parts.push(format!("{} more gain less", gaining.len() - MOST));
    }
    if gaining.is_empty() {
        parts.push(match () {
            () if rows.is_empty() => "no variant was compared with the baseline".to_owned(),
            () if !early.is_empty() => "too few runs for a verdict".to_owned(),
            () if !open.is_empty() => "no gain is proven".to_owned(),
            () => "no variant gains anything".to_owned(),
        });
    }
    let metric = main_metric(experiment);
    parts.extend(losing.iter().take(MOST).map(|row| {
        let Row { name, verdict, .. } = row;
        format!("`{name}` is {verdict} ({metric} {})", row.change)
    }));
    if losing.len() > MOST {
        parts.push(format!("{} more lose", losing.len() - MOST));
    }
    if !early.is_empty() {
        let so_far = |row: &&&Row| format!("`{}` {metric} {}", row.name, row.change);
        let known = early.iter().filter(|row| !row.change.is_empty());
        let so_far: Vec<String> = known.take(MOST).map(|row| so_far(&row)).collect();
        if !so_far.is_empty() {
            parts.push(format!("so far {}", so_far.join(", ")));
        }
    }
    if !same.is_empty() {
        let makes = if same.len() == 1 { "makes" } else { "make" };
        let delta = format::magnitude(experiment.delta);
        parts.push(format!("{} {makes} no difference (±{delta})", names(&same)));
    }
    for (rows, word) in [(&open, "inconclusive"), (&out, "disqualified")] {
        if !rows.is_empty() {
            let is = if rows.len() == 1 { "is" } else { "are" };
            parts.push(format!("{} {is} {word}", names(rows)));
        }
    }
    parts.join("; ")
}

/// `gives 1.9×`; of an amount `takes 20 % less`.
pub fn gives(effect: &EffectRecord, measure: Measure) -> String {
    let factor = factor(measure, effect.change);
    let text = match factor {
        _ if !factor.is_finite() => "unknown".to_owned(),
        _ if factor < 1.095 => format!("{factor:.2}"),
        _ if factor < 9.95 => format!("{factor:.1}"),
        _ => format::count(factor),
    };
    match measure {
        Measure::Amount => format!("takes {} less", format::magnitude(effect.change)),
        Measure::Rate | Measure::Duration => format!("gives {text}×"),
    }
}

/// How many times as good as the baseline, from a change of the metric.
pub fn factor(measure: Measure, change: f64) -> f64 {
    match measure {
        Measure::Rate => 1.0 + change,
        Measure::Duration | Measure::Amount => 1.0 / (1.0 + change),
    }
}

/// On a page.
pub fn paragraph(section: &mut Markup, sentence: &str) {
    section.element("p", &[("class", "answer")], |p| {
        for (i, part) in sentence.split('`').enumerate() {
            match i % 2 {
                0 => p.text(part),
                _ => p.leaf("code", &[], part),
            }
        }
    });
}

/// A winner was picked for being the best: where it was measured again, that is the number.
fn gain(comparison: &Comparison, row: &Row) -> String {
    let experiment = &comparison.experiment;
    let again = comparison.confirmation.as_ref().and_then(|again| {
        let mut variants = again.experiment.variants.iter();
        let at = variants.position(|variant| variant.name == row.name)?;
        again.effects.get(at, &again.experiment.main)
    });
    let Some(effect) = again.or(row.effect) else {
        return format!("`{}` is {}", row.name, row.verdict);
    };
    let change = format::percent(effect.change);
    let mut facts = format!("{} {change}", main_metric(experiment));
    match again {
        Some(again) if again.gain => facts += " when measured again",
        Some(_) => {
            return format!(
                "`{}` seemed to gain, and measured again it is not proven ({facts}, {})",
                row.name, row.class
            );
        }
        None => {}
    }
    let gives = gives(effect, experiment.main_metric().measure);
    format!("`{}` {gives} ({facts}, {})", row.name, row.class)
}

fn names(rows: &[&Row]) -> String {
    let mut names: Vec<String> = (rows.iter().take(MOST))
        .map(|row| format!("`{}`", row.name))
        .collect();
    if rows.len() > MOST {
        names.push(format!("{} more", rows.len() - MOST));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Of exact answers: whether variants agree, and whether they agree with the note.
fn exact(experiment: &Experiment) -> String {
    let lines = answers::lines(experiment);
    let questions: Vec<&[answers::Line]> =
        lines.chunk_by(|a, b| a.question == b.question).collect();
    let differs = |lines: &&&[answers::Line]| {
        let first = &lines[0].answer;
        lines.iter().any(|line| line.answer != *first)
    };
    let different = questions.iter().filter(differs).count();
    let all = format::plural(questions.len(), "question");
    let mut text = match (questions.len(), different) {
        (0, _) => return "no variant gave an answer".to_owned(),
        (_, 0) => format!("all variants give the same answer to {all}"),
        (_, n) => format!("the variants answer {n} of {all} differently"),
    };
    let is_other = |lines: &&&[answers::Line]| lines.iter().any(|line| line.differs);
    let others = questions.iter().filter(is_other).count();
    if answers::note(experiment).is_some() {
        text += &format!("; {others} of {all} now have another answer than the note's");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn gains_come_first_and_nothing_unproven_is_called_a_gain() {
        let mut comparison = sample::experiment();
        let rest = "`malloc=jemalloc` makes no difference (±1 %); `thp=never` is inconclusive";
        let gain = "`sync=off` gives 2.4× (wall −58.5 %, loses-on-crash)";
        assert_eq!(sentence(&comparison), format!("{gain}; {rest}"));
        comparison.confirmation = Some(Box::new(sample::confirmation()));
        let again = "`sync=off` gives 2.4× (wall −58.1 % when measured again, loses-on-crash)";
        assert_eq!(sentence(&comparison), format!("{again}; {rest}"));
        let mut failed = sample::confirmation();
        let effect = sample::effect_mut(&mut failed, 1, "wall");
        (effect.gain, effect.verdict) = (false, Some(Verdict::Inconclusive));
        comparison.confirmation = Some(Box::new(failed));
        assert!(sentence(&comparison).contains("it is not proven"));
    }

    #[test]
    fn without_a_gain_it_says_so_and_how_sure_that_is() {
        let mut comparison = sample::experiment();
        let effect = sample::effect_mut(&mut comparison, 1, "wall");
        (effect.gain, effect.verdict, effect.change) = (false, Some(Verdict::Slower), 0.08);
        let text = sentence(&comparison);
        let start = "no gain is proven; `sync=off` is slower (wall +8.0 %); ";
        assert!(text.starts_with(start), "{text}");
        comparison.experiment.variants[3].disqualified = Some("exit code 1".to_owned());
        let text = sentence(&comparison);
        assert!(text.starts_with("no variant gains anything; "), "{text}");
        assert!(text.ends_with("`thp=never` is disqualified"), "{text}");
        sample::effect_mut(&mut comparison, 2, "wall").verdict = None;
        let text = sentence(&comparison);
        assert!(text.starts_with("too few runs for a verdict; "), "{text}");
        assert!(
            text.contains("so far `malloc=jemalloc` wall −0.5 %"),
            "{text}"
        );
        comparison.effects = refit_lab::Effects::default();
        assert_eq!(
            sentence(&comparison),
            "too few runs for a verdict; `thp=never` is disqualified"
        );
        comparison.experiment.variants.truncate(1);
        let text = sentence(&comparison);
        assert_eq!(text, "no variant was compared with the baseline");
    }

    #[test]
    fn an_amount_that_shrinks_and_a_rate_that_grows_are_gains() {
        let mut comparison = sample::service();
        let text = sentence(&comparison);
        assert!(text.contains("gives 2.5× (rate +145.9 %, "), "{text}");
        comparison.experiment.main = "pss".to_owned();
        let text = sentence(&comparison);
        assert!(!text.contains('×') || text.contains("more"), "{text}");
    }
}
