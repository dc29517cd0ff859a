//! Every run in the order in which it was made: what lies where, and what is drawn before what. The sheet of `--svg` and
//! the page are a [`Painter`] each, with units and looks of their own.

use std::collections::{BTreeMap, BTreeSet};

use refit_lab::experiment::{Experiment, RunRecord};

use super::frame::Frame;
use crate::format;

/// The chart; what lies across is a part of the breadth, from 0 to 1.
pub struct Strip {
    /// One for each run that has the metric.
    pub marks: Vec<Mark>,
    /// The two runs of a variant in a round pair, where both count.
    pub pairs: Vec<(usize, [[f64; 2]; 2])>,
    /// The part of the breadth that the warm-up takes.
    pub warm_up: f64,
    /// Upper and lower edge of the margin within which variants are the same.
    pub band: [f64; 2],
    /// Lines across: each with its change.
    pub ticks: Vec<(f64, f64)>,
    /// What stands below the first run, and below the last one.
    pub ends: [String; 2],
}

/// What draws a strip's parts; what it draws later lies above.
pub trait Painter {
    /// The margin within which variants are the same: its upper and its lower edge.
    fn band(&mut self, edges: [f64; 2]);
    /// A line across, at this change.
    fn line(&mut self, change: f64, y: f64);
    /// The warm-up, which takes this part of the breadth.
    fn warm_up(&mut self, part: f64);
    /// The round pairs of a variant.
    fn pairs(&mut self, variant: usize, pairs: &[[[f64; 2]; 2]]);
    /// The runs of a variant that are of this kind; those of round pairs are among them.
    fn marks(&mut self, variant: usize, kind: Kind, marks: &[&Mark]);
}

/// A run.
pub struct Mark {
    /// Its index.
    pub run: usize,
    /// Its variant.
    pub variant: usize,
    /// What became of it.
    pub kind: Kind,
    /// Where it lies.
    pub place: [f64; 2],
    /// It is one of a round pair's two.
    pub joined: bool,
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It counts.
    Counted,
    /// It was made to get warm.
    WarmUp,
    /// It does not count.
    Failed,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::WarmUp, Kind::Counted, Kind::Failed];

    fn of(run: &RunRecord) -> Kind {
        match run {
            run if run.failure.is_some() => Kind::Failed,
            run if run.warmup => Kind::WarmUp,
            _ => Kind::Counted,
        }
    }

    /// The class of its elements.
    pub fn class(self) -> &'static str {
        match self {
            Kind::Counted => "run",
            Kind::WarmUp => "warmup",
            Kind::Failed => "failed",
        }
    }
}

impl Strip {
    /// Draws all of it but its words.
    pub fn draw(&self, painter: &mut impl Painter) {
        painter.band(self.band);
        for (change, y) in &self.ticks {
            painter.line(*change, *y);
        }
        if self.warm_up > 0.0 {
            painter.warm_up(self.warm_up);
        }
        let variants: BTreeSet<usize> = self.marks.iter().map(|mark| mark.variant).collect();
        for variant in &variants {
            let pairs = self.pairs.iter().filter(|(of, _)| of == variant);
            let pairs: Vec<[[f64; 2]; 2]> = pairs.map(|(_, ends)| *ends).collect();
            painter.pairs(*variant, &pairs);
        }
        for variant in variants {
            for kind in Kind::ALL {
                let marks = self.marks.iter();
                let marks = marks.filter(|mark| mark.variant == variant && mark.kind == kind);
                painter.marks(variant, kind, &marks.collect::<Vec<_>>());
            }
        }
    }

    /// All runs of an experiment, with lines across at these changes.
    pub fn new(experiment: &Experiment, frame: &Frame, ticks: Vec<f64>) -> Strip {
        let runs = &experiment.runs;
        let total = runs.len().max(1) as f64;
        let places: Vec<Option<[f64; 2]>> = runs
            .iter()
            .enumerate()
            .map(|(i, run)| {
                let y = frame.y(frame.log(frame.metric.of(run)?));
                Some([(i as f64 + 0.5) / total, y])
            })
            .collect();
        let mut is_joined = BTreeSet::new();
        let mut pairs = Vec::new();
        for (first, second, variant) in joined(runs.as_slice()) {
            if let (Some(from), Some(to)) = (places[first], places[second]) {
                pairs.push((variant, [from, to]));
                is_joined.extend([first, second]);
            }
        }
        let marks = runs.iter().zip(&places).enumerate();
        let marks = marks.filter_map(|(i, (run, place))| {
            Some(Mark {
                run: i,
                variant: run.variant,
                kind: Kind::of(run),
                place: (*place)?,
                joined: is_joined.contains(&i),
            })
        });
        let margin = experiment.delta.abs().ln_1p();
        let ticks = ticks.into_iter();
        let first = match runs.as_slice().first() {
            Some(run) if run.warmup => "warm-up",
            _ => "first run",
        };
        Strip {
            marks: marks.collect(),
            pairs,
            warm_up: runs.iter().take_while(|run| run.warmup).count() as f64 / total,
            band: [frame.y(margin), frame.y(-margin)],
            ticks: ticks
                .map(|change| (change, frame.y(change.ln_1p())))
                .collect(),
            ends: [
                first.to_owned(),
                format!("run {}", format::grouped(runs.len())),
            ],
        }
    }
}

/// First, second and variant of each pair.
fn joined(runs: &[RunRecord]) -> Vec<(usize, usize, usize)> {
    let mut first: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (i, run) in runs
        .iter()
        .enumerate()
        .filter(|(_, run)| Kind::of(run) == Kind::Counted)
    {
        match first.remove(&(run.pair, run.variant)) {
            Some(other) => pairs.push((other, i, run.variant)),
            None => {
                first.insert((run.pair, run.variant), i);
            }
        }
    }
    pairs
}
