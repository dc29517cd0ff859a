//! A comparison as it is stored: what was run, and what it shows. Every other format
//! is drawn from this.

pub mod check;
pub mod command_runner;
pub mod of_subject;
pub mod recipe_runner;
pub mod replica_runner;
pub mod runner;

use refit_stats::Measure;
use serde::{Deserialize, Serialize};

use crate::effects::Effects;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::gate::{self, Gate, GateRecord};
use crate::request::Request;
use crate::step_class::record_step_classes;
use crate::times::{TimesRecord, times};
use crate::variants::Variants;
use crate::warnings::{Warning, warnings};

/// A whole comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What was run.
    #[serde(flatten)]
    pub experiment: Experiment,
    /// Candidate by metric; the hidden second baseline and `bare` as well.
    pub effects: Effects,
    /// Gates as they were asked for, each with its answer.
    pub gates: Vec<GateRecord>,
    /// What a reader has to know, each with one action.
    pub warnings: Vec<Warning>,
    /// The winner against the baseline once more, with a fresh seed.
    pub confirmation: Option<Box<Comparison>>,
    /// For scripts that read hyperfine's results: one entry for each variant.
    pub results: Vec<TimesRecord>,
}

impl Comparison {
    /// Before its end: with the effects that were estimated last.
    #[must_use]
    pub fn unfinished(experiment: Experiment, effects: Effects) -> Comparison {
        Comparison {
            experiment,
            effects,
            gates: Vec::new(),
            warnings: Vec::new(),
            confirmation: None,
            results: Vec::new(),
        }
    }

    /// What was asked for, when an error ended it before anything was measured.
    #[must_use]
    pub fn unmade(request: &Request, error: &LabError) -> Comparison {
        let variants = Variants::compared(request).records;
        let mut experiment = Experiment::planned(request, variants);
        experiment.failed = Some(error.to_string());
        Comparison::new(experiment, &request.gates, 0.0)
    }

    /// What the experiment shows. `others` is the share of all processors that other
    /// processes used meanwhile.
    #[must_use]
    pub fn new(experiment: Experiment, gates: &[Gate], others: f64) -> Comparison {
        let effects = Effects::of(&experiment);
        Comparison {
            gates: gate::answers(gates, &experiment, &effects),
            warnings: warnings(&experiment, &effects, others),
            results: times(&experiment),
            confirmation: None,
            effects,
            experiment,
        }
    }

    /// A stored comparison, with the classes that its runs show: an older refit knew those that are declared alone.
    #[must_use]
    pub fn restored(mut self) -> Comparison {
        record_step_classes(&mut self.experiment);
        self.confirmation = self.confirmation.map(|again| Box::new(again.restored()));
        self
    }

    /// The candidate that gains most, by index, if one gains at all.
    #[must_use]
    pub fn winner(&self) -> Option<usize> {
        let experiment = &self.experiment;
        // As a gain: a higher rate is the better one.
        let is_rate = experiment.main_metric().measure == Measure::Rate;
        let gains = experiment.candidates().filter_map(|(index, _)| {
            let effect = self.effects.get(index, &experiment.main)?;
            let change = if is_rate {
                -effect.change
            } else {
                effect.change
            };
            effect.gain.then_some((index, change))
        });
        gains
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(index, _)| index)
    }
}
