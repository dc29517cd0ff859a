//! What no sentence may say, whatever was measured: thousands of random comparisons and checks.

use std::collections::BTreeSet;

use refit_lab::Comparison;
use refit_lab::experiment::Role;
use refit_services::{Check, Layer};
use refit_stats::{Measure, Rng};
use roxmltree::Document;

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
        let page = html(&comparison);
        let page = page.split_once("<main").expect("a page").1;
        let page = format!("<main{}", page.split_once("</main>").expect("a page").0) + "</main>";
        let page = Document::parse(&page).expect("well-formed");
        let answer = page
            .descendants()
            .find(|node| node.attribute("class") == Some("answer"))
            .expect("an answer");
        let words: String = answer
            .descendants()
            .filter_map(|node| node.text().filter(|_| node.is_text()))
            .collect();
        assert_eq!(words.replace('\u{a0}', " "), text.replace('`', ""));
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
