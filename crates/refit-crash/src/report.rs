//! What the lab found, as it is printed and stored.

use refit_meter::Run;
use serde::{Deserialize, Serialize};

use crate::filesystem::Filesystem;
use crate::promise::Loss;

/// Version of [`CrashReport`].
pub const SCHEMA: u32 = 1;

/// Name of the program with everything on.
pub const BASELINE: &str = "baseline";
/// Name of the disk that ignores flushes.
pub const CONTROL: &str = "control";

/// The verdict of `refit crash` (docs/crash.schema.json). Times are nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CrashReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `crash`.
    pub kind: String,
    /// The version that made it.
    pub refit: String,
    /// The program.
    pub command: Vec<String>,
    /// Beneath every mode.
    pub with: String,
    /// As it was typed.
    pub check: String,
    /// As it was typed.
    pub ack: String,
    /// The load, as it was typed.
    pub load: Option<String>,
    /// Beside the program, as it was typed.
    pub beside: Option<String>,
    /// Where the program wrote.
    pub filesystem: Filesystem,
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// Bytes of a block that is written as a whole.
    pub tear_bytes: u64,
    /// `uname -sr`, machine.
    pub kernel: String,
    /// Of the cuts.
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

/// What a mode is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub struct Mode {
    /// As it is printed: `baseline`, or the settings.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The worst class of its settings.
    pub class: String,
    /// Its class allows a cut to take what was acknowledged.
    pub may_lose: bool,
    /// What was recorded.
    pub record: RecordSummary,
    /// What refit reached of the program.
    pub run: Option<Run>,
    /// Each state that was looked at.
    pub states: Vec<State>,
}

/// One recorded run, in figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// When each acknowledgement came, after the record's first entry.
    pub acknowledged_ns: Vec<u64>,
    /// When each flush was answered, after the record's first entry.
    pub flushed_ns: Vec<u64>,
}

/// One state: what was there after a cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Why the check found it no good as a whole.
    pub broken: Option<String>,
    /// What is missing. Of an unmountable state, everything.
    pub loss: Loss,
}

impl State {
    /// Something that was promised is not as it was promised.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.unmountable.is_some()
            || self.broken.is_some()
            || self.loss.lost > 0
            || self.loss.resurrected > 0
    }
}

/// A mode's states, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cuts.
    pub cuts: usize,
    /// Different images among them.
    pub images: usize,
    /// Different images of those that are bad.
    pub bad_images: usize,
    /// Cuts with pending writes.
    pub with_pending: usize,
    /// Cuts that lost something.
    pub with_loss: usize,
    /// The most that one cut lost, and of how many.
    pub worst: (usize, usize),
    /// Name of the state that lost most, or is bad otherwise.
    pub worst_state: Option<String>,
    /// Age of the oldest loss.
    pub oldest_ns: Option<u64>,
    /// Cuts that lost something and kept something newer.
    pub with_holes: usize,
    /// Cuts that left an item in part, or were no good as a whole.
    pub damaged: usize,
    /// Cuts that brought back what was promised to be gone.
    pub resurrected: usize,
    /// States that could not be mounted.
    pub unmountable: usize,
}

impl Mode {
    /// Counts.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut images = std::collections::HashMap::new();
        let mut tally = Tally {
            cuts: self.states.len(),
            ..Tally::default()
        };
        let mut worst: Option<(&State, (bool, usize))> = None;
        for state in &self.states {
            let loss = &state.loss;
            *images.entry(state.image.as_str()).or_insert(false) |= state.is_bad();
            tally.with_pending += usize::from(state.pending > 0);
            tally.with_loss += usize::from(loss.lost > 0);
            tally.with_holes += usize::from(loss.is_hole);
            let is_damaged = state.broken.is_some() || loss.damaged > 0;
            tally.damaged += usize::from(is_damaged);
            tally.resurrected += usize::from(loss.resurrected > 0);
            tally.unmountable += usize::from(state.unmountable.is_some());
            tally.oldest_ns = tally.oldest_ns.max(loss.oldest_ns);
            if loss.lost > tally.worst.0 || tally.worst.1 == 0 {
                tally.worst = (loss.lost, loss.acknowledged);
            }
            let rank = (true, loss.lost);
            if state.is_bad() && worst.is_none_or(|(_, old)| rank > old) {
                worst = Some((state, rank));
            }
        }
        tally.images = images.len();
        tally.bad_images = images.values().filter(|bad| **bad).count();
        tally.worst_state = worst.map(|(state, _)| state.name.clone());
        tally
    }

    /// Its class allows what was seen.
    #[must_use]
    pub fn keeps_its_class(&self) -> bool {
        self.role == Role::Control || self.may_lose || !self.states.iter().any(State::is_bad)
    }
}
