//! The answer of a comparison in a sentence: the first line of every format.

use refit_lab::experiment::Experiment;
use refit_lab::{Comparison, EffectRecord, NeverSyncs, Verdict};
use refit_run::printable;

use crate::answers::{self, is_exact};
use crate::format;
use crate::gain::gives;
use crate::markup::Markup;
use crate::notes::worsened;
use crate::row::{Row, is_service, main_metric};
use crate::standing::{Standing, candidates, standing, to_prove};

/// More variants than this are left to the table.
pub const MOST: usize = 4;

/// Nothing acknowledged is at risk.
pub const YES: &str = "Yes: ";

/// Everything that gains risks data …
pub const ONLY_WHERE: &str = "Only if losing data at a power cut is acceptable: ";

/// … and the same after what does not.
pub const WHERE: &str = "if losing data at a power cut is acceptable, ";

/// More runs may tell.
pub const NOT_YET: &str = "Not yet: ";

/// There is nothing that a setting could take away.
pub const NOTHING: &str = "Nothing to gain: ";

/// All that was proven is that nothing helps.
pub const NO: &str = "No: ";

/// … of a comparison.
pub const NO_GAIN: &str = "No: no variant gains more than the noise";

/// Whether to take a variant, and on which condition; then what each gains, the most first, what it costs, and what is
/// not known.
pub fn sentence(comparison: &Comparison) -> String {
    let load = load(&comparison.experiment).map(|load| format!("; measured at {load}"));
    printable(&(answer(comparison) + &load.unwrap_or_default()))
}

/// What was asked of the service, where that can be set: an answer holds for it alone.
fn load(experiment: &Experiment) -> Option<String> {
    let load = &experiment.recipe.as_ref()?.load;
    let words: Vec<String> = load.iter().map(|one| one.words()).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn answer(comparison: &Comparison) -> String {
    let experiment = &comparison.experiment;
    if is_exact(experiment) {
        return exact(experiment);
    }
    if let Some(never) = NeverSyncs::of(experiment) {
        let what = if is_service(experiment) {
            "service"
        } else {
            "command"
        };
        return match never {
            NeverSyncs::ByTheKernel => format!("{NOTHING}the {what} never syncs"),
            NeverSyncs::ByRefit => format!("{NOTHING}no sync call of the {what} was seen"),
        };
    }
    let rows = candidates(comparison);
    let standings: Vec<(&Row, Standing)> = rows
        .iter()
        .map(|row| (row, standing(comparison, row)))
        .collect();
    let mut gains: Vec<Gain> = standings
        .iter()
        .filter_map(|(row, standing)| Gain::of(row, *standing))
        .collect();
    gains.sort_by(|a, b| b.effect.change.abs().total_cmp(&a.effect.change.abs()));
    let with = |is: fn(&Standing) -> bool| -> Vec<&Row> {
        let all = standings.iter().filter(|(_, standing)| is(standing));
        all.map(|(row, _)| *row).collect()
    };
    let early = with(|standing| matches!(standing, Standing::Early));
    let open = with(|standing| matches!(standing, Standing::Open | Standing::Unconfirmed(_)));

    let mut parts = match () {
        () if !gains.is_empty() => take(comparison, &gains),
        () if rows.is_empty() => vec!["no variant was compared with the baseline".to_owned()],
        () if !early.is_empty() => vec![format!("{NOT_YET}too few runs for a verdict")],
        () if !open.is_empty() => vec![format!("{NOT_YET}no gain is proven")],
        () => vec![NO_GAIN.to_owned()],
    };
    parts.extend(told(comparison, &standings));
    if !early.is_empty() {
        let so_far = |row: &&&Row| format!("`{}` {} {}", row.name, experiment.main, row.change);
        let known = early.iter().filter(|row| !row.change.is_empty());
        let so_far: Vec<String> = known.take(MOST).map(|row| so_far(&row)).collect();
        if !so_far.is_empty() {
            parts.push(format!("so far {}", so_far.join(", ")));
        }
    }
    let same = with(|standing| matches!(standing, Standing::Same));
    if !same.is_empty() {
        let makes = if same.len() == 1 { "makes" } else { "make" };
        let delta = format::margin(experiment.delta);
        parts.push(format!("{} {makes} no difference (±{delta})", names(&same)));
    }
    let open = with(|standing| matches!(standing, Standing::Open));
    let out = with(|standing| matches!(standing, Standing::Out));
    for (rows, word) in [(&open, "inconclusive"), (&out, "disqualified")] {
        if !rows.is_empty() {
            let is = if rows.len() == 1 { "is" } else { "are" };
            parts.push(format!("{} {is} {word}", names(rows)));
        }
    }
    parts.join("; ")
}

/// A variant that is proven to be better.
struct Gain<'a> {
    row: &'a Row<'a>,
    effect: &'a EffectRecord,
    again: bool,
}

impl<'a> Gain<'a> {
    fn of(row: &'a Row<'a>, standing: Standing<'a>) -> Option<Gain<'a>> {
        match standing {
            Standing::Gains { effect, again } => Some(Gain { row, effect, again }),
            _ => None,
        }
    }

    fn words(&self, comparison: &Comparison) -> String {
        let experiment = &comparison.experiment;
        let Row { name, class, .. } = self.row;
        let again = if self.again {
            " when measured again"
        } else {
            ""
        };
        let change = format::percent(self.effect.change);
        let metric = main_metric(experiment);
        let costs = costs(comparison, self.row);
        let details = format!("{metric} {change}{again}, {class}");
        let gives = gives(self.effect, experiment.main_metric().measure, &details);
        format!("`{name}` {gives}{costs}")
    }
}

/// Those first that put no data at risk.
fn take(comparison: &Comparison, gains: &[Gain]) -> Vec<String> {
    let (risky, free): (Vec<&Gain>, Vec<&Gain>) =
        gains.iter().partition(|gain| gain.row.variant.risks_data());
    let list = |gains: &[&Gain]| -> Vec<String> {
        let told = gains.iter().take(MOST).map(|gain| gain.words(comparison));
        let more = gains.len().saturating_sub(MOST);
        let more =
            (more > 0).then(|| format!("{more} more {} less", number(more, "gains", "gain")));
        told.chain(more).collect()
    };
    let mut parts = Vec::new();
    if !free.is_empty() {
        parts.push(format!("{YES}{}", list(&free).join("; ")));
    }
    if !risky.is_empty() {
        let lead = if free.is_empty() { ONLY_WHERE } else { WHERE };
        let names: Vec<&str> = risky
            .iter()
            .map(|gain| &*gain.row.name)
            .take(MOST)
            .collect();
        let untested = match to_prove(&comparison.experiment, &names) {
            Some(command) => format!("what a power cut takes was not tested: `{command}`"),
            None => "what a power cut takes was not tested".to_owned(),
        };
        parts.push(format!("{lead}{}; {untested}", list(&risky).join("; ")));
    }
    parts
}

/// Of those that are not a gain, with their numbers.
fn told(comparison: &Comparison, standings: &[(&Row, Standing)]) -> Vec<String> {
    let metric = main_metric(&comparison.experiment);
    let mut parts = Vec::new();
    let mut losing = Vec::new();
    for (row, standing) in standings {
        let Row {
            name,
            verdict,
            change,
            class,
            ..
        } = *row;
        match standing {
            Standing::Unconfirmed(again) => parts.push(format!(
                "`{name}` seemed to gain, and measured again it is not proven ({metric} {}, {class})",
                format::percent(again.change)
            )),
            Standing::WithinNoise => parts.push(format!(
                "`{name}` differs by less than today's noise ({metric} {change})"
            )),
            Standing::Loses => {
                let size = row.effect.map_or(0.0, |effect| effect.change.abs());
                let does = match row.effect.and_then(|effect| effect.verdict) {
                    Some(Verdict::More) => "takes more".to_owned(),
                    Some(Verdict::Less) => "gives less".to_owned(),
                    _ => format!("is {verdict}"),
                };
                losing.push((size, format!("`{name}` {does} ({metric} {change})")));
            }
            _ => {}
        }
    }
    // The worst first: some may not be named.
    losing.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let unnamed = losing.len().saturating_sub(MOST);
    parts.extend(losing.into_iter().take(MOST).map(|(_, text)| text));
    if unnamed > 0 {
        parts.push(format!(
            "{unnamed} more {}",
            number(unnamed, "loses", "lose")
        ));
    }
    parts
}

/// The word for one, or that for several.
fn number<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}

/// What it takes more of: ` and costs max-rss +12 %`.
pub fn costs(comparison: &Comparison, row: &Row) -> String {
    let more = worsened(comparison, row);
    match more.as_slice() {
        [] => String::new(),
        more => format!(" and costs {}", more.join(", ")),
    }
}

/// On a page.
pub fn paragraph(section: &mut Markup, sentence: &str) {
    section.element("p", &[("class", "answer")], |p| with_code(p, sentence));
}

/// What stands between backticks is to be typed.
pub fn with_code(element: &mut Markup, text: &str) {
    for (i, part) in text.split('`').enumerate() {
        match i % 2 {
            0 => element.text(part),
            _ => element.leaf("code", &[], part),
        }
    }
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
    use refit_lab::experiment::Disqualified;

    use crate::sample;

    const RISKY: &str = "Only if losing data at a power cut is acceptable: `sync=off` is 2.4× faster (wall −58.5 %, loses-on-crash) and \
                         costs max-rss +12 %; what a power cut takes was not tested: \
                         `refit crash sync=off --check CHECK --ack SOURCE -- ./import.sh --rows 10000`";

    #[test]
    fn what_risks_data_is_on_a_condition_and_says_what_to_type() {
        let mut comparison = sample::experiment();
        let rest = "`malloc=jemalloc` makes no difference (±1 %); `thp=never` is inconclusive";
        assert_eq!(sentence(&comparison), format!("{RISKY}; {rest}"));
        comparison.experiment.command[1] = "x".repeat(80);
        let text = sentence(&comparison);
        assert!(text.contains(" --ack SOURCE -- COMMAND`; "), "{text}");
        let mut service = sample::service();
        let both = "`refit compare postfix-cleanup conf.queue=tmpfs sync@exe:cleanup=off --prove`";
        let text = sentence(&service);
        assert!(text.contains(both), "{text}");
        service.experiment.recipe.as_mut().unwrap().has_promise = false;
        let text = sentence(&service);
        assert!(
            text.contains("what a power cut takes was not tested; "),
            "{text}"
        );
    }

    #[test]
    fn what_risks_nothing_comes_first_however_little_it_gains() {
        let mut comparison = sample::experiment();
        let effect = sample::effect_mut(&mut comparison, 2, "wall");
        (effect.gain, effect.verdict, effect.change) = (true, Some(Verdict::Faster), -0.2);
        effect.interval = Some([-0.21, -0.19]);
        let text = sentence(&comparison);
        let start = "Yes: `malloc=jemalloc` is 1.2× faster (wall −20.0 %, safe) and costs max-rss +16 %; \
                     if losing data at a power cut is acceptable, `sync=off` is 2.4× faster ";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn where_fewer_syncs_are_seen_nothing_is_safe() {
        let mut comparison = sample::experiment();
        let effect = sample::effect_mut(&mut comparison, 2, "wall");
        (effect.gain, effect.verdict, effect.change) = (true, Some(Verdict::Faster), -0.2);
        effect.interval = Some([-0.21, -0.19]);
        comparison.experiment.variants[2].fewer_durable =
            Some(refit_lab::experiment::FewerDurable {
                baseline: 812.0,
                variant: 1.0,
            });
        let text = sentence(&comparison);
        assert!(text.starts_with(ONLY_WHERE), "{text}");
        assert!(text.contains("(wall −20.0 %, loses-on-crash)"), "{text}");
    }

    #[test]
    fn what_the_recipe_measures_itself_is_a_cost_where_it_gets_worse() {
        let mut comparison = sample::service();
        let metric = &mut comparison.experiment.recipe.as_mut().unwrap().metrics;
        for name in ["p50", "p75"] {
            let mut more = metric[0].clone();
            name.clone_into(&mut more.name);
            metric.push(more);
        }
        let p99 = sample::effect_mut(&mut comparison, 1, "p99").clone();
        let slower = |name: &str, change: f64| EffectRecord {
            metric: name.to_owned(),
            change,
            verdict: Some(Verdict::Slower),
            ..p99.clone()
        };
        let other = [slower("p50", 0.2), slower("p75", 0.4), slower("p99", 3.1)];
        let all = comparison.effects.iter().cloned();
        let all = all.filter(|effect| effect.metric != "p99").chain(other);
        comparison.effects = all.collect();
        let costs = "`sync@exe:cleanup=off` is 2.5× faster (rate +145.9 %, loses-on-crash) and costs p99 +310 % (4.1×), p75 +40 %; ";
        let text = sentence(&comparison);
        assert!(text.contains(costs), "{text}");
    }

    #[test]
    fn what_two_equal_variants_showed_too_is_no_gain_unless_it_was_measured_again() {
        let mut comparison = sample::experiment();
        comparison.experiment.variants[3].disqualified =
            Some(Disqualified::Failed("exit code 1".to_owned()));
        sample::effect_mut(&mut comparison, 1, "wall").change = -0.006;
        let text = sentence(&comparison);
        let start = "No: no variant gains more than the noise; \
                     `sync=off` differs by less than today's noise (wall −0.6 %); ";
        assert!(text.starts_with(start), "{text}");
        comparison.confirmation = Some(Box::new(sample::confirmation()));
        let text = sentence(&comparison);
        assert!(
            text.contains("(wall −58.1 % when measured again, "),
            "{text}"
        );
        let mut failed = sample::confirmation();
        let effect = sample::effect_mut(&mut failed, 1, "wall");
        (effect.gain, effect.verdict) = (false, Some(Verdict::Inconclusive));
        comparison.confirmation = Some(Box::new(failed));
        let text = sentence(&comparison);
        let start = "Not yet: no gain is proven; `sync=off` seemed to gain, and measured again it is not proven";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn without_a_gain_it_says_so_and_how_sure_that_is() {
        let mut comparison = sample::experiment();
        let effect = sample::effect_mut(&mut comparison, 1, "wall");
        (effect.gain, effect.verdict, effect.change) = (false, Some(Verdict::Slower), 0.08);
        let text = sentence(&comparison);
        let start = "Not yet: no gain is proven; `sync=off` is slower (wall +8.0 %); ";
        assert!(text.starts_with(start), "{text}");
        for (verdict, does) in [(Verdict::More, "takes more"), (Verdict::Less, "gives less")] {
            sample::effect_mut(&mut comparison, 1, "wall").verdict = Some(verdict);
            let text = sentence(&comparison);
            assert!(text.contains(&format!("`sync=off` {does} (")), "{text}");
        }
        sample::effect_mut(&mut comparison, 1, "wall").verdict = Some(Verdict::Slower);
        comparison.experiment.variants[3].disqualified =
            Some(Disqualified::Failed("exit code 1".to_owned()));
        let text = sentence(&comparison);
        let start = "No: no variant gains more than the noise; `sync=off` is slower";
        assert!(text.starts_with(start), "{text}");
        assert!(text.ends_with("`thp=never` is disqualified"), "{text}");
        sample::effect_mut(&mut comparison, 2, "wall").verdict = None;
        let text = sentence(&comparison);
        let start = "Not yet: too few runs for a verdict; ";
        assert!(text.starts_with(start), "{text}");
        assert!(
            text.contains("so far `malloc=jemalloc` wall −0.5 %"),
            "{text}"
        );
        comparison.effects = refit_lab::Effects::default();
        assert_eq!(
            sentence(&comparison),
            "Not yet: too few runs for a verdict; `thp=never` is disqualified"
        );
        comparison.experiment.variants.truncate(1);
        let text = sentence(&comparison);
        assert_eq!(text, "no variant was compared with the baseline");
    }

    #[test]
    fn an_amount_that_shrinks_and_a_rate_that_grows_are_gains() {
        let mut comparison = sample::service();
        let text = sentence(&comparison);
        assert!(text.contains("is 2.5× faster (rate +145.9 %, "), "{text}");
        comparison.experiment.main = "pss".to_owned();
        let text = sentence(&comparison);
        assert!(!text.contains('×') || text.contains("more"), "{text}");
    }
}
