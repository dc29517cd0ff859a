//! What the cuts left, as it is printed and stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::filesystem::Filesystem;
use crate::mode::{Harm, Mode, Role, State};

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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Settings of every mode.
    pub with: String,
    /// The check, as typed.
    pub check: String,
    /// Where acknowledgements come from, as typed.
    pub ack: String,
    /// The command that loads a server, as typed.
    pub load: Option<String>,
    /// The command that ran as long as the program, as typed.
    pub background: Option<String>,
    /// The command that filled the file system before the run, as typed.
    #[serde(default)]
    pub prepare: Option<String>,
    /// The command that succeeds when the program is ready, as typed.
    #[serde(default)]
    pub ready: Option<String>,
    /// How long the run was allowed to last.
    #[serde(default)]
    pub length_ns: u64,
    /// The run was ended after that time.
    #[serde(default)]
    pub stop: bool,
    /// Cuts of each variant that were asked for.
    #[serde(default)]
    pub cuts: usize,
    /// Its other options, as they were typed.
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
    /// Whether the check saw, on the intact image, that in each file the last block with data and a middle one had been
    /// written in half; absent where that was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees_torn_blocks: Option<bool>,
    /// The control first, then the baseline, then each candidate.
    pub modes: Vec<Mode>,
    /// Why nothing can be concluded.
    pub invalid: Option<String>,
}

/// docs/crash.schema.json.
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> serde_json::Value {
    refit_run::stored_schema::<CrashReport>()
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
mod tests {
    use super::*;
    use crate::mode::BoundRecord;
    use crate::mode::samples::{mode, state};

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
            sees_torn_blocks: None,
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
