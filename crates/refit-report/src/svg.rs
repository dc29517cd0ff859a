//! Scalable Vector Graphics, as little of it as a chart needs.

use std::fmt::Write;

use crate::markup::{Attribute, Markup, number};
use crate::palette::night;

/// One picture that is being drawn. What comes later lies above.
pub struct Svg {
    width: f64,
    height: f64,
    body: Markup,
    /// Shapes that paths put at their corners.
    markers: Markup,
    /// The colour of each.
    markers_colours: Vec<String>,
    /// Opacity shared by all markers.
    markers_opacity: String,
    /// What elements look like, as CSS: most look like others, and so each look stands once, in the style sheet.
    looks: Vec<String>,
}

/// Attributes that CSS takes too, all of our own making.
const LOOKS: [&str; 10] = [
    "fill",
    "font-size",
    "font-weight",
    "marker",
    "opacity",
    "stroke",
    "stroke-linecap",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
];

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

/// What a path is drawn through, each place relative to the one before: short, and without an error that adds up, because
/// all are whole pixels. A picture has hundreds of them, and dots of seven pixels.
#[derive(Default)]
struct Path {
    text: String,
    at: [i64; 2],
}

impl Path {
    /// `m` or `l` to this place.
    fn to(&mut self, command: char, place: [f64; 2]) {
        let place = place.map(|coordinate| coordinate.round() as i64);
        let [x, y] = [place[0] - self.at[0], place[1] - self.at[1]];
        let space = if y < 0 { "" } else { " " };
        let _ = match (command, x, y) {
            ('l', _, 0) => write!(self.text, "h{x}"),
            ('l', 0, _) => write!(self.text, "v{y}"),
            _ => write!(self.text, "{command}{x}{space}{y}"),
        };
        self.at = place;
    }
}

/// Of most texts; stands once, at the root.
const SIZE: &str = "12";
const FILL: &str = "#222";

impl Svg {
    /// An empty white sheet, in pixels.
    pub fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg {
            width,
            height,
            body: Markup::default(),
            markers: Markup::default(),
            markers_colours: Vec::new(),
            markers_opacity: String::new(),
            looks: Vec::new(),
        };
        svg.element(
            "rect",
            &[
                ("width", &number(width)),
                ("height", &number(height)),
                ("fill", "#fff"),
            ],
        );
        svg
    }

    /// An element without content.
    fn element(&mut self, name: &'static str, attributes: &[Attribute]) {
        let class = self.class(attributes);
        self.body.void(name, &classed(&class, attributes));
        self.body.end_line();
    }

    /// The classes of an element: its own, and the one of its look.
    fn class(&mut self, attributes: &[Attribute]) -> String {
        let mut look = String::new();
        for (key, value) in attributes {
            if is_look(key) {
                // Without a unit, CSS knows no length but 0.
                let unit = if *key == "font-size" { "px" } else { "" };
                let _ = write!(look, "{key}:{value}{unit};");
            }
        }
        let own = attributes.iter().filter(|(key, _)| *key == "class");
        let mut classes: Vec<String> = own.map(|(_, class)| (*class).to_owned()).collect();
        if !look.is_empty() {
            let known = self.looks.iter().position(|known| *known == look);
            let number = known.unwrap_or_else(|| {
                self.looks.push(look);
                self.looks.len() - 1
            });
            classes.push(name_of(number));
        }
        classes.join(" ")
    }

    /// A straight line.
    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], stroke: &str, more: &[Attribute]) {
        self.lines(stroke, more, &[[from, to]]);
    }

    /// A filled rectangle between two corners.
    pub fn area(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], fill: &str, more: &[Attribute]) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(f64::round);
        let sides = [x1.min(x2), y1.min(y2), (x2 - x1).abs(), (y2 - y1).abs()].map(number);
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

    /// An area, with a text that appears when it is pointed at.
    pub fn titled_area(&mut self, from: [f64; 2], to: [f64; 2], fill: &str, title: &str) {
        let sides = [from[0], to[1], to[0] - from[0], from[1] - to[1]].map(number);
        let attributes = [
            ("x", &*sides[0]),
            ("y", &sides[1]),
            ("width", &sides[2]),
            ("height", &sides[3]),
            ("fill", fill),
        ];
        let class = self.class(&attributes);
        let attributes = classed(&class, &attributes);
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
        let place = [x.round(), y.round(), radius].map(number);
        let mut attributes = vec![("cx", &*place[0]), ("cy", &place[1]), ("r", &place[2])];
        attributes.extend(more);
        self.element("circle", &attributes);
    }

    /// Dots that look alike, as one path: a picture of a thousand runs is small.
    pub fn dots(&mut self, colour: &str, radius: f64, more: &[Attribute], places: &[[f64; 2]]) {
        let mut path = Path::default();
        for place in places {
            path.to('m', *place);
            path.text.push_str("h0");
        }
        let width = number(2.0 * radius);
        let look = [("stroke-width", &*width), ("stroke-linecap", "round")];
        self.path(colour, &[&look, more].concat(), &path);
    }

    /// Lines that look alike, as one path.
    pub fn lines(&mut self, colour: &str, more: &[Attribute], ends: &[[[f64; 2]; 2]]) {
        let mut path = Path::default();
        for [from, to] in ends {
            path.to('m', *from);
            path.to('l', *to);
        }
        self.path(colour, more, &path);
    }

    /// Lines with a dot of this radius and opacity at both ends.
    pub fn joined_dots(
        &mut self,
        colour: &str,
        (radius, opacity): (f64, &str),
        more: &[Attribute],
        ends: &[[[f64; 2]; 2]],
    ) {
        let name = marker_name(self.markers_colours.len());
        self.markers_colours.push(colour.to_owned());
        let radius = number(radius);
        // Markers grow with the width of a line, which is 1 without another.
        let frame = [("id", &*name)];
        opacity.clone_into(&mut self.markers_opacity);
        self.markers.element("marker", &frame, |marker| {
            marker.void("circle", &[("r", &*radius), ("fill", colour)]);
        });
        self.markers.end_line();
        let marker = format!("url(#{name})");
        self.lines(colour, &[&[("marker", &*marker)], more].concat(), ends);
    }

    /// A path that is not filled; none where it has no parts.
    fn path(&mut self, stroke: &str, more: &[Attribute], path: &Path) {
        if !path.text.is_empty() {
            let attributes = [("stroke", stroke), ("d", &path.text)];
            self.element("path", &[&attributes, more].concat());
        }
    }

    /// One line of text whose baseline is at `y`.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, font: Font, text: &str) {
        if text.is_empty() {
            return;
        }
        let place = [x.round(), y.round(), font.size].map(number);
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
        let class = self.class(&attributes);
        let attributes = classed(&class, &attributes);
        self.body
            .element("text", &attributes, |inner| inner.plain(text));
        self.body.end_line();
    }

    /// The rules of a dark screen. A picture that is printed stays as it is.
    fn at_night(&self) -> String {
        let mut rules = format!("svg{{fill:{}}}", night(FILL).unwrap_or(FILL));
        for (number, look) in self.looks.iter().enumerate() {
            let colours = look.split_terminator(';').filter_map(|part| {
                let (key, value) = part.split_once(':')?;
                Some(format!("{key}:{}", night(value)?))
            });
            let colours: Vec<String> = colours.collect();
            if !colours.is_empty() {
                let _ = write!(rules, ".{}{{{}}}", name_of(number), colours.join(";"));
            }
        }
        for (number, colour) in self.markers_colours.iter().enumerate() {
            if let Some(colour) = night(colour) {
                let _ = write!(rules, "#{} *{{fill:{colour}}}", marker_name(number));
            }
        }
        format!("\n@media screen and (prefers-color-scheme: dark){{{rules}}}")
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
            let looks = self.looks.iter().enumerate();
            let rules = looks.map(|(number, look)| {
                format!(".{}{{{}}}", name_of(number), look.trim_end_matches(';'))
            });
            // The circle of a marker lies around its frame's corner, so three quarters of it are outside.
            let of_all = match &*self.markers_opacity {
                "" => "path{fill:none}".to_owned(),
                opacity => format!(
                    "path{{fill:none}}marker{{overflow:visible}}marker *{{opacity:{opacity}}}"
                ),
            };
            svg.style(&(of_all + &rules.collect::<String>() + &self.at_night()));
            svg.append(&self.markers);
            svg.append(&self.body);
        });
        document.finish()
    }
}

fn marker_name(number: usize) -> String {
    format!("dot{number}")
}

fn is_look(key: &str) -> bool {
    LOOKS.contains(&key)
}

/// The attributes of an element that the style sheet says nothing of.
fn classed<'a>(class: &'a str, attributes: &[Attribute<'a>]) -> Vec<Attribute<'a>> {
    let rest = attributes.iter().copied();
    let rest = rest.filter(|(key, _)| *key != "class" && !is_look(key));
    let class = Some(("class", class)).filter(|(_, class)| !class.is_empty());
    class.into_iter().chain(rest).collect()
}

/// `a` to `z`, `aa` and so on.
fn name_of(number: usize) -> String {
    let letter = char::from(b'a' + (number % 26) as u8);
    match number / 26 {
        0 => letter.to_string(),
        more => format!("{}{letter}", name_of(more - 1)),
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
        assert!(
            document.contains(
                "<text class=\"b\" x=\"1\" y=\"2\">&lt;/text&gt;\\u{1b}&amp;&quot;</text>"
            )
        );
        assert!(document.contains(".b{font-size:9px;fill:#000;text-anchor:end;font-weight:bold}"));
        assert!(document.contains("<title>&lt;t&gt;</title>"));
    }

    #[test]
    fn each_look_stands_once_whatever_has_it() {
        let mut svg = Svg::new(10.0, 10.0);
        for y in [1.0, 2.0] {
            svg.line([0.0, y], [9.0, y], "#123456", &[("class", "own")]);
        }
        let document = svg.finish("t");
        assert_eq!(document.matches("#123456").count(), 1);
        assert_eq!(document.matches("class=\"own b\"").count(), 2);
        let names: Vec<String> = [0, 25, 26, 701, 702].map(name_of).into();
        assert_eq!(names, ["a", "z", "aa", "zz", "aaa"]);
    }
}
