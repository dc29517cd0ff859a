//! What a variant risks, and what a user accepts.

use std::fmt;

use refit_knobs::Class;
use serde::{Deserialize, Serialize};

/// What a power cut may take, and whether the program is to behave differently: neither stands for the other, so that
/// each setting of a variant has to be accepted, and not the riskiest class alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Risk {
    /// `safe`, `bounded-loss` or `loses-on-crash`.
    pub loss: Class,
    /// A setting has the class `changes-behaviour`.
    pub changes_behaviour: bool,
}

impl Risk {
    /// Nothing.
    pub const NONE: Risk = Risk {
        loss: Class::Safe,
        changes_behaviour: false,
    };

    /// Of settings of these classes together; of classes that are accepted as well.
    pub fn of(classes: impl IntoIterator<Item = Class>) -> Risk {
        classes
            .into_iter()
            .fold(Risk::NONE, |risk, class| match class {
                // A run cannot destroy data: no setting of one has this class.
                Class::ChangesBehaviour | Class::LosesData => Risk {
                    changes_behaviour: true,
                    ..risk
                },
                class => Risk {
                    loss: risk.loss.max(class),
                    ..risk
                },
            })
    }

    /// Of both together.
    #[must_use]
    pub fn and(self, other: Risk) -> Risk {
        Risk {
            loss: self.loss.max(other.loss),
            changes_behaviour: self.changes_behaviour || other.changes_behaviour,
        }
    }

    /// Whether who accepts `accepted` accepts this.
    #[must_use]
    pub fn is_within(self, accepted: Risk) -> bool {
        self.loss <= accepted.loss && (accepted.changes_behaviour || !self.changes_behaviour)
    }

    /// What can be accepted within this, each with an answer of its own: the least first.
    #[must_use]
    pub fn levels(self) -> Vec<Risk> {
        let losses = Class::ALL
            .into_iter()
            .filter(|class| *class < Class::ChangesBehaviour && *class <= self.loss);
        let mut levels: Vec<Risk> = losses.map(|class| Risk::of([class])).collect();
        if self.changes_behaviour {
            levels.push(self);
        }
        levels
    }

    /// The options that accept it, as they are typed.
    #[must_use]
    pub fn options(self) -> String {
        let loss = (self.loss != Class::Safe).then_some(self.loss);
        let changes = self.changes_behaviour.then_some(Class::ChangesBehaviour);
        let options = [loss, changes].into_iter().flatten();
        let options: Vec<String> = options.map(|class| format!("--accept {class}")).collect();
        options.join(" ")
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.loss, self.changes_behaviour) {
            (loss, false) => write!(f, "{loss}"),
            (Class::Safe, true) => write!(f, "{}", Class::ChangesBehaviour),
            (loss, true) => write!(f, "{loss}, {}", Class::ChangesBehaviour),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{BoundedLoss, ChangesBehaviour, LosesOnCrash, Safe};

    #[test]
    fn each_setting_has_to_be_accepted() {
        let accepts = |accepted: &[Class], classes: &[Class]| {
            Risk::of(classes.iter().copied()).is_within(Risk::of(accepted.iter().copied()))
        };
        for (accepted, classes, expected) in [
            (&[][..], &[Safe][..], true),
            (&[Safe], &[Safe, BoundedLoss], false),
            (&[BoundedLoss], &[Safe, BoundedLoss], true),
            (&[BoundedLoss], &[LosesOnCrash], false),
            (&[LosesOnCrash], &[BoundedLoss], true),
            // The class that is ordered above it does not hold it.
            (&[ChangesBehaviour], &[LosesOnCrash], false),
            (
                &[ChangesBehaviour],
                &[ChangesBehaviour, LosesOnCrash],
                false,
            ),
            (&[LosesOnCrash], &[ChangesBehaviour], false),
            (
                &[LosesOnCrash, ChangesBehaviour],
                &[ChangesBehaviour, BoundedLoss],
                true,
            ),
        ] {
            assert_eq!(
                accepts(accepted, classes),
                expected,
                "{accepted:?} {classes:?}"
            );
        }
    }

    #[test]
    fn each_level_has_an_answer() {
        let words = |classes: &[Class]| {
            let levels = Risk::of(classes.iter().copied()).levels();
            levels.iter().map(Risk::to_string).collect::<Vec<_>>()
        };
        assert_eq!(words(&[]), ["safe"]);
        assert_eq!(
            words(&[LosesOnCrash]),
            ["safe", "bounded-loss", "loses-on-crash"]
        );
        assert_eq!(
            words(&[BoundedLoss, ChangesBehaviour]),
            ["safe", "bounded-loss", "bounded-loss, changes-behaviour"]
        );
        let both = Risk::of([BoundedLoss, ChangesBehaviour]);
        assert_eq!(
            both.options(),
            "--accept bounded-loss --accept changes-behaviour"
        );
    }
}
