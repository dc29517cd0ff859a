//! `refit compare`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use refit_knobs::Settings;
use refit_lab::Gate;

use super::{
    EachRunArgs, InstancesArgs, OUTPUT, OutputArgs, ReachArgs, ReplicasArgs, SETTINGS, complete,
    duration, per_cent, seed,
};

/// Compare variants of a command, or of a service under load, with the baseline
///
/// Each word before `--` is one variant: settings joined by `+`
/// (`sync=off+malloc=jemalloc`). The baseline is the command as it is, with
/// refit's library in it, which only counts. The variants run in random order and then in the
/// reverse order, again and again; a hidden second baseline measures the noise
/// of the machine. An effect is a ratio to the baseline with an interval and one
/// of four verdicts: faster, slower, same, inconclusive.
///
/// RECIPE in place of a command is a name that `refit recipes` lists, or a folder
/// of your own (./NAME). Each run then has a private instance of a real server, a
/// load on it, and a check of the result. Without variants, those of the recipe
/// are compared.
///
/// Exit codes: 0 done; 1 a gate failed, or a cut took what the class of its variant
/// forbids; 2 usage error or trouble with the environment, or the baseline or every
/// candidate failed, or --prove could cut nothing; 3 inconclusive, with
/// --strict. Interrupted before there is an answer: 130 (Ctrl-C), 143 (SIGTERM),
/// 129 (SIGHUP), or 3 with a gate that is undecided. What was measured is printed
/// and stored in any case.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit compare [OPTIONS] VARIANT... -- COMMAND [ARG]...\n       refit compare [OPTIONS] RECIPE [VARIANT]...\n       refit compare [OPTIONS] --on kubernetes deployment/NAME VARIANT... --load COMMAND"
)]
pub struct CompareArgs {
    /// Settings for every run, the baseline's too; a variant's own setting wins
    #[arg(long, value_name = "SETTINGS", help_heading = SETTINGS, add = ArgValueCompleter::new(complete::settings))]
    pub with: Vec<OsString>,

    /// Add the command without refit; its effect is the overhead of refit
    #[arg(long, help_heading = "Measuring")]
    pub bare: bool,

    /// Count what malloc gives out in each run of a command: metrics heap-requested,
    /// heap-usable, heap-rounding, heap-left and allocations. For a recipe's service:
    /// one more run of each variant tells why its memory is what it is. Without `--purge`,
    /// which is an option of `refit run` (docs/memory.md)
    #[arg(long, help_heading = "Measuring")]
    pub heap: bool,

    /// Which allocator takes the least memory, and what that costs in time: without
    /// variants, compare the allocators of this machine and their options that give
    /// memory back (docs/memory.md)
    #[arg(long, help_heading = "Measuring")]
    pub memory: bool,

    /// Compare at each value of one setting, under every variant: `load.sessions=1,4,20`.
    /// The budget is for all of them, and so is the certainty of the intervals
    #[arg(long, value_name = "SETTING=V,V…", value_parser = scan, help_heading = "Measuring")]
    pub scan: Option<ScanArg>,

    /// How long the comparison may take [default: 3m, or as in the recipe]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Measuring")]
    pub budget: Option<Duration>,

    /// At most this many rounds (every variant once), at least two, not counting
    /// the warm-up
    #[arg(long, value_name = "N", value_parser = rounds, help_heading = "Measuring")]
    pub rounds: Option<usize>,

    /// End as soon as the half-width of each interval is at most this
    #[arg(long, value_name = "PERCENT", value_parser = per_cent, help_heading = "Measuring")]
    pub precision: Option<f64>,

    /// Seed of the order of runs (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed, help_heading = "Measuring")]
    pub seed: Option<u64>,

    /// Two variants that differ by at most this are the same
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = per_cent, help_heading = "Measuring")]
    pub delta: f64,

    #[command(flatten)]
    pub each_run: EachRunArgs,

    /// Name of this machine in the result, for `refit pool` [default: its host name]
    #[arg(long, value_name = "NAME", help_heading = "Measuring")]
    pub machine: Option<String>,

    /// Print the result as marked lines on stderr too, at the end: index N of a Job that
    /// `refit export kubernetes compare` made
    #[arg(long, value_name = "N", help_heading = OUTPUT)]
    pub log_result: Option<u32>,

    /// Run the winner against the baseline once more, with a fresh seed
    #[arg(long, help_heading = "Measuring")]
    pub remeasure: bool,

    /// Afterwards cut the power of the baseline and of every variant whose class risks
    /// data or that the recipe's promise names, as `refit crash` does: one table of gain
    /// and loss. For a recipe with a [promise]; needs root, FUSE and loop devices
    #[arg(long, help_heading = "Power cuts")]
    pub prove: bool,

    /// Cuts of each of them [default: 300, or as in the recipe]
    #[arg(long, value_name = "N", help_heading = "Power cuts")]
    pub cuts: Option<usize>,

    /// Limit for every candidate, for example 'wall<+2%'
    #[arg(long = "gate", value_name = "GATE", help_heading = "Verdicts")]
    pub gates: Vec<Gate>,

    /// Exit with 3 if a gate is undecided, or, without gates, if a candidate is
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

    #[command(flatten)]
    pub instances: InstancesArgs,

    #[command(flatten)]
    pub replicas: ReplicasArgs,

    #[command(flatten)]
    pub output: OutputArgs,

    /// What to compare with the baseline, possibly after a recipe
    #[arg(value_name = "VARIANT", add = ArgValueCompleter::new(complete::recipe_or_settings))]
    pub variants: Vec<OsString>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// A round and its mirror image make the first pair.
/// A setting with several values.
#[derive(Clone, Debug)]
pub struct ScanArg {
    /// Without its value: `load.sessions`.
    pub setting: String,
    /// Two at least, no two of them the same.
    pub values: Vec<String>,
}

fn scan(text: &str) -> Result<ScanArg, String> {
    let (setting, values) = text
        .split_once('=')
        .ok_or("write a setting and its values, as load.sessions=1,4,20")?;
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if values.len() < 2 {
        return Err("name two values at least, as load.sessions=1,4,20".to_owned());
    }
    for (n, value) in values.iter().enumerate() {
        if values[..n].contains(value) {
            return Err(format!("the value `{value}` is named twice"));
        }
        let word = format!("{setting}={value}").into();
        Settings::parse([word]).map_err(|error| error.to_string())?;
    }
    Ok(ScanArg {
        setting: setting.to_owned(),
        values,
    })
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rounds) if rounds >= 2 => Ok(rounds),
        Ok(_) => Err("a round and its mirror image make a pair: at least 2".to_owned()),
        Err(_) => Err("write a number, as 12".to_owned()),
    }
}
