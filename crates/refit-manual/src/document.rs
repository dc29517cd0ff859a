//! A page of Markdown as blocks of text.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A whole page.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// The title of the page has level 1.
    Heading(u8, Line),
    Paragraph(Line),
    /// Lines that stay as they are.
    Code(String),
    /// Its items; the number of the first, where they are numbered.
    List(Option<u64>, Vec<Vec<Block>>),
    Table(Vec<Line>, Vec<Vec<Line>>),
}

/// Text that is folded into lines by whoever writes it.
pub(crate) type Line = Vec<Span>;

/// A piece of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub text: String,
    pub style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// What is typed or printed.
    Code,
    Strong,
    Emphasis,
}

/// A file's name → what is typed after `refit help`.
pub(crate) type TopicOf = fn(&str) -> Option<&'static str>;

impl Document {
    /// `topic_of` names the topic that a file of docs/ is, where it is one: a link to it becomes its command.
    pub fn read(markdown: &str, topic_of: TopicOf) -> Self {
        let mut reader = Reader {
            events: Parser::new_ext(markdown, Options::ENABLE_TABLES),
            topic_of,
        };
        Self {
            blocks: reader.blocks(None),
        }
    }
}

struct Reader<'a> {
    events: Parser<'a>,
    topic_of: TopicOf,
}

impl Reader<'_> {
    /// Up to the end of what holds them.
    fn blocks(&mut self, end: Option<TagEnd>) -> Vec<Block> {
        let mut blocks = Vec::new();
        // An item of a tight list has text without a paragraph.
        let mut loose = Line::new();
        while let Some(event) = self.events.next() {
            let block = match event {
                Event::End(tag) if Some(tag) == end => break,
                Event::Start(tag) if is_inline(&tag) => {
                    self.inline(tag, &mut loose);
                    continue;
                }
                Event::Start(tag) => self.block(tag),
                other => {
                    push_text(other, Style::Plain, &mut loose);
                    continue;
                }
            };
            end_paragraph(&mut blocks, &mut loose);
            blocks.extend(block);
        }
        end_paragraph(&mut blocks, &mut loose);
        blocks
    }

    fn block(&mut self, tag: Tag) -> Vec<Block> {
        let end = tag.to_end();
        match tag {
            Tag::Heading { level, .. } => vec![Block::Heading(level as u8, self.line(end))],
            Tag::Paragraph => {
                let line = self.line(end);
                // A picture alone leaves nothing.
                let is_empty = line.iter().all(|span| span.text.trim().is_empty());
                if is_empty {
                    Vec::new()
                } else {
                    vec![Block::Paragraph(line)]
                }
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                let line = self.line(end);
                vec![Block::Code(
                    line.into_iter().map(|span| span.text).collect(),
                )]
            }
            Tag::List(first) => {
                let mut items = Vec::new();
                while let Some(event) = self.events.next() {
                    match event {
                        Event::Start(Tag::Item) => items.push(self.blocks(Some(TagEnd::Item))),
                        Event::End(tag) if tag == end => break,
                        _ => {}
                    }
                }
                vec![Block::List(first, items)]
            }
            Tag::Table(_) => {
                let (mut head, mut rows, mut row) = (Vec::new(), Vec::new(), Vec::new());
                while let Some(event) = self.events.next() {
                    match event {
                        Event::Start(Tag::TableCell) => row.push(self.line(TagEnd::TableCell)),
                        Event::End(TagEnd::TableHead) => head = std::mem::take(&mut row),
                        Event::End(TagEnd::TableRow) => rows.push(std::mem::take(&mut row)),
                        Event::End(tag) if tag == end => break,
                        _ => {}
                    }
                }
                vec![Block::Table(head, rows)]
            }
            // A quotation among others: what it holds.
            _ => self.blocks(Some(end)),
        }
    }

    fn line(&mut self, end: TagEnd) -> Line {
        let mut line = Line::new();
        self.spans(end, Style::Plain, &mut line);
        line
    }

    fn spans(&mut self, end: TagEnd, style: Style, line: &mut Line) {
        while let Some(event) = self.events.next() {
            match event {
                Event::End(tag) if tag == end => return,
                Event::Start(tag) => self.inline(tag, line),
                other => push_text(other, style, line),
            }
        }
    }

    fn inline(&mut self, tag: Tag, line: &mut Line) {
        let end = tag.to_end();
        match tag {
            Tag::Strong => self.spans(end, Style::Strong, line),
            Tag::Emphasis => self.spans(end, Style::Emphasis, line),
            // A text has no pictures.
            Tag::Image { .. } => self.spans(end, Style::Plain, &mut Line::new()),
            Tag::Link { dest_url, .. } => {
                let before = line.len();
                self.spans(end, Style::Plain, line);
                let place = dest_url.split('#').next().unwrap_or_default();
                if let Some(topic) = (self.topic_of)(place) {
                    let text: String = line.drain(before..).map(|span| span.text).collect();
                    let page = span(format!("refit help {topic}"), Style::Code);
                    if text != place {
                        line.push(span(format!("{text}: "), Style::Plain));
                    }
                    line.push(page);
                } else if dest_url.starts_with("http") && !names_a_page(&line[before..]) {
                    line.push(span(format!(" ({dest_url})"), Style::Plain));
                }
            }
            _ => self.spans(end, Style::Plain, line),
        }
    }
}

/// `fsync(2)`: who reads this can open it, and needs no address.
fn names_a_page(spans: &[Span]) -> bool {
    let last = spans.last().and_then(|span| span.text.strip_suffix(')'));
    let section = last.and_then(|text| text.rsplit_once('('));
    section.is_some_and(|(name, section)| {
        !name.is_empty() && section.len() == 1 && section.bytes().all(|c| c.is_ascii_digit())
    })
}

fn is_inline(tag: &Tag) -> bool {
    matches!(
        tag,
        Tag::Strong | Tag::Emphasis | Tag::Link { .. } | Tag::Image { .. }
    )
}

fn span(text: String, style: Style) -> Span {
    Span { text, style }
}

fn push_text(event: Event, style: Style, line: &mut Line) {
    match event {
        Event::Text(text) => line.push(span(text.into_string(), style)),
        Event::Code(text) => line.push(span(text.into_string(), Style::Code)),
        Event::SoftBreak | Event::HardBreak => line.push(span(" ".to_owned(), style)),
        // HTML, rules: nothing that a text has.
        _ => {}
    }
}

fn end_paragraph(blocks: &mut Vec<Block>, loose: &mut Line) {
    if !loose.is_empty() {
        blocks.push(Block::Paragraph(std::mem::take(loose)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Span {
        span(text.to_owned(), Style::Plain)
    }

    fn code(text: &str) -> Span {
        span(text.to_owned(), Style::Code)
    }

    #[test]
    fn a_page_is_read_into_blocks() {
        let page = "# Title\n\nOne `two`\nthree.\n\n- a\n- b\n  - c\n\n```\nx  y\n```\n\n| h | i |\n|---|---|\n| `k` | l |\n";
        assert_eq!(
            Document::read(page, crate::topic::topic_of_file).blocks,
            [
                Block::Heading(1, vec![plain("Title")]),
                Block::Paragraph(vec![
                    plain("One "),
                    code("two"),
                    plain(" "),
                    plain("three.")
                ]),
                Block::List(
                    None,
                    vec![
                        vec![Block::Paragraph(vec![plain("a")])],
                        vec![
                            Block::Paragraph(vec![plain("b")]),
                            Block::List(None, vec![vec![Block::Paragraph(vec![plain("c")])]]),
                        ],
                    ]
                ),
                Block::Code("x  y\n".to_owned()),
                Block::Table(
                    vec![vec![plain("h")], vec![plain("i")]],
                    vec![vec![vec![code("k")], vec![plain("l")]]]
                ),
            ]
        );
    }

    #[test]
    fn a_link_to_another_page_names_the_command_that_prints_it() {
        for (markdown, text) in [
            ("[safety.md](safety.md)", "refit help safety"),
            ("[more](safety.md#known-limits)", "more: refit help safety"),
            ("[site](https://a.example/)", "site (https://a.example/)"),
            ("[fsync(2)](https://a.example/)", "fsync(2)"),
            ("[folder](../recipes/x)", "folder"),
        ] {
            let Block::Paragraph(line) =
                &Document::read(markdown, crate::topic::topic_of_file).blocks[0]
            else {
                panic!("no paragraph");
            };
            let all: String = line.iter().map(|span| &*span.text).collect();
            assert_eq!(all, text);
        }
    }
}
