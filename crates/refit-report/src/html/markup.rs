//! Elements that close and texts that stay texts.

use std::fmt::Write;

use crate::format;
use crate::svg::{escaped, number};

/// A piece of a page.
#[derive(Default)]
pub struct Html(String);

/// Name and value of an attribute.
pub type Attribute<'a> = (&'static str, &'a str);

impl Html {
    /// An element with whatever `content` puts into it.
    pub fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute],
        content: impl FnOnce(&mut Html),
    ) {
        self.open(name, attributes);
        self.0.push('>');
        content(self);
        let _ = write!(self.0, "</{name}>");
        if matches!(
            name,
            "p" | "li" | "tr" | "h2" | "section" | "svg" | "table" | "ul" | "div" | "pre" | "title"
        ) {
            self.0.push('\n');
        }
    }

    /// An element that holds nothing but text.
    pub fn leaf(&mut self, name: &'static str, attributes: &[Attribute], text: &str) {
        self.element(name, attributes, |html| html.text(text));
    }

    /// An element without content. In HTML only `meta` and the shapes of SVG may
    /// end like this.
    pub fn void(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.open(name, attributes);
        self.0.push_str("/>");
    }

    fn open(&mut self, name: &'static str, attributes: &[Attribute]) {
        let _ = write!(self.0, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.0, " {key}=\"{}\"", escaped(&format::printable(value)));
        }
    }

    /// Text of any origin. A percent sign stays with its number.
    pub fn text(&mut self, text: &str) {
        let text = escaped(&format::printable(text));
        self.0.push_str(&text.replace(" %", "\u{a0}%"));
    }

    /// A sentence, in which an option is not broken after its dashes.
    pub fn prose(&mut self, text: &str) {
        for (i, word) in text.split(' ').enumerate() {
            if i > 0 {
                self.text(if word.starts_with('%') { "\u{a0}" } else { " " });
            }
            if word.contains("--") {
                self.leaf("span", &[("class", "option")], word);
            } else {
                self.text(word);
            }
        }
    }

    /// Our own style sheet, in which nothing of a record may be.
    pub fn style(&mut self, css: &str) {
        let _ = writeln!(self.0, "<style>\n{css}</style>");
    }

    /// The whole.
    pub fn finish(self) -> String {
        self.0
    }
}

/// A part of the breadth, from 0 to 1, as SVG and CSS take it: charts have the
/// breadth of the screen, and their texts keep their size.
pub fn part(part: f64) -> String {
    let percent = if part.is_finite() { part * 100.0 } else { 0.0 };
    format!("{}%", number(percent.clamp(0.0, 100.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_element() {
        let mut html = Html::default();
        html.leaf("p", &[("title", "\"><script>")], "</p>\u{1b}&\u{202e}");
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;/p&gt;\\u{1b}&amp;\\u{202e}</p>\n"
        );
    }

    #[test]
    fn parts_stay_on_the_sheet() {
        assert_eq!(
            [0.5, -1.0, 7.0, f64::NAN].map(part),
            ["50%", "0%", "100%", "0%"]
        );
    }
}
