//! The sheet of the strip plot: its measures, fonts and colours, and where its runs lie.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, Metric};

use crate::bar::{Scale, changes};
use crate::palette::COLOURS;
use crate::svg::Font;
use crate::values::median;

/// Pixels, as all that follow.
pub const WIDTH: f64 = 960.0;
/// Between the edge and what is drawn.
pub const MARGIN: f64 = 24.0;
/// Where the runs begin: room for the labels of the axis.
pub const LEFT: f64 = 84.0;
/// Height of a line of the legend or of the caveat.
pub const LINE: f64 = 20.0;

const INK: &str = "#222";
pub const GREY: &str = "#666";
pub const TEXT: Font = Font::plain(12.0, INK);
pub const SMALL: Font = Font::plain(11.0, GREY);
pub const HEAD: Font = Font::bold(17.0, INK);

/// A variant's colour.
pub fn colour(experiment: &Experiment, variant: usize) -> &'static str {
    match experiment.variants.get(variant).map(|variant| variant.role) {
        Some(Role::Candidate) => COLOURS[variant.saturating_sub(1) % COLOURS.len()],
        Some(Role::Hidden) => "#b4b4b4",
        Some(Role::Bare) => "#7a5c3e",
        _ => "#333",
    }
}

/// Where the runs lie on the sheet.
pub struct Frame {
    /// Upper edge of the runs.
    pub top: f64,
    /// Lower edge.
    pub bottom: f64,
    /// Right edge of the runs.
    pub right: f64,
    /// Logarithms of ratios that the height stands for.
    pub scale: Scale,
    /// Median of the baseline, in the metric's unit.
    pub base: f64,
    /// What is drawn.
    pub metric: Metric,
}

impl Frame {
    /// With room for every run that counts and for every interval; `None`
    /// without a counted run of the baseline.
    pub fn new(comparison: &Comparison, [top, bottom]: [f64; 2], right: f64) -> Option<Frame> {
        let metric = comparison.experiment.main_metric();
        let base = median(&comparison.experiment, 0, &metric).filter(|base| *base > 0.0)?;
        let scale = Scale {
            low: 0.0,
            high: 0.0,
        };
        let mut frame = Frame {
            top,
            bottom,
            right,
            scale,
            base,
            metric,
        };
        frame.scale = frame.scale_of(comparison);
        Some(frame)
    }

    fn scale_of(&self, comparison: &Comparison) -> Scale {
        let runs = (0..comparison.experiment.variants.len())
            .flat_map(|variant| comparison.experiment.runs.counted(variant));
        let runs = runs
            .filter_map(|run| self.metric.of(run))
            .map(|value| self.log(value).exp_m1());
        let shown = comparison
            .effects
            .iter()
            .filter(|effect| effect.metric == comparison.experiment.main);
        let scale = Scale::around(
            runs.chain(shown.flat_map(changes)),
            comparison.experiment.delta,
        );
        let room = 0.06 * (scale.high - scale.low);
        Scale {
            low: scale.low - room,
            high: scale.high + room,
        }
    }

    /// Where a logarithm of a ratio lies.
    pub fn y(&self, log: f64) -> f64 {
        self.bottom - self.scale.part(log) * (self.bottom - self.top)
    }

    /// Logarithm of a value's ratio to the baseline's median.
    pub fn log(&self, value: f64) -> f64 {
        (value.max(f64::MIN_POSITIVE) / self.base).ln()
    }
}
