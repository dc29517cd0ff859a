//! What the words of `refit tune` mean.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use refit_knobs::Settings;
use refit_lab::{RecipeSubject, Request, Risk, Subject, Tuning};
use refit_recipe::Recipe;

use super::prove;
use crate::cli::{TuneArgs, new_seed, typed_options};
use crate::cmd::compare::{command_subject, options, refuse_options_of_commands};
use crate::cmd::trust;

/// Options that its comparisons do not have, or have not been given.
const OF_TUNE: [&str; 3] = ["accept", "prove", "cuts"];

/// How long a tuning may take.
const BUDGET: Duration = Duration::from_secs(20 * 60);

/// What is tuned, or the first mistake in it. Asks whether a recipe that refit does not carry may run. `words`: what was
/// typed after the verb.
pub fn request(args: &TuneArgs, words: impl IntoIterator<Item = OsString>) -> Result<Request> {
    let with = Settings::parse(args.with.clone())?;
    let recipe = args
        .recipe
        .as_deref()
        .map(|name| recipe(args, name))
        .transpose()?;
    if recipe.is_none() && args.command.is_empty() {
        bail!(
            "nothing to tune\n  write a command after `--`: refit tune -- COMMAND\n  or name a recipe: refit tune NAME    (refit recipes lists them)"
        );
    }
    if recipe.is_none() {
        args.instances.refuse()?;
    }
    if let Some(recipe) = &recipe
        && recipe.with_load(&with.launch().load)?.open_loop().is_some()
    {
        bail!(
            "load.rate is of compare, and tune looks for what takes less time or memory; leave it out"
        );
    }
    prove::refuse(args, recipe.as_ref())?;
    let subject = match recipe {
        Some(recipe) => Subject::Recipe(Box::new(RecipeSubject {
            recipe,
            dir: args.instances.base()?,
            explain_memory: false,
        })),
        None => Subject::Command(command_subject("tune", &args.each_run, &args.command)?),
    };
    Ok(Request {
        with,
        budget: args.budget.unwrap_or(BUDGET),
        seed: args.seed.unwrap_or_else(new_seed),
        delta: args.delta,
        allocator_dir: args.allocator_dir.clone(),
        reach: args.reach.reach(),
        options: Some(options::<TuneArgs>(words, &OF_TUNE)?),
        ..Request::of(subject)
    })
}

fn recipe(args: &TuneArgs, name: &str) -> Result<Recipe> {
    if name.contains('=') {
        bail!(
            "`{name}` is a setting, and `tune` finds these itself\n  give it to every variant: --with {name}\n  or compare it: refit compare {name} -- COMMAND"
        );
    }
    let recipe = Recipe::find(name)?;
    if !args.command.is_empty() {
        bail!(
            "a recipe has its own load; leave out `-- {}`",
            args.command[0].display()
        );
    }
    refuse_options_of_commands(&args.each_run, name)?;
    if recipe.is_exact() {
        bail!(
            "the recipe {0} gives exact answers, and measures nothing that could be tuned\n  print them: refit compare {0}",
            recipe.typed()
        );
    }
    trust::agree(&recipe, args.instances.yes)?;
    if let Some(missing) = recipe.missing("tune") {
        bail!(missing);
    }
    Ok(recipe)
}

/// The record before the first run.
pub fn tuning(args: &TuneArgs, request: &Request) -> Result<Tuning> {
    let accepted = Risk::of(args.accept.iter().map(|class| class.class()));
    let words = std::env::args_os()
        .skip(2)
        .map(|word| match word.into_string() {
            Ok(word) => Ok(word),
            Err(word) => bail!(
                "`{}` is not UTF-8, and could not be stored in the log",
                word.display()
            ),
        });
    let words = words.collect::<Result<_>>()?;
    let options = typed_options::<TuneArgs>(std::env::args_os().skip(2), &["seed", "shell"])?;
    let directory = std::env::current_dir().context("cannot find the current directory")?;
    Ok(Tuning {
        prove: args.prove,
        options: Some(options),
        ..Tuning::new(request, accepted, words, directory.display().to_string())
    })
}
