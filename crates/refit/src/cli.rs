//! The command line as it is typed.

mod compare;
mod crash;
mod recipes;
mod run;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches, Parser, Subcommand};

pub use compare::CompareArgs;
pub use crash::CrashArgs;
pub use recipes::{RecipeCheckArgs, RecipeCopyArgs, RecipeNameArgs, RecipesArgs, RecipesVerb};
pub use run::{ReachArgs, RunArgs};

/// Swap one part beneath an unmodified program, and say exactly what happened
#[derive(Parser)]
#[command(
    name = "refit",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

/// What was typed. `run` is tried alone first: it holds up a program's start, and
/// most of clap's time goes into describing verbs that nobody asked for. Whatever
/// is wrong with it is for the whole to say.
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
    Compare(Box<CompareArgs>),
    Report(ReportArgs),
    Recipes(RecipesArgs),
    Crash(Box<CrashArgs>),
    Doctor(DoctorArgs),
    Demo(DemoArgs),
}

/// Files that a result is drawn into.
#[derive(Args, Clone, Default)]
pub struct OutputArgs {
    /// Write everything that was measured (docs/result.schema.json)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write one line for each run
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,

    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Draw every run: its order against its ratio
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether any file was asked for.
    pub fn any(&self) -> bool {
        self.files().iter().any(|path| path.is_some())
    }

    /// All that can be asked for.
    pub fn files(&self) -> [&Option<PathBuf>; 5] {
        [&self.json, &self.csv, &self.md, &self.html, &self.svg]
    }
}

/// Draw stored comparisons and crash reports again, or list them as a score log
#[derive(Args)]
pub struct ReportArgs {
    /// Results that `refit compare --json` or `refit crash --json` wrote
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// List every comparison in DIR: date, change, effect, kept or not
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub history: Option<PathBuf>,

    #[command(flatten)]
    pub output: OutputArgs,
}

fn duration(text: &str) -> Result<Duration, String> {
    refit_recipe::parse_time(text).ok_or_else(|| "write a time as 90s, 3m or 500ms".to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    };
    number.ok_or_else(|| "write a number, as 7 or 0x5eed".to_owned())
}

/// Say what this machine allows, what refit can reach of a command, or what a
/// flush costs on a disk
///
/// Exits with 0, with 1 when the command cannot be reached or flushes wait for
/// no disk, and with 2 when there is no such command or directory.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct DoctorArgs {
    /// A program, by name or path
    #[arg(value_name = "COMMAND", conflicts_with = "probe_disk")]
    pub command: Option<OsString>,

    /// Flush lines to a new file in DIR for a few seconds, and say what that
    /// takes, and which disk= emulates it
    #[arg(long, value_name = "DIR")]
    pub probe_disk: Option<PathBuf>,

    /// Write every flush of --probe-disk as a profile, for disk=/PATH/FILE
    #[arg(
        long,
        value_name = "FILE",
        requires = "probe_disk",
        conflicts_with = "command"
    )]
    pub json: Option<PathBuf>,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,
}

/// Show a swap on this machine; no server needed
///
/// `refit demo` compares a small mail queue with and without its syncs, and on
/// every allocator that is installed. `refit demo fsync` measures what a log
/// line costs on this disk.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct DemoArgs {
    /// `fsync`, or nothing for the mail queue
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,

    /// Work in a new directory below this one
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub dir: PathBuf,

    /// How long the comparison may take
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub budget: Duration,
}

/// Exit code of a usage error: `run` keeps 1 and 2 for the program.
fn usage_code() -> i32 {
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "run") {
        125
    } else {
        2
    }
}

/// Prints what clap has to say, and ends.
pub fn usage_error(error: &clap::Error) -> ! {
    // Nothing is left to do when even this cannot be printed.
    let _ = error.print();
    let code = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
        _ => usage_code(),
    };
    std::process::exit(code)
}
