//! A scan as one page: the answer, every candidate at every value as a table and as a chart.

use refit_lab::Scan;

use super::chart::{Chart, about, height};
use super::{answer, columns, more_time, together};
use crate::html::elements::{noted, section};
use crate::html::grid::grid;
use crate::html::{chart, facts, footer, header, page};
use crate::markup::{At, Markup};
use crate::notes::note;
use crate::paint::Tone;
use crate::sentence::paragraph;
use crate::table::Column;
use crate::title::title;

/// The page.
#[must_use]
pub fn html(scan: &Scan) -> String {
    let first = scan
        .points
        .first()
        .map(|point| &point.comparison.experiment);
    let subject = first.map(title).unwrap_or_default();
    let styles = [include_str!("chart.css")];
    page(
        &format!("refit compare --scan: {subject}"),
        &styles,
        |body| {
            if let Some(first) = first {
                header(body, first);
            }
            body.element("main", &[], |main| {
                main.element("section", &[("class", "result")], |section| {
                    paragraph(section, &answer(scan));
                    let notes = [Some(together(scan)), more_time(scan)]
                        .into_iter()
                        .flatten();
                    let notes = notes.map(|text| note("", Tone::Plain, text)).collect();
                    noted(section, notes, |section| {
                        let mut columns = columns(scan);
                        // On a narrow screen each row is a block, and this is all that names it.
                        let named = columns[0].cells.iter();
                        let named = named.map(|(value, _)| format!("{}={value}", scan.setting));
                        let named: Vec<String> = named.collect();
                        columns[0] = Column::words(&scan.setting, named.into_iter());
                        let columns: Vec<&Column> = columns.iter().collect();
                        grid(section, "every candidate at every value", "", &columns);
                    });
                });
                let chart = Chart::new(scan);
                if !chart.is_empty() {
                    drawn(main, scan, &chart);
                }
                if let Some(first) = first {
                    facts::environment(main, first);
                }
            });
            let started = first.map_or(0, |first| first.started_unix);
            footer(body, &scan.refit, started);
        },
    )
}

fn drawn(main: &mut Markup, scan: &Scan, of: &Chart) {
    section(main, &format!("By {}", scan.setting), |section| {
        section.leaf("p", &[], &about(scan, of));
        section.element("ul", &[("class", "legend")], |list| {
            for (candidate, name) in of.names.iter().enumerate() {
                list.element("li", &[("class", &of.colour(candidate))], |item| {
                    item.leaf("span", &[("class", "dot")], "");
                    item.text(name);
                });
            }
        });
        section.element("div", &[("class", "chart")], |div| {
            let labels = of
                .labels()
                .map(|(change, label)| (of.height(change), label));
            chart::labels(div, super::chart::HEIGHT + super::chart::FOOT, labels);
            div.element("div", &[("class", "field")], |field| {
                let height = height();
                let name = "effect of each candidate at each value";
                let attributes = [("height", &*height), ("role", "img"), ("aria-label", name)];
                field.element("svg", &attributes, |svg| of.draw(svg, 0.0, At::Part));
            });
        });
    });
}
