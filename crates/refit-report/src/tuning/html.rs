//! A tuning as a page: what to take at each level of risk, the steps that led there, and what to type next.

use refit_lab::{Answer, Metric, ProofRecord, Tuning};
use refit_stats::Measure;

use super::{answer, next, observed, reasons, step_columns, subject, took, word};
use crate::format;
use crate::html::elements::{repeat, scrolled, section};
use crate::html::grid::{facts, grid};
use crate::html::verdicts::{Effects, caption};
use crate::html::{footer, page};
use crate::markup::Markup;
use crate::paint::Tone;
use crate::row::difference;
use crate::table::{Column, Content, Kind};

/// The page. `log`: the directory of the tuning, as it is typed.
#[must_use]
pub fn html(tuning: &Tuning, log: &str) -> String {
    let subject = subject(tuning);
    page(&format!("refit tune: {subject}"), &[], |body| {
        body.element("header", &[], |header| {
            header.leaf("p", &[("class", "of")], "refit tune");
            header.element("h1", &[], |h1| h1.leaf("code", &[], &subject));
        });
        body.element("main", &[], |main| sections(main, tuning, log));
        footer(body, &tuning.refit, tuning.started_unix);
    })
}

fn sections(main: &mut Markup, tuning: &Tuning, log: &str) {
    main.element("section", &[("class", "result")], |section| {
        section.element("p", &[("class", "answer")], |p| p.prose(&answer(tuning)));
        if !tuning.answers.is_empty() {
            scrolled(section, "answers", |section| answers(section, tuning));
        }
    });
    if let Some(columns) = step_columns(tuning) {
        section(main, "Steps", |section| {
            let text = "Each step compared what was left with the baseline, in more round pairs than the one before.";
            section.leaf("p", &[], text);
            grid(section, "steps", "", &columns.each_ref());
        });
    }
    let reasons = reasons(tuning);
    if !reasons.is_empty() {
        section(main, "Not tried", |section| {
            let rows: Vec<(String, &str)> = (reasons.into_iter())
                .map(|(reason, variants)| (variants.join(", "), reason))
                .collect();
            let rows = rows.iter().map(|(variants, reason)| (&**variants, *reason));
            facts(section, "what was not tried", rows);
        });
    }
    section(main, "What to type next", |section| {
        scrolled(section, "commands", |section| {
            section.element("pre", &[], |pre| {
                for line in next(tuning, log) {
                    pre.element("code", &[], |code| code.prose(&line));
                    pre.end_line();
                }
            });
        });
    });
    section(main, "How it was found", |section| {
        found(section, tuning, log)
    });
    if let Some(options) = &tuning.options {
        let about = "The seed fixes the order of the runs, not their times: on another day or machine other variants may be \
                     worth trying.";
        repeat(main, &again(tuning, options), about);
    }
}

/// The command of the tuning as it was typed, with the seed that it drew.
fn again(tuning: &Tuning, options: &[String]) -> Vec<String> {
    let mut words: Vec<String> = ["refit", "tune", "--seed"].map(str::to_owned).into();
    words.push(format::seed(tuning.seed));
    words.extend(options.iter().cloned());
    match &tuning.recipe {
        Some(recipe) => words.push(recipe.folder.as_ref().unwrap_or(&recipe.name).clone()),
        None => {
            words.push("--".to_owned());
            words.extend(tuning.command.iter().cloned());
        }
    }
    words
}

fn answers(section: &mut Markup, tuning: &Tuning) {
    let all = &tuning.answers;
    let of = |of: fn(&Answer) -> String| all.iter().map(of);
    let verdict = |answer: &Answer| {
        let effect = answer.effect.as_ref();
        let word = effect.and_then(|effect| Some(difference(effect, effect.verdict?)));
        match word {
            Some(word) => (word, Tone::Good),
            None => ("nothing to take".to_owned(), Tone::Plain),
        }
    };
    let change = |answer: &Answer| {
        let effect = answer.effect.as_ref();
        effect.map_or_else(String::new, |effect| format::percent(effect.change))
    };
    let interval = |answer: &Answer| {
        let effect = answer.effect.as_ref();
        effect.map_or_else(String::new, |effect| format::interval(effect.interval))
    };
    let names = of(|answer| {
        answer
            .variant
            .clone()
            .unwrap_or_else(|| "nothing".to_owned())
    });
    let below = all.iter().map(|answer| match &answer.reason {
        Some(reason) => vec![(reason.clone(), "why")],
        None if answer.risk.loss.risks_data() => vec![(answer.risk.to_string(), "class risk")],
        None => vec![(answer.risk.to_string(), "class")],
    });
    let columns = [
        Column::of(Kind::Code, "variant", names)
            .with(Content::Name)
            .over(below.collect()),
        Column::numbers("vs baseline", all.iter().map(change)).with(Content::Change),
        Column::numbers("95 % interval", all.iter().map(interval)).with(Content::Interval),
        Column::verdicts("verdict", all.iter().map(verdict)).with(Content::Verdict),
        Column::words("accepted", of(|answer| answer.accepted.to_string())).with(Content::Side),
        Column::words(
            "power cuts",
            of(|answer| match &answer.proof {
                Some(proof) => proof.to_string(),
                None => "not cut".to_owned(),
            }),
        )
        .with(Content::Side),
    ];
    let mut metrics = Metric::all(tuning.recipe.as_ref()).into_iter();
    let main = metrics.find(|metric| metric.name == tuning.main);
    let measure = main.map_or(Measure::Duration, |main| main.measure);
    let effects = Effects {
        columns: columns.iter().collect(),
        effects: all.iter().map(|answer| answer.effect.as_ref()).collect(),
        classes: (0..all.len()).map(|at| format!("v{}", at % 8)).collect(),
        caption: caption(measure, tuning.delta, ""),
        delta: tuning.delta,
    };
    effects.table(section);
}

fn found(section: &mut Markup, tuning: &Tuning, log: &str) {
    let proof = match &tuning.proof {
        Some(ProofRecord::Cut { file }) => Some(format!("refit report {}/{file}", word(log))),
        Some(ProofRecord::NotCut(why)) => Some(format!("not made: {why}")),
        None => None,
    };
    let rows = [
        ("observed", observed(tuning)),
        ("proof", proof),
        ("took", Some(took(tuning))),
        ("log", Some(format!("refit report --history {}", word(log)))),
    ];
    let rows: Vec<(&str, String)> = (rows.into_iter())
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    facts(
        section,
        "how it was found",
        rows.iter().map(|(name, value)| (*name, &**value)),
    );
}
