//! `refit completions`, and `refit complete`, which the printed scripts ask.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap_complete::engine::complete;

use super::print;
use crate::cli::{CompleteArgs, CompletionsArgs, ShellArg, definition};

/// The script that asks `refit complete`.
fn script(shell: ShellArg) -> &'static str {
    match shell {
        ShellArg::Bash => include_str!("completions/refit.bash"),
        ShellArg::Zsh => include_str!("completions/refit.zsh"),
        ShellArg::Fish => include_str!("completions/refit.fish"),
    }
}

pub fn main(args: &CompletionsArgs) -> ExitCode {
    finish(print::result(script(args.shell)))
}

/// Prints what the last word can become, a line each; after a tab what it is.
pub fn words(args: &CompleteArgs) -> ExitCode {
    finish(candidates(args.words.clone()).and_then(|lines| print::result(&lines)))
}

fn candidates(words: Vec<OsString>) -> Result<String> {
    let last = words.len().saturating_sub(1);
    let typed = words.last().cloned().unwrap_or_default();
    let directory = std::env::current_dir().ok();
    let all = complete(&mut definition(), words, last, directory.as_deref())?;
    let mut lines = String::new();
    for candidate in all {
        let value = candidate.get_value().to_string_lossy();
        // A line is one; and options are for whoever began to type one.
        if value.contains(['\n', '\t']) || (value.starts_with('-') && typed.is_empty()) {
            continue;
        }
        lines.push_str(&value);
        if let Some(about) = candidate.get_help().map(ToString::to_string) {
            let about = about.lines().next().unwrap_or_default();
            if !about.is_empty() {
                lines.push('\t');
                lines.push_str(about);
            }
        }
        lines.push('\n');
    }
    Ok(lines)
}

fn finish(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}
