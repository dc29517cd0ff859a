//! `refit run`, and by what a program is reached.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use refit_knobs::Knob;
use refit_launch::filter::Rings;
use refit_launch::seccomp::{Backend, Reach};
use refit_run::{Ack, Rule};

use super::complete;
use super::{DURABILITY, OUTPUT, REACH, SETTINGS, seed};

/// What can be set beneath a command, each with what it is.
fn settings() -> String {
    let lines = Knob::of_commands();
    let lines = lines.map(|knob| format!("\n  {}\n      {}", knob.form, knob.about));
    format!("Settings:{}", lines.collect::<String>())
}

/// Run a command with parts swapped beneath it; without settings, observe it
///
/// Settings are words before `--`, as with env(1).
/// `refit run --explain SETTING` describes what a setting covers and risks.
///
/// Exit code: that of the program. 125 means that refit failed before the start;
/// 126 and 127 are as in env(1).
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = settings(),
    override_usage = "refit run [OPTIONS] [SETTINGS]... -- COMMAND [ARG]...\n       refit run --explain SETTINGS..."
)]
pub struct RunArgs {
    /// Print what the settings swap, cover and risk, and start nothing
    #[arg(
        long,
        conflicts_with_all = ["quiet", "json", "html", "heap", "purge", "heap_stacks", "cpu", "cpu_stacks", "trace_sync", "durability", "input"],
        help_heading = OUTPUT
    )]
    pub explain: bool,

    /// Print nothing; without --json refit becomes the command, with the same pid
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,

    /// Write the whole report to FILE (docs/result.schema.json)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// Count what malloc gives out, exactly: live bytes as requested and as usable,
    /// blocks, size classes (docs/memory.md)
    #[arg(long, help_heading = OUTPUT)]
    pub heap: bool,

    /// Also measure how much of what the allocator keeps it could give back, on a fork of
    /// the process that keeps the most (docs/memory.md)
    #[arg(long, requires = "heap", help_heading = OUTPUT)]
    pub purge: bool,

    /// Write who allocated what is live at the end to FILE: a flame graph if it ends with
    /// .svg, for speedscope if it ends with .json, else folded text (docs/memory.md)
    #[arg(long, value_name = "FILE", requires = "heap", help_heading = OUTPUT)]
    pub heap_stacks: Option<PathBuf>,

    /// Sample where the program is on the processors, each millisecond: functions with file
    /// and line (docs/time.md)
    #[arg(long, help_heading = OUTPUT)]
    pub cpu: bool,

    /// Write these samples to FILE: a flame graph if it ends with .svg, for speedscope if
    /// it ends with .json, else folded text
    #[arg(long, value_name = "FILE", requires = "cpu", help_heading = OUTPUT)]
    pub cpu_stacks: Option<PathBuf>,

    /// Tell what no sync covers: files that are renamed, acknowledged, truncated or removed
    /// before what they stand for is durable, with file and line (docs/durability.md)
    #[arg(long, help_heading = DURABILITY)]
    pub durability: bool,

    /// What acknowledges: fd:N (a write to descriptor N of the command) or socket; the end
    /// of the command with 0 does in any case
    #[arg(long, value_name = "SOURCE", requires = "durability", help_heading = DURABILITY)]
    pub ack: Vec<Ack>,

    /// Exit with 1 if one of these RULES is broken and the command ended with 0
    #[arg(long, value_name = "RULE,...", value_delimiter = ',', value_parser = Rule::named, requires = "durability", help_heading = DURABILITY)]
    pub fail_on: Vec<Rule>,

    /// Leave out what is found in FILE, the --json of an earlier run
    #[arg(long, value_name = "FILE", requires = "durability", help_heading = DURABILITY)]
    pub known: Option<PathBuf>,

    /// Leave out a path, a tree (DIR/), or names with an end (*.tmp)
    #[arg(long, value_name = "PATH", requires = "durability", help_heading = DURABILITY)]
    pub ignore: Vec<String>,

    /// Write the findings to FILE as SARIF, for code-scanning pages
    #[arg(long, value_name = "FILE", requires = "durability", help_heading = DURABILITY)]
    pub sarif: Option<PathBuf>,

    /// Write the rules to FILE as JUnit test cases: those of --fail-on fail where they are
    /// broken, without it those that errors break
    #[arg(long, value_name = "FILE", requires = "durability", help_heading = DURABILITY)]
    pub junit: Option<PathBuf>,

    /// Write each sync call to FILE as it is made, one JSON line each
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub trace_sync: Option<PathBuf>,

    /// Seed of the draws of `disk=` (decimal, or hexadecimal as 0x5eed)
    #[arg(long, value_name = "SEED", value_parser = seed, help_heading = SETTINGS)]
    pub seed: Option<u64>,

    /// Give the command FILE as its standard input
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub input: Option<PathBuf>,

    /// Look for allocators in DIR first
    #[arg(long, value_name = "DIR", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,

    /// Do not restore refit's variables where a program clears its environment
    #[arg(long, help_heading = REACH)]
    pub no_follow_env: bool,

    #[command(flatten)]
    pub reach: ReachArgs,

    /// What to swap, as in `sync=off malloc=jemalloc`
    #[arg(value_name = "SETTINGS", add = ArgValueCompleter::new(complete::settings))]
    pub settings: Vec<OsString>,

    /// The command to run, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// By what a program's calls are reached.
#[derive(Args, Clone, Copy)]
pub struct ReachArgs {
    /// Use a preloaded library, a seccomp filter, or (auto) the library and a
    /// filter beneath what the library cannot reach
    #[arg(long, value_name = "BACKEND", value_enum, default_value_t = BackendArg::Auto, help_heading = REACH)]
    pub backend: BackendArg,

    /// Count each io_uring that a program sets up (not all syncs inside one are
    /// seen), or deny it with ENOSYS, so that programs go on without
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = RingsArg::Count, help_heading = REACH)]
    pub io_uring: RingsArg,

    /// Without root, use seccomp at the price of no_new_privs: setuid and setgid
    /// programs lose their privilege
    #[arg(long, help_heading = REACH)]
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
