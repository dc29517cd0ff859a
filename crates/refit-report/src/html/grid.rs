//! Tables of columns, as every format has them.

use super::elements::{scrolled, tone};
use crate::markup::Markup;
use crate::paint::Tone;
use crate::table::{Column, Kind};

/// A table of the class `data` and of `class`, in a box that scrolls. The first
/// column names the rows. Where no column has a title there is no header row.
pub fn grid(section: &mut Markup, about: &str, class: &str, columns: &[&Column]) {
    coloured(section, about, class, columns, &[]);
}

/// A table of two columns without titles: names and values.
pub fn facts<'a>(
    section: &mut Markup,
    about: &str,
    facts: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let (names, values): (Vec<&str>, Vec<&str>) = facts.unzip();
    let column = |words: Vec<&str>| Column::words("", words.into_iter().map(str::to_owned));
    let columns = [column(names), column(values)];
    grid(section, about, "facts", &columns.each_ref());
}

/// A [`grid`] whose rows have classes: the class of a variant gives the dots in its row
/// the variant's colour.
pub fn coloured(
    section: &mut Markup,
    about: &str,
    class: &str,
    columns: &[&Column],
    colours: &[String],
) {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let has_titles = columns.iter().any(|column| !column.title.is_empty());
    let cards = if has_titles { "cards " } else { "" };
    let class = format!("data {cards}{class}");
    scrolled(section, about, |section| {
        section.element("table", &[("class", class.trim_end())], |table| {
            if has_titles {
                table.element("thead", &[], |head| {
                    head.element("tr", &[], |tr| {
                        columns.iter().for_each(|column| title(tr, column));
                    });
                });
            }
            table.element("tbody", &[], |body| {
                for row in 0..rows {
                    let colour = colours.get(row).map(|colour| ("class", &**colour));
                    body.element("tr", colour.as_slice(), |tr| {
                        for (i, column) in columns.iter().enumerate() {
                            cell(tr, i == 0, column, row);
                        }
                    });
                }
            });
        });
    });
}

fn title(tr: &mut Markup, column: &Column) {
    let number = match column.kind {
        Kind::Numbers => "number ",
        _ => "",
    };
    let class = format!("{number}{}", column.class);
    tr.classed("th", class.trim_end(), |th| {
        if column.class.is_empty() {
            th.text(&column.title);
        } else {
            th.leaf("span", &[("class", "dot")], "");
            th.leaf("code", &[], &column.title);
        }
    });
}

fn cell(tr: &mut Markup, is_name: bool, column: &Column, row: usize) {
    let (text, says) = &column.cells[row];
    let class = match (column.kind, says) {
        (Kind::Numbers, _) => "number",
        (Kind::Prose, _) => "long",
        (Kind::Words, says) if *says != Tone::Plain => tone(*says),
        _ => "",
    };
    let content = |td: &mut Markup| {
        match column.kind {
            _ if text.is_empty() => {}
            Kind::Code => td.leaf("code", &[], text),
            Kind::Variant => {
                td.leaf("span", &[("class", "dot")], "");
                td.leaf("code", &[], text);
            }
            Kind::Verdict => td.leaf("strong", &[("class", tone(*says))], text),
            _ => td.text(text),
        }
        below(td, column, row);
    };
    if is_name {
        tr.element("th", &[("scope", "row")], content);
    } else {
        // On a narrow screen a style sheet hides the header row and shows this title in the cell.
        let all = [("class", class), ("data-title", &*column.title)];
        let attributes: Vec<_> = all
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        tr.element("td", &attributes, content);
    }
}

/// What stands below a cell.
pub fn below(td: &mut Markup, column: &Column, row: usize) {
    for (text, class) in column.below.get(row).iter().flat_map(|below| below.iter()) {
        td.leaf("span", &[("class", class)], text);
    }
}
