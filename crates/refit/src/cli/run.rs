//! `refit run`, and by what a program is reached.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refit_launch::filter::Rings;
use refit_launch::seccomp::{Backend, Reach};

use super::seed;

/// Run a command with parts swapped beneath it; with no settings, observe it
///
/// Settings are words before `--`, as with env(1):
///
///   sync=off             fsync and its kin return at once (loses-on-crash)
///   sync@exe:NAME=off    … only in executables of this name
///   sync@/PATH/=off      … only of files below this directory, links resolved
///   odirect=off          O_DIRECT taken from regular files (loses-on-crash)
///   disk=8ms             each real sync waits as on such a disk; or percentiles
///                        (p50=4ms,p99=30ms), or a profile's absolute path
///   disk=fail:EIO        real syncs fail; `,every=N`, `,after=N` or `,p=0.01`
///   malloc=NAME[:opts]   glibc, jemalloc, mimalloc, tcmalloc or /path/lib.so
///   thp=MODE             never, madvise or always
///   tz=ZONE, env.NAME=VALUE, preload=/path/lib.so
///
/// The program's own exit code is passed through; 125 is refit's own failure
/// before the start, 126 and 127 are as in env(1).
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit run [OPTIONS] [SETTINGS]... -- COMMAND [ARG]...\n       refit run --explain SETTINGS..."
)]
pub struct RunArgs {
    /// Say what the settings swap, cover and risk, and start nothing
    #[arg(long)]
    pub explain: bool,

    /// Say nothing; without --json refit becomes the command, in its own pid
    #[arg(short, long)]
    pub quiet: bool,

    /// Write the whole report to FILE (docs/result.schema.json)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write each sync call to FILE as it is made, a JSON line each
    #[arg(long, value_name = "FILE")]
    pub trace_sync: Option<PathBuf>,

    /// Seed of the draws of `disk=` (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed)]
    pub seed: Option<u64>,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,

    /// Do not put refit's variables back where a program cleared them
    #[arg(long)]
    pub no_follow_env: bool,

    #[command(flatten)]
    pub reach: ReachArgs,

    /// What to swap
    #[arg(value_name = "SETTINGS")]
    pub settings: Vec<OsString>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// By what a program's calls are reached.
#[derive(Args, Clone, Copy)]
pub struct ReachArgs {
    /// What reaches the calls: the preload and, for what it cannot reach,
    /// seccomp; or one of them
    #[arg(long, value_name = "BACKEND", value_enum, default_value_t = BackendArg::Auto)]
    pub backend: BackendArg,

    /// Whether programs can set up an io_uring, inside which syncs are not
    /// seen; denied, they get ENOSYS and go on without
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = RingsArg::Count)]
    pub io_uring: RingsArg,

    /// Let a user who is not root have seccomp at the price of no_new_privs:
    /// setuid and setgid programs lose their privilege
    #[arg(long)]
    pub no_new_privs: bool,
}

/// `--backend`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendArg {
    Auto,
    Preload,
    Seccomp,
}

/// `--io-uring`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RingsArg {
    Count,
    Deny,
}

impl ReachArgs {
    /// As it would be typed; what is the default is left out.
    pub fn words(&self) -> Vec<String> {
        let backend = (self.backend != BackendArg::Auto).then(|| self.backend.to_possible_value());
        let rings = (self.io_uring != RingsArg::Count).then(|| self.io_uring.to_possible_value());
        let named = [("--backend", backend), ("--io-uring", rings)];
        let mut words: Vec<String> = named
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.flatten()?)))
            .flat_map(|(name, value)| [name.to_owned(), value.get_name().to_owned()])
            .collect();
        if self.no_new_privs {
            words.push("--no-new-privs".to_owned());
        }
        words
    }

    /// For the launcher.
    pub fn reach(&self) -> Reach {
        Reach {
            backend: match self.backend {
                BackendArg::Auto => Backend::Auto,
                BackendArg::Preload => Backend::Preload,
                BackendArg::Seccomp => Backend::Seccomp,
            },
            rings: match self.io_uring {
                RingsArg::Count => Rings::Leave,
                RingsArg::Deny => Rings::Deny,
            },
            no_new_privs: self.no_new_privs,
        }
    }
}
