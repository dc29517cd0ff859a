//! `refit export oci`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::cli::{OUTPUT, SETTINGS};

/// Print what a container needs for settings: options of `docker run` and `podman run`, or a line
/// of a Dockerfile
///
/// The options, for sync=off, malloc=, preload=, env.NAME= and tz=:
///
/// ```text
/// refit export oci sync=off --profile DEFAULT.json --seccomp off.json
/// docker run $(refit export oci malloc=jemalloc) IMAGE
/// ```
///
/// sync=off is a seccomp profile, written to the file of --seccomp: fsync, fdatasync, sync,
/// syncfs and sync_file_range return 0, of static programs too. A runtime takes one profile in
/// place of its own: give that one as --profile, and it is kept but for these calls. Podman has it
/// in /usr/share/containers/seccomp.json (Debian: golang-github-containers-common), Docker and
/// containerd publish it (moby/profiles, seccomp/default.json).
///
/// The options are on one line, quoted for a shell. What to know of them is printed on stderr.
///
/// --dockerfile prints a RUN instruction that runs one command of a build under refit; there every
/// setting of `refit run` can be used.
///
/// Exit code: 0, or 2 for a usage error, and where a setting cannot be had like this.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit export oci [--profile FILE --seccomp FILE] SETTINGS...\n       refit export oci --dockerfile SETTINGS... -- COMMAND [ARG]..."
)]
pub struct OciArgs {
    /// Settings, as in `refit run`
    #[arg(value_name = "SETTINGS", required = true)]
    pub settings: Vec<OsString>,

    /// Write the seccomp profile for sync=off to FILE, which the options name
    #[arg(long, value_name = "FILE", conflicts_with = "dockerfile", help_heading = OUTPUT)]
    pub seccomp: Option<PathBuf>,

    /// The runtime's own seccomp profile, to be kept; without it every other call is allowed
    #[arg(long, value_name = "FILE", requires = "seccomp", help_heading = SETTINGS)]
    pub profile: Option<PathBuf>,

    /// Print a RUN instruction for a Dockerfile in place of options
    #[arg(long, help_heading = OUTPUT)]
    pub dockerfile: bool,

    /// Look for allocators in DIR first
    #[arg(long, value_name = "DIR", conflicts_with = "dockerfile", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,

    /// With --dockerfile: what the instruction runs
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
