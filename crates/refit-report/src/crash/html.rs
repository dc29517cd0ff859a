//! A crash report as one page: no network, no script, light and dark. Whatever
//! a report holds is text on it, and however many cuts it has the page is small.

mod facts;
mod states;
mod timeline;

use refit_crash::CrashReport;

use super::notes::notes;
use super::row::{Row, rows, table};
use super::sentence::sentence;
use crate::format;
use crate::html::elements::{noted, section, tone};
use crate::html::grid::grid;
use crate::html::{footer, page};
use crate::markup::Markup;
use crate::paint::Tone;
use crate::sentence::paragraph;

/// The page.
#[must_use]
pub fn html(report: &CrashReport) -> String {
    let command = super::row::program(report);
    let styles = [include_str!("html/style.css")];
    page(&format!("refit crash: {command}"), &styles, |body| {
        body.element("header", &[], |header| {
            header.leaf("p", &[("class", "of")], "refit crash");
            header.element("h1", &[], |h1| h1.leaf("code", &[], &command));
        });
        body.element("main", &[], |main| sections(main, report));
        footer(body, &report.refit, report.started);
    })
}

fn sections(main: &mut Markup, report: &CrashReport) {
    let rows = rows(report);
    main.element("section", &[("class", "result")], |section| {
        paragraph(section, &sentence(report, &rows));
        let question = "Does what was acknowledged before a simulated power cut survive it?";
        section.leaf("p", &[], question);
        let mut table = table(&rows);
        // The class stands below the name.
        let classes = table.extras.pop().into_iter().flat_map(|class| class.cells);
        let below = classes.map(|(text, tone)| match tone {
            _ if text.is_empty() => Vec::new(),
            Tone::Plain => vec![(text, "class")],
            _ => vec![(text, "class risk")],
        });
        table.name.below = below.collect();
        // On a phone the verdict is to be seen without scrolling.
        let first = [&table.name, &table.verdict];
        let rest = table.numbers.iter().chain(&table.extras);
        let columns: Vec<_> = first.into_iter().chain(rest).collect();
        // The commands stand with the states, further down.
        let mut notes = notes(report, &rows);
        notes.retain(|note| note.label != "worst state:");
        noted(section, notes, |section| {
            grid(section, "verdicts", "cut-verdicts", &columns);
        });
    });
    details(main, report, &rows);
    facts::repeat(main, report);
    facts::machine(main, report);
}

/// The single cuts from which the verdicts were computed, and what the columns mean.
pub fn details(main: &mut Markup, report: &CrashReport, rows: &[Row]) {
    timelines(main, report, rows);
    facts::reached(main, rows);
    facts::meaning(main, report, rows);
}

fn timelines(main: &mut Markup, report: &CrashReport, rows: &[Row]) {
    section(main, "What each cut left", |section| {
        let text = "Each mode's run from left to right, in time since its start. A mark stands where the power was cut; its height is \
                    the age of the oldest lost acknowledgement at that moment (each picture has its own scale). A \
                    solid bar: everything newer is lost too. A ring: newer ones survived. At the dashed line \
                    everything that was acknowledged would be lost.";
        section.leaf("p", &[], text);
        timeline::legend(section);
        for row in rows {
            section.element("figure", &[("class", "mode")], |figure| {
                figure.element("figcaption", &[], |caption| {
                    caption.leaf("code", &[], &row.name);
                    caption.text(" ");
                    let tone = match row.tone {
                        Tone::Plain => "muted",
                        other => tone(other),
                    };
                    caption.leaf("span", &[("class", tone)], &row.verdict);
                    caption.leaf("span", &[("class", "small")], &about(row));
                });
                timeline::draw(figure, row.mode);
                states::worst(figure, report, row);
            });
        }
    });
}

/// The run in figures.
fn about(row: &Row) -> String {
    let record = &row.mode.record;
    let checked = match row.mode.checked_ns {
        0 => String::new(),
        ns => format!(
            "; {} took {}",
            format::plural(row.tally.cuts, "cut"),
            super::row::age(ns)
        ),
    };
    format!(
        "{} acknowledgements, {}, {} ({}) in {}{checked}",
        row.acknowledged,
        format::plural(record.flushes, "flush"),
        format::plural(record.writes, "write"),
        format::bytes(record.written_bytes as f64),
        super::row::age(record.length_ns),
    )
}
