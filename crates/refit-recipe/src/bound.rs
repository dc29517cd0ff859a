//! What a value of class `bounded-loss` claims: how much a power cut takes at most.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::quantities::parse_time;

/// only the newest may be lost: `newest-only`, or of these what is younger than a time, as 600ms
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String", extend("pattern" = r"^(newest-only|[0-9.]+(ms|s|m|min|h)?)$")))]
pub enum Bound {
    /// What is older than this before the cut is there.
    Age(Duration),
    /// However much is lost, nothing newer than it is there.
    NewestOnly,
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Bound, String> {
        if text == "newest-only" {
            return Ok(Bound::NewestOnly);
        }
        parse_time(&text)
            .map(Bound::Age)
            .ok_or_else(|| format!("invalid bound `{text}`; write a time as 600ms, or newest-only"))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::NewestOnly => f.write_str("newest-only"),
            Bound::Age(age) if age.subsec_nanos() == 0 => write!(f, "{}s", age.as_secs()),
            Bound::Age(age) => write!(f, "{}ms", age.as_secs_f64() * 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_time_or_newest_only() {
        for (text, shown) in [
            ("600ms", "600ms"),
            ("1s", "1s"),
            ("newest-only", "newest-only"),
        ] {
            assert_eq!(Bound::try_from(text.to_owned()).unwrap().to_string(), shown);
        }
        for text in ["", "0", "newest", "-1s"] {
            assert!(Bound::try_from(text.to_owned()).unwrap_err().contains(text));
        }
        assert!(Bound::Age(Duration::MAX) < Bound::NewestOnly);
    }
}
