//! The one writer of HTML and SVG: elements that close, and texts that stay texts.

use std::fmt::Write;

use refit_run::printable;

/// A piece of a page or of a picture.
#[derive(Default)]
pub struct Markup(String);

/// Name and value of an attribute.
pub type Attribute<'a> = (&'static str, &'a str);

impl Markup {
    /// An element with whatever `content` puts into it.
    pub fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute],
        content: impl FnOnce(&mut Markup),
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

    /// An element of this class; of none where it is empty.
    pub fn classed(&mut self, name: &'static str, class: &str, content: impl FnOnce(&mut Markup)) {
        let class = Some(("class", class)).filter(|(_, class)| !class.is_empty());
        self.element(name, class.as_slice(), content);
    }

    /// An element that holds nothing but text.
    pub fn leaf(&mut self, name: &'static str, attributes: &[Attribute], text: &str) {
        self.element(name, attributes, |html| match name {
            // Neither a picture's text nor a title knows lines.
            "text" | "title" => html.plain(&text.replace(" %", "\u{a0}%")),
            _ => html.text(text),
        });
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
            let _ = write!(self.0, " {key}=\"{}\"", escaped(value));
        }
    }

    /// A line of a picture.
    pub fn line(&mut self, class: &str, [x1, y1]: Place, [x2, y2]: Place) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(At::text);
        let ends = [("x1", &*x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)];
        self.void("line", &[&[("class", class)], &ends[..]].concat());
    }

    /// An area with its upper left corner there.
    pub fn rect(&mut self, class: &str, [x, y]: Place, [width, height]: Place) {
        let [x, y, width, height] = [x, y, width, height].map(At::text);
        let size = [("width", &*width), ("height", &height)];
        let place = [("class", class), ("x", &*x), ("y", &y)];
        self.void("rect", &[&place[..], &size[..]].concat());
    }

    /// A dot of this radius.
    pub fn circle(&mut self, class: &str, [x, y]: Place, radius: &str) {
        let [x, y] = [x, y].map(At::text);
        let place = [("class", class), ("cx", &*x), ("cy", &y), ("r", radius)];
        self.void("circle", &place);
    }

    /// A text in a picture, held at its `start`, `middle` or `end`.
    pub fn label(&mut self, [x, y]: Place, anchor: &str, text: &str) {
        let [x, y] = [x, y].map(At::text);
        self.leaf(
            "text",
            &[("x", &x), ("y", &y), ("text-anchor", anchor)],
            text,
        );
    }

    /// Text of any origin. A unit stays with its number; a word that is too long for a
    /// narrow screen, as a path is, may be broken after each of its parts.
    pub fn text(&mut self, text: &str) {
        let mut before = "";
        for (i, word) in text.split(' ').enumerate() {
            if i > 0 {
                self.0.push_str(space(before, word));
            }
            self.word(word);
            before = word;
        }
    }

    /// A word of a text.
    fn word(&mut self, word: &str) {
        if !is_long(word) {
            return self.0.push_str(&escaped(word));
        }
        for (i, part) in word.split_inclusive(JOINTS).enumerate() {
            if i > 0 && !part.starts_with(JOINTS) {
                self.0.push_str("<wbr/>");
            }
            self.0.push_str(&escaped(part));
        }
    }

    /// Text of any origin, as it is.
    pub fn plain(&mut self, text: &str) {
        self.0.push_str(&escaped(text));
    }

    /// The end of a line.
    pub fn end_line(&mut self) {
        self.0.push('\n');
    }

    /// Another piece.
    pub fn append(&mut self, other: &Markup) {
        self.0.push_str(&other.0);
    }

    /// A sentence, in which an option is not broken after its dashes.
    pub fn prose(&mut self, text: &str) {
        let mut before = "";
        for (i, word) in text.split(' ').enumerate() {
            if i > 0 {
                self.0.push_str(space(before, word));
            }
            if word.contains("--") && !is_long(word) {
                self.leaf("span", &[("class", "option")], word);
            } else {
                self.word(word);
            }
            before = word;
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

/// After these a long word may be broken.
const JOINTS: [char; 10] = ['/', '=', ',', ':', '_', '+', '@', '.', '-', ';'];
/// Characters that fit into a line everywhere.
const LONG: usize = 20;

fn is_long(word: &str) -> bool {
    word.chars().nth(LONG).is_some()
}

/// What follows a number and stays on its line.
const UNITS: [&str; 12] = [
    "%", "B", "KiB", "MiB", "GiB", "TiB", "h", "min", "ms", "ns", "s", "µs",
];

/// Between two words.
fn space(before: &str, word: &str) -> &'static str {
    let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', ')', ']', '.']));
    match before.ends_with(|c: char| c.is_ascii_digit()) && is_unit {
        true => "\u{a0}",
        false => " ",
    }
}

/// Where something lies in a picture, to the right or below.
#[derive(Clone, Copy)]
pub enum At {
    /// In pixels.
    Px(f64),
    /// As a part of the breadth, from 0 to 1.
    Part(f64),
}

/// To the right, and below.
pub type Place = [At; 2];

impl At {
    /// As an attribute has it.
    pub fn text(self) -> String {
        match self {
            At::Px(px) => number(px),
            At::Part(breadth) => part(breadth),
        }
    }
}

/// A part of the breadth, from 0 to 1, as SVG and CSS take it: charts have the
/// breadth of the screen, and their texts keep their size.
pub fn part(part: f64) -> String {
    let percent = if part.is_finite() { part * 100.0 } else { 0.0 };
    format!("{}%", number(percent.clamp(0.0, 100.0)))
}

/// A coordinate: tenths of a pixel are enough, and the same everywhere.
pub fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.trim_end_matches(".0");
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// As it may stand in content and attributes; what XML forbids is written out.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_never_minus_zero() {
        assert_eq!(
            [0.0, -0.001, 1.5, 2.0, 10.06, 20.0].map(number),
            ["0", "0", "1.5", "2", "10.1", "20"]
        );
    }

    #[test]
    fn nothing_leaves_its_element() {
        let mut html = Markup::default();
        html.leaf("p", &[("title", "\"><script>")], "</p>\u{1b}&\u{202e}");
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;/p&gt;\\u{1b}&amp;\\u{202e}</p>\n"
        );
    }

    #[test]
    fn a_long_word_may_be_broken_between_its_parts() {
        let mut html = Markup::default();
        html.leaf("code", &[], "short/word 7 % 8 ms, /a/path/of/many--parts/x");
        html.leaf("title", &[], "/a/path/of/many--parts/x");
        assert_eq!(
            html.finish(),
            "<code>short/word 7\u{a0}% 8\u{a0}ms, /<wbr/>a/<wbr/>path/<wbr/>of/<wbr/>many--<wbr/>parts/<wbr/>x</code>\
             <title>/a/path/of/many--parts/x</title>\n"
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
