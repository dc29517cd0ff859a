//! What refit reached of a process tree, by the preload and by a seccomp filter,
//! and what cannot be known.

mod sources;

use refit_session::guardian::GuardianCounts;
use refit_session::{UnreachedProgram, is_zero};
use serde::{Deserialize, Serialize};

pub(crate) use sources::Sources;

/// Something that cannot be observed, and so is not 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// `io_uring`, `own syscall instructions`, `answered by the kernel` (the same, beneath a filter), `own seccomp
    /// filter`, `never reported`, `unnamed` or `foreign report`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = [
        "io_uring",
        "own syscall instructions",
        "answered by the kernel",
        "own seccomp filter",
        "never reported",
        "unnamed",
        "foreign report",
    ])))]
    pub what: String,
    /// Where, when that is known.
    pub executable: Option<String>,
    /// Rings, executables or processes.
    pub count: u64,
}

/// A library of the program, a preload of the user's own for one, that defines functions of refit's preload too and
/// comes after it: without refit the program would call these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherDefinitions {
    /// The first such library: the (end of the) path.
    pub library: String,
    /// The executable that has it.
    pub executable: String,
    /// Functions whose calls reach it where refit does not answer them. What it passes on to the kernel is not known:
    /// such a call counts as real.
    pub passed_on: Vec<String>,
    /// Functions whose calls do not reach it.
    pub skipped: Vec<String>,
}

/// What refit reached of the tree. A process counts once for each program that
/// it ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// What intercepted the calls.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["preload", "seccomp", "preload and seccomp"])))]
    pub backend: String,
    /// Processes that refit knows of.
    pub processes_seen: u64,
    /// Processes whose calls went through refit.
    pub processes_reached: u64,
    /// By name and reason.
    pub unreached: Vec<UnreachedProgram>,
    /// What is unknown.
    pub unknown: Vec<Unknown>,
    /// Calls that were real because the file of a path scope could not be determined.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub path_unknown: u64,
    /// Opens with O_SYNC and writes with RWF_SYNC that an emulated disk did not
    /// delay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_delayed: u64,
    /// Scopes of settings that nothing matched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched_scopes: Vec<String>,
    /// Beneath some processes that the preload reached lies a filter by which the kernel answers with 0 what the preload
    /// does not see of their syncs, uncounted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered_uncounted: bool,
    /// Other definitions of the functions that refit intercepts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherDefinitions>,
    /// What became of a seccomp filter; `None` where nothing asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<FilterReport>,
}

/// [`Unknown::what`] of syncs that a program may make by system call instructions of its own: they are not seen.
pub(crate) const OWN_SYSCALLS: &str = "own syscall instructions";
/// [`Unknown::what`] of such syncs above a filter: the kernel answers them with 0, and nobody counts them.
pub(crate) const ANSWERED: &str = "answered by the kernel";

impl Coverage {
    /// Whether some program is known to make sync calls by instructions of its own, which nobody counts.
    #[must_use]
    pub fn has_own_syscalls(&self) -> bool {
        let mut unknown = self.unknown.iter();
        unknown.any(|one| [OWN_SYSCALLS, ANSWERED].contains(&one.what.as_str()))
    }
}

/// Which programs have the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterPlace {
    /// The first program, and so all.
    All,
    /// Programs that the preload cannot reach, as far as it put one beneath them.
    Unreached,
}

/// A filter that was installed.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// Which programs have it.
    pub beneath: FilterPlace,
    /// A guardian answers each call; otherwise the kernel, with 0.
    pub asks: bool,
    /// The guardian is asked about what the kernel does not answer.
    pub has_listener: bool,
    /// What the guardian counted.
    pub guardian: GuardianCounts,
}

/// What became of a filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FilterReport {
    /// It was there.
    Installed(Box<Reached>),
    /// There was none; why.
    Refused(String),
}

/// What a filter reached.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reached {
    /// Who answers fsync and its kin: `guardian`, or `kernel`, with 0 and
    /// uncounted.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["kernel", "guardian"])))]
    pub answers: String,
    /// Opens with O_SYNC, and what else the kernel does not answer, come to the
    /// guardian; otherwise they are real and uncounted.
    pub has_listener: bool,
    /// The preload put it beneath these programs alone, each at its exec;
    /// otherwise it was beneath the first program, and so beneath all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_exec: bool,
    /// Processes that the filter reached and the preload did not.
    pub processes: u64,
    /// Those that are known by name, and why the preload did not reach them.
    pub programs: Vec<UnreachedProgram>,
    /// Real calls that came to the guardian: how long they waited in the kernel
    /// is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unmeasured: u64,
    /// Opens that stayed synchronous, as they could not be done exactly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_synchronous: u64,
    /// Calls that were real as too many were under way.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crowded: u64,
    /// Times that the guardian was killed, and its other process took over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub takeovers: u64,
    /// Calls that were under way then, and were real.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub released: u64,
    /// Programs that wanted a seccomp listener of their own; the kernel allows
    /// but one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub listeners_refused: u64,
}
