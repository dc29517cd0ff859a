//! Stacks of a program and what each weighs: as text, as a flame graph, and in the formats that other tools read.

use std::collections::BTreeMap;

use refit_run::Frame;
use serde_json::{Value, json};

use crate::format::{bytes, duration, file_name, shortened};
use crate::markup::Markup;
use crate::svg::{Anchor, Font, Svg};

/// Longer names of functions are cut off where lines hold several.
const LONGEST_NAME: usize = 60;

/// What a stack weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Live bytes that it allocated.
    Bytes,
    /// Nanoseconds on a processor.
    Time,
}

impl Weight {
    fn text(self, weight: u64) -> String {
        match self {
            Weight::Bytes => bytes(weight as f64),
            Weight::Time => duration(weight as f64),
        }
    }
}

/// Stacks of one executable.
#[derive(Clone, Debug)]
pub struct Stacks<'a> {
    /// Path of the executable.
    pub executable: &'a str,
    /// Each with its weight; functions, the outermost first.
    pub stacks: Vec<(Vec<&'a Frame>, u64)>,
}

/// The stacks of a program.
#[derive(Clone, Debug)]
pub struct Profile<'a> {
    /// What they are, as the title of a picture.
    pub title: &'static str,
    /// What their weights are.
    pub weight: Weight,
    /// By executable.
    pub executables: Vec<Stacks<'a>>,
}

/// What the names of functions of a language's own library begin with.
const OF_LIBRARIES: [&str; 6] = [
    "alloc::",
    "core::",
    "std::",
    "__gnu_cxx::",
    "operator new",
    "void std::",
];

fn is_of_library(frame: &Frame) -> bool {
    let name = frame.function.trim_start_matches('<');
    OF_LIBRARIES.iter().any(|of| name.starts_with(of))
}

/// `leak (app.c:12) < step (app.c:30) < main (app.c:41)`: the innermost function first, and `…` for what is beyond so many, and
/// for functions of the language's library, or of an interpreter, between the innermost and the first that is none.
pub(crate) fn call_chain(frames: &[&Frame], most: usize) -> String {
    let is_script = frames.iter().any(|frame| frame.is_script);
    let is_of_library = |frame: &&&Frame| match is_script {
        true => !frame.is_script,
        false => is_of_library(frame),
    };
    let library = frames.iter().rev().take_while(is_of_library).count();
    let (innermost, others) = match library {
        // All of it, or so little that nothing is gained.
        few if few <= 2 || few == frames.len() => (None, frames),
        _ => (frames.last(), &frames[..frames.len() - library]),
    };
    let mut chain: Vec<String> = innermost.iter().map(|frame| named(frame)).collect();
    if innermost.is_some() {
        chain.push("…".to_owned());
    }
    chain.extend(others.iter().rev().take(most).map(|frame| named(frame)));
    if others.len() > most {
        chain.push("…".to_owned());
    }
    chain.join(" < ")
}

/// `leak (app.c:12)`, short.
pub(crate) fn named(frame: &Frame) -> String {
    let function = shortened(&frame.function, LONGEST_NAME);
    match frame.place() {
        Some(place) => format!("{function} ({})", shortened(&place, LONGEST_NAME)),
        None => function,
    }
}

impl Profile<'_> {
    /// Whether no executable has a stack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.executables.iter().all(|one| one.stacks.is_empty())
    }

    /// As the ending of the file's name asks for: `svg`, a flame graph; `json`, for speedscope; else folded text.
    #[must_use]
    pub fn file(&self, extension: Option<&str>) -> String {
        match extension {
            Some("svg") => self.flame_graph(),
            Some("json") => self.speedscope(),
            _ => self.folded(),
        }
    }

    /// One line for each stack: its functions, the outermost first, between semicolons, and its weight.
    #[must_use]
    pub fn folded(&self) -> String {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for executable in &self.executables {
            for (frames, weight) in &executable.stacks {
                let names = callers(executable, frames).map(|name| name.replace(';', ":"));
                let line = names.collect::<Vec<_>>().join(";");
                let sum = lines.entry(line).or_default();
                *sum = sum.saturating_add(*weight);
            }
        }
        let mut lines: Vec<(String, u64)> = lines.into_iter().collect();
        lines.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let lines = lines
            .iter()
            .map(|(line, weight)| format!("{line} {weight}\n"));
        lines.collect()
    }

    /// The file format of speedscope (<https://www.speedscope.app/file-format-schema.json>), with files and lines.
    #[must_use]
    pub fn speedscope(&self) -> String {
        let mut frames: BTreeMap<&Frame, usize> = BTreeMap::new();
        let mut all: Vec<Value> = Vec::new();
        let mut profiles = Vec::new();
        for executable in &self.executables {
            let mut samples = Vec::new();
            for (stack, _) in &executable.stacks {
                let indexes = stack.iter().map(|frame| {
                    *frames.entry(*frame).or_insert_with(|| {
                        all.push(match (&frame.file, frame.line) {
                            (Some(file), Some(line)) => {
                                json!({"name": frame.function, "file": file, "line": line})
                            }
                            _ => json!({"name": frame.function}),
                        });
                        all.len() - 1
                    })
                });
                samples.push(indexes.collect::<Vec<_>>());
            }
            let weights: Vec<u64> = executable.stacks.iter().map(|(_, one)| *one).collect();
            profiles.push(json!({
                "type": "sampled",
                "name": file_name(executable.executable),
                "unit": match self.weight { Weight::Bytes => "bytes", Weight::Time => "nanoseconds" },
                "startValue": 0,
                "endValue": weights.iter().fold(0_u64, |sum, one| sum.saturating_add(*one)),
                "samples": samples,
                "weights": weights,
            }));
        }
        let whole = json!({
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": self.title,
            "exporter": concat!("refit ", env!("CARGO_PKG_VERSION")),
            "shared": {"frames": all},
            "profiles": profiles,
        });
        format!("{whole:#}\n")
    }

    /// A picture: each function as wide as what it and those that it called weigh, callees above callers.
    #[must_use]
    pub fn flame_graph(&self) -> String {
        let all = self.called();
        let bottom = TOP + LINE * (all.depth().max(1) as f64);
        let mut svg = Svg::new(WIDTH, bottom + MARGIN);
        let title = format!("{}: about {}", self.title, self.weight.text(all.weight));
        svg.text([MARGIN, 32.0], Anchor::Start, TITLE, &title);
        let scale = (WIDTH - 2.0 * MARGIN) / all.weight.max(1) as f64;
        let drawing = Drawing {
            scale,
            all: all.weight,
            weight: self.weight,
        };
        drawing.draw(&mut svg, &all, [MARGIN, bottom]);
        svg.finish(&title)
    }
}

impl<'a> Profile<'a> {
    /// All stacks as one tree, from the executables on.
    fn called(&'a self) -> Called<'a> {
        let mut all = Called::default();
        for executable in &self.executables {
            for (frames, weight) in &executable.stacks {
                all.add(callers(executable, frames), *weight);
            }
        }
        all
    }

    /// Draws the flame graph as nested boxes of a page, callers above callees.
    pub(crate) fn nested(&'a self, page: &mut Markup) {
        let all = self.called();
        self.boxes(page, &all, all.weight);
    }

    fn boxes(&self, page: &mut Markup, caller: &Called, all: u64) {
        page.classed("div", "callees", |row| {
            let mut callees: Vec<_> = caller.callees.iter().collect();
            callees.sort_by_key(|(_, called)| std::cmp::Reverse(called.weight));
            for (name, called) in callees {
                let share = 100.0 * called.weight as f64 / all.max(1) as f64;
                if share < NARROWEST_BOX {
                    continue;
                }
                let of_caller = 100.0 * called.weight as f64 / caller.weight.max(1) as f64;
                let width = format!("width:{of_caller:.2}%");
                let tip = format!("{name}: {} ({share:.1} %)", self.weight.text(called.weight));
                row.element("div", &[("style", &width)], |function| {
                    function.leaf("span", &[("title", &tip)], name);
                    if !called.callees.is_empty() {
                        self.boxes(function, called, all);
                    }
                });
            }
        });
    }
}

/// The executable and the functions of a stack, the outermost first.
fn callers<'a>(executable: &'a Stacks, frames: &'a [&Frame]) -> impl Iterator<Item = &'a str> {
    let frames = frames.iter().map(|frame| frame.function.as_str());
    [file_name(executable.executable)].into_iter().chain(frames)
}

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 12.0;
const TOP: f64 = 56.0;
const LINE: f64 = 18.0;
const LETTER: f64 = 6.6;
/// A narrower box is left out, in percent of all.
const NARROWEST_BOX: f64 = 0.5;
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
    weight: u64,
    callees: BTreeMap<&'a str, Called<'a>>,
}

impl<'a> Called<'a> {
    fn add<'b: 'a>(&mut self, frames: impl Iterator<Item = &'b str>, weight: u64) {
        let mut at = self;
        at.weight = at.weight.saturating_add(weight);
        for frame in frames {
            at = at.callees.entry(frame).or_default();
            at.weight = at.weight.saturating_add(weight);
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

/// What all functions of a picture are drawn by.
struct Drawing {
    /// Pixels of a unit of weight.
    scale: f64,
    /// The weight of all.
    all: u64,
    weight: Weight,
}

impl Drawing {
    fn draw(&self, svg: &mut Svg, caller: &Called, [mut left, bottom]: [f64; 2]) {
        for (name, called) in &caller.callees {
            let width = called.weight as f64 * self.scale;
            if width >= NARROWEST {
                let share = 100.0 * called.weight as f64 / self.all.max(1) as f64;
                let tip = format!("{name}: {} ({share:.1} %)", self.weight.text(called.weight));
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
                self.draw(svg, called, [left, bottom - LINE]);
            }
            left += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, place: Option<(&str, u32)>) -> Frame {
        Frame {
            function: function.to_owned(),
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
            ..Frame::default()
        }
    }

    fn frames() -> [Vec<Frame>; 3] {
        let main = frame("main", Some(("/src/app.c", 41)));
        [
            vec![
                main.clone(),
                frame("step", None),
                frame("leak", Some(("/src/app.c", 12))),
            ],
            vec![
                main.clone(),
                frame("step", None),
                frame("leak", Some(("/src/app.c", 13))),
            ],
            vec![main, frame("a;b<c>", None)],
        ]
    }

    fn with_profile(look: impl FnOnce(&Profile)) {
        let frames = frames();
        let weights = [6 << 20, 2 << 20, 2 << 20];
        let stacks = frames.iter().map(|frames| frames.iter().collect());
        let stacks = stacks.zip(weights);
        look(&Profile {
            title: "Live heap",
            weight: Weight::Bytes,
            executables: vec![Stacks {
                executable: "/usr/bin/app",
                stacks: stacks.collect(),
            }],
        });
    }

    #[test]
    fn a_chain_names_the_place_of_each_function_that_has_one() {
        let [leak, ..] = &frames();
        let leak: Vec<&Frame> = leak.iter().collect();
        assert_eq!(
            call_chain(&leak, 6),
            "leak (app.c:12) < step < main (app.c:41)"
        );
        assert_eq!(call_chain(&leak, 2), "leak (app.c:12) < step < …");
    }

    #[test]
    fn what_lies_between_the_allocator_and_the_program_is_left_out() {
        let all = [
            "main",
            "app::grow",
            "<alloc::vec::Vec<T>>::push",
            "alloc::raw_vec::grow",
            "alloc::alloc::alloc",
        ];
        let all = all.map(|name| frame(name, None));
        let all: Vec<&Frame> = all.iter().collect();
        assert_eq!(
            call_chain(&all, 6),
            "alloc::alloc::alloc < … < app::grow < main"
        );
        assert_eq!(
            call_chain(&all[2..], 2),
            "alloc::alloc::alloc < alloc::raw_vec::grow < …"
        );
        assert_eq!(call_chain(&all[..4], 1), "alloc::raw_vec::grow < …");
    }

    #[test]
    fn a_folded_line_has_its_functions_between_semicolons() {
        with_profile(|profile| {
            assert_eq!(
                profile.folded(),
                "app;main;step;leak 8388608\napp;main;a:b<c> 2097152\n"
            );
        });
    }

    #[test]
    fn speedscope_has_the_lines() {
        with_profile(|profile| {
            let whole: Value = serde_json::from_str(&profile.speedscope()).unwrap();
            let frames = whole["shared"]["frames"].as_array().unwrap();
            assert_eq!(
                frames[0],
                json!({"name": "main", "file": "/src/app.c", "line": 41})
            );
            let profile = &whole["profiles"][0];
            assert_eq!(profile["samples"], json!([[0, 1, 2], [0, 1, 3], [0, 4]]));
            assert_eq!(profile["weights"], json!([6 << 20, 2 << 20, 2 << 20]));
            assert_eq!(profile["endValue"], 10 << 20);
        });
    }

    #[test]
    fn a_function_is_as_wide_as_what_it_allocated() {
        with_profile(|profile| {
            let svg = profile.flame_graph();
            assert!(svg.contains("leak: 8.0 MiB (80.0 %)"), "{svg}");
            assert!(svg.contains("a;b&lt;c&gt;"), "{svg}");
            let width = |name: &str| {
                let at = svg.find(&format!("<title>{name}:")).unwrap();
                let rect = &svg[..at];
                let rect = &rect[rect.rfind("width=\"").unwrap() + 7..];
                rect[..rect.find('"').unwrap()].parse::<f64>().unwrap()
            };
            assert!((width("leak") / (0.8 * width("main")) - 1.0).abs() < 0.01);
        });
    }
}
