//! Who allocated what is live: as lines of the summary, as the folded text that other tools read, and as a flame graph.

use std::collections::BTreeMap;

use refit_run::{CallPath, HeapPaths};

use crate::format::{bytes, file_name, grouped, plural, shortened};
use crate::svg::{Anchor, Font, Svg};

/// Paths of the summary, and functions of each, the innermost first.
const MOST_PATHS: usize = 3;
const MOST_FUNCTIONS: usize = 6;

/// The lines after those of the heap.
pub(crate) fn lines(executable: &HeapPaths, lines: &mut Vec<String>) {
    let name = file_name(&executable.executable);
    let all = executable.bytes();
    if all > 0 {
        lines.push(format!(
            "who allocated what {name} has live at its end, from {}: about {}",
            plural(executable.samples(), "sample"),
            bytes(all as f64)
        ));
    }
    for path in executable.paths.iter().take(MOST_PATHS) {
        let share = 100.0 * path.bytes as f64 / all.max(1) as f64;
        lines.push(format!("  {share:.0} % {}", innermost(path)));
    }
    for (objects, what) in [
        (&executable.not_unwound, "no path leads through"),
        (&executable.without_names, "no names for all functions of"),
    ] {
        if !objects.is_empty() {
            lines.push(format!("  {what} {}", objects.join(", ")));
        }
    }
    if executable.lost > 0 {
        lines.push(format!(
            "  {} samples lost: there was no room",
            grouped(executable.lost)
        ));
    }
}

/// `leak < step < main`.
fn innermost(path: &CallPath) -> String {
    let functions = path.frames.iter().rev().take(MOST_FUNCTIONS);
    let functions: Vec<String> = functions.map(|name| shortened(name, 60)).collect();
    let more = if path.frames.len() > MOST_FUNCTIONS {
        " < …"
    } else {
        ""
    };
    format!("{}{more}", functions.join(" < "))
}

/// The executable and the functions of a path, the outermost first.
fn callers<'a>(executable: &'a HeapPaths, path: &'a CallPath) -> impl Iterator<Item = &'a str> {
    let frames = path.frames.iter().map(String::as_str);
    [file_name(&executable.executable)]
        .into_iter()
        .chain(frames)
}

/// One line for each path: its functions, the outermost first, between semicolons, and its bytes.
#[must_use]
pub fn folded(executables: &[HeapPaths]) -> String {
    let mut lines = String::new();
    for executable in executables {
        for path in &executable.paths {
            let all: Vec<String> = callers(executable, path)
                .map(|name| name.replace(';', ":"))
                .collect();
            lines.push_str(&format!("{} {}\n", all.join(";"), path.bytes));
        }
    }
    lines
}

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 12.0;
const TOP: f64 = 56.0;
const LINE: f64 = 18.0;
const LETTER: f64 = 6.6;
/// Narrower functions are left out.
const NARROWEST: f64 = 0.4;
const FILLS: [&str; 6] = [
    "#f2a65a", "#eec170", "#f58549", "#f7b267", "#e8985e", "#f4845f",
];

const TITLE: Font = Font::bold(17.0, "#333");
/// On a light ground, by night too.
const NAME: Font = Font::plain(11.0, "#111");

/// A function, and those that it called.
#[derive(Default)]
struct Called<'a> {
    bytes: u64,
    callees: BTreeMap<&'a str, Called<'a>>,
}

impl<'a> Called<'a> {
    fn add<'b: 'a>(&mut self, frames: impl Iterator<Item = &'b str>, bytes: u64) {
        let mut at = self;
        at.bytes = at.bytes.saturating_add(bytes);
        for frame in frames {
            at = at.callees.entry(frame).or_default();
            at.bytes = at.bytes.saturating_add(bytes);
        }
    }

    fn depth(&self) -> usize {
        self.callees
            .values()
            .map(|called| 1 + called.depth())
            .max()
            .unwrap_or(0)
    }
}

/// A picture: each function as wide as what is live of what it and its callees allocated, callees above callers.
#[must_use]
pub fn flame_graph(executables: &[HeapPaths]) -> String {
    let mut all = Called::default();
    for executable in executables {
        for path in &executable.paths {
            all.add(callers(executable, path), path.bytes);
        }
    }
    let bottom = TOP + LINE * (all.depth().max(1) as f64);
    let mut svg = Svg::new(WIDTH, bottom + MARGIN);
    let title = format!(
        "Live heap by who allocated it: about {}",
        bytes(all.bytes as f64)
    );
    svg.text([MARGIN, 32.0], Anchor::Start, TITLE, &title);
    let scale = (WIDTH - 2.0 * MARGIN) / all.bytes.max(1) as f64;
    draw(&mut svg, &all, [MARGIN, bottom], scale, all.bytes);
    svg.finish(&title)
}

fn draw(svg: &mut Svg, caller: &Called, [mut left, bottom]: [f64; 2], scale: f64, all: u64) {
    for (name, called) in &caller.callees {
        let width = called.bytes as f64 * scale;
        if width >= NARROWEST {
            let share = 100.0 * called.bytes as f64 / all.max(1) as f64;
            let tip = format!("{name}: {} ({share:.1} %)", bytes(called.bytes as f64));
            let fill = name
                .bytes()
                .fold(0_usize, |sum, byte| sum + usize::from(byte));
            let corner = [left + width.max(1.5) - 1.0, bottom - LINE + 1.0];
            svg.titled_area([left, bottom], corner, FILLS[fill % FILLS.len()], &tip);
            let letters = (width / LETTER) as usize;
            if letters >= 4 {
                let text = shortened(name, letters - 1);
                svg.text([left + 3.0, bottom - 5.0], Anchor::Start, NAME, &text);
            }
            draw(svg, called, [left, bottom - LINE], scale, all);
        }
        left += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<HeapPaths> {
        let path = |frames: &[&str], bytes| CallPath {
            frames: frames.iter().map(|name| (*name).to_owned()).collect(),
            bytes,
            samples: 3,
        };
        vec![HeapPaths {
            executable: "/usr/bin/app".to_owned(),
            paths: vec![
                path(&["main", "step", "leak"], 8 << 20),
                path(&["main", "a;b<c>"], 2 << 20),
            ],
            not_unwound: vec!["libold.so".to_owned()],
            ..HeapPaths::default()
        }]
    }

    #[test]
    fn the_summary_names_the_share_of_each_path() {
        let mut all = Vec::new();
        lines(&paths()[0], &mut all);
        assert_eq!(
            all,
            [
                "who allocated what app has live at its end, from 6 samples: about 10 MiB",
                "  80 % leak < step < main",
                "  20 % a;b<c> < main",
                "  no path leads through libold.so",
            ]
        );
    }

    #[test]
    fn a_folded_line_has_its_functions_between_semicolons() {
        let text = folded(&paths());
        assert_eq!(
            text,
            "app;main;step;leak 8388608\napp;main;a:b<c> 2097152\n"
        );
    }

    #[test]
    fn a_function_is_as_wide_as_what_it_allocated() {
        let svg = flame_graph(&paths());
        assert!(svg.contains("leak: 8.0 MiB (80.0 %)"), "{svg}");
        assert!(svg.contains("a;b&lt;c&gt;"), "{svg}");
        let width = |name: &str| {
            let at = svg.find(&format!("<title>{name}:")).unwrap();
            let rect = &svg[..at];
            let rect = &rect[rect.rfind("width=\"").unwrap() + 7..];
            rect[..rect.find('"').unwrap()].parse::<f64>().unwrap()
        };
        assert!((width("leak") / (0.8 * width("main")) - 1.0).abs() < 0.01);
    }
}
