//! A crash report as one page: no network, no script, light and dark. Whatever
//! a report holds is text on it, and however many cuts it has the page is small.

mod facts;
mod states;
mod timeline;

use refit_crash::CrashReport;

use super::notes::notes;
use super::row::{Row, rows};
use crate::format;
use crate::html::markup::Html;
use crate::html::syncs::titles;
use crate::html::{footer, noted, page, scrolled, section, tone};
use crate::paint::Tone;

/// The page.
#[must_use]
pub fn html(report: &CrashReport) -> String {
    let command = format::command_line(&report.command);
    let styles = [
        include_str!("../html/style.css"),
        include_str!("html/style.css"),
    ];
    page(&format!("refit crash: {command}"), &styles, |body| {
        body.element("header", &[], |header| {
            header.leaf("p", &[("class", "of")], "refit crash");
            header.element("h1", &[], |h1| h1.leaf("code", &[], &command));
        });
        body.element("main", &[], |main| sections(main, report));
        footer(body, &report.refit, report.started);
    })
}

fn sections(main: &mut Html, report: &CrashReport) {
    let rows = rows(report);
    main.element("section", &[("class", "result")], |section| {
        let question =
            "What was acknowledged before a simulated power cut, and is it there afterwards?";
        section.leaf("p", &[], question);
        scrolled(section, "verdicts", |section| verdicts(section, &rows));
        // The commands stand with the states, further down.
        let mut notes = notes(report, &rows);
        notes.retain(|note| note.label != "worst state:");
        noted(section, notes);
    });
    timelines(main, report, &rows);
    facts::reached(main, &rows);
    facts::meaning(main, report, &rows);
    facts::repeat(main, report);
    facts::machine(main, report);
}

fn verdicts(section: &mut Html, rows: &[Row]) {
    section.element("table", &[("class", "data cut-verdicts")], |table| {
        let numbers = ["worst loss", "oldest", "bad images", "cuts", "acked"];
        titles(table, &["mode", "verdict", "how"], &numbers);
        table.element("tbody", &[], |body| {
            for row in rows {
                body.element("tr", &[], |tr| cells(tr, row));
            }
        });
    });
}

fn cells(tr: &mut Html, row: &Row) {
    tr.element("th", &[("scope", "row")], |th| {
        th.leaf("code", &[], &row.name);
        if !row.class.is_empty() {
            let class = if row.mode.may_lose {
                "class risk"
            } else {
                "class"
            };
            th.leaf("span", &[("class", class)], &row.class);
        }
    });
    tr.element("td", &[], |td| {
        td.leaf("strong", &[("class", tone(row.tone))], &row.verdict);
    });
    tr.leaf("td", &[], &row.how);
    for text in [
        &row.worst,
        &row.oldest,
        &row.images,
        &row.cuts,
        &row.acknowledged,
    ] {
        tr.leaf("td", &[("class", "number")], text);
    }
}

fn timelines(main: &mut Html, report: &CrashReport, rows: &[Row]) {
    section(main, "What each cut left", |section| {
        let text = "Each mode's run from left to right, in time since its start. A mark stands where the power was cut; its height says how \
                    long before the cut the oldest lost thing had been acknowledged (each picture has a scale of \
                    its own). A solid bar: everything newer than that is gone. A ring: that one is gone, and newer \
                    ones are there. The dashed line is where all that was acknowledged would be gone.";
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
        format::plural(record.flushes, "flush").replace("flushs", "flushes"),
        format::plural(record.writes, "write"),
        format::bytes(record.written_bytes as f64),
        super::row::age(record.length_ns),
    )
}
