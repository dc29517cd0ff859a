//! `--resume DIR`: what was typed then is understood again.

use std::env;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Command, FromArgMatches};
use refit_lab::{Request, Tuning};

use super::request;
use crate::cli::TuneArgs;

/// What is tuned, by the words that the record holds. `args`: what was typed now.
pub fn resume(args: &TuneArgs, mut tuning: Tuning) -> Result<(TuneArgs, Request, Tuning)> {
    let here = env::current_dir().context("cannot find the current directory")?;
    if here.display().to_string() != tuning.directory {
        bail!(
            "this tuning was begun in {0}, where its command and files are\n  go there first: cd {0}",
            tuning.directory
        );
    }
    let words = ["tune"]
        .into_iter()
        .chain(tuning.words.iter().map(|word| &**word));
    let typed = TuneArgs::augment_args(Command::new("tune")).try_get_matches_from(words);
    let then = typed.and_then(|typed| TuneArgs::from_arg_matches(&typed));
    let mut then = then.context("the words in the log cannot be read any more; begin anew")?;
    then.quiet |= args.quiet;
    let mut request = request::request(&then, tuning.words.iter().map(OsString::from))?;
    request.seed = tuning.seed;
    let more = args.budget.as_ref().map(Duration::as_secs_f64);
    tuning.budget_s = more.map_or(tuning.budget_s, |more| tuning.took_s + more);
    Ok((then, request, tuning))
}
