//! The command line as it is typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

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

#[derive(Subcommand)]
pub enum Verb {
    Run(RunArgs),
    Doctor(DoctorArgs),
    Demo(DemoArgs),
}

/// Run a command with parts swapped beneath it; with no settings, observe it
///
/// Settings are words before `--`, as with env(1):
///
///   sync=off             fsync and its kin return at once (loses-on-crash)
///   sync@exe:NAME=off    … only in executables of this name
///   odirect=off          O_DIRECT taken from regular files (loses-on-crash)
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

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,

    /// Do not put refit's variables back where a program cleared them
    #[arg(long)]
    pub no_follow_env: bool,

    /// What to swap
    #[arg(value_name = "SETTINGS")]
    pub settings: Vec<OsString>,

    /// What to run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Say what this machine allows, or what refit can reach of a command
///
/// Exits with 0, with 1 when the command cannot be reached, and with 2 when
/// there is no such command.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct DoctorArgs {
    /// A program, by name or path
    #[arg(value_name = "COMMAND")]
    pub command: Option<OsString>,

    /// Look for allocators here first
    #[arg(long, value_name = "DIR")]
    pub allocator_dir: Option<PathBuf>,
}

/// Show a swap on this machine; no server needed
///
/// `refit demo` runs a mail queue in small with sync=on and sync=off;
/// `refit demo fsync` says what a log line costs on this disk.
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
