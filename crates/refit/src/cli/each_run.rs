//! What belongs to each run of a command.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// What is done around each run of a command. A recipe defines this itself.
#[derive(Args)]
pub struct EachRunArgs {
    /// Shell command before each run, not timed
    #[arg(long, value_name = "COMMAND", help_heading = "Each run")]
    pub prepare: Option<String>,

    /// Shell command that cleans up after each run, not timed
    #[arg(long, value_name = "COMMAND", help_heading = "Each run")]
    pub conclude: Option<String>,

    /// The command is one word, run by the shell
    #[arg(long, help_heading = "Each run")]
    pub shell: bool,

    /// Start each run in a fresh copy of DIR; the copies are deleted at the end
    #[arg(long, value_name = "DIR", help_heading = "Each run")]
    pub fresh_copy: Option<PathBuf>,

    /// Give each run FILE as its standard input, from its beginning
    #[arg(long, value_name = "FILE", help_heading = "Each run")]
    pub input: Option<PathBuf>,

    /// Kill a run that takes longer, and disqualify its variant
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Each run")]
    pub timeout: Option<Duration>,

    /// Shell command after each run; if it fails, the variant is disqualified
    #[arg(long, value_name = "COMMAND", help_heading = "Each run")]
    pub check: Option<String>,

    /// Disqualify a variant whose stdout differs from the baseline's
    #[arg(long, help_heading = "Each run")]
    pub same_output: bool,
}

impl EachRunArgs {
    /// The first option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--prepare", self.prepare.is_some()),
            ("--conclude", self.conclude.is_some()),
            ("--fresh-copy", self.fresh_copy.is_some()),
            ("--input", self.input.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--check", self.check.is_some()),
            ("--same-output", self.same_output),
            ("--shell", self.shell),
        ];
        let given = options.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }
}
