//! What the words of `refit compare` mean: from what was typed to a [`Request`].

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use refit_knobs::{Settings, Variant};
use refit_lab::{CommandSubject, DEFAULT_BUDGET, RecipeSubject, Request, Subject};
use refit_recipe::{Available, Recipe, allocators, available};

use super::{prove, replicas};
use crate::cli::{CompareArgs, EachRunArgs, new_seed, typed_options};
use crate::cmd::{input, recipes, trust};

const NO_COMMAND: &str = "no command to compare\n  write it after `--`: refit compare sync=off -- COMMAND\n  or name a recipe first: refit compare NAME    (refit recipes lists them)";

/// The start of a replica and of its load takes seconds.
const OF_REPLICAS: Duration = Duration::from_secs(15 * 60);

const NO_VARIANT: &str =
    "nothing to compare the baseline with\n  name a variant: refit compare sync=off -- COMMAND";

/// The request, or the first mistake in it. Asks whether a recipe that refit does not
/// carry may run.
pub fn request(args: &CompareArgs) -> Result<Request> {
    let with = Settings::parse(args.with.clone())?;
    if args.replicas.on.is_some() {
        return of_replicas(args, with);
    }
    let (recipe, words) = subject(args)?;
    let typed = candidates(words)?;
    prove::refuse(args, recipe.as_ref())?;
    let budget = recipe.as_ref().and_then(|recipe| recipe.budget);
    let (subject, all) = match recipe {
        Some(recipe) => {
            let all = of_recipe(&recipe, args, &with, typed)?;
            let subject = recipe_subject(args, recipe)?;
            (Subject::Recipe(Box::new(subject)), all)
        }
        None if args.command.is_empty() => bail!(NO_COMMAND),
        None => {
            let all = match args.memory && typed.is_empty() {
                true => of_memory(args, &with)?,
                false => only(typed),
            };
            let subject = command_subject("compare", &args.each_run, &args.command)?;
            (Subject::Command(subject), all)
        }
    };
    if all.variants.is_empty() && !args.bare {
        bail!(NO_VARIANT);
    }
    let explains = matches!(&subject, Subject::Recipe(subject) if subject.explain_memory);
    Ok(Request {
        together: 1,
        subject,
        unavailable: all.unavailable,
        candidates: all.variants,
        with,
        bare: args.bare,
        heap: args.heap && !explains,
        budget: args.budget.or(budget).unwrap_or(DEFAULT_BUDGET),
        rounds: args.rounds,
        precision: args.precision,
        seed: args.seed.unwrap_or_else(new_seed),
        delta: args.delta,
        confirm: args.remeasure,
        gates: args.gates.clone(),
        allocator_dir: args.allocator_dir.clone(),
        reach: args.reach.reach(),
        machine: args.machine.clone(),
        options: Some(options::<CompareArgs>(std::env::args_os().skip(2), &[])?),
    })
}

/// What was typed to a verb that makes comparisons, for their results: without what these hold in a place of their own,
/// and without what `also` names.
pub fn options<A: Args>(
    words: impl IntoIterator<Item = OsString>,
    also: &[&str],
) -> Result<Vec<String>> {
    let own = [
        "with", "scan", "gate", "delta", "budget", "seed", "bare", "shell", "on", "load",
    ];
    Ok(typed_options::<A>(words, &[&own, also].concat())?)
}

/// A command of this machine; `verb`: for whom.
pub fn command_subject(
    verb: &str,
    each_run: &EachRunArgs,
    words: &[OsString],
) -> Result<CommandSubject> {
    if let Some(path) = &each_run.input {
        input::open(path)?;
    }
    Ok(CommandSubject {
        words: command(verb, each_run.shell, words)?,
        prepare: each_run.prepare.clone(),
        conclude: each_run.conclude.clone(),
        fresh_copy: each_run.fresh_copy.clone(),
        input: each_run.input.clone(),
        timeout: each_run.timeout,
        check: each_run.check.clone(),
        same_output: each_run.same_output,
    })
}

fn recipe_subject(args: &CompareArgs, recipe: Recipe) -> Result<RecipeSubject> {
    if args.heap && (recipe.keeps_service() || recipe.is_exact()) {
        bail!(
            "--heap tells why the memory of a service is what it is, from a start of its own for each variant; {} has none\n  leave it out",
            recipe.name()
        );
    }
    Ok(RecipeSubject {
        explain_memory: args.heap && recipe.service.is_some(),
        dir: args.instances.base()?,
        recipe,
    })
}

/// Of replicas elsewhere.
fn of_replicas(args: &CompareArgs, with: Settings) -> Result<Request> {
    replicas::refuse(args)?;
    let word = replicas::subject(args)?;
    let candidates = candidates(&args.variants[1..])?;
    if candidates.is_empty() {
        bail!(
            "nothing to compare the replicas of {word} with\n  name a variant: refit compare --on kubernetes {word} malloc=jemalloc --library IMAGE:/PATH --load COMMAND"
        );
    }
    let budget = args.budget.unwrap_or(OF_REPLICAS);
    let replicas = replicas::replicas(args, word, &candidates, &with, budget)?;
    Ok(Request {
        candidates,
        with,
        budget,
        rounds: args.rounds,
        precision: args.precision,
        seed: args.seed.unwrap_or_else(new_seed),
        delta: args.delta,
        confirm: args.remeasure,
        gates: args.gates.clone(),
        machine: args.machine.clone(),
        options: Some(options::<CompareArgs>(std::env::args_os().skip(2), &[])?),
        ..Request::of(Subject::Replicas(replicas))
    })
}

/// What can be told of the words without the machine that will compare: a recipe's folder, programs and files
/// are on that one.
pub fn check_words(args: &CompareArgs) -> Result<()> {
    Settings::parse(args.with.clone())?;
    command("compare", args.each_run.shell, &args.command)?;
    if let (true, [folder, words @ ..]) = (args.command.is_empty(), args.variants.as_slice())
        && folder.as_encoded_bytes().contains(&b'/')
    {
        return candidates(words).map(drop);
    }
    let (recipe, words) = subject(args)?;
    let is_empty = candidates(words)?.is_empty();
    match recipe {
        Some(recipe) if recipe.is_exact() => bail!(
            "{} gives exact answers: there is no effect to be pooled\n  refit compare {0} shows them",
            recipe.name()
        ),
        Some(_) => Ok(()),
        None if args.command.is_empty() => bail!(NO_COMMAND),
        None if is_empty && !args.bare && !args.memory => bail!(NO_VARIANT),
        None => Ok(()),
    }
}

/// The recipe, if the first word is one, and the words that are variants.
fn subject(args: &CompareArgs) -> Result<(Option<Recipe>, &[OsString])> {
    let recipe = args.variants.split_first().and_then(|(first, rest)| {
        let name = first.to_str()?;
        recipes::is_recipe_word(name).then_some((name, rest))
    });
    // Before a command, a word that is not a recipe is a mistyped variant.
    match recipe {
        Some((name, rest)) if args.command.is_empty() => {
            refuse_options_of_commands(&args.each_run, name)?;
            Ok((Some(Recipe::find(name)?), rest))
        }
        Some((name, _)) if Recipe::find(name).is_ok() => bail!(
            "a recipe has its own load; leave out `-- {}`",
            args.command[0].display()
        ),
        _ => {
            if !args.command.is_empty() {
                args.instances.refuse()?;
            }
            Ok((None, &args.variants))
        }
    }
}

/// A recipe has a load of its own.
pub fn refuse_options_of_commands(args: &EachRunArgs, recipe: &str) -> Result<()> {
    if let Some(option) = args.given() {
        bail!(
            "{option} is for commands: a recipe defines this itself\n  change a copy of it: refit recipes copy {recipe}"
        );
    }
    Ok(())
}

/// A recipe with exact answers has no statistics.
fn refuse_options_of_statistics(args: &CompareArgs, recipe: &Recipe) -> Result<()> {
    let of_statistics = [
        ("--gate", !args.gates.is_empty()),
        ("--rounds", args.rounds.is_some()),
        ("--precision", args.precision.is_some()),
        ("--remeasure", args.remeasure),
        ("--budget", args.budget.is_some()),
    ];
    let drawn = args.output.files.drawn.iter();
    let drawn = drawn.filter(|(format, _)| format.of_effects);
    let drawn = drawn.map(|(format, path)| (format.option, path.is_some()));
    let mut all = of_statistics.into_iter().chain(drawn);
    if let Some((option, _)) = all.find(|(_, given)| *given) {
        bail!(
            "{option}: the recipe {} gives exact answers and measures nothing; leave it out",
            recipe.name()
        );
    }
    Ok(())
}

/// Each word is a variant.
fn candidates(words: &[OsString]) -> Result<Vec<Variant>> {
    let candidates = words
        .iter()
        .map(|word| Variant::parse_os(word))
        .collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("the variant {} is given twice; name it once", twice[0]);
    }
    Ok(candidates)
}

/// What was typed; without that the recipe's own variants, as far as they can be tried.
fn of_recipe(
    recipe: &Recipe,
    args: &CompareArgs,
    with: &Settings,
    typed: Vec<Variant>,
) -> Result<Available> {
    recipe.with_load(&with.launch().load)?;
    trust::agree(recipe, args.instances.yes)?;
    if recipe.is_exact() {
        refuse_options_of_statistics(args, recipe)?;
    }
    if let Some(missing) = recipe.missing("compare") {
        bail!(missing);
    }
    if !typed.is_empty() {
        return Ok(only(typed));
    }
    if args.memory {
        return of_memory(args, with);
    }
    let all = available(recipe, with, args.allocator_dir.as_deref());
    if let (true, Some(one)) = (all.variants.is_empty(), all.unavailable.first()) {
        bail!(
            "none of the recipe's variants can be tried here: {}: {}",
            one.settings,
            one.reason
        );
    }
    Ok(all)
}

/// What was typed, all of which is tried.
fn only(variants: Vec<Variant>) -> Available {
    Available {
        variants,
        unavailable: Vec::new(),
    }
}

/// The allocators of this machine.
fn of_memory(args: &CompareArgs, with: &Settings) -> Result<Available> {
    let all = allocators(with, args.allocator_dir.as_deref());
    if let (true, Some(one)) = (all.variants.is_empty(), all.unavailable.first()) {
        bail!(
            "--memory: no allocator can be tried here: {}: {}",
            one.settings,
            one.reason
        );
    }
    Ok(all)
}

/// The command's words; `verb`: for whom.
fn command(verb: &str, shell: bool, command: &[OsString]) -> Result<Vec<OsString>> {
    match (shell, command) {
        (false, command) => Ok(command.to_vec()),
        (true, [line]) => Ok(vec!["sh".into(), "-c".into(), line.clone()]),
        (true, _) => bail!(
            "--shell takes the whole command as one word\n  quote it: refit {verb} --shell … -- 'COMMAND | COMMAND'"
        ),
    }
}
