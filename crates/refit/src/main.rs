//! refit: swap one part beneath an unmodified program, and say what happened.

use std::process::ExitCode;

mod cli;
mod cmd;

use cli::Verb;

fn main() -> ExitCode {
    let cli = cli::parse().unwrap_or_else(|error| cli::usage_error(error));
    match cli.verb {
        Verb::Run(args) => cmd::run::main(args),
        Verb::Compare(args) => cmd::compare::main(&args),
        Verb::Report(args) => cmd::report::main(&args),
        Verb::Recipes(args) => cmd::recipes::main(&args),
        Verb::Crash(args) => cmd::crash::main(&args),
        Verb::Doctor(args) => cmd::doctor::main(&args),
        Verb::Demo(args) => cmd::demo::main(&args),
    }
}
