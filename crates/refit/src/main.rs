//! refit: find what makes a program slow, measure a fix, and say what it risks.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use rustix::process::{Resource, getrlimit};

mod cli;
mod cmd;

use cli::Verb;

/// Bytes of stack on which every command works; with half of it most do not.
const LEAST_STACK: u64 = 128 << 10;

fn main() -> ExitCode {
    if let Err(error) = check_stack() {
        return cmd::print::failed(&error, cli::usage_code());
    }
    let cli = cli::parse().unwrap_or_else(|error| cli::usage_error(error));
    match cli.verb {
        Verb::Run(args) => cmd::run::main(args),
        Verb::Watch(args) => cmd::watch::main(&args),
        Verb::Compare(args) => cmd::compare::main(&args),
        Verb::Pool(args) => cmd::pool::main(&args),
        Verb::Export(args) => cmd::export::main(&args),
        Verb::Report(args) => cmd::report::main(&args),
        Verb::Recipes(args) => cmd::recipes::main(&args),
        Verb::Crash(args) => cmd::crash::main(&args),
        Verb::Tune(args) => cmd::tune::main(&args),
        Verb::Plan(args) => cmd::services::plan(&args),
        Verb::Apply(args) => cmd::services::apply(&args),
        Verb::Confirm(args) => cmd::services::confirm(&args),
        Verb::Status(args) => cmd::services::status(&args),
        Verb::Revert(args) => cmd::services::revert(&args),
        Verb::Doctor(args) => cmd::doctor::main(&args),
        Verb::Demo(args) => cmd::demo::main(&args),
        Verb::Help(args) => cmd::help::main(&args),
        Verb::Completions(args) => cmd::completions::main(&args),
        Verb::Complete(args) => cmd::completions::words(&args),
    }
}

/// An overflow would end refit by a signal.
fn check_stack() -> Result<()> {
    let limit = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    ensure!(
        limit >= LEAST_STACK,
        "the limit of the stack is {} KiB and refit needs {}: ulimit -s {}",
        limit >> 10,
        LEAST_STACK >> 10,
        LEAST_STACK >> 10
    );
    Ok(())
}
