//! What the cuts left, as it is printed and stored.

use std::collections::{BTreeMap, BTreeSet};

use refit_run::{Run, stored_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::acknowledgement::Loss;
use crate::filesystem::Filesystem;

/// Version of [`CrashReport`].
pub const SCHEMA: u32 = 1;

/// Name of the program with everything on.
pub const BASELINE: &str = "baseline";
/// Name of the disk that ignores flushes.
pub const CONTROL: &str = "control";

/// refit crash report
///
/// What `refit crash` writes with --json, and keeps as report.json with its records.
/// Times are nanoseconds; those of a record are counted from its first entry.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CrashReport {
    /// The version of this schema.
    pub schema: u32,
    /// `crash`.
    pub kind: String,
    /// The version that made it.
    pub refit: String,
    /// The recipe, as it was typed; `None` for a command.
    #[serde(default)]
    pub recipe: Option<String>,
    /// The program: the command, or what the recipe starts.
    pub command: Vec<String>,
    /// Beneath every mode.
    pub with: String,
    /// As it was typed.
    pub check: String,
    /// As it was typed.
    pub ack: String,
    /// The load, as it was typed.
    pub load: Option<String>,
    /// The command that ran as long as the program, as it was typed.
    pub background: Option<String>,
    /// Before anything that is cut, as it was typed.
    #[serde(default)]
    pub prepare: Option<String>,
    /// What says that the program is ready, as it was typed.
    #[serde(default)]
    pub ready: Option<String>,
    /// How long the run was allowed to last.
    #[serde(default)]
    pub length_ns: u64,
    /// The run was ended after that time.
    #[serde(default)]
    pub stop: bool,
    /// Cuts of each mode that were asked for.
    #[serde(default)]
    pub cuts: usize,
    /// Its other options, as they would be typed.
    #[serde(default)]
    pub options: Vec<String>,
    /// Where the program wrote.
    pub filesystem: Filesystem,
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// Bytes of a block that is written as a whole.
    pub tear_bytes: u64,
    /// `uname -sr`, machine.
    pub kernel: String,
    /// What the machine is: name and value.
    #[serde(default)]
    pub machine: BTreeMap<String, String>,
    /// The version of the mkfs that made the file system, as it prints it; empty
    /// when it prints none.
    #[serde(default)]
    pub mkfs: String,
    /// Seed of the choice of cuts.
    pub seed: u64,
    /// Seconds since 1970.
    pub started: u64,
    /// Where the records are, for `refit crash open`.
    pub directory: String,
    /// Where the program and the check found the file system.
    pub mount: String,
    /// The control first, then the baseline, then each candidate.
    pub modes: Vec<Mode>,
    /// Why nothing can be concluded.
    pub invalid: Option<String>,
}

/// docs/crash.schema.json.
#[must_use]
pub fn schema() -> serde_json::Value {
    stored_schema::<CrashReport>()
}

/// What a mode is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Mode {
    /// As it is printed: `baseline`, or the settings.
    pub name: String,
    /// What it is for.
    pub role: Role,
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
    /// What all cuts and checks took together.
    #[serde(default)]
    pub checked_ns: u64,
    /// Each state that was looked at.
    pub states: Vec<State>,
}

/// A bound as a recipe declares it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BoundRecord {
    /// As it is written: `600ms`, `newest-only`.
    pub text: String,
    /// What was acknowledged longer than this before the cut must not be lost; `None`:
    /// however much is lost, nothing newer than it may be there.
    pub oldest_ns: Option<u64>,
}

/// One recorded run, in figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// Some state could be mounted, and something was missing in it: the check
    /// does see a loss.
    #[must_use]
    pub fn shows_a_loss(&self) -> bool {
        let mut mounted = self.states.iter().filter(|s| s.unmountable.is_none());
        mounted.any(State::is_bad)
    }

    fn harms(&self) -> BTreeSet<Harm> {
        self.states.iter().flat_map(State::harms).collect()
    }
}

impl CrashReport {
    /// The program with everything on.
    #[must_use]
    pub fn baseline(&self) -> Option<&Mode> {
        self.modes.iter().find(|mode| mode.role == Role::Baseline)
    }

    /// The states that break the mode's bound: something older was lost, or lost in
    /// another manner than from the newest on. A manner that the baseline has too is not
    /// the bound's.
    #[must_use]
    pub fn beyond_bound<'a>(&self, mode: &'a Mode) -> Vec<&'a State> {
        let Some(bound) = &mode.bound else {
            return Vec::new();
        };
        let own = self.baseline().map(Mode::harms).unwrap_or_default();
        let breaks = |state: &&State| {
            let mut beyond = state.harms();
            let is_lost = beyond.remove(&Harm::Lost);
            match beyond.is_empty() {
                false => !beyond.is_subset(&own),
                true => {
                    let oldest = state.loss.oldest_ns;
                    is_lost && bound.oldest_ns.is_some_and(|most| oldest > Some(most))
                }
            }
        };
        mode.states.iter().filter(breaks).collect()
    }

    /// A cut took more than the mode's class allows. A candidate is not blamed for
    /// a harm that the baseline has too.
    #[must_use]
    pub fn breaks_class(&self, mode: &Mode) -> bool {
        match mode.role {
            Role::Control => false,
            Role::Baseline => mode.states.iter().any(State::is_bad),
            Role::Candidate if mode.bound.is_some() => !self.beyond_bound(mode).is_empty(),
            Role::Candidate if mode.may_lose => false,
            Role::Candidate => {
                let own = self.baseline().map(Mode::harms).unwrap_or_default();
                !mode.harms().is_subset(&own)
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
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
            class: "safe".to_owned(),
            may_lose: false,
            bound: None,
            record: RecordSummary::default(),
            run: None,
            checked_ns: 0,
            states,
        }
    }

    #[test]
    fn a_candidate_is_not_blamed_for_the_harm_of_the_baseline() {
        let mut report = CrashReport {
            schema: SCHEMA,
            kind: "crash".to_owned(),
            refit: String::new(),
            recipe: None,
            command: Vec::new(),
            with: String::new(),
            check: String::new(),
            ack: String::new(),
            load: None,
            background: None,
            prepare: None,
            ready: None,
            length_ns: 0,
            stop: false,
            cuts: 3,
            options: Vec::new(),
            filesystem: Filesystem {
                kind: crate::filesystem::Kind::Ext4,
                options: String::new(),
            },
            disk_bytes: 0,
            tear_bytes: 0,
            kernel: String::new(),
            machine: BTreeMap::new(),
            mkfs: String::new(),
            seed: 0,
            started: 0,
            directory: String::new(),
            mount: String::new(),
            modes: vec![
                mode(Role::Baseline, vec![state("a", 1, false)]),
                mode(Role::Candidate, vec![state("a", 5, false)]),
                mode(Role::Candidate, vec![state("a", 5, true)]),
                mode(Role::Candidate, vec![state("a", 0, false)]),
            ],
            invalid: None,
        };
        let blamed = |report: &CrashReport| -> Vec<bool> {
            let modes = report.modes.iter();
            modes.map(|mode| report.breaks_class(mode)).collect()
        };
        assert_eq!(blamed(&report), [true, false, true, false]);
        report.modes[2].may_lose = true;
        report.modes[0].states[0].loss.lost = 0;
        assert_eq!(blamed(&report), [false, true, false, false]);
        // A bound: of age, and of manner.
        let bound = |oldest_ns| {
            Some(BoundRecord {
                text: String::new(),
                oldest_ns,
            })
        };
        report.modes[1].may_lose = true;
        for (oldest_ns, broken) in [
            (Some(5), [false, false, true, false]),
            (Some(4), [false, true, true, false]),
            (None, [false, false, true, false]),
        ] {
            for mode in &mut report.modes[1..] {
                mode.bound = bound(oldest_ns);
            }
            assert_eq!(blamed(&report), broken, "{oldest_ns:?}");
        }
        // Holes that the baseline has too.
        report.modes[0].states[0].loss.is_hole = true;
        assert!(!report.breaks_class(&report.modes[2]));
    }
}
