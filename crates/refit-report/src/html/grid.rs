//! Tables of columns, as every format has them.

use super::markup::Html;
use super::{scrolled, tone};
use crate::paint::Tone;
use crate::table::{Column, Kind};

/// A table of the class `data` and this one, in a box that scrolls. The first
/// column names the rows; without titles there is no line for them.
pub fn grid(section: &mut Html, about: &str, class: &str, columns: &[&Column]) {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let class = format!("data {class}");
    scrolled(section, about, |section| {
        section.element("table", &[("class", class.trim_end())], |table| {
            if columns.iter().any(|column| !column.title.is_empty()) {
                titles(table, columns.iter().map(|c| (c.kind, &*c.title)));
            }
            table.element("tbody", &[], |body| {
                for row in 0..rows {
                    body.element("tr", &[], |tr| {
                        for (i, column) in columns.iter().enumerate() {
                            cell(tr, i == 0, column, row);
                        }
                    });
                }
            });
        });
    });
}

/// The line of titles.
pub fn titles<'a>(table: &mut Html, titles: impl Iterator<Item = (Kind, &'a str)>) {
    table.element("thead", &[], |head| {
        head.element("tr", &[], |tr| {
            for (kind, title) in titles {
                match kind {
                    Kind::Numbers => tr.leaf("th", &[("class", "number")], title),
                    _ => tr.leaf("th", &[], title),
                }
            }
        });
    });
}

fn cell(tr: &mut Html, is_name: bool, column: &Column, row: usize) {
    let (text, says) = &column.cells[row];
    let class = match (column.kind, says) {
        (Kind::Numbers, _) => "number",
        (Kind::Prose, _) => "long",
        (Kind::Words, says) if *says != Tone::Plain => tone(*says),
        _ => "",
    };
    let attributes = match (is_name, class) {
        (true, _) => ("scope", "row"),
        (false, class) => ("class", class),
    };
    let name = if is_name { "th" } else { "td" };
    let attributes = [attributes];
    let attributes = if attributes[0].1.is_empty() {
        &[][..]
    } else {
        &attributes
    };
    tr.element(name, attributes, |td| {
        match column.kind {
            _ if text.is_empty() => {}
            Kind::Code => td.leaf("code", &[], text),
            Kind::Verdict => td.leaf("strong", &[("class", tone(*says))], text),
            _ => td.text(text),
        }
        if let Some((text, says)) = column.below.get(row).filter(|(text, _)| !text.is_empty()) {
            let class = match says {
                Tone::Plain => "class",
                _ => "class risk",
            };
            td.leaf("span", &[("class", class)], text);
        }
    });
}
