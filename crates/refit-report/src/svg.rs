//! Scalable Vector Graphics, as little of it as a chart needs.

use std::fmt::Write;

use refit_run::printable;

/// One picture that is being drawn. What comes later lies above.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
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

/// Families with all signs that are used here; the last one any system has.
const FAMILIES: &str =
    "DejaVu Sans, Verdana, Liberation Sans, Noto Sans, Arial, Helvetica, sans-serif";

impl Svg {
    /// An empty white sheet, in pixels.
    pub fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg {
            width,
            height,
            body: String::new(),
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
    pub fn element(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.body, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.body, " {key}=\"{}\"", escaped(value));
        }
        self.body.push_str("/>\n");
    }

    /// A straight line.
    pub fn line(
        &mut self,
        [x1, y1]: [f64; 2],
        [x2, y2]: [f64; 2],
        stroke: &str,
        more: &[(&str, &str)],
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
    pub fn area(
        &mut self,
        [x1, y1]: [f64; 2],
        [x2, y2]: [f64; 2],
        fill: &str,
        more: &[(&str, &str)],
    ) {
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

    /// A dot.
    pub fn dot(&mut self, [x, y]: [f64; 2], radius: f64, more: &[(&str, &str)]) {
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
        let dots = places
            .iter()
            .map(|[x, y]| format!("M{} {}h0", number(*x), number(*y)));
        let width = number(2.0 * radius);
        let look = [
            ("stroke-width", &*width),
            ("stroke-linecap", "round"),
            ("opacity", opacity),
        ];
        self.path(class, colour, &look, dots);
    }

    /// Lines that look alike, as one path.
    pub fn lines(
        &mut self,
        class: &str,
        colour: &str,
        more: &[(&str, &str)],
        ends: &[[[f64; 2]; 2]],
    ) {
        let lines = ends.iter().map(|ends| {
            let [[x1, y1], [x2, y2]] = ends.map(|place| place.map(number));
            format!("M{x1} {y1}L{x2} {y2}")
        });
        self.path(class, colour, more, lines);
    }

    /// A path that is not filled; none where it has no parts.
    fn path(
        &mut self,
        class: &str,
        stroke: &str,
        more: &[(&str, &str)],
        parts: impl Iterator<Item = String>,
    ) {
        let path: String = parts.collect();
        if !path.is_empty() {
            let mut attributes = vec![
                ("class", class),
                ("stroke", stroke),
                ("fill", "none"),
                ("d", &path),
            ];
            attributes.extend(more);
            self.element("path", &attributes);
        }
    }

    /// One line of text whose baseline is at `y`.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, font: Font, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if font.bold {
            " font-weight=\"bold\""
        } else {
            ""
        };
        let _ = writeln!(
            self.body,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}>{}</text>",
            number(x),
            number(y),
            number(font.size),
            font.fill,
            escaped(text)
        );
    }

    /// The whole document.
    pub fn finish(self, title: &str) -> String {
        let (width, height) = (number(self.width), number(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"{FAMILIES}\">\n<title>{}</title>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
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
    fn text_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        let font = Font {
            size: 9.0,
            fill: "#000",
            bold: true,
        };
        svg.text([1.0, 2.0], Anchor::End, font, "</text>\u{1b}&\"");
        let document = svg.finish("<t>");
        assert!(document.contains(
            "<text x=\"1\" y=\"2\" font-size=\"9\" fill=\"#000\" text-anchor=\"end\" font-weight=\"bold\">\
             &lt;/text&gt;\\u{1b}&amp;&quot;</text>"
        ));
        assert!(document.contains("<title>&lt;t&gt;</title>"));
    }
}
