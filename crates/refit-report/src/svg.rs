//! Scalable Vector Graphics, as little of it as a chart needs.

use std::fmt::Write;

use crate::markup::{Attribute, Markup, number};

/// One picture that is being drawn. What comes later lies above.
pub struct Svg {
    width: f64,
    height: f64,
    body: Markup,
}

/// Where a text is held.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// At its middle.
    Middle,
    /// At its end.
    End,
}

/// How a text looks.
#[derive(Clone, Copy)]
pub struct Font {
    /// Height in pixels.
    pub size: f64,
    /// Colour.
    pub fill: &'static str,
    /// Heavy.
    pub bold: bool,
}

impl Font {
    /// Of normal weight; `size`: height in pixels.
    pub const fn plain(size: f64, fill: &'static str) -> Font {
        Font {
            size,
            fill,
            bold: false,
        }
    }

    /// Of bold weight.
    pub const fn bold(size: f64, fill: &'static str) -> Font {
        Font {
            size,
            fill,
            bold: true,
        }
    }
}

/// Families with all signs that are used here; the last one any system has.
pub const FAMILIES: &str =
    "DejaVu Sans, Verdana, Liberation Sans, Noto Sans, Arial, Helvetica, sans-serif";

/// What a path is drawn through, each place relative to the one before: short, and exact because all are whole tenths
/// of a pixel.
#[derive(Default)]
struct Path {
    text: String,
    at: [i64; 2],
}

impl Path {
    /// `m` or `l` to this place.
    fn to(&mut self, command: char, place: [f64; 2]) {
        let place = place.map(|coordinate| (coordinate * 10.0).round() as i64);
        let [x, y] = [place[0] - self.at[0], place[1] - self.at[1]];
        let [x, y] = [x, y].map(|tenths| number(tenths as f64 / 10.0));
        let space = if y.starts_with('-') { "" } else { " " };
        let _ = write!(self.text, "{command}{x}{space}{y}");
        self.at = place;
    }
}

/// Of most texts; stands once, at the root.
const SIZE: &str = "12";
const FILL: &str = "#222222";

impl Svg {
    /// An empty white sheet, in pixels.
    pub fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg {
            width,
            height,
            body: Markup::default(),
        };
        svg.element(
            "rect",
            &[
                ("width", &number(width)),
                ("height", &number(height)),
                ("fill", "#ffffff"),
            ],
        );
        svg
    }

    /// An element without content.
    fn element(&mut self, name: &'static str, attributes: &[Attribute]) {
        self.body.void(name, attributes);
        self.body.end_line();
    }

    /// A straight line.
    pub fn line(
        &mut self,
        [x1, y1]: [f64; 2],
        [x2, y2]: [f64; 2],
        stroke: &str,
        more: &[Attribute],
    ) {
        let ends = [number(x1), number(y1), number(x2), number(y2)];
        let mut attributes = vec![
            ("x1", &*ends[0]),
            ("y1", &ends[1]),
            ("x2", &ends[2]),
            ("y2", &ends[3]),
        ];
        attributes.push(("stroke", stroke));
        attributes.extend(more);
        self.element("line", &attributes);
    }

    /// A filled rectangle between two corners.
    pub fn area(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], fill: &str, more: &[Attribute]) {
        let sides = [
            number(x1.min(x2)),
            number(y1.min(y2)),
            number((x2 - x1).abs()),
            number((y2 - y1).abs()),
        ];
        let mut attributes = vec![
            ("x", &*sides[0]),
            ("y", &sides[1]),
            ("width", &sides[2]),
            ("height", &sides[3]),
        ];
        attributes.push(("fill", fill));
        attributes.extend(more);
        self.element("rect", &attributes);
    }

    /// The same, with a text that appears when it is pointed at.
    pub fn titled_area(&mut self, from: [f64; 2], to: [f64; 2], fill: &str, title: &str) {
        let sides = [from[0], to[1], to[0] - from[0], from[1] - to[1]].map(number);
        let attributes = [
            ("x", &*sides[0]),
            ("y", &sides[1]),
            ("width", &sides[2]),
            ("height", &sides[3]),
            ("fill", fill),
        ];
        self.body.element("rect", &attributes, |inner| {
            inner.element("title", &[], |inner| inner.plain(title));
        });
        self.body.end_line();
    }

    /// A filled area between these corners.
    pub fn polygon(&mut self, corners: &[[f64; 2]], fill: &str, more: &[Attribute]) {
        let corners = corners.iter().map(|place| place.map(number).join(","));
        let points = corners.collect::<Vec<_>>().join(" ");
        let mut attributes = vec![("points", &*points), ("fill", fill)];
        attributes.extend(more);
        self.element("polygon", &attributes);
    }

    /// A dot.
    pub fn dot(&mut self, [x, y]: [f64; 2], radius: f64, more: &[Attribute]) {
        let place = [number(x), number(y), number(radius)];
        let mut attributes = vec![("cx", &*place[0]), ("cy", &place[1]), ("r", &place[2])];
        attributes.extend(more);
        self.element("circle", &attributes);
    }

    /// Dots that look alike, as one path: a picture of a thousand runs is small.
    pub fn dots(
        &mut self,
        class: &str,
        radius: f64,
        colour: &str,
        opacity: &str,
        places: &[[f64; 2]],
    ) {
        let mut path = Path::default();
        for place in places {
            path.to('m', *place);
            path.text.push_str("h0");
        }
        let width = number(2.0 * radius);
        let look = [
            ("stroke-width", &*width),
            ("stroke-linecap", "round"),
            ("opacity", opacity),
        ];
        self.path(class, colour, &look, &path);
    }

    /// Lines that look alike, as one path.
    pub fn lines(&mut self, class: &str, colour: &str, more: &[Attribute], ends: &[[[f64; 2]; 2]]) {
        let mut path = Path::default();
        for [from, to] in ends {
            path.to('m', *from);
            path.to('l', *to);
        }
        self.path(class, colour, more, &path);
    }

    /// A path that is not filled; none where it has no parts.
    fn path(&mut self, class: &str, stroke: &str, more: &[Attribute], path: &Path) {
        if !path.text.is_empty() {
            let mut attributes = vec![
                ("class", class),
                ("stroke", stroke),
                ("fill", "none"),
                ("d", &path.text),
            ];
            attributes.extend(more);
            self.element("path", &attributes);
        }
    }

    /// One line of text whose baseline is at `y`.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, font: Font, text: &str) {
        if text.is_empty() {
            return;
        }
        let place = [x, y, font.size].map(number);
        let mut attributes = vec![("x", &*place[0]), ("y", &place[1])];
        if place[2] != SIZE {
            attributes.push(("font-size", &place[2]));
        }
        if font.fill != FILL {
            attributes.push(("fill", font.fill));
        }
        match anchor {
            // SVG's own.
            Anchor::Start => {}
            Anchor::Middle => attributes.push(("text-anchor", "middle")),
            Anchor::End => attributes.push(("text-anchor", "end")),
        }
        if font.bold {
            attributes.push(("font-weight", "bold"));
        }
        self.body
            .element("text", &attributes, |inner| inner.plain(text));
        self.body.end_line();
    }

    /// The whole document.
    pub fn finish(self, title: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        let sheet = format!("0 0 {width} {height}");
        let attributes = [
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("width", &*width),
            ("height", &height),
            ("viewBox", &sheet),
            ("font-family", FAMILIES),
            ("font-size", SIZE),
            ("fill", FILL),
        ];
        let mut document = Markup::default();
        document.element("svg", &attributes, |svg| {
            svg.end_line();
            svg.element("title", &[], |inner| inner.plain(title));
            svg.append(&self.body);
        });
        document.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        let font = Font::bold(9.0, "#000");
        svg.text([1.0, 2.0], Anchor::End, font, "</text>\u{1b}&\"");
        let document = svg.finish("<t>");
        assert!(document.contains(
            "<text x=\"1\" y=\"2\" font-size=\"9\" fill=\"#000\" text-anchor=\"end\" font-weight=\"bold\">\
             &lt;/text&gt;\\u{1b}&amp;&quot;</text>"
        ));
        assert!(document.contains("<title>&lt;t&gt;</title>"));
    }
}
