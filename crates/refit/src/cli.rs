//! The command line as it is typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Command, FromArgMatches, Parser, Subcommand};
use refit_lab::Gate;
use refit_launch::filter::Rings;
use refit_launch::seccomp::{Backend, Reach};

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
    #[arg(long, value_name = "SETTINGS")]
    pub with: Vec<OsString>,

    /// Add the command without refit: its effect is refit's own weight
    #[arg(long)]
    pub bare: bool,

    /// How long it may take [default: 3m, or what the recipe says]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub budget: Option<Duration>,

    /// At most this many rounds (every variant once), beside the warm-up
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,

    /// End as soon as each interval is ± this narrow
    #[arg(long, value_name = "PERCENT", value_parser = per_cent)]
    pub precision: Option<f64>,

    /// Seed of the order of runs (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed)]
    pub seed: Option<u64>,

    /// Within ± this change two variants are the same
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = per_cent)]
    pub delta: f64,

    /// Shell command before each run, not timed
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,

    /// Shell command after each run, not timed
    #[arg(long, value_name = "COMMAND")]
    pub conclude: Option<String>,

    /// The command is one word for the shell
    #[arg(long)]
    pub shell: bool,

    /// Each run starts in a fresh copy of DIR; the copies go at the end
    #[arg(long, value_name = "DIR")]
    pub fresh_copy: Option<PathBuf>,

    /// Kill a run that takes longer, and disqualify its variant
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,

    /// Shell command after each run that has to succeed
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,

    /// Stdout has to equal the baseline's
    #[arg(long)]
    pub same_output: bool,

    /// Run the winner against the baseline once more, with a fresh seed
    #[arg(long)]
    pub confirm: bool,

    /// What every candidate has to keep, as 'wall<+2%'
    #[arg(long = "gate", value_name = "GATE")]
    pub gates: Vec<Gate>,

    /// Exit with 3 when a gate is undecided, or without gates a candidate is
    /// inconclusive
    #[arg(long)]
    pub strict: bool,

    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,

    /// A recipe's instances lie in a new directory below this one
    #[arg(long, value_name = "DIR", default_value = refit_lab::DEFAULT_BASE)]
    pub dir: PathBuf,

    /// Run the commands of a recipe that refit does not carry without asking
    #[arg(long)]
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

/// Simulate power cuts: what was acknowledged, and is it there?
///
/// COMMAND runs on a file system of its own, which it and all helpers find in
/// $REFIT_MOUNT, on a disk that is recorded; your own disk is not touched. What
/// that disk may hold after a cut is then mounted, again and again, and --check
/// says which of the acknowledged things are there. First a disk that ignores
/// its flushes has to lose something, or nothing can be concluded; then the
/// baseline, then each VARIANT.
///
/// CHECK is a shell command that prints the id of each thing that is there
/// (`!ID`: in part), or one of: log:FILE[:REGEX], lines:FILE, mail:DIR,
/// sqlite:FILE:QUERY, postgres:DIR:QUERY, all below $REFIT_MOUNT.
///
/// `refit crash open STATE` mounts one state again, in a shell.
///
/// Exit codes: 0 nothing was lost that its class forbids; 1 something was;
/// 2 usage or environment trouble, or an INVALID RUN.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit crash [OPTIONS] --check CHECK --ack SOURCE [VARIANT]... -- COMMAND [ARG]...\n       refit crash open STATE [-- COMMAND [ARG]...]"
)]
pub struct CrashArgs {
    /// What is there after a cut
    #[arg(long, value_name = "CHECK")]
    pub check: Option<String>,

    /// What the program acknowledges: fd:N (each line written there is an id),
    /// smtp:HOST:PORT[/RECIPIENT] (refit sends mails), sync (the Nth sync is N)
    #[arg(long, value_name = "SOURCE")]
    pub ack: Option<String>,

    /// … or what this finds in its output: the first group is the id
    #[arg(long, value_name = "REGEX", conflicts_with = "ack")]
    pub ack_regex: Option<String>,

    /// COMMAND is a server; this shell command is its load, and acknowledges
    #[arg(long, value_name = "COMMAND")]
    pub load: Option<String>,

    /// Shell command that succeeds when the server is ready
    #[arg(long, value_name = "COMMAND")]
    pub ready: Option<String>,

    /// Shell command in the new file system, before anything that is cut
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,

    /// Shell command beside the program, ended with it
    #[arg(long, value_name = "COMMAND")]
    pub beside: Option<String>,

    /// How long the run may last [default: 60s; 5s of mails]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub length: Option<Duration>,

    /// End the run when its time is over
    #[arg(long)]
    pub stop: bool,

    /// Settings under the baseline and every variant; disk= is the recorded
    /// disk's flush latency
    #[arg(long, value_name = "SETTINGS")]
    pub with: Vec<OsString>,

    /// Cuts of each mode
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub cuts: usize,

    /// ext4, xfs or btrfs
    #[arg(long, value_name = "KIND", default_value = "ext4")]
    pub fs: refit_crash::filesystem::Kind,

    /// As behind mount -o
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub mount_options: String,

    /// Mount it here, for the program and the checks alone; the directory's own
    /// content is not touched
    #[arg(long, value_name = "DIR")]
    pub mount: Option<PathBuf>,

    /// Size of the disk
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub size: u64,

    /// A record may grow to this
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    pub record_size: u64,

    /// The block that the disk writes as a whole: 512 or 4096
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = ["512", "4096"])]
    pub tear: String,

    /// Kill a check that takes longer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub check_timeout: Duration,

    /// Keep the records in DIR, which must not exist yet
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,

    /// Seed of the cuts (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed)]
    pub seed: Option<u64>,

    /// Write the whole verdict to FILE (docs/crash.schema.json)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// No progress on stderr
    #[arg(short, long)]
    pub quiet: bool,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,

    #[command(flatten)]
    pub reach: ReachArgs,

    /// What to try, beside the baseline
    #[arg(value_name = "VARIANT")]
    pub variants: Vec<OsString>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Bytes, as 512M or 1G.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; write it as 512M or 2G");
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0 && bytes % 4096 == 0)
        .ok_or_else(wrong)
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

    /// The same as PNG
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether any file was asked for.
    pub fn any(&self) -> bool {
        self.files().iter().any(|path| path.is_some())
    }

    /// All that can be asked for.
    pub fn files(&self) -> [&Option<PathBuf>; 6] {
        [
            &self.json, &self.csv, &self.md, &self.html, &self.svg, &self.png,
        ]
    }
}

/// Services under load, as folders: list, show, copy, check
///
/// `refit compare NAME` runs one.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipesArgs {
    #[command(subcommand)]
    pub verb: Option<RecipesVerb>,
}

#[derive(Subcommand)]
pub enum RecipesVerb {
    /// What there is, and what of it can run here
    List,
    Show(RecipeNameArgs),
    Copy(RecipeCopyArgs),
    Check(RecipeCheckArgs),
}

/// Question, answer, variants, and every command that it runs
#[derive(Args)]
pub struct RecipeNameArgs {
    /// A name, or a folder (./NAME)
    #[arg(value_name = "RECIPE")]
    pub name: String,
}

/// Write a folder of your own, to be changed
#[derive(Args)]
pub struct RecipeCopyArgs {
    /// A name that `refit recipes` lists
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Where to; it must not exist yet [default: ./NAME]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Run each variant once, briefly: does it work here?
///
/// Exits with 0, with 1 when a variant failed, and with 2 when something is
/// missing.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipeCheckArgs {
    /// Names, or folders (./NAME); without any all that refit carries
    #[arg(value_name = "RECIPE")]
    pub names: Vec<String>,

    /// Instances lie in a new directory below this one
    #[arg(long, value_name = "DIR", default_value = refit_lab::DEFAULT_BASE)]
    pub dir: PathBuf,

    /// Run the commands of a recipe that refit does not carry without asking
    #[arg(long)]
    pub yes: bool,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,
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
    refit_lab::recipe::parse_time(text).ok_or_else(|| "write a time as 90s, 3m or 500ms".to_owned())
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
/// `refit demo` compares a mail queue in small, with and without its syncs and
/// on every allocator that is installed; `refit demo fsync` says what a log
/// line costs on this disk.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct DemoArgs {
    /// `fsync`, or nothing for the mail queue
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,

    /// Work in a new directory below this one [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
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
