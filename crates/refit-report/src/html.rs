//! The result of a comparison as one page: no network, no script, light and
//! dark, from a phone to paper. Whatever a record holds is text on it.

mod answers;
pub mod chart;
pub mod colour;
pub mod elements;
mod ending;
pub mod facts;
pub mod grid;
mod memory;
mod metrics;
mod strip;
mod syncs;
pub mod verdicts;

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;

use crate::answers::is_exact;
use crate::format;
use crate::markup::Markup;
use crate::notes::{notes, summary, with};
use crate::sentence::{paragraph, sentence, with_code};
use crate::title::{question, subject, title};
use elements::{noted, scrolled, section};

/// The page.
#[must_use]
pub fn html(comparison: &Comparison) -> String {
    let title = format!("refit compare: {}", title(&comparison.experiment));
    page(&title, &[], |body| {
        header(body, &comparison.experiment);
        body.element("main", &[], |main| sections(main, comparison));
        footer(
            body,
            &comparison.experiment.refit,
            comparison.experiment.started_unix,
        );
    })
}

/// A document, with these style sheets after those of every page.
pub fn page(title: &str, styles: &[&str], content: impl FnOnce(&mut Markup)) -> String {
    let mut page = Markup::default();
    page.element("html", &[("lang", "en")], |page| {
        page.element("head", &[], |head| {
            head.void("meta", &[("charset", "utf-8")]);
            let viewport = "width=device-width, initial-scale=1";
            head.void("meta", &[("name", "viewport"), ("content", viewport)]);
            head.void(
                "meta",
                &[("name", "color-scheme"), ("content", "light dark")],
            );
            head.leaf("title", &[], title);
            let common = [&*colour::rules(), include_str!("html/style.css")];
            for style in common.iter().chain(styles) {
                head.style(style);
            }
        });
        page.element("body", &[], content);
    });
    format!("<!DOCTYPE html>\n{}\n", page.finish())
}

/// What was asked.
pub fn header(body: &mut Markup, experiment: &Experiment) {
    let tool = "refit compare";
    body.element("header", &[], |header| match question(experiment) {
        Some(question) => {
            header.element("p", &[("class", "of")], |of| {
                of.text(tool);
                of.text(" ");
                of.leaf("code", &[], &subject(experiment));
            });
            header.element("h1", &[], |h1| with_code(h1, &question));
        }
        None => {
            header.leaf("p", &[("class", "of")], tool);
            header.element("h1", &[], |h1| h1.leaf("code", &[], &subject(experiment)));
        }
    });
}

fn sections(main: &mut Markup, comparison: &Comparison) {
    main.element("section", &[("class", "result")], |section| {
        paragraph(section, &sentence(comparison));
        if let Some(with) = with(&comparison.experiment) {
            section.leaf("p", &[], &format!("{} {}", with.label, with.text));
        }
        noted(section, notes(comparison), |section| {
            if !is_exact(&comparison.experiment) {
                scrolled(section, "verdicts", |section| {
                    verdicts::table(section, comparison)
                });
            }
        });
    });
    details(main, comparison);
    facts::repeat(main, comparison, &[]);
    facts::failures(main, &comparison.experiment);
    facts::environment(main, &comparison.experiment);
}

/// The single runs from which the verdicts were computed.
pub fn details(main: &mut Markup, comparison: &Comparison) {
    if let Some(again) = &comparison.confirmation {
        section(main, "Confirmation", |section| {
            let text = "The winner was compared with the baseline once more, with a new seed. It was picked for \
                        being the best, so this is the number to report.";
            section.leaf("p", &[], text);
            scrolled(section, "verdicts", |section| {
                verdicts::table(section, again)
            });
            section.leaf("p", &[("class", "small")], &summary(again));
        });
    }
    answers::section(main, &comparison.experiment);
    if !is_exact(&comparison.experiment) {
        strip::section(main, comparison);
        memory::section(main, comparison);
        ending::section(main, comparison);
        syncs::section(main, comparison);
        metrics::section(main, comparison);
    }
}

/// Who made it, and when.
pub fn footer(body: &mut Markup, refit: &str, started: u64) {
    let text = format!(
        "refit {refit}, {} UTC. All numbers are of this machine and this day.",
        format::date(started)
    );
    body.leaf("footer", &[], &text);
}

#[cfg(test)]
#[path = "html/tests.rs"]
mod tests;
