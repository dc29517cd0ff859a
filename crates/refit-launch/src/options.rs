//! How a program is launched, besides the settings.

use std::path::PathBuf;

use refit_session::file_events::Acknowledges;

use crate::filter::Filter;
use crate::seccomp::Reach;

/// How to launch, besides the settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Processes count their calls for refit.
    pub count: bool,
    /// Variables that a parent scrubbed are put back at exec.
    pub follow_env: bool,
    /// Looked at first for allocators.
    pub allocator_dir: Option<PathBuf>,
    /// Nothing of refit goes beneath the program.
    pub bare: bool,
    /// The environment is filled up to this many bytes: its size moves the
    /// stack, and that alone can make a program faster or slower (Mytkowicz et
    /// al., ASPLOS 2009).
    pub environment_bytes: Option<usize>,
    /// Each sync call is written to the event ring.
    pub trace: bool,
    /// The command is a recipe's own, which `program=` cannot replace.
    pub of_recipe: bool,
    /// Processes count what malloc gives out.
    pub heap: bool,
    /// Processes tell what they do to files, and which calls of theirs acknowledge something.
    pub durability: Option<Acknowledges>,
    /// Seed of the emulated disk's draws.
    pub seed: u64,
    /// By what the program's calls are reached.
    pub reach: Reach,
    /// The filter where no setting asks for one: [`ground`](crate::seccomp::ground).
    pub ground: Option<Filter>,
}

impl Default for Options {
    /// Counting, following, and nothing special.
    fn default() -> Options {
        Options {
            count: true,
            follow_env: true,
            allocator_dir: None,
            bare: false,
            environment_bytes: None,
            trace: false,
            of_recipe: false,
            heap: false,
            durability: None,
            seed: 0,
            reach: Reach::default(),
            ground: None,
        }
    }
}
