//! `refit crash`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use super::{OUTPUT, ReachArgs, SETTINGS, complete, duration, seed};

/// Simulate power cuts: is what was acknowledged still there?
///
/// The program runs on a disk that refit records, with a file system of its own;
/// your own disk is not touched. For many moments of the run refit then mounts an
/// image that this disk may hold after a power cut, and a check finds which of
/// the acknowledged items are there. The first run is a control: a disk that
/// ignores flushes has to lose something, or the check could not see a loss.
/// Then the power of the baseline is cut, and of each VARIANT (without one, of
/// those of the recipe).
///
/// RECIPE is a name that `refit recipes` lists or a folder of your own (./NAME).
/// Its [promise] defines what the program acknowledges and how a check finds it
/// (docs/recipes.md).
///
/// COMMAND is a program of your own. $REFIT_MOUNT is where the recorded file
/// system is mounted. CHECK is a shell command that prints the id of each item
/// that is there (`!ID`: in part), or one of: log:FILE[:REGEX], lines:FILE,
/// mail:DIR, sqlite:FILE:QUERY, postgres:DIR:QUERY, with paths below $REFIT_MOUNT.
///
/// `refit crash open STATE` mounts one image again, in a shell.
///
/// Exit codes: 0 no loss that the class of its variant forbids; 1 such a loss;
/// 2 no verdict: wrong usage, a failure, or an INVALID RUN.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit crash [OPTIONS] RECIPE [VARIANT]...\n       refit crash [OPTIONS] --check CHECK --ack SOURCE [VARIANT]... -- COMMAND [ARG]...\n       refit crash open STATE [-- COMMAND [ARG]...]"
)]
pub struct CrashArgs {
    /// How to find what is there after a cut
    #[arg(long, value_name = "CHECK", help_heading = "Acknowledgement and check")]
    pub check: Option<String>,

    /// How the program acknowledges: fd:N (each line written there is an id),
    /// smtp:HOST:PORT[/RECIPIENT] (refit sends mails), sync (the Nth sync is N)
    #[arg(
        long,
        value_name = "SOURCE",
        help_heading = "Acknowledgement and check"
    )]
    pub ack: Option<String>,

    /// … or lines of its output that match: the first group is the id
    #[arg(
        long,
        value_name = "REGEX",
        conflicts_with = "ack",
        help_heading = "Acknowledgement and check"
    )]
    pub ack_regex: Option<String>,

    /// COMMAND is a server; this shell command is its load, and acknowledges
    #[arg(long, value_name = "COMMAND", help_heading = "The recorded run")]
    pub load: Option<String>,

    /// Shell command that succeeds when the server is ready
    #[arg(long, value_name = "COMMAND", help_heading = "The recorded run")]
    pub ready: Option<String>,

    /// Shell command that fills the new file system before the run
    #[arg(long, value_name = "COMMAND", help_heading = "The recorded run")]
    pub prepare: Option<String>,

    /// Shell command that runs as long as the program
    #[arg(long, value_name = "COMMAND", help_heading = "The recorded run")]
    pub background: Option<String>,

    /// How long the run may last [default: 60s; 5s of mails; or as in the
    /// recipe]
    #[arg(long = "for", value_name = "TIME", value_parser = duration, help_heading = "The recorded run")]
    pub length: Option<Duration>,

    /// End the run when its time is over
    #[arg(long, help_heading = "The recorded run")]
    pub stop: bool,

    /// Settings for every run, the baseline's too; disk= is the recorded disk's
    /// flush latency
    #[arg(long, value_name = "SETTINGS", help_heading = SETTINGS, add = ArgValueCompleter::new(complete::settings))]
    pub with: Vec<OsString>,

    /// Cuts of each variant [default: 300, or as in the recipe]
    #[arg(long, value_name = "N", help_heading = "Disk and cuts")]
    pub cuts: Option<usize>,

    /// File system: ext4, xfs or btrfs
    #[arg(
        long,
        value_name = "KIND",
        default_value = "ext4",
        help_heading = "Disk and cuts"
    )]
    pub fs: refit_crash::filesystem::Kind,

    /// Its mount options, as for mount -o
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        help_heading = "Disk and cuts"
    )]
    pub mount_options: String,

    /// Mount it here, visible to the program and the checks only; the directory's
    /// own content is not touched
    #[arg(long, value_name = "DIR", help_heading = "Disk and cuts")]
    pub mount: Option<PathBuf>,

    /// Size of the disk [default: 1G, or as in the recipe]
    #[arg(long, value_name = "SIZE", value_parser = refit_recipe::parse_size, help_heading = "Disk and cuts")]
    pub size: Option<u64>,

    /// Largest size of a record
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = refit_recipe::parse_size, help_heading = "Disk and cuts")]
    pub record_size: u64,

    /// The block that the disk writes as a whole: 512, 4096 or 16384
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = ["512", "4096", "16384"], help_heading = "Disk and cuts")]
    pub tear: String,

    /// Kill a check that takes longer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration, help_heading = "Acknowledgement and check")]
    pub check_timeout: Duration,

    /// Keep the records in DIR, which must not exist yet
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub record: Option<PathBuf>,

    /// Seed of the cuts (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed, help_heading = "Disk and cuts")]
    pub seed: Option<u64>,

    /// Write the whole report to FILE (docs/crash.schema.json); `-` is stdout, as for each
    /// FILE here
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write one self-contained page
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// Run the commands of a recipe that is not part of refit without asking
    #[arg(long, help_heading = "The recorded run")]
    pub yes: bool,

    /// No progress on stderr
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,

    /// End when this process, which started refit, ends (for compare --prove)
    #[arg(long, value_name = "PID", hide = true)]
    pub ends_with: Option<i32>,

    /// Write the reason for a missing verdict to FILE instead of stderr (for compare --prove)
    #[arg(long, value_name = "FILE", hide = true)]
    pub failure: Option<PathBuf>,

    /// What to try, in addition to the baseline
    #[arg(value_name = "VARIANT", add = ArgValueCompleter::new(complete::recipe_or_settings))]
    pub variants: Vec<OsString>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
