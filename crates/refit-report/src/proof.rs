//! A comparison whose risky variants were also cut: what each gains and what it risks, in
//! one table.
//!
//! Promises, beside those of the crate: the first line of every format is the answer in a
//! sentence; what was not cut is called that, and no loss is claimed or denied of it.

mod front;
mod html;
mod notes;
mod picture;
mod row;
mod sentence;
mod svg;
mod text;

#[cfg(test)]
mod tests;

use refit_crash::CrashReport;
use refit_lab::Comparison;
use serde::{Deserialize, Serialize};

use crate::Style;

/// What `refit compare` stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// What was measured.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// What the power cuts showed; `None` where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// What `--prove` came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// The baseline and each variant whose class risks data, cut: a report of `refit crash`, as
    /// docs/crash.schema.json describes it.
    Cut(
        #[cfg_attr(
            feature = "schema",
            schemars(with = "serde_json::Map<String, serde_json::Value>")
        )]
        Box<CrashReport>,
    ),
    /// Why nothing was cut.
    NotCut(String),
}

impl Compared {
    /// The answer: the first line of every format.
    #[must_use]
    pub fn sentence(&self) -> String {
        let comparison = &self.comparison;
        match &self.proof {
            None => crate::sentence::sentence(comparison),
            Some(proof) => {
                sentence::sentence(comparison, proof, &row::rows(comparison, row::cuts(proof)))
            }
        }
    }

    /// For a terminal; every line ends with a newline.
    #[must_use]
    pub fn terminal(&self, style: &Style) -> String {
        match &self.proof {
            None => crate::terminal(&self.comparison, style),
            Some(proof) => text::terminal(&self.comparison, proof, style),
        }
    }

    /// GitHub's Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        match &self.proof {
            None => crate::markdown(&self.comparison),
            Some(proof) => text::markdown(&self.comparison, proof),
        }
    }

    /// One self-contained page.
    #[must_use]
    pub fn html(&self) -> String {
        match &self.proof {
            None => crate::html(&self.comparison),
            Some(proof) => html::html(&self.comparison, proof),
        }
    }

    /// The picture: gain and loss of each variant where it was cut, else every run.
    #[must_use]
    pub fn svg(&self) -> String {
        let drawn = match &self.proof {
            Some(proof @ Proof::Cut(report)) => svg::svg(&self.comparison, proof, report),
            _ => None,
        };
        drawn.unwrap_or_else(|| crate::svg(&self.comparison))
    }
}

/// refit result
///
/// What refit writes with --json: one run, or a comparison of variants.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "a schema is made of it, and no value")]
enum Stored {
    Run(Box<refit_run::RunReport>),
    Comparison(Box<Compared>),
}

/// docs/result.schema.json.
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> serde_json::Value {
    refit_run::stored_schema::<Stored>()
}
