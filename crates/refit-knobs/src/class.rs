//! What a setting can cost.

use std::fmt;

/// The risk of a setting, printed whenever the setting is used. Ordered: the greater is the riskier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No data at risk, no promise of the program weakened.
    Safe,
    /// What the program acknowledged can be gone after a power cut or a kernel crash.
    LosesOnCrash,
    /// The program is meant to behave differently.
    ChangesBehaviour,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safe => "safe",
            Self::LosesOnCrash => "loses-on-crash",
            Self::ChangesBehaviour => "changes-behaviour",
        })
    }
}
