//! Why a variant is not run any more, and gets no verdict.

use std::fmt::{self, Display};

use refit_run::Reasons;
use serde::{Deserialize, Serialize};

/// Why a variant is not run any more, and gets no verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Disqualified {
    /// None of its settings was in effect anywhere; why, each reason once.
    NotInEffect(Reasons),
    /// Its runs failed, or did something else than the baseline's: what the last one did.
    Failed(String),
}

/// `not in effect: no sync call was seen`, `exit code 1`.
impl Display for Disqualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disqualified::NotInEffect(reasons) => write!(f, "not in effect: {reasons}"),
            Disqualified::Failed(what) => f.write_str(what),
        }
    }
}
