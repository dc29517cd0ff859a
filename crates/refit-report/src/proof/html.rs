//! Gain and risk as one page: the answer, the table and its picture, then the runs and the
//! cuts they rest on.

use refit_crash::CrashReport;
use refit_lab::Comparison;

use super::Proof;
use super::notes::{notes, without_commands};
use super::picture::{self, STYLE as PICTURE};
use super::row::{Row, cuts, rows, table};
use super::sentence::sentence;
use crate::crash;
use crate::html::elements::{noted, section};
use crate::html::grid::coloured;
use crate::html::{self, colour, facts, footer, header, page};
use crate::markup::Markup;
use crate::notes::with;
use crate::sentence::paragraph;
use crate::table::{Column, Kind, Lines};
use crate::title::{title, why};

/// The page.
pub fn html(comparison: &Comparison, proof: &Proof) -> String {
    let styles = [
        include_str!("../crash/html/style.css"),
        include_str!("style.css"),
        PICTURE,
    ];
    let rows = rows(comparison, cuts(proof));
    page(
        &format!("refit compare --prove: {}", title(&comparison.experiment)),
        &styles,
        |body| {
            header(body, &comparison.experiment);
            body.element("main", &[], |main| {
                answer(main, comparison, proof, &rows);
                details(main, comparison, cuts(proof));
            });
            footer(
                body,
                &comparison.experiment.refit,
                comparison.experiment.started_unix,
            );
        },
    )
}

fn answer(main: &mut Markup, comparison: &Comparison, proof: &Proof, rows: &[Row]) {
    main.element("section", &[("class", "result")], |section| {
        paragraph(section, &sentence(comparison, proof, rows));
        if let Some(with) = with(&comparison.experiment) {
            section.leaf("p", &[], &format!("{} {}", with.label, with.text));
        }
        let notes = without_commands(proof, notes(comparison, proof, rows));
        noted(section, notes, |section| {
            verdicts(section, comparison, rows);
        });
    });
    if cuts(proof).is_some() {
        section(main, "Gain and loss", |section| {
            picture::draw(section, comparison, rows);
        });
    }
}

fn verdicts(section: &mut Markup, comparison: &Comparison, rows: &[Row]) {
    let mut table = table(comparison, rows);
    // The class stands below the name.
    table.extras.pop();
    table.name.kind = Kind::Variant;
    table.name.below = rows.iter().map(|row| about(comparison, row)).collect();
    let colours: Vec<String> = rows
        .iter()
        .map(|row| colour::class(&comparison.experiment, row.gain.index))
        .collect();
    // On a phone the verdict is to be seen without scrolling.
    let first = [&table.name, &table.verdict];
    let rest = table.numbers.iter().chain(&table.extras);
    let columns: Vec<&Column> = first.into_iter().chain(rest).collect();
    coloured(section, "verdicts", "proof-verdicts", &columns, &colours);
}

/// What stands below a variant's name.
fn about(comparison: &Comparison, row: &Row) -> Lines {
    let class = row.gain.class.clone();
    let risk = if class == "safe" {
        "class"
    } else {
        "class risk"
    };
    let why = why(&comparison.experiment, row.gain.variant).unwrap_or_default();
    let mut lines = vec![(class, risk), (why, "why")];
    lines.retain(|(text, _)| !text.is_empty());
    lines
}

fn details(main: &mut Markup, comparison: &Comparison, report: Option<&CrashReport>) {
    if let Some(report) = report {
        crash::html::details(main, report, &crash::row::rows(report));
    }
    html::details(main, comparison);
    let mut more = vec!["--prove".to_owned()];
    if let Some(report) = report {
        more.extend(["--cuts".to_owned(), report.cuts.to_string()]);
    }
    facts::repeat(main, comparison, &more);
    facts::failures(main, &comparison.experiment);
    facts::environment(main, &comparison.experiment);
}
