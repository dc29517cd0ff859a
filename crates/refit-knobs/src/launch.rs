//! What the settings ask of the launcher: a plain description, nothing executed.

use std::path::PathBuf;

use crate::allocators::AllocatorKind;
use crate::scope::Scope;

/// What to prepare before the program starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Rules for sync calls, in command order; the last match wins, no match means on.
    pub sync: Vec<SwitchRule>,
    /// Rules for `O_DIRECT`, in command order; the last match wins, no match means on.
    pub odirect: Vec<SwitchRule>,
    /// The emulated disk; `None` is the real one alone.
    pub disk: Option<DiskRule>,
    /// The allocator to put beneath the program.
    pub malloc: Option<Allocator>,
    /// Transparent huge pages.
    pub thp: Option<Thp>,
    /// What runs in place of the command's first word.
    pub program: Option<String>,
    /// The time zone, for TZ.
    pub tz: Option<String>,
    /// Variables to set, in command order; no name occurs twice, here or in [`Allocator::env`].
    pub env: Vec<(String, String)>,
    /// Further libraries to preload, in command order.
    pub preload: Vec<PathBuf>,
    /// The file of a database's schema.
    pub schema: Option<String>,
    /// What is asked of a recipe's service, by name and value, in command order; no name occurs twice.
    pub load: Vec<(String, String)>,
    /// What a recipe declares, by name and value, in command order; no name occurs twice.
    pub conf: Vec<(String, String)>,
}

/// One rule of a knob that is either on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRule {
    /// What it is for; `None` means everything.
    pub scope: Option<Scope>,
    /// On means the real thing.
    pub on: bool,
}

/// The disk beneath every real sync call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskRule {
    /// What it is for; `None` means every call.
    pub scope: Option<Scope>,
    /// How that disk behaves.
    pub disk: Disk,
}

/// An emulated disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// Each flush takes as long as this distribution says: rising percentiles (in hundredths of a percent, so
    /// p99.9 is 9990; a fixed latency is one p50) and nanoseconds, which rise or stay with them.
    Latency(Vec<(u32, u64)>),
    /// The distribution that was sampled into this file.
    Profile(PathBuf),
    /// Some flushes fail.
    Fail {
        /// The error's number and name.
        errno: (i32, &'static str),
        /// Which of them.
        when: When,
    },
}

/// Which flushes of an emulated disk fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// The Nth, the 2Nth and so on; at least 1.
    Every(u64),
    /// All but the first N.
    After(u64),
    /// Each with this chance, in millionths.
    Chance(u32),
}

/// An allocator and the variables that carry its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    /// Which one.
    pub kind: AllocatorKind,
    /// Its own variables.
    pub env: Vec<(String, String)>,
}

/// The transparent huge page mode asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Thp {
    /// No huge pages.
    Never,
    /// Only where the program asks with madvise(2).
    Madvise,
    /// Wherever the kernel can.
    Always,
}
