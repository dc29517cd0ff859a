//! `refit tune`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use refit_lab::experiment::Class;

use super::{
    EachRunArgs, InstancesArgs, OUTPUT, ReachArgs, SETTINGS, complete, duration, per_cent, seed,
};

/// Find which settings help a command or a service, and what they cost
///
/// One run is observed; what it shows makes variants worth trying: waits for the
/// disk, O_DIRECT, the heap, what a recipe declares. A few runs drop what is clearly
/// worse, and the best of each accepted class is measured again with new runs:
/// the answer is of those alone. Nothing that is not accepted is run.
///
/// Each step is a comparison in the directory of --log: `refit report --history DIR`
/// lists them.
///
/// Exit codes: 0 done, whether anything helps or not; 1 a power cut took what the class of
/// an answer forbids; 2 usage error or trouble with the environment, or the command or
/// service fails by itself, or --prove could cut nothing. Interrupted: 130 (Ctrl-C),
/// 143 (SIGTERM), 129 (SIGHUP).
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit tune [OPTIONS] RECIPE\n       refit tune [OPTIONS] -- COMMAND [ARG]...\n       refit tune --resume DIR"
)]
pub struct TuneArgs {
    /// What may be risked: bounded-loss accepts safe as well, loses-on-crash accepts both;
    /// changes-behaviour stands beside them. May be repeated [default: safe]
    #[arg(long, value_name = "CLASS", value_enum, help_heading = "Verdicts")]
    pub accept: Vec<AcceptArg>,

    /// Cut the power of the program and of every answer that risks data, as `refit crash`
    /// does: one that loses more than its class allows is not an answer. For a recipe with a
    /// [promise]; needs root, FUSE and loop devices
    #[arg(long, help_heading = "Power cuts")]
    pub prove: bool,

    /// Cuts of each of them [default: 300, or as in the recipe]
    #[arg(
        long,
        value_name = "N",
        requires = "prove",
        help_heading = "Power cuts"
    )]
    pub cuts: Option<usize>,

    /// Settings for every run, the baseline's too
    #[arg(long, value_name = "SETTINGS", help_heading = SETTINGS, add = ArgValueCompleter::new(complete::settings))]
    pub with: Vec<OsString>,

    /// How long all of it may take; with --resume, from now on [default: 20m]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Measuring")]
    pub budget: Option<Duration>,

    /// Seed of the order of runs (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed, help_heading = "Measuring")]
    pub seed: Option<u64>,

    /// A gain of at most this does not matter
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = per_cent, help_heading = "Measuring")]
    pub delta: f64,

    /// Write the record and a comparison for each step into this new directory
    /// [default: ./tune-NAME-N]
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub log: Option<PathBuf>,

    /// Go on with a tuning that was interrupted, from its last whole step
    #[arg(long, value_name = "DIR", help_heading = OUTPUT, conflicts_with_all = ["log", "recipe", "command", "accept", "with", "seed"])]
    pub resume: Option<PathBuf>,

    /// No progress on stderr
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,

    #[command(flatten)]
    pub each_run: EachRunArgs,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,

    #[command(flatten)]
    pub instances: InstancesArgs,

    /// A recipe: a name that `refit recipes` lists, or a folder (./NAME)
    #[arg(value_name = "RECIPE", add = ArgValueCompleter::new(complete::recipe))]
    pub recipe: Option<String>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `--accept`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AcceptArg {
    Safe,
    BoundedLoss,
    LosesOnCrash,
    ChangesBehaviour,
}

impl AcceptArg {
    /// The class.
    pub fn class(self) -> Class {
        match self {
            AcceptArg::Safe => Class::Safe,
            AcceptArg::BoundedLoss => Class::BoundedLoss,
            AcceptArg::LosesOnCrash => Class::LosesOnCrash,
            AcceptArg::ChangesBehaviour => Class::ChangesBehaviour,
        }
    }
}
