//! The verdict of an effect, in the words of its metric.

use std::fmt;

use refit_stats::Measure;
use serde::{Deserialize, Serialize};

/// What an interval proves of a candidate's metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A shorter time, or a higher rate.
    Faster,
    /// A longer time, or a lower rate.
    Slower,
    /// A smaller amount.
    Less,
    /// A larger amount.
    More,
    /// They differ by at most δ.
    Same,
    /// None of these is proven.
    Inconclusive,
}

impl Verdict {
    /// In the words of what is measured.
    #[must_use]
    pub fn new(verdict: refit_stats::Verdict, measure: Measure) -> Verdict {
        use refit_stats::Verdict as Proven;
        match (verdict, measure) {
            (Proven::Less, Measure::Duration) | (Proven::More, Measure::Rate) => Verdict::Faster,
            (Proven::More, Measure::Duration) | (Proven::Less, Measure::Rate) => Verdict::Slower,
            (Proven::Less, Measure::Amount) => Verdict::Less,
            (Proven::More, Measure::Amount) => Verdict::More,
            (Proven::Same, _) => Verdict::Same,
            (Proven::Inconclusive(_), _) => Verdict::Inconclusive,
        }
    }

    /// As it is printed and stored.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::Same => "same",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    /// Whether anything is proven.
    #[must_use]
    pub fn is_settled(self) -> bool {
        self != Verdict::Inconclusive
    }

    /// Whether a difference is proven.
    #[must_use]
    pub fn is_difference(self) -> bool {
        !matches!(self, Verdict::Same | Verdict::Inconclusive)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use refit_stats::{Remedy, Verdict as Proven};

    use super::*;

    #[test]
    fn each_measure_has_its_words() {
        let words = |proven| {
            [Measure::Duration, Measure::Rate, Measure::Amount]
                .map(|measure| Verdict::new(proven, measure).word())
        };
        assert_eq!(words(Proven::Less), ["faster", "slower", "less"]);
        assert_eq!(words(Proven::More), ["slower", "faster", "more"]);
        assert_eq!(words(Proven::Same), ["same"; 3]);
        let open = Proven::Inconclusive(Remedy::RoundPairs(9));
        assert_eq!(words(open), ["inconclusive"; 3]);
    }

    #[test]
    fn it_is_stored_as_it_is_printed() {
        for word in ["faster", "slower", "less", "more", "same", "inconclusive"] {
            let verdict: Verdict = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            assert_eq!(verdict.to_string(), word);
        }
        assert!(serde_json::from_str::<Verdict>("\"better\"").is_err());
    }
}
