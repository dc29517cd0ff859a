//! A page as plain text for a terminal: no colours, no characters to move or to mark, so that it reads the same in a
//! pager, a mail and a file.

use crate::document::{Block, Document, Line, Style};

/// Between the columns of a table.
const GAP: usize = 2;

pub(crate) fn write(document: &Document, columns: usize) -> String {
    let mut writer = Writer {
        out: String::new(),
        columns,
    };
    writer.blocks(&document.blocks, 0);
    writer.out
}

/// Text of one line, before it is folded.
pub(crate) fn plain(line: &Line) -> String {
    let pieces = line.iter().map(|span| match span.style {
        Style::Code => format!("`{}`", span.text),
        Style::Plain | Style::Strong | Style::Emphasis => span.text.clone(),
    });
    pieces.collect()
}

/// Cut at blanks into lines of at most so many characters, but for words that are longer.
fn folded(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if width + 1 + length <= columns => {
                line.push(' ');
                line.push_str(word);
                width += 1 + length;
            }
            _ => {
                lines.push(word.to_owned());
                width = length;
            }
        }
    }
    lines
}

/// The rows of a table as lines, where all of them fit.
pub(crate) fn aligned(head: &[Line], rows: &[Vec<Line>], columns: usize) -> Option<Vec<String>> {
    let all: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows.iter().map(Vec::as_slice))
        .map(|row| row.iter().map(plain).collect())
        .collect();
    let count = all.iter().map(Vec::len).max()?;
    let width = |at: usize| {
        let cells = all.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let total = widths.iter().sum::<usize>() + GAP * count.saturating_sub(1);
    if total > columns {
        return None;
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let text: String = cells
            .map(|(cell, width)| format!("{cell:0$}", width + GAP))
            .collect();
        text.trim_end().to_owned()
    };
    Some(all.iter().map(line).collect())
}

struct Writer {
    out: String,
    columns: usize,
}

impl Writer {
    fn blocks(&mut self, blocks: &[Block], indent: usize) {
        for block in blocks {
            if !self.out.is_empty() {
                self.out.push('\n');
            }
            self.block(block, indent);
        }
    }

    fn block(&mut self, block: &Block, indent: usize) {
        match block {
            Block::Heading(1, line) => self.put(0, &plain(line).to_uppercase()),
            Block::Heading(2, line) => self.put(0, &plain(line)),
            Block::Heading(_, line) => self.put(1, &plain(line)),
            Block::Paragraph(line) => self.put(indent.max(2), &plain(line)),
            Block::Code(code) => {
                for line in code.lines() {
                    self.raw(indent + 4, line);
                }
            }
            Block::List(first, items) => self.list(*first, items, indent.max(2)),
            Block::Table(head, rows) => self.table(head, rows, indent.max(2)),
        }
    }

    fn list(&mut self, first: Option<u64>, items: &[Vec<Block>], indent: usize) {
        for (number, item) in (first.unwrap_or(0)..).zip(items) {
            let mark = first.map_or_else(|| "- ".to_owned(), |_| format!("{number}. "));
            let mut item = item.iter();
            let inner = indent + mark.len();
            if let Some(Block::Paragraph(line)) = item.as_slice().first() {
                item.next();
                let lines = folded(&plain(line), self.columns.saturating_sub(inner));
                for (at, line) in lines.iter().enumerate() {
                    let start = if at == 0 { &*mark } else { "" };
                    self.raw(indent, &format!("{start:0$}{line}", mark.len()));
                }
            } else {
                self.raw(indent, mark.trim_end());
            }
            for block in item {
                self.block(block, inner);
            }
        }
    }

    /// One that is too wide becomes a list: the first cell, and below it what the others are.
    fn table(&mut self, head: &[Line], rows: &[Vec<Line>], indent: usize) {
        if let Some(lines) = aligned(head, rows, self.columns.saturating_sub(indent)) {
            for line in lines {
                self.raw(indent, &line);
            }
            return;
        }
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            let mut cells = row.iter().zip(head);
            if let Some((first, _)) = cells.next() {
                self.put(indent, &plain(first));
            }
            for (cell, head) in cells {
                let text = plain(cell);
                if !text.trim().is_empty() {
                    self.put(indent + 4, &labelled(head, &text));
                }
            }
        }
    }

    fn put(&mut self, indent: usize, text: &str) {
        for line in folded(text, self.columns.saturating_sub(indent)) {
            self.raw(indent, &line);
        }
    }

    fn raw(&mut self, indent: usize, line: &str) {
        let line = format!("{:indent$}{line}", "");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

/// A cell after the head of its column, if that has one.
pub(crate) fn labelled(head: &Line, text: &str) -> String {
    match plain(head) {
        head if head.is_empty() => text.to_owned(),
        head => format!("{head}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_folded_indented_and_aligned() {
        let page = "# A title\n\nOne two three four five six.\n\n## Part\n\n- first of two\n- second\n\n```\nas  it is\n```\n\n\
                    | a | b |\n|---|---|\n| 1 | two |\n\n| name | meaning |\n|---|---|\n| x | much longer than the others are |\n";
        let expected = "A TITLE\n\n  One two three\n  four five six.\n\nPart\n\n  - first of two\n  - second\n\n    as  it is\n\n  \
                        a  b\n  1  two\n\n  x\n      meaning:\n      much longer\n      than the\n      others are\n";
        assert_eq!(
            write(&Document::read(page, crate::topic::topic_of_file), 18),
            expected
        );
    }
}
