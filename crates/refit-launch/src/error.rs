use std::io;
use std::path::PathBuf;

use refit_session::SessionError;

use crate::disk::profile::ProfileProblem;

/// Why nothing was started. Each message ends with what to do next.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The heap cannot be counted by a filter.
    #[error("--heap needs the preloaded library\n  leave --backend=seccomp out")]
    HeapWithoutPreload,
    /// A filter does not see what is done to files.
    #[error("--durability needs the preloaded library\n  leave --backend=seccomp out")]
    DurabilityWithoutPreload,
    /// A disk whose flushes fail where only a latency makes sense.
    #[error("disk=fail: faults cannot be recorded; take a latency, as disk=4ms")]
    FaultyDisk,
    /// The allocator of a `malloc=` setting is not installed.
    #[error("{0}\n  or say where it is: --allocator-dir DIR")]
    AllocatorMissing(Missing),
    /// The installed allocator has no such option.
    #[error("{reason}\n  leave it out, or name another library: malloc=/path/lib.so")]
    AllocatorOption {
        /// Which, and who says so.
        reason: String,
    },
    /// This machine has no such time zone.
    #[error("tz={zone}: there is no such time zone in {}\n  {hint}", directory.display())]
    NoZone {
        /// As it was given.
        zone: String,
        /// What to type instead.
        hint: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// A library to be preloaded cannot be read.
    #[error("cannot read {}: {cause}\n  name a shared library that this user can read", path.display())]
    LibraryUnreadable {
        /// As it was given.
        path: PathBuf,
        /// The kernel's reason.
        cause: io::Error,
    },
    /// The program that loads a library first cannot be run.
    #[error(
        "cannot try {libraries} before the program loads it: {cause}\n  that needs /bin/true and /dev/null: put them in place, also into the image of a container"
    )]
    NoTestLoad {
        /// As `LD_PRELOAD` has them.
        libraries: String,
        /// The kernel's reason.
        cause: io::Error,
    },
    /// ld.so complained about a library, or the test program did not end well.
    #[error(
        "a test program cannot load {libraries}: {output}\n  nothing was started; `refit doctor` shows what this machine allows"
    )]
    TestLoad {
        /// The `LD_PRELOAD` value that was tried.
        libraries: String,
        /// Its stderr, or how it ended.
        output: String,
    },
    /// There is no directory from which a library can be loaded.
    #[error(
        "no directory for refit's library: {reasons}\n  set XDG_CACHE_HOME to a directory of a plain name, on a file system without noexec"
    )]
    NoPlace {
        /// Each directory with its reason, joined by `; `.
        reasons: String,
    },
    /// There is no session, or its page has too little room.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The memory that the program's processes share could not be made.
    #[error(
        "cannot make shared memory for this run: {cause}\n  `ipcs -lm` shows this machine's limits"
    )]
    SharedMemory {
        /// The kernel's reason.
        cause: io::Error,
    },
    /// The root directory cannot be looked at.
    #[error("cannot look at the directory /: {cause}")]
    Root {
        /// The kernel's reason.
        cause: io::Error,
    },
    /// The profile of a `disk=` setting is invalid.
    #[error(
        "disk={}: the file {problem}\n  make a profile of a disk: refit doctor --probe-disk DIR --json FILE", path.display()
    )]
    Profile {
        /// As it was given.
        path: PathBuf,
        /// What is wrong with it.
        problem: ProfileProblem,
    },
    /// Only a database has a schema.
    #[error(
        "schema={file}: only a database has a schema\n  name one: refit plan sqlite:/PATH schema={file}"
    )]
    SchemaOfNobody {
        /// The file.
        file: String,
    },
    /// Only a recipe declares what a `conf.` setting is.
    #[error(
        "{setting}: only a recipe declares what conf.… stands for\n  name one before it: refit compare RECIPE {setting}    (refit recipes lists them)"
    )]
    ConfOfNobody {
        /// The setting's text.
        setting: String,
    },
    /// Only a recipe has a load.
    #[error(
        "{setting}: only a recipe has a load that can be set\n  name one before it: refit compare RECIPE --with {setting}    (refit recipes lists them)"
    )]
    LoadOfNobody {
        /// The setting's text.
        setting: String,
    },
    /// A recipe starts its own programs.
    #[error(
        "program={program}: a recipe has its own commands\n  change a copy of it: refit recipes copy NAME"
    )]
    ProgramOfRecipe {
        /// As it was given.
        program: String,
    },
    /// `thp=` asks for what a process cannot be given here.
    #[error("{0}")]
    Thp(String),
}

/// An allocator that is not installed.
#[derive(Debug, thiserror::Error)]
#[error("malloc={name}: no {files} in {searched}\n  {install}")]
pub struct Missing {
    pub(crate) name: &'static str,
    pub(crate) files: String,
    pub(crate) searched: String,
    /// How to install it, as a line.
    pub install: String,
}
