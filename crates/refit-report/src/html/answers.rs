//! Exact answers as a table.

use refit_lab::experiment::Experiment;

use super::markup::Html;
use super::scrolled;
use crate::answers::{lines, note};

/// Nothing where nothing was asked.
pub fn section(main: &mut Html, experiment: &Experiment) {
    let lines = lines(experiment);
    if lines.is_empty() {
        return;
    }
    let then = note(experiment);
    super::section(main, "Exact answers", |section| {
        let text = "All runs of a variant gave the same answers; a variant whose runs differed was disqualified.";
        section.leaf("p", &[], text);
        scrolled(section, "exact answers", |section| {
            section.element("table", &[("class", "data facts")], |table| {
                table.element("thead", &[], |head| {
                    head.element("tr", &[], |tr| {
                        for title in ["question", "answer", "given by"] {
                            tr.leaf("th", &[], title);
                        }
                        if let Some(note) = &then {
                            tr.leaf("th", &[], &format!("then: {note}"));
                        }
                    });
                });
                table.element("tbody", &[], |body| {
                    let mut before = "";
                    for line in &lines {
                        body.element("tr", &[], |tr| {
                            let question = if line.question == before {
                                ""
                            } else {
                                &line.question
                            };
                            tr.leaf("th", &[("scope", "row")], question);
                            tr.element("td", &[], |td| td.leaf("code", &[], &line.answer));
                            tr.leaf("td", &[], &line.variants);
                            if then.is_some() {
                                cell(tr, line.then.as_deref(), line.differs);
                            }
                        });
                        before = &line.question;
                    }
                });
            });
        });
    });
}

fn cell(tr: &mut Html, then: Option<&str>, differs: bool) {
    let class = if differs { "unsure" } else { "plain" };
    tr.element("td", &[("class", class)], |td| {
        if let Some(then) = then {
            td.text(if differs { "≠ " } else { "= " });
            td.leaf("code", &[], then);
        }
    });
}
