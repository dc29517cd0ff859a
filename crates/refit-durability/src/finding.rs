//! What the check answers.

use refit_meter::Frame;
use serde::{Deserialize, Serialize};

use crate::rule::Rule;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What was durable can be lost or damaged.
    Error,
    /// What was acknowledged can be lost.
    Warning,
    /// True, and harmless to many programs: what a command leaves when it ends.
    Note,
}

impl Level {
    /// As it is printed, and as SARIF has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// What exactly was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Circumstance {
    /// Renamed from this path, with data that was not synced.
    RenamedFrom(String),
    /// A name was made, moved or removed (this word), and its directory was not synced.
    Name(String),
    /// A name was made or moved (this word) and its directory was not synced; the file itself was, after that.
    NameOfSynced(String),
    /// Another directory (this one) was synced instead.
    OtherDirectorySynced(String),
    /// Data was written, and not synced.
    Written,
    /// A file with this many durable bytes was truncated.
    Truncated(u64),
    /// A file was removed, and this path, which replaces it, was not durable.
    ReplacedBy(String),
    /// This path was written later, and synced.
    SyncedLater(String),
    /// A sync failed with this error.
    Failed(String),
    /// A sync failed with this error, was repeated without a write, and succeeded.
    Retried(String),
    /// This call does not cover it.
    NotCoveredBy(WrongSync),
}

/// A call that many take for a sync of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WrongSync {
    /// sync_file_range(2).
    Range,
    /// msync(2) with MS_ASYNC.
    AsyncMap,
    /// fsync(2) while bytes waited in the buffer of a stream.
    Stream,
    /// fsync(2) of the directory.
    Directory,
}

/// File systems on which cuts were made: see [`Circumstance::shown_on`].
pub const CUT: [&str; 3] = ["ext4", "xfs", "btrfs"];

impl Circumstance {
    /// Those of [`CUT`] on which cuts have shown a loss (scripts/rule-cuts; docs/durability.md has the counts); `None`:
    /// no cuts were made of this.
    #[must_use]
    pub fn shown_on(&self) -> Option<&'static [&'static str]> {
        match self {
            Circumstance::RenamedFrom(_)
            | Circumstance::Name(_)
            | Circumstance::OtherDirectorySynced(_)
            | Circumstance::Written
            | Circumstance::ReplacedBy(_)
            | Circumstance::NotCoveredBy(WrongSync::Range | WrongSync::Directory) => Some(&CUT),
            Circumstance::Truncated(_) => Some(&["ext4", "xfs"]),
            Circumstance::NameOfSynced(_) => Some(&[]),
            Circumstance::SyncedLater(_)
            | Circumstance::Failed(_)
            | Circumstance::Retried(_)
            | Circumstance::NotCoveredBy(WrongSync::AsyncMap | WrongSync::Stream) => None,
        }
    }
}

/// What an acknowledgement was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgedBy {
    /// A write that `--ack` names.
    Write,
    /// The command ended with 0.
    Exit,
}

/// A place in a program that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The rule that it breaks.
    pub rule: Rule,
    /// How much the finding weighs.
    pub level: Level,
    /// What was seen.
    pub circumstance: Circumstance,
    /// By what it was acknowledged, where the rule is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<AcknowledgedBy>,
    /// The first path of which this was seen.
    pub path: String,
    /// Type of its file system; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<String>,
    /// Path of the executable.
    pub executable: String,
    /// How often it was seen.
    pub count: u64,
    /// Of how many paths.
    pub paths: u64,
    /// Those of ext4, xfs and btrfs on which power cuts have shown that it loses something; absent where no cuts were made
    /// of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_on: Option<Vec<String>>,
    /// Where the call was made, the outermost function first; empty where the stack is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Frame>,
    /// Where the data was written; empty where no write was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written_at: Vec<Frame>,
    /// What `--known` compares: 16 hexadecimal digits of a hash of the rule, the executable and the innermost functions.
    pub fingerprint: String,
    /// It is in the file of `--known`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_known: bool,
}

/// Syncs of files that a run made and removed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemovedSyncs {
    /// Where the files lay, with a slash at its end.
    pub directory: String,
    /// How many syncs.
    pub syncs: u64,
    /// How many syncs there were of all files with a name there, and in the directories below.
    pub of: u64,
}

/// What is known of the durability of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DurabilityReport {
    /// The heaviest first.
    pub findings: Vec<Finding>,
    /// Events that were judged: opens, first writes after a sync, syncs, renames, removals.
    pub events: u64,
    /// Events that could not be read: something may have been overlooked.
    pub lost: u64,
    /// Programs whose events were seen.
    pub programs: u64,
    /// Syncs of the program.
    pub syncs: u64,
    /// Those of them that had nothing to write, as far as was seen: neither data nor names.
    pub idle_syncs: u64,
    /// Those of files that had no name and got none: nothing of them is left after a power cut.
    #[serde(default, skip_serializing_if = "refit_session::is_zero")]
    pub unnamed_syncs: u64,
    /// Those of files that the run made and removed again, by directory, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_syncs: Vec<RemovedSyncs>,
    /// Files that were mapped to be written, and not synced since: what they hold is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Files on file systems that no reboot outlives (tmpfs); they are not judged.
    pub volatile: u64,
    /// Files that a rule or `--ignore` leaves out: logs, locks, caches.
    pub ignored: u64,
}

impl DurabilityReport {
    /// The command failed: its end acknowledges nothing.
    pub fn leave_out_exit(&mut self) {
        self.findings
            .retain(|finding| finding.acknowledged != Some(AcknowledgedBy::Exit));
    }

    /// What is not known yet.
    pub fn new_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.is_known)
    }

    /// Marks what another report has found before.
    pub fn mark_known(&mut self, known: &DurabilityReport) {
        for finding in &mut self.findings {
            let mut before = known.findings.iter();
            finding.is_known = before.any(|old| old.fingerprint == finding.fingerprint);
        }
    }
}
