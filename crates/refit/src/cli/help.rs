//! `refit help`, `completions` and `complete`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use super::complete;

/// Print the page of a command or of a topic
///
/// The page of a command is what `--help` prints after it, and what its manual page
/// is made of. Without a word, commands and topics are listed. On a terminal a long
/// page is shown by $PAGER, or less.
///
/// Exit code: 0, or 2 when there is no such page.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit help [COMMAND]...\n       refit help TOPIC\n       refit help --write-man DIR"
)]
pub struct HelpArgs {
    /// A command, as in `refit help recipes new`, or a topic, as in `refit help safety`
    #[arg(value_name = "COMMAND|TOPIC", add = ArgValueCompleter::new(complete::page))]
    pub words: Vec<String>,

    /// Write every page as a manual page: DIR/man1/refit.1 and the others
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    pub write_man: Option<PathBuf>,
}

/// Print the completions for a shell
///
/// bash: source <(refit completions bash), or write them into
/// ~/.local/share/bash-completion/completions/refit
///
/// zsh: write them into a file `_refit` in a directory of $fpath
///
/// fish: write them into ~/.config/fish/completions/refit.fish
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: ShellArg,
}

/// A shell that completes words by a function.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

/// Print what the last word can become
#[derive(Args)]
#[command(hide = true)]
pub struct CompleteArgs {
    /// A command line of refit, up to the cursor
    #[arg(last = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}
