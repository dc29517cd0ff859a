//! A tuning as it is stored: what was asked for, what was seen, each step, and the answers. The comparisons themselves
//! are files beside it.

use refit_recipe::RecipeRecord;
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::risk::Risk;
use crate::effects::EffectRecord;

/// Version of the JSON schema (docs/tune.schema.json).
pub const SCHEMA: u32 = 1;

/// The JSON Schema of a stored tuning (docs/tune.schema.json).
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> serde_json::Value {
    refit_run::stored_schema::<Tuning>()
}

/// A whole tuning.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tuning {
    /// Version of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// What this is.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "tune")))]
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// Seconds since 1970 when it began.
    pub started_unix: u64,
    /// The words after `refit tune`, for `--resume`.
    pub words: Vec<String>,
    /// Its options, as they were typed; `None`: they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// Where it was typed.
    pub directory: String,
    /// The command's words; of a recipe its name.
    pub command: Vec<String>,
    /// The recipe, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<RecipeRecord>,
    /// The metric that is tuned.
    pub main: String,
    /// What may be risked.
    pub accepted: Risk,
    /// Seed of the first step.
    pub seed: u64,
    /// Gains up to this do not matter.
    pub delta: f64,
    /// How long it may take, in seconds.
    pub budget_s: f64,
    /// How long it took so far, in seconds.
    pub took_s: f64,
    /// What the first run showed; `None` before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What is worth trying by that, and what is not.
    pub proposals: Vec<ProposalRecord>,
    /// The comparisons, in order.
    pub steps: Vec<Step>,
    /// One for each level of risk that is accepted; empty before the end.
    pub answers: Vec<Answer>,
    /// The power of what risks data is to be cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prove: bool,
    /// What came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofRecord>,
    /// It was interrupted before its end.
    pub interrupted: bool,
}

/// What power cuts showed of the answers that risk data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ProofRecord {
    /// The report of `refit crash`, in the directory of the tuning.
    Cut {
        /// Its file.
        file: String,
    },
    /// Why nothing was cut.
    NotCut(String),
}

/// A variant that was thought of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposalRecord {
    /// As it is typed.
    pub variant: String,
    /// What it risks.
    pub risk: Risk,
    /// What makes it worth trying.
    pub why: String,
    /// Why it was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// To drop what is clearly behind.
    Screen,
    /// Whether settings that gain alone gain more together.
    Joint,
    /// The best of the screening once more, with new runs.
    Confirm,
}

impl StepKind {
    /// As it is printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            StepKind::Screen => "screen",
            StepKind::Joint => "joint",
            StepKind::Confirm => "confirm",
        }
    }
}

/// One comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// What it is for.
    pub kind: StepKind,
    /// The file of the comparison, in the directory of the tuning.
    pub file: String,
    /// Round pairs that count.
    pub pairs: usize,
    /// Runs, with those that do not count.
    pub runs: usize,
    /// What it took, in seconds.
    pub took_s: f64,
    /// Each candidate.
    pub outcomes: Vec<Outcome>,
}

/// What a step showed of a candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// As it is typed.
    pub variant: String,
    /// What it risks.
    pub risk: Risk,
    /// Its main metric against the baseline's; `None` where it has none.
    pub effect: Option<EffectRecord>,
    /// The estimate as a gain in the logarithm of the ratio: the more the better.
    pub gain: Option<f64>,
    /// Why it was dropped; `None`: it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
}

/// What to take, where a user accepts this much.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// What is accepted.
    pub accepted: Risk,
    /// What to take; `None`: nothing is proven to help.
    pub variant: Option<String>,
    /// What that risks.
    pub risk: Risk,
    /// What it gained when it was measured again, after it had been chosen.
    pub effect: Option<EffectRecord>,
    /// What power cuts took of it, and of the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
    /// Why there is nothing to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// There is nothing to take so far, and a larger budget may find something.
    #[serde(default)]
    pub is_open: bool,
}

impl Tuning {
    /// The proposals that are tried.
    pub fn tried(&self) -> impl Iterator<Item = &ProposalRecord> {
        self.proposals.iter().filter(|one| one.left_out.is_none())
    }

    /// Time that is left, in seconds.
    #[must_use]
    pub fn left_s(&self) -> f64 {
        (self.budget_s - self.took_s).max(0.0)
    }

    /// Whether it is at its end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !self.answers.is_empty() && (self.proof.is_some() || self.risky().is_empty())
    }

    /// The answers whose power is to be cut.
    #[must_use]
    pub fn risky(&self) -> Vec<&str> {
        let answers = self
            .answers
            .iter()
            .filter(|one| self.prove && one.risk.loss.risks_data());
        let mut names: Vec<&str> = answers.filter_map(|one| one.variant.as_deref()).collect();
        names.dedup();
        names
    }

    /// A power cut took more of this variant than its class allows: it is no answer.
    pub fn refute(&mut self, variant: &str, took: &str) {
        let answers = self.answers.iter_mut();
        for answer in answers.filter(|one| one.variant.as_deref() == Some(variant)) {
            answer.variant = None;
            answer.effect = None;
            answer.risk = Risk::NONE;
            answer.reason = Some(format!(
                "{variant} gains, but a power cut takes more than its class allows: {took}"
            ));
        }
    }

    /// Whether a variant was measured before the step that the answers are from.
    #[must_use]
    pub fn measured_before(&self, variant: &str) -> bool {
        let before = self.steps.iter().rev().skip(1);
        let mut outcomes = before.flat_map(|step| &step.outcomes);
        outcomes.any(|one| one.variant == variant && one.effect.is_some())
    }

    /// The step that the answers are from.
    #[must_use]
    pub fn confirmation(&self) -> Option<&Step> {
        let last = self.steps.last()?;
        (last.kind == StepKind::Confirm).then_some(last)
    }
}
