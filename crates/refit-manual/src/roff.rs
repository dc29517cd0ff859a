//! A page as a manual page, in the macros of man(7).

use crate::document::{Block, Document, Line, Style};
use crate::text::{aligned, labelled, plain};

/// Columns that a table may have: 80 without the margins of a page.
const COLUMNS: usize = 70;

/// What follows the head of a topic's page.
pub(crate) fn body(name: &str, about: &str, document: &Document) -> String {
    let mut out = section("Name");
    out.push_str(&format!("{} \\- {}\n", escaped(name), escaped(about)));
    let mut has_section = false;
    for block in &document.blocks {
        let starts_section = matches!(block, Block::Heading(..));
        if !has_section && !starts_section {
            out.push_str(&section("Description"));
        }
        // The title is what the page is named after.
        has_section |= !matches!(block, Block::Heading(1, _));
        write_block(&mut out, block);
    }
    out.push_str(&section("See also"));
    out.push_str(".BR refit (1)\n");
    out
}

/// What each page begins with. Text is neither stretched nor hyphenated: it holds commands.
pub(crate) fn head(name: &str, section: u8, version: &str) -> String {
    format!(
        ".TH \"{}\" {section} \"\" \"refit {version}\" \"refit manual\"\n.nh\n.ad l\n",
        escaped(&name.to_uppercase())
    )
}

pub(crate) fn section(title: &str) -> String {
    format!(".SH \"{}\"\n", quoted(&title.to_uppercase()))
}

/// Characters that roff would read as its own; at a line's begin a dot too.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    if text.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            _ => out.push(c),
        }
    }
    out
}

/// Within the quotes of a macro's argument.
fn quoted(text: &str) -> String {
    escaped(text).replace('"', "\\(dq")
}

/// `code` between backticks in bold, as definitions of commands write it.
pub(crate) fn marked(text: &str) -> String {
    let mut out = String::new();
    for (at, piece) in text.split('`').enumerate() {
        if at % 2 == 1 {
            out.push_str(&format!("\\fB{}\\fR", escaped(piece)));
        } else {
            out.push_str(&escaped(piece));
        }
    }
    if out.starts_with(['.', '\'']) {
        out.insert_str(0, "\\&");
    }
    out
}

fn styled(line: &Line) -> String {
    let pieces = line.iter().map(|span| {
        let text = escaped(&span.text);
        match span.style {
            Style::Plain => text,
            Style::Code | Style::Strong => format!("\\fB{text}\\fR"),
            Style::Emphasis => format!("\\fI{text}\\fR"),
        }
    });
    pieces.collect()
}

/// Lines that stay as they are.
fn verbatim(lines: &str) -> String {
    let mut out = ".RS 2\n.nf\n".to_owned();
    for line in lines.lines() {
        out.push_str(&escaped(line));
        out.push('\n');
    }
    out.push_str(".fi\n.RE\n");
    out
}

fn write_block(out: &mut String, block: &Block) {
    match block {
        Block::Heading(1, _) => {}
        Block::Heading(2, line) => out.push_str(&section(&plain(line).replace('`', ""))),
        Block::Heading(_, line) => {
            out.push_str(&format!(
                ".SS \"{}\"\n",
                quoted(&plain(line).replace('`', ""))
            ));
        }
        Block::Paragraph(line) => out.push_str(&format!(".PP\n{}\n", styled(line))),
        Block::Code(code) => {
            out.push_str(".PP\n");
            out.push_str(&verbatim(code));
        }
        Block::List(first, items) => {
            for (number, item) in (first.unwrap_or(0)..).zip(items) {
                let mark = first.map_or_else(|| "\\(bu 2".to_owned(), |_| format!("{number}. 4"));
                out.push_str(&format!(".IP {mark}\n"));
                write_item(out, item);
            }
        }
        Block::Table(head, rows) => write_table(out, head, rows),
    }
}

/// The first paragraph follows the mark; all else is moved to the right with it.
fn write_item(out: &mut String, item: &[Block]) {
    let mut rest = item;
    if let Some((Block::Paragraph(line), after)) = item.split_first() {
        out.push_str(&format!("{}\n", styled(line)));
        rest = after;
    }
    if !rest.is_empty() {
        out.push_str(".RS 2\n");
        for block in rest {
            write_block(out, block);
        }
        out.push_str(".RE\n");
    }
}

/// One that is too wide for a page is a list.
fn write_table(out: &mut String, head: &[Line], rows: &[Vec<Line>]) {
    if let Some(lines) = aligned(head, rows, COLUMNS) {
        out.push_str(".PP\n");
        out.push_str(&verbatim(&lines.join("\n")));
        return;
    }
    for row in rows {
        let mut cells = row.iter().zip(head);
        let Some((first, _)) = cells.next() else {
            continue;
        };
        out.push_str(&format!(".TP\n{}\n", styled(first)));
        let mut is_first = true;
        for (cell, head) in cells {
            if plain(cell).trim().is_empty() {
                continue;
            }
            if !is_first {
                out.push_str(".br\n");
            }
            out.push_str(&format!("{}\n", labelled(head, &styled(cell))));
            is_first = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_roff_would_obey_is_text() {
        assert_eq!(escaped(".TH a\\b -x"), "\\&.TH a\\eb \\-x");
        assert_eq!(marked("take `--x y`"), "take \\fB\\-\\-x y\\fR");
        assert_eq!(marked("`.a`"), "\\fB\\&.a\\fR");
        assert_eq!(section("say \"it\""), ".SH \"SAY \\(dqIT\\(dq\"\n");
    }
}
