//! A mode of a report: one recorded run of the program, and what its cuts left.

use std::collections::BTreeSet;

use refit_run::{DurabilityReport, InEffect, Run, SettingReport};
use serde::{Deserialize, Serialize};

use crate::acknowledgement::Loss;

/// What a mode is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The baseline's record on a disk that ignores flushes: it has to lose.
    Control,
    /// The program with everything on.
    Baseline,
    /// With settings.
    Candidate,
}

/// One mode: a recorded run and its cuts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mode {
    /// As it is printed: `baseline`, or the settings.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Each of its settings with its class, and where it was in effect in the recorded run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingReport>,
    /// The worst class of its settings.
    pub class: String,
    /// Its class allows a cut to take what was acknowledged.
    pub may_lose: bool,
    /// How much the recipe claims that a cut takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<BoundRecord>,
    /// What was recorded.
    pub record: RecordSummary,
    /// What refit reached of the program.
    pub run: Option<Run>,
    /// What no sync of the program covered; `None` where that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityReport>,
    /// What all cuts and checks took together.
    #[serde(default)]
    pub checked_ns: u64,
    /// Each state that was looked at.
    pub states: Vec<State>,
}

/// A bound as a recipe declares it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BoundRecord {
    /// As it is written: `600ms`, `newest-only`.
    pub text: String,
    /// What was acknowledged longer than this before the cut must not be lost; `None`:
    /// however much is lost, nothing newer than it may be there.
    pub oldest_ns: Option<u64>,
}

/// One recorded run, in figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordSummary {
    /// Name of its directory below the report's.
    pub name: String,
    /// From the first to the last moment that can be cut.
    pub length_ns: u64,
    /// When that begins, after the record's first entry.
    pub from_ns: u64,
    /// Writes, discards and zeroings in that time.
    pub writes: usize,
    /// Bytes of those writes.
    pub written_bytes: u64,
    /// Flushes in that time.
    pub flushes: usize,
    /// Bytes of the record's file.
    pub stored_bytes: u64,
    /// When each acknowledgement arrived, after the record's first entry.
    pub acknowledged_ns: Vec<u64>,
    /// When each flush was answered, after the record's first entry.
    pub flushed_ns: Vec<u64>,
    /// Calls of sync(2) and syncfs(2) by processes that are not the program's, which
    /// flushed the recorded disk in that time; absent where they could not be watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside_syncs: Option<u64>,
}

/// One state: what was there after a cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct State {
    /// Its name, for `refit crash open`.
    pub name: String,
    /// The cut, after the record's first entry.
    pub at_ns: u64,
    /// Writes that may or may not have reached the disk.
    pub pending: usize,
    /// The same number is the same image.
    pub image: String,
    /// Why it could not be mounted.
    pub unmountable: Option<String>,
    /// Why the check rejected it as a whole.
    pub broken: Option<String>,
    /// What is missing. Of an unmountable state, everything.
    pub loss: Loss,
}

/// What a cut can do to what was acknowledged, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// Something is gone.
    Lost,
    /// Something is gone, and something newer is there.
    Hole,
    /// What was acknowledged as removed is there.
    Resurrected,
    /// Something is there in part, or the check rejected the state.
    Damaged,
    /// It could not be mounted.
    Unmountable,
}

impl State {
    /// The cut took something that was acknowledged.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        !self.harms().is_empty()
    }

    /// What the cut did. Before the first acknowledgement nothing can be lost: a
    /// database that has no table yet has not lost it.
    #[must_use]
    pub fn harms(&self) -> BTreeSet<Harm> {
        let loss = &self.loss;
        if loss.acknowledged == 0 {
            return BTreeSet::new();
        }
        let is_damaged = self.broken.is_some() || loss.damaged > 0;
        [
            (Harm::Lost, loss.lost > 0),
            (Harm::Hole, loss.is_hole),
            (Harm::Resurrected, loss.resurrected > 0),
            (Harm::Damaged, is_damaged),
            (Harm::Unmountable, self.unmountable.is_some()),
        ]
        .into_iter()
        .filter_map(|(harm, is_so)| is_so.then_some(harm))
        .collect()
    }
}

impl Mode {
    /// None of its settings was in effect in the recorded run: it was cut as the baseline is.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let nowhere = |one: &SettingReport| matches!(one.in_effect, InEffect::Nowhere(_));
        !self.settings.is_empty() && self.settings.iter().all(nowhere)
    }

    /// Some state could be mounted, and something was missing in it: the check
    /// does see a loss.
    #[must_use]
    pub fn shows_a_loss(&self) -> bool {
        let mut mounted = self.states.iter().filter(|s| s.unmountable.is_none());
        mounted.any(State::is_bad)
    }

    /// What any cut of it did.
    pub(crate) fn harms(&self) -> BTreeSet<Harm> {
        self.states.iter().flat_map(State::harms).collect()
    }
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    pub fn state(image: &str, lost: usize, is_hole: bool) -> State {
        State {
            name: format!("c1-none-{lost}"),
            at_ns: 1,
            pending: lost,
            image: image.to_owned(),
            unmountable: None,
            broken: None,
            loss: Loss {
                acknowledged: 10,
                lost,
                oldest_ns: (lost > 0).then_some(lost as u64),
                is_hole,
                ..Loss::default()
            },
        }
    }

    pub fn mode(role: Role, states: Vec<State>) -> Mode {
        Mode {
            name: "m".to_owned(),
            role,
            settings: Vec::new(),
            class: "safe".to_owned(),
            may_lose: false,
            bound: None,
            record: RecordSummary::default(),
            run: None,
            durability: None,
            checked_ns: 0,
            states,
        }
    }
}
