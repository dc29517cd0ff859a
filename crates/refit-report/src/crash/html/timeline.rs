//! One mode's run: acknowledgements and flushes beneath, and above them each cut
//! by what it left.

use std::collections::BTreeMap;

use refit_crash::mode::{Harm, Mode, State};

use crate::crash::row::age;
use crate::format;
use crate::html::chart;
use crate::markup::number;
use crate::markup::{At, Markup, part};

/// Columns of a picture: what lies closer together shares a mark, and thousands
/// of cuts take no more room than these.
const COLUMNS: usize = 320;
/// Height of the part that shows ages, in pixels.
const HEIGHT: f64 = 150.0;
/// Of a lane beneath it.
const LANE: f64 = 18.0;
/// A loss is to be seen, however young.
const LEAST: f64 = 4.0;

/// The lanes of cuts: title, class, and the harm that is shown there.
const LANES: [(&str, &str, Option<Harm>); 4] = [
    ("nothing lost", "whole", None),
    ("resurrected", "resurrected", Some(Harm::Resurrected)),
    ("damaged", "damaged", Some(Harm::Damaged)),
    ("did not mount", "unmountable", Some(Harm::Unmountable)),
];

/// What the marks mean.
pub fn legend(section: &mut Markup) {
    section.element("ul", &[("class", "legend marks")], |list| {
        for (class, words) in [
            ("newest", "only the newest lost"),
            ("hole", "an older one lost, newer ones survived"),
            ("all", "nothing is readable"),
            ("whole", "nothing lost"),
        ] {
            list.element("li", &[("class", class)], |item| {
                item.leaf("span", &[("class", "key")], "");
                item.text(words);
            });
        }
    });
}

/// A run on a line.
struct Span {
    from_ns: u64,
    length_ns: u64,
}

impl Span {
    /// From 0 at the run's start to 1 at its end.
    fn part(&self, at_ns: u64) -> f64 {
        let since = at_ns.saturating_sub(self.from_ns) as f64;
        (since / self.length_ns.max(1) as f64).clamp(0.0, 1.0)
    }

    fn column(&self, at_ns: u64) -> usize {
        ((self.part(at_ns) * COLUMNS as f64) as usize).min(COLUMNS - 1)
    }
}

/// The picture.
pub fn draw(figure: &mut Markup, mode: &Mode) {
    let record = &mode.record;
    let span = Span {
        from_ns: record.from_ns,
        length_ns: record.length_ns,
    };
    let oldest = mode.states.iter().filter_map(|s| s.loss.oldest_ns).max();
    let height = oldest.map_or(0.0, |_| HEIGHT);
    let lanes: Vec<(&str, &str, Vec<usize>)> = LANES
        .into_iter()
        .map(|(title, class, harm)| (title, class, columns(mode, &span, harm)))
        .filter(|(_, _, columns)| !columns.is_empty())
        .collect();
    // A gap, the lanes of the cuts, the two of the run, the axis.
    let rows = lanes.len() as f64 + 2.0;
    let total = height + 8.0 + rows * LANE + 20.0;
    let top = |index: usize| height + 8.0 + index as f64 * LANE;
    figure.element("div", &[("class", "chart")], |chart| {
        let scale = Scale::new(oldest.unwrap_or(0));
        let ages = scale.steps.iter().filter(|_| oldest.is_some());
        let ages = ages.map(|step| (scale.y(*step), short(*step)));
        let words = lanes.iter().map(|(title, _, _)| *title);
        let words = words.chain(["acknowledged", "flushes"]).enumerate();
        let words = words.map(|(i, title)| (top(i) + LANE / 2.0 - 1.0, title.to_owned()));
        chart::labels(chart, total, ages.chain(words));
        chart.element("div", &[("class", "field")], |field| {
            let title = format!("the cuts of {}", mode.name);
            let size = number(total);
            let attributes = [("height", &*size), ("role", "img"), ("aria-label", &title)];
            field.element("svg", &attributes, |svg| {
                if oldest.is_some() {
                    ages_of(svg, mode, &span, &scale);
                }
                for (i, (_, class, columns)) in lanes.iter().enumerate() {
                    ticks(svg, class, top(i), columns);
                }
                let [first, second] = [lanes.len(), lanes.len() + 1].map(top);
                density(svg, "acknowledged", first, &record.acknowledged_ns, &span);
                density(svg, "flushes", second, &record.flushed_ns, &span);
                time(svg, record.length_ns, total);
            });
        });
    });
}

/// Ages up to the oldest.
struct Scale {
    most: f64,
    steps: Vec<f64>,
}

impl Scale {
    fn new(oldest_ns: u64) -> Scale {
        let most = (oldest_ns as f64).max(1.0) * 1.04;
        Scale {
            most,
            steps: chart::steps(most, 1.0),
        }
    }

    fn y(&self, ns: f64) -> f64 {
        HEIGHT - (ns / self.most).clamp(0.0, 1.0) * (HEIGHT - 6.0)
    }
}

fn ages_of(svg: &mut Markup, mode: &Mode, span: &Span, scale: &Scale) {
    for step in &scale.steps {
        let y = At::Px(scale.y(*step));
        let class = if *step == 0.0 { "zero" } else { "grid" };
        svg.line(class, [At::Px(0.0), y], [At::Part(1.0), y]);
    }
    everything(svg, mode, span, scale);
    for state in worst_of_columns(mode, span) {
        mark(svg, state, span, scale);
    }
}

/// How old the first acknowledgement is, as far as the scale reaches.
fn everything(svg: &mut Markup, mode: &Mode, span: &Span, scale: &Scale) {
    let Some(first) = mode.record.acknowledged_ns.iter().min() else {
        return;
    };
    let end = span.from_ns.saturating_add(span.length_ns);
    let left = end.saturating_sub(*first) as f64;
    let reach = left.min(scale.most);
    let place = |at: u64, age: f64| [At::Part(span.part(at)), At::Px(scale.y(age))];
    let last = first.saturating_add(reach as u64);
    svg.line("all-of-it", place(*first, 0.0), place(last, reach));
}

/// Of the cuts that share a column the one with the worst harm, and of these the
/// one with the oldest loss.
fn worst_of_columns<'a>(mode: &'a Mode, span: &Span) -> Vec<&'a State> {
    let rank = |state: &State| (state.harms().into_iter().max(), state.loss.oldest_ns);
    let mut columns: BTreeMap<usize, &State> = BTreeMap::new();
    for state in mode.states.iter().filter(|s| s.loss.oldest_ns.is_some()) {
        let worst = columns.entry(span.column(state.at_ns)).or_insert(state);
        if rank(state) > rank(worst) {
            *worst = state;
        }
    }
    columns.into_values().collect()
}

fn mark(svg: &mut Markup, state: &State, span: &Span, scale: &Scale) {
    let class = match state {
        _ if state.unmountable.is_some() || state.broken.is_some() => "all",
        _ if state.loss.is_hole => "hole",
        _ => "newest",
    };
    let x = part(span.part(state.at_ns));
    let oldest = state.loss.oldest_ns.unwrap_or(0) as f64;
    let height = scale.y(oldest).min(HEIGHT - LEAST);
    let top = number(height);
    let line = [
        ("class", class),
        ("x1", &*x),
        ("x2", &x),
        ("y1", &top),
        ("y2", "150"),
    ];
    svg.element("line", &line, |line| line.leaf("title", &[], &told(state)));
    if class == "hole" {
        let at = At::Part(span.part(state.at_ns));
        svg.circle("ring", [at, At::Px(height)], "3");
    }
}

/// `c1234-torn-17: 12 of 80 lost, the oldest 7.00 ms old`
pub fn told(state: &State) -> String {
    let loss = &state.loss;
    let oldest = loss
        .oldest_ns
        .map_or(String::new(), |ns| format!(", the oldest {} old", age(ns)));
    format!(
        "{}: {} of {} lost{oldest}",
        state.name,
        format::grouped(loss.lost),
        format::grouped(loss.acknowledged)
    )
}

/// Columns with a cut that did this harm, or none.
fn columns(mode: &Mode, span: &Span, harm: Option<Harm>) -> Vec<usize> {
    let has = |state: &&State| match harm {
        Some(harm) => state.harms().contains(&harm),
        None => !state.is_bad(),
    };
    let cuts = mode.states.iter().filter(has);
    let mut columns: Vec<usize> = cuts.map(|state| span.column(state.at_ns)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Number of columns of a histogram: few enough to look smooth.
const BROAD: usize = 120;
/// Height of what stands in a lane, in pixels.
const FULL: f64 = 12.0;

/// How many of these times there are in each broad column, as a part of the most.
fn density(svg: &mut Markup, class: &str, y: f64, times: &[u64], span: &Span) {
    let mut counts = [0_usize; BROAD];
    for at in times {
        let column = span.part(*at) * BROAD as f64;
        counts[(column as usize).min(BROAD - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0) as f64;
    let path: String = (0..BROAD)
        .filter(|column| counts[*column] > 0)
        .map(|column| {
            let height = (counts[column] as f64 / most * FULL).max(1.0);
            format!("M{column} {FULL}v{}h1V{FULL}", number(-height))
        })
        .collect();
    lane(svg, class, y, BROAD, &path);
}

/// A tick for each of these columns.
fn ticks(svg: &mut Markup, class: &str, y: f64, columns: &[usize]) {
    let path: String = columns
        .iter()
        .map(|column| format!("M{column}.5 0v{FULL}"))
        .collect();
    lane(svg, class, y, COLUMNS, &path);
}

/// A path in columns that reach over the whole breadth.
fn lane(svg: &mut Markup, class: &str, y: f64, columns: usize, path: &str) {
    let (y, size) = (number(y), number(FULL));
    let sheet = format!("0 0 {columns} {FULL}");
    let attributes = [
        ("y", &*y),
        ("width", "100%"),
        ("height", &size),
        ("viewBox", &sheet),
        ("preserveAspectRatio", "none"),
    ];
    svg.element("svg", &attributes, |svg| {
        svg.void("path", &[("class", class), ("d", path)]);
    });
}

/// The time since the run began.
fn time(svg: &mut Markup, length_ns: u64, total: f64) {
    let length = length_ns as f64;
    for step in chart::steps(length, 1.0) {
        let at = if length > 0.0 { step / length } else { 0.0 };
        let anchor = match at {
            _ if step == 0.0 => "start",
            _ if at > 0.96 => "end",
            _ => "middle",
        };
        svg.label([At::Part(at), At::Px(total - 4.0)], anchor, &short(step));
    }
}

/// A round time without needless zeros: `200 ms`, `1 s`.
fn short(ns: f64) -> String {
    if ns == 0.0 {
        return "0".to_owned();
    }
    let text = format::duration(ns);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits} {unit}")
        }
        _ => text,
    }
}
