//! Gates: limits for the effects of candidates, such as `wall<+2%`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::effects::{EffectRecord, Effects};
use crate::experiment::{Experiment, Role};

/// A bound on a metric's relative change against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Gate {
    /// Name of the metric.
    pub metric: String,
    /// The change has to be below the bound; otherwise above it.
    pub below: bool,
    /// As a relative change: 0.02 is +2 %.
    pub bound: f64,
    typed: String,
}

/// Text that is not a gate.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateError {
    /// No `<` or `>`, or no number after it.
    #[error(
        "`{0}` is not a gate; write a metric, `<` or `>`, and a change in percent: --gate 'wall<+2%'"
    )]
    Form(String),
    /// An unknown metric.
    #[error("unknown metric `{name}`; the metrics are {known}: --gate '{example}<+2%'")]
    Metric {
        /// The metric, as typed.
        name: String,
        /// Every metric, joined by commas.
        known: String,
        /// A metric for the example.
        example: String,
    },
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(typed: &str) -> Result<Gate, GateError> {
        let form = || GateError::Form(typed.to_owned());
        let at = typed.find(['<', '>']).ok_or_else(form)?;
        let (name, rest) = typed.split_at(at);
        let number = rest[1..].trim().strip_suffix('%').ok_or_else(form)?;
        let per_cent: f64 = number.trim().parse().map_err(|_| form())?;
        if !per_cent.is_finite() || per_cent <= -100.0 {
            return Err(form());
        }
        let metric = name.trim();
        if metric.is_empty() {
            return Err(form());
        }
        Ok(Gate {
            metric: metric.to_owned(),
            below: rest.starts_with('<'),
            bound: per_cent / 100.0,
            typed: typed.to_owned(),
        })
    }
}

impl Gate {
    /// Whether the runs have its metric.
    ///
    /// # Errors
    /// [`GateError::Metric`].
    pub fn check(&self, experiment: &Experiment) -> Result<(), GateError> {
        let metrics = experiment.metrics();
        if metrics.iter().any(|metric| metric.name == self.metric) {
            return Ok(());
        }
        let names: Vec<&str> = metrics.iter().map(|metric| &*metric.name).collect();
        Err(GateError::Metric {
            name: self.metric.clone(),
            known: names.join(", "),
            example: experiment.main.clone(),
        })
    }
}

impl From<Gate> for String {
    fn from(gate: Gate) -> String {
        gate.typed
    }
}

impl TryFrom<String> for Gate {
    type Error = GateError;

    fn try_from(typed: String) -> Result<Gate, GateError> {
        typed.parse()
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

/// The answer of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum GateAnswer {
    /// The whole interval is on the right side.
    Passed,
    /// The whole interval is on the wrong side.
    Failed,
    /// It lies on both sides.
    Undecided,
}

impl fmt::Display for GateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GateAnswer::Passed => "passed",
            GateAnswer::Failed => "failed",
            GateAnswer::Undecided => "undecided",
        })
    }
}

impl Gate {
    /// The answer for an effect; without an effect nothing is decided.
    #[must_use]
    pub fn answer(&self, effect: Option<&EffectRecord>) -> GateAnswer {
        let Some([low, high]) = effect.and_then(|effect| effect.interval) else {
            return GateAnswer::Undecided;
        };
        let (inside, outside) = if self.below {
            (high < self.bound, low >= self.bound)
        } else {
            (low > self.bound, high <= self.bound)
        };
        match (inside, outside) {
            (true, _) => GateAnswer::Passed,
            (_, true) => GateAnswer::Failed,
            _ => GateAnswer::Undecided,
        }
    }
}

/// The answer of a gate for one candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateRecord {
    /// The gate, as typed.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub gate: Gate,
    /// Index into `variants`.
    pub variant: usize,
    /// For this candidate.
    pub answer: GateAnswer,
}

/// The answers of all gates, for each candidate.
pub fn answers(gates: &[Gate], experiment: &Experiment, effects: &Effects) -> Vec<GateRecord> {
    let variants = experiment.variants.iter().enumerate();
    let candidates = variants.filter(|(_, variant)| variant.role == Role::Candidate);
    candidates
        .flat_map(|(index, variant)| {
            gates.iter().map(move |gate| GateRecord {
                gate: gate.clone(),
                variant: index,
                answer: match variant.disqualified {
                    Some(_) => GateAnswer::Failed,
                    None => gate.answer(effects.get(index, &gate.metric)),
                },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(low: f64, high: f64) -> EffectRecord {
        EffectRecord {
            variant: 1,
            metric: "wall".to_owned(),
            change: f64::midpoint(low, high),
            interval: Some([low, high]),
            pairs: 8,
            ..EffectRecord::default()
        }
    }

    #[test]
    fn a_gate_is_decided_by_the_whole_interval() {
        let gate: Gate = "wall<+2%".parse().unwrap();
        assert_eq!(gate.answer(Some(&effect(-0.01, 0.019))), GateAnswer::Passed);
        assert_eq!(
            gate.answer(Some(&effect(-0.01, 0.03))),
            GateAnswer::Undecided
        );
        assert_eq!(gate.answer(Some(&effect(0.02, 0.03))), GateAnswer::Failed);
        assert_eq!(gate.answer(None), GateAnswer::Undecided);
        let gate: Gate = "syncs > -50 %".parse().unwrap();
        assert_eq!(gate.answer(Some(&effect(-0.4, 0.0))), GateAnswer::Passed);
        assert_eq!(gate.answer(Some(&effect(-0.9, -0.6))), GateAnswer::Failed);
    }

    #[test]
    fn what_is_not_a_gate_is_named() {
        for text in ["wall", "<2%", "wall<2", "wall<x%", "wall<-100%", "<2%%"] {
            assert_eq!(
                text.parse::<Gate>(),
                Err(GateError::Form(text.to_owned())),
                "{text}"
            );
        }
    }
}
