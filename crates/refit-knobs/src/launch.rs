//! What the settings ask of the launcher: a plain description, nothing executed.

use std::path::PathBuf;

/// What to prepare before the program starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Rules for sync calls, in command order; the last match wins, no match means on.
    pub sync: Vec<SwitchRule>,
    /// Rules for `O_DIRECT`, in command order; the last match wins, no match means on.
    pub odirect: Vec<SwitchRule>,
    /// The allocator to put beneath the program.
    pub malloc: Option<Allocator>,
    /// Transparent huge pages.
    pub thp: Option<Thp>,
    /// Variables to set, in command order; no name occurs twice, here or in [`Allocator::env`].
    pub env: Vec<(String, String)>,
    /// Further libraries to preload, in command order.
    pub preload: Vec<PathBuf>,
    /// What a recipe declares, by name and value, in command order; no name occurs twice.
    pub conf: Vec<(String, String)>,
}

/// One rule of a knob that is either on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchRule {
    /// The executable it is for; `None` means every one.
    pub exe: Option<String>,
    /// On means the real thing.
    pub on: bool,
}

/// An allocator and the variables that carry its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocator {
    /// Which one.
    pub kind: AllocatorKind,
    /// Its own variables.
    pub env: Vec<(String, String)>,
}

/// Which allocator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AllocatorKind {
    /// The C library's own: nothing to preload.
    Glibc,
    /// The system's jemalloc.
    Jemalloc,
    /// The system's mimalloc.
    Mimalloc,
    /// The system's gperftools tcmalloc.
    Tcmalloc,
    /// A library by absolute path.
    Path(PathBuf),
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
