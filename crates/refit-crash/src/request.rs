//! What is asked.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use refit_knobs::{Settings, Variant};
use refit_recipe::Recipe;
use refit_run::seccomp::Reach;

use crate::ack_source::AckText;
use crate::check::Check;
use crate::filesystem::Filesystem;

/// The program under study.
#[derive(Clone, Debug)]
pub enum Program {
    /// A command that was typed.
    Command(Typed),
    /// A recipe with a promise, and its load ([`Recipe::promising`]).
    Recipe(Box<Recipe>),
}

/// A command that was typed, and its hooks.
#[derive(Clone, Debug)]
pub struct Typed {
    /// The command.
    pub command: Vec<OsString>,
    /// Shell command in the empty file system, before anything that is cut.
    pub prepare: Option<String>,
    /// Shell command that puts load on the command, which is then a service.
    pub load: Option<String>,
    /// Shell command that succeeds when the service can take its load.
    pub ready: Option<String>,
}

/// One question: what does this program lose?
#[derive(Clone, Debug)]
pub struct Request {
    /// The program.
    pub program: Program,
    /// What to try, in addition to the baseline.
    pub candidates: Vec<Variant>,
    /// Beneath every mode, the baseline too; its `disk=` is the latency of the
    /// recorded disk's flushes.
    pub with: Settings,
    /// How to find what is there after a cut.
    pub check: Check,
    /// The check as it was typed.
    pub check_text: String,
    /// Where acknowledgements come from. That of a recipe may hold `$REFIT_PORT_NAME`.
    pub ack: AckText,
    /// Shell command that runs as long as the program.
    pub background: Option<String>,
    /// How long the run may last.
    pub length: Duration,
    /// The run is ended after its length; otherwise it has to end by itself.
    pub stop: bool,
    /// Where the program writes.
    pub filesystem: Filesystem,
    /// Bytes of the disk.
    pub disk_bytes: u64,
    /// A record may grow to so many bytes.
    pub record_cap: u64,
    /// Cuts of each mode.
    pub cuts: usize,
    /// Bytes of the block that the medium writes as a whole.
    pub tear: u64,
    /// A check of one image that takes longer is killed.
    pub check_timeout: Duration,
    /// Where the file system is mounted, for the program and the checks alone;
    /// `None`: below the directory of the records.
    pub mount: Option<PathBuf>,
    /// Where the records go: a new directory.
    pub directory: PathBuf,
    /// Of the choice of cuts, and of the disk's latencies.
    pub seed: u64,
    /// How the program's calls are reached.
    pub reach: Reach,
    /// Typed options for which the report has no other place: how the program is
    /// reached, limits.
    pub options: Vec<String>,
    /// Looked at first for allocators.
    pub allocator_dir: Option<PathBuf>,
    /// How many images are checked at once.
    pub workers: usize,
}

impl Request {
    /// The run ends when its time is over.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        self.stop || self.ack.is_smtp()
    }
}
