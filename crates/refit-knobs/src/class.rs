//! What a setting can cost.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The risk of a setting, printed whenever the setting is used. Ordered: the greater is the riskier.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// No data at risk, no promise of the program weakened.
    Safe,
    /// A power cut can take what the program acknowledged in the last moments, and no more.
    BoundedLoss,
    /// What the program acknowledged can be gone after a power cut or a kernel crash.
    LosesOnCrash,
    /// The program is meant to behave differently.
    ChangesBehaviour,
}

impl Class {
    /// All of them, the least risky first.
    pub const ALL: [Class; 4] = [
        Class::Safe,
        Class::BoundedLoss,
        Class::LosesOnCrash,
        Class::ChangesBehaviour,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safe => "safe",
            Self::BoundedLoss => "bounded-loss",
            Self::LosesOnCrash => "loses-on-crash",
            Self::ChangesBehaviour => "changes-behaviour",
        })
    }
}
