//! `refit compare`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use refit_lab::Gate;

use super::{OUTPUT, OutputArgs, ReachArgs, SETTINGS, duration, seed};

/// Compare variants of a command, or of a service under load, with the baseline
///
/// Each word before `--` is one variant: settings, joined by `+`
/// (`sync=off+malloc=jemalloc`). The baseline is the command with everything
/// on, over the same library. Runs go in mirrored rounds; a hidden second
/// baseline prices today's noise; an effect is a ratio with an interval and one
/// of four verdicts: faster, slower, same, inconclusive.
///
/// RECIPE in place of a command is a name that `refit recipes` lists, or a folder
/// of your own (./NAME): a private instance of a real server for each run, a load
/// on it, and a check of what came out. Without variants those of the recipe are
/// tried.
///
/// Exit codes: 0 done; 1 a gate failed; 2 usage or environment trouble, or the
/// baseline or every candidate failed; 3 inconclusive, with --strict.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit compare [OPTIONS] VARIANT... -- COMMAND [ARG]...\n       refit compare [OPTIONS] RECIPE [VARIANT]..."
)]
pub struct CompareArgs {
    /// Settings under the baseline and every variant
    #[arg(long, value_name = "SETTINGS", help_heading = SETTINGS)]
    pub with: Vec<OsString>,

    /// Add the command without refit: its effect is refit's own weight
    #[arg(long, help_heading = "Measuring")]
    pub bare: bool,

    /// How long it may take [default: 3m, or what the recipe says]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Measuring")]
    pub budget: Option<Duration>,

    /// At most this many rounds (every variant once), beside the warm-up
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub rounds: Option<usize>,

    /// End as soon as each interval is ± this narrow
    #[arg(long, value_name = "PERCENT", value_parser = per_cent, help_heading = "Measuring")]
    pub precision: Option<f64>,

    /// Seed of the order of runs (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed, help_heading = "Measuring")]
    pub seed: Option<u64>,

    /// Within ± this change two variants are the same
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = per_cent, help_heading = "Measuring")]
    pub delta: f64,

    /// Shell command before each run, not timed
    #[arg(long, value_name = "COMMAND", help_heading = "Each run")]
    pub prepare: Option<String>,

    /// Shell command after each run, not timed
    #[arg(long, value_name = "COMMAND", help_heading = "Each run")]
    pub conclude: Option<String>,

    /// The command is one word for the shell
    #[arg(long, help_heading = "Each run")]
    pub shell: bool,

    /// Each run starts in a fresh copy of DIR; the copies go at the end
    #[arg(long, value_name = "DIR", help_heading = "Each run")]
    pub fresh_copy: Option<PathBuf>,

    /// Kill a run that takes longer, and disqualify its variant
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Each run")]
    pub timeout: Option<Duration>,

    /// Shell command after each run that has to succeed
    #[arg(long, value_name = "COMMAND", help_heading = "Each run")]
    pub check: Option<String>,

    /// Stdout has to equal the baseline's
    #[arg(long, help_heading = "Each run")]
    pub same_output: bool,

    /// Run the winner against the baseline once more, with a fresh seed
    #[arg(long, help_heading = "Measuring")]
    pub confirm: bool,

    /// What every candidate has to keep, as 'wall<+2%'
    #[arg(long = "gate", value_name = "GATE", help_heading = "Verdicts")]
    pub gates: Vec<Gate>,

    /// Exit with 3 when a gate is undecided, or without gates a candidate is
    /// inconclusive
    #[arg(long, help_heading = "Verdicts")]
    pub strict: bool,

    /// No progress on stderr
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,

    /// A recipe's instances lie in a new directory below this one
    #[arg(long, value_name = "DIR", default_value = refit_recipe::DEFAULT_BASE, help_heading = "Instances of a recipe")]
    pub dir: PathBuf,

    /// Run the commands of a recipe that refit does not carry without asking
    #[arg(long, help_heading = "Instances of a recipe")]
    pub yes: bool,

    #[command(flatten)]
    pub output: OutputArgs,

    /// What to compare with the baseline, perhaps after a recipe
    #[arg(value_name = "VARIANT")]
    pub variants: Vec<OsString>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// As a relative number: `1%` is 0.01.
fn per_cent(text: &str) -> Result<f64, String> {
    let number = text
        .trim()
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|number| *number > 0.0 && *number < 100.0)
        .map(|number| number / 100.0)
        .ok_or_else(|| "write a change in per cent, as 1% or 0.5%".to_owned())
}
