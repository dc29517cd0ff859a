//! The command line as it is typed.

mod coming_from;
mod compare;
mod complete;
mod crash;
mod each_run;
mod export;
mod help;
mod instances;
mod output;
mod pool;
mod recipes;
mod replicas;
mod run;
mod services;
mod tune;
mod typed;
mod usage;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use refit_manual::TOPICS;

pub use compare::{CompareArgs, ScanArg};
pub use crash::CrashArgs;
pub use each_run::EachRunArgs;
pub use export::{
    ExportArgs, ExportVerb, KubernetesApplyArgs, KubernetesArgs, KubernetesCompareArgs,
    KubernetesVerb, OciArgs, PatchForm, RefitFrom,
};
pub use help::{CompleteArgs, CompletionsArgs, HelpArgs, ShellArg};
pub use instances::{InstancesArgs, for_recipes};
pub use output::OutputArgs;
pub use pool::{KubernetesJob, PoolArgs, PoolFrom};
pub use recipes::{
    RecipeCheckArgs, RecipeCopyArgs, RecipeNameArgs, RecipeNewArgs, RecipesArgs, RecipesVerb,
};
pub use replicas::ReplicasArgs;
pub use run::{ReachArgs, RunArgs};
pub use services::{ApplyArgs, ConfirmArgs, PlanArgs, RevertArgs, StatusArgs};
pub use tune::TuneArgs;
pub use typed::typed_options;
pub use usage::{usage_code, usage_error};
pub use watch::WatchArgs;

// The headings of long help texts.
const SETTINGS: &str = "Settings";
const REACH: &str = "How the program is reached";
const OUTPUT: &str = "Output";
const DURABILITY: &str = "Durability check";

/// Find what makes a program slow (disk syncs, allocator, settings), measure a fix, and say what it risks
///
/// `refit help COMMAND` describes a command. Start with `refit demo`, or with
/// `refit run -- COMMAND`, which changes nothing.
#[derive(Parser)]
#[command(
    name = "refit",
    version,
    verbatim_doc_comment,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_long_help = topics()
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// As `--version` prints it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What every command is parsed with.
pub fn definition() -> Command {
    Cli::command()
}

/// What `refit help` prints pages of, besides commands.
fn topics() -> String {
    let width = TOPICS.iter().map(|topic| topic.name.len()).max();
    let width = width.unwrap_or(0);
    let lines = TOPICS
        .iter()
        .map(|topic| format!("\n  {:width$}  {}", topic.name, topic.about));
    format!(
        "Topics, for `refit help TOPIC`:{}",
        lines.collect::<String>()
    )
}

/// What was typed. `run` is tried alone first: it delays a program's start, and
/// clap spends most of its time on describing the other verbs. Errors in it are
/// reported by the whole parser.
///
/// # Errors
/// clap's, its help and version among them.
pub fn parse() -> Result<Cli, clap::Error> {
    let words = std::env::args_os().skip(1);
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "run") {
        let run = RunArgs::augment_args(Command::new("run"));
        let typed = run.try_get_matches_from(words);
        if let Ok(args) = typed.and_then(|typed| RunArgs::from_arg_matches(&typed)) {
            return Ok(Cli {
                verb: Verb::Run(args),
            });
        }
    }
    Cli::try_parse()
}

#[derive(Subcommand)]
pub enum Verb {
    Run(RunArgs),
    Watch(WatchArgs),
    Compare(Box<CompareArgs>),
    Report(ReportArgs),
    Pool(PoolArgs),
    Export(ExportArgs),
    Recipes(RecipesArgs),
    Crash(Box<CrashArgs>),
    Tune(Box<TuneArgs>),
    Plan(PlanArgs),
    Apply(ApplyArgs),
    Confirm(ConfirmArgs),
    Status(StatusArgs),
    Revert(RevertArgs),
    Doctor(DoctorArgs),
    Demo(DemoArgs),
    Help(HelpArgs),
    Completions(CompletionsArgs),
    Complete(CompleteArgs),
}

/// Print stored results again (of run, compare, crash, watch, pool, tune), or list comparisons by date
///
/// Exit code: 0, or 2 when a file cannot be read or written.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ReportArgs {
    /// Results that `refit run`, `compare`, `crash`, `watch` or `pool` wrote with --json, or
    /// `tune` into its log
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// List every comparison in DIR by date, with each change and its effect; with --html a page
    /// with trends. A change counts as kept if it is marked by --keep, or if a later comparison
    /// has it in --with
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "files",
        help_heading = "Input"
    )]
    pub history: Option<PathBuf>,

    /// Mark VARIANT of the result NAME in DIR as kept (stored in DIR/kept)
    #[arg(long, num_args = 2, value_names = ["NAME", "VARIANT"], requires = "history", conflicts_with = "files", help_heading = "Input")]
    pub keep: Vec<String>,

    /// Mark VARIANT of the result NAME in DIR as dropped
    #[arg(long, num_args = 2, value_names = ["NAME", "VARIANT"], requires = "history", conflicts_with = "files", help_heading = "Input")]
    pub drop: Vec<String>,

    #[command(flatten)]
    pub output: OutputArgs,
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
        .ok_or_else(|| "write a change in percent, for example 1% or 0.5%".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    refit_recipe::parse_time(text).ok_or_else(|| "write a time as 90s, 3m or 500ms".to_owned())
}

/// A new seed, short enough to be typed.
pub fn new_seed() -> u64 {
    let mut bytes = [0; 4];
    // Any number is a seed.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes).into()
}

/// A sum is what a manifest can write, which has the index of a pod but cannot add.
fn seed(text: &str) -> Result<u64, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    };
    let seed = match text.split_once('+') {
        Some((first, second)) => number(first)
            .zip(number(second))
            .map(|(first, second): (u64, u64)| first.wrapping_add(second)),
        None => number(text),
    };
    seed.ok_or_else(|| "write a number, as 7, 0x5eed or 7+1".to_owned())
}

/// Show what this machine allows, what of a command refit reaches, which
/// allocator a running process uses, or what a flush costs on a disk
///
/// A process is read while it runs; it is neither stopped nor changed.
///
/// Exit codes: 0; 1 when the command's syncs cannot be reached, when it cannot be
/// read which allocator a process uses, or when flushes wait for no disk; 2 when
/// there is no such command, process or directory.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct DoctorArgs {
    /// A program, by name or path; or the number of a process
    #[arg(value_name = "COMMAND|PID", conflicts_with = "probe_disk")]
    pub command: Option<OsString>,

    /// Write and flush lines to a new file in DIR for a few seconds; print how
    /// long a flush takes, and which disk= setting emulates it
    #[arg(long, value_name = "DIR", help_heading = "Disk")]
    pub probe_disk: Option<PathBuf>,

    /// Write the duration of every flush of --probe-disk to FILE, a profile for
    /// disk=/PATH/FILE
    #[arg(
        long,
        value_name = "FILE",
        requires = "probe_disk",
        conflicts_with = "command",
        help_heading = "Disk"
    )]
    pub json: Option<PathBuf>,

    /// Look for allocators in DIR first
    #[arg(long, value_name = "DIR", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,
}

/// Show what settings change on this machine, without a server
///
/// `refit demo` compares a small mail queue with and without its syncs, and on
/// every allocator that is installed; as root it then cuts the power of a
/// simulated disk below it. `refit demo fsync` measures what a log line costs on
/// this disk.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct DemoArgs {
    /// `fsync`; the default is the mail queue
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,

    /// Work in a new directory below this one
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/tmp",
        help_heading = "Measuring"
    )]
    pub dir: PathBuf,

    /// How long the comparison may take
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "60s",
        help_heading = "Measuring"
    )]
    pub budget: Duration,
}
