//! What pictures that follow the reader's light or dark screen have in common: the sheet, and texts on it.

use crate::html::colour;
use crate::markup::{At, Markup, Place, number};
use crate::svg::FAMILIES;

/// Of the sheet, in pixels.
pub const WIDTH: f64 = 900.0;
/// Around what stands on it.
pub const MARGIN: f64 = 20.0;
/// Characters that fit into a line of the title.
pub const HEAD: usize = 78;

/// The document, with the style of these classes beside the common ones.
pub fn sheet(about: &str, height: f64, style: &str, content: impl FnOnce(&mut Markup)) -> String {
    let (width, height) = (number(WIDTH), number(height));
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", &*width),
        ("height", &height),
        ("viewBox", &format!("0 0 {width} {height}")),
        ("font-family", FAMILIES),
        ("font-size", "16"),
    ];
    let mut document = Markup::default();
    document.element("svg", &attributes, |svg| {
        svg.leaf("title", &[], about);
        for style in [&*colour::rules(), include_str!("picture.css"), style] {
            svg.style(style);
        }
        svg.rect("sheet", at([0.0, 0.0]), [At::Part(1.0); 2]);
        content(svg);
    });
    document.finish()
}

/// Lines of a text, the first of them at this height.
pub fn lines(svg: &mut Markup, class: &str, from: f64, lines: &[String], height: f64) {
    for (index, line) in lines.iter().enumerate() {
        let y = from + height * index as f64;
        text(svg, class, "start", [MARGIN, y], line.trim_start());
    }
}

/// A text held at its `start`, `middle` or `end`.
pub fn text(svg: &mut Markup, class: &str, anchor: &str, [x, y]: [f64; 2], text: &str) {
    let [x, y] = [x, y].map(number);
    let attributes = [
        ("class", class),
        ("x", &*x),
        ("y", &y),
        ("text-anchor", anchor),
    ];
    svg.leaf("text", &attributes, text);
}

/// In pixels.
pub fn at(place: [f64; 2]) -> Place {
    place.map(At::Px)
}
