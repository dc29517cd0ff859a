//! What no sentence may say, whatever was measured: thousands of random comparisons, cuts and checks.

use std::collections::BTreeSet;

use refit_crash::mode::{Harm, Mode, Role as Cut};
use refit_lab::Comparison;
use refit_lab::experiment::Role;
use refit_services::{Check, Layer};
use refit_stats::{Measure, Rng};
use roxmltree::Document;

use crate::crash;
use crate::gain::factor;
use crate::paint::Style;
use crate::row::rows;
use crate::sample::random;
use crate::sentence::{ONLY_WHERE, WHERE, YES, sentence};
use crate::services::applied;
use crate::standing::{Standing, standing};
use crate::{html, markdown, terminal};

const COMPARISONS: u64 = 2_000;

/// Names that a sentence says to gain: without a condition, and where a power cut may take data.
fn gaining(sentence: &str) -> [BTreeSet<&str>; 2] {
    let mut gaining = [BTreeSet::new(), BTreeSet::new()];
    let mut lead = None;
    for part in sentence.split("; ") {
        let mut part = part;
        for (word, at) in [(YES, 0), (ONLY_WHERE, 1), (WHERE, 1)] {
            if let Some(rest) = part.strip_prefix(word) {
                (lead, part) = (Some(at), rest);
            }
        }
        let mut words = part.split('`');
        let (Some(""), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let is_gain = [" is faster", " takes "]
            .iter()
            .any(|word| rest.starts_with(word))
            || is_one_number(rest);
        if let (Some(lead), true) = (lead, is_gain) {
            gaining[lead].insert(name);
        }
    }
    gaining
}

/// ` is 3.6× faster …`: without the ends of an interval in place of the number.
fn is_one_number(rest: &str) -> bool {
    let words = rest
        .strip_prefix(" is ")
        .and_then(|rest| rest.split_once(' '));
    words.is_some_and(|(factor, rest)| factor.ends_with('×') && rest.starts_with("faster"))
}

/// Whether every run of a variant made fewer sync calls than every run of both baselines.
fn makes_fewer(comparison: &Comparison, variant: usize) -> bool {
    let experiment = &comparison.experiment;
    let real = |of: usize| {
        let runs = experiment.runs.counted(of);
        runs.map(|run| run.run.syncs(|calls| calls.real))
            .collect::<Vec<_>>()
    };
    let is_baseline = |role: Role| matches!(role, Role::Baseline | Role::Hidden);
    let baselines = (0..experiment.variants.len())
        .filter(|at| is_baseline(experiment.variants[*at].role))
        .flat_map(real);
    baselines.min() > real(variant).into_iter().max()
}

#[test]
fn no_sentence_says_more_than_its_runs() {
    let mut rng = Rng::new(0x00c1_a145);
    let [mut yes, mut only, mut fewer, mut small] = [0; 4];
    for _ in 0..COMPARISONS {
        let comparison = random(&mut rng);
        let text = sentence(&comparison);
        let [free, risky] = gaining(&text);
        assert!(
            !["NaN", "inf", "∞"].iter().any(|word| text.contains(word)),
            "{text}"
        );
        let rows = rows(&comparison);
        for row in rows
            .iter()
            .filter(|row| row.variant.role == Role::Candidate)
        {
            let name = row.name.as_str();
            let is_fewer = makes_fewer(&comparison, row.index);
            let risks = row
                .variant
                .settings
                .iter()
                .any(|one| one.class.risks_data());
            if free.contains(name) {
                assert!(!is_fewer && !risks, "{text}");
                assert!(
                    !row.class.contains("loses") && !row.class.contains("bounded"),
                    "{text}"
                );
            }
            fewer += usize::from(is_fewer && risky.contains(name) && !risks);
            if !free.contains(name) && !risky.contains(name) {
                continue;
            }
            let effect = row.effect.expect("it has an effect");
            let ends = effect.interval.expect("it has an interval");
            let hidden = comparison.experiment.variants.len() - 1;
            let noise = comparison
                .effects
                .get(hidden, "wall")
                .filter(|noise| !noise.early);
            let size = |change: f64| change.ln_1p().abs();
            for end in noise.and_then(|noise| noise.interval).into_iter().flatten() {
                assert!(size(effect.change) >= size(end), "{text}");
            }
            let near = ends.map(|end| factor(Measure::Duration, end));
            let near = near.into_iter().fold(f64::INFINITY, f64::min);
            assert!(near > 1.0, "{text}");
            let quoted = format!("`{name}`");
            let mut told = text.split(&quoted).skip(1);
            small += usize::from(near <= 1.05);
            assert!(near > 1.05 || !told.any(is_one_number), "{text}");
        }
        // What measures it again, and what tune and apply keep, is what the sentence says.
        let gains: Vec<usize> = (rows.iter())
            .filter(|row| row.variant.role == Role::Candidate)
            .filter(|row| matches!(standing(&comparison, row), Standing::Gains { .. }))
            .map(|row| row.index)
            .collect();
        let kept = comparison.experiment.candidates();
        let kept = kept.filter(|(at, _)| {
            let effect = comparison.effects.get(*at, &comparison.experiment.main);
            effect.is_some_and(|effect| effect.gain)
        });
        assert_eq!(kept.map(|(at, _)| at).collect::<Vec<_>>(), gains, "{text}");
        assert_eq!(comparison.winner().is_some(), !gains.is_empty(), "{text}");
        yes += usize::from(text.starts_with(YES));
        only += usize::from(text.starts_with(ONLY_WHERE));
    }
    // Each kind was there to be said wrongly.
    for (count, what) in [
        (yes, "yes"),
        (only, "only"),
        (fewer, "fewer"),
        (small, "small"),
    ] {
        assert!(count >= 10, "{what}: {count}");
    }
}

#[test]
fn all_formats_answer_alike() {
    let mut rng = Rng::new(0x000a_115a);
    for _ in 0..40 {
        let comparison = random(&mut rng);
        let text = sentence(&comparison);
        let style = Style {
            width: 100_000,
            colour: false,
        };
        assert_eq!(terminal(&comparison, &style).lines().next(), Some(&*text));
        let shown = crate::markdown::in_markdown(&text);
        assert!(markdown(&comparison).contains(&shown), "{shown}");
        assert_eq!(answer_of(&html(&comparison)), text.replace('`', ""));
    }
}

/// The first sentence of a page.
fn answer_of(page: &str) -> String {
    let page = page.split_once("<main").expect("a page").1;
    let page = format!("<main{}", page.split_once("</main>").expect("a page").0) + "</main>";
    let page = Document::parse(&page).expect("well-formed");
    let answer = page
        .descendants()
        .find(|node| node.attribute("class") == Some("answer"))
        .expect("an answer");
    let words = answer
        .descendants()
        .filter_map(|node| node.text().filter(|_| node.is_text()));
    words.collect::<String>().replace('\u{a0}', " ")
}

/// Whether the cut with the oldest loss left nothing of what was acknowledged: a longer run may lose still older items.
fn took_all(mode: &Mode) -> bool {
    let losses = mode.states.iter().map(|state| &state.loss);
    let oldest = losses.max_by_key(|loss| loss.oldest_ns);
    oldest.is_some_and(|loss| loss.oldest_ns.is_some() && loss.lost >= loss.acknowledged)
}

#[test]
fn no_sentence_says_more_than_its_cuts() {
    let mut rng = Rng::new(0x00c0_75ec);
    let [mut nothing, mut newest, mut holes, mut idle] = [0; 4];
    let [mut within, mut breaking, mut forbidden] = [0; 3];
    for _ in 0..COMPARISONS {
        let report = crash::sample::random(&mut rng);
        let rows = crash::row::rows(&report);
        let text = crash::sentence::sentence(&report, &rows);
        if report.invalid.is_some() {
            assert!(
                text.starts_with("INVALID RUN") && !text.contains("lost"),
                "{text}"
            );
            continue;
        }
        let parts: Vec<&str> = text.split("; ").collect();
        for row in rows.iter().filter(|row| row.mode.role != Cut::Control) {
            let mode = row.mode;
            let lead = match mode.role {
                Cut::Baseline => "the program itself ".to_owned(),
                _ => format!("`{}` ", row.name),
            };
            let breaks = report.breaks_class(mode);
            let Some(part) = parts.iter().find(|part| part.starts_with(&lead)) else {
                // The first ones are named, and those that break their class are the first.
                let broken = rows
                    .iter()
                    .filter(|row| report.breaks_class(row.mode))
                    .count();
                assert!(!breaks || broken > crate::sentence::MOST, "{text}");
                continue;
            };
            let harms: BTreeSet<Harm> = mode.states.iter().flat_map(|one| one.harms()).collect();
            let is_acknowledged = mode.states.iter().any(|one| one.loss.acknowledged > 0);
            if part.contains("lost nothing") {
                nothing += 1;
                assert!(harms.is_empty() && is_acknowledged, "{text}");
            }
            // A time bounds the loss where only newest items are lost, and not all.
            if part.contains("at most") || part.contains("newest only") {
                newest += 1;
                assert_eq!(harms, BTreeSet::from([Harm::Lost]), "{text}");
                assert!(!took_all(mode), "{text}");
                let oldest = mode
                    .states
                    .iter()
                    .filter_map(|one| one.loss.oldest_ns)
                    .max();
                let oldest = crash::row::age(oldest.expect("something was lost"));
                assert!(part.contains(&format!("at most {oldest} ")), "{text}");
            }
            holes += usize::from(part.contains("no bound"));
            // Cuts show nothing of a setting that was not in effect: the part begins with that.
            assert_eq!(part.contains("was not in effect"), mode.is_idle(), "{text}");
            idle += usize::from(mode.is_idle());
            let is_without_images = mode.states.is_empty();
            assert_eq!(part.contains("was not cut"), is_without_images, "{text}");
            let [is_within, is_breaking, is_forbidden] =
                ["within its bound", "BREAKING its bound", "forbids"]
                    .map(|word| part.contains(word));
            assert!(!is_within || !breaks, "{text}");
            if mode.role == Cut::Candidate {
                assert_eq!(is_breaking, breaks && mode.bound.is_some(), "{text}");
                assert_eq!(is_forbidden, breaks && mode.bound.is_none(), "{text}");
            }
            within += usize::from(is_within);
            breaking += usize::from(is_breaking);
            forbidden += usize::from(is_forbidden);
            // The table says the same.
            let is_free = row.verdict.starts_with("no loss found");
            assert_eq!(
                is_free,
                harms.is_empty() && is_acknowledged,
                "{}: {text}",
                row.verdict
            );
        }
    }
    for (count, what) in [
        (nothing, "nothing"),
        (newest, "newest"),
        (holes, "holes"),
        (idle, "idle"),
        (within, "within"),
        (breaking, "breaking"),
        (forbidden, "forbidden"),
    ] {
        assert!(count >= 100, "{what}: {count}");
    }
}

#[test]
fn all_formats_tell_the_same_of_cuts() {
    let mut rng = Rng::new(0x0c07_115a);
    for _ in 0..40 {
        let report = crash::sample::random(&mut rng);
        let text = crash::sentence::sentence(&report, &crash::row::rows(&report));
        let style = Style {
            width: 100_000,
            colour: false,
        };
        assert_eq!(
            crash::terminal(&report, &style).lines().next(),
            Some(&*text)
        );
        let shown = crate::markdown::in_markdown(&text);
        assert!(crash::markdown(&report).contains(&shown), "{shown}");
        assert_eq!(answer_of(&crash::html(&report)), text.replace('`', ""));
    }
}

#[test]
fn nothing_is_verified_that_is_unknown() {
    let mut rng = Rng::new(0x0a99_11ed);
    for _ in 0..COMPARISONS {
        let checks: Vec<Check> = (0..rng.below(5))
            .map(|at| Check {
                layer: Layer::Effective,
                key: format!("key{at}"),
                expected: "on".to_owned(),
                found: String::new(),
                holds: [Some(true), None][rng.below(2) as usize],
            })
            .collect();
        let text = applied(&checks);
        let unknown: Vec<&Check> = checks.iter().filter(|one| one.holds.is_none()).collect();
        assert_eq!(
            text.contains("all "),
            unknown.is_empty() && checks.len() > 1,
            "{text}"
        );
        assert!(unknown.iter().all(|one| text.contains(&one.key)), "{text}");
        assert_eq!(
            text.contains("; verified"),
            unknown.len() < checks.len(),
            "{text}"
        );
    }
}
