//! `refit compare`: which variant is better, by how much, and how sure that is.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use refit_knobs::{Settings, Variant};
use refit_lab::experiment::Role;
use refit_lab::{Comparison, GateAnswer, Request, Verdict, compare};
use refit_recipe::{Recipe, available, remove_abandoned_instances};
use refit_session::remove_abandoned;

use super::output::{self, Output};
use super::progress::Bar;
use super::{recipes, trust};
use crate::cli::CompareArgs;

/// Gate failed; usage or environment trouble; a person must decide.
const FAILED: u8 = 1;
const TROUBLE: u8 = 2;
const UNDECIDED: u8 = 3;

pub fn main(args: &CompareArgs) -> ExitCode {
    match run(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "refit: {error:#}");
            ExitCode::from(TROUBLE)
        }
    }
}

fn run(args: &CompareArgs) -> Result<u8> {
    let request = request(args)?;
    let output = Output::open(&args.output)?;
    remove_abandoned();
    remove_abandoned_instances(&request.dir);
    if let Some(cost) = refit_launch::privileged::cost(&request.reach) {
        let _ = writeln!(io::stderr(), "refit: {cost}");
    }
    let mut bar = Bar::new(args.quiet, &output);
    let experiment = compare(&request, &mut bar);
    bar.finish();
    let experiment = experiment?;
    output.write(&experiment)?;
    output::print(&experiment)?;
    Ok(code(&experiment, args.strict))
}

fn request(args: &CompareArgs) -> Result<Request> {
    let with = Settings::parse(args.with.clone())?;
    let (recipe, typed) = subject(args)?;
    let mut candidates = typed
        .iter()
        .map(|word| Variant::parse_os(word))
        .collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("the variant {} is given twice; name it once", twice[0]);
    }
    let mut unavailable = Vec::new();
    if let Some(recipe) = &recipe {
        trust::agree(recipe, args.yes)?;
        if recipe.is_exact() {
            measures_nothing(recipe, args)?;
        }
        if let Some(missing) = recipe.missing() {
            bail!(missing);
        }
        if candidates.is_empty() {
            let all = available(recipe, &with, args.allocator_dir.as_deref());
            candidates = all.variants;
            unavailable = all.unavailable;
        }
        if let (true, Some(one)) = (candidates.is_empty(), unavailable.first()) {
            bail!(
                "none of the recipe's variants can be tried here: {}: {}",
                one.settings,
                one.reason
            );
        }
    } else if args.command.is_empty() {
        bail!(
            "no command to compare\n  write it behind `--`: refit compare sync=off -- COMMAND\n  or name a recipe first: refit compare NAME    (refit recipes lists them)"
        );
    }
    if candidates.is_empty() && !args.bare {
        bail!(
            "nothing to compare the baseline with\n  name a variant: refit compare sync=off -- COMMAND"
        );
    }
    let command = if args.shell {
        if args.command.len() != 1 {
            bail!(
                "--shell takes the whole command as one word\n  quote it: refit compare --shell … -- 'COMMAND | COMMAND'"
            );
        }
        vec!["sh".into(), "-c".into(), args.command[0].clone()]
    } else {
        args.command.clone()
    };
    let of_recipe = recipe.as_ref().and_then(|recipe| recipe.budget);
    let defaults = Request::default();
    Ok(Request {
        command,
        recipe,
        unavailable,
        dir: fs::canonicalize(&args.dir)
            .with_context(|| format!("--dir {}", args.dir.display()))?,
        candidates,
        with,
        bare: args.bare,
        budget: args.budget.or(of_recipe).unwrap_or(defaults.budget),
        rounds: args.rounds,
        precision: args.precision,
        seed: args.seed.unwrap_or_else(seed),
        delta: args.delta,
        prepare: args.prepare.clone(),
        conclude: args.conclude.clone(),
        fresh_copy: args.fresh_copy.clone(),
        timeout: args.timeout,
        check: args.check.clone(),
        same_output: args.same_output,
        confirm: args.confirm,
        gates: args.gates.clone(),
        allocator_dir: args.allocator_dir.clone(),
        reach: args.reach.reach(),
    })
}

/// Exact answers have no statistics to be steered.
fn measures_nothing(recipe: &Recipe, args: &CompareArgs) -> Result<()> {
    let of_statistics = [
        ("--gate", !args.gates.is_empty()),
        ("--rounds", args.rounds.is_some()),
        ("--precision", args.precision.is_some()),
        ("--confirm", args.confirm),
        ("--budget", args.budget.is_some()),
    ];
    if let Some((option, _)) = of_statistics.iter().find(|(_, given)| *given) {
        bail!(
            "{option}: the recipe {} gives exact answers and measures nothing; leave it out",
            recipe.name()
        );
    }
    Ok(())
}

/// The recipe, if the first word is one, and the words that are variants.
fn subject(args: &CompareArgs) -> Result<(Option<Recipe>, &[OsString])> {
    let Some((first, rest)) = args.variants.split_first() else {
        return Ok((None, &[]));
    };
    let Some(name) = first.to_str().filter(|word| recipes::is_recipe_word(word)) else {
        return Ok((None, &args.variants));
    };
    // `refit compare make` without `--` is no recipe, but one that is named
    // before a command is meant as one.
    if !args.command.is_empty() {
        if Recipe::find(name).is_ok() {
            bail!(
                "a recipe has its own load; leave out `-- {}`",
                args.command[0].display()
            );
        }
        return Ok((None, &args.variants));
    }
    let of_commands = [
        ("--prepare", args.prepare.is_some()),
        ("--conclude", args.conclude.is_some()),
        ("--fresh-copy", args.fresh_copy.is_some()),
        ("--timeout", args.timeout.is_some()),
        ("--check", args.check.is_some()),
        ("--same-output", args.same_output),
        ("--shell", args.shell),
    ];
    if let Some((option, _)) = of_commands.iter().find(|(_, given)| *given) {
        bail!(
            "{option} is for commands: a recipe says that itself\n  change a copy of it: refit recipes copy {name}"
        );
    }
    Ok((Some(Recipe::find(name)?), rest))
}

/// A new seed, short enough to be typed.
pub(super) fn seed() -> u64 {
    let mut bytes = [0; 4];
    // Any number is a seed.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes).into()
}

/// The answer of the whole comparison.
fn code(experiment: &Comparison, strict: bool) -> u8 {
    let mut candidates = experiment
        .variants
        .iter()
        .filter(|v| v.role == Role::Candidate)
        .peekable();
    if candidates.peek().is_some() && candidates.all(|variant| variant.disqualified.is_some()) {
        return TROUBLE;
    }
    let answers = |answer: GateAnswer| experiment.gates.iter().any(|gate| gate.answer == answer);
    if answers(GateAnswer::Failed) {
        return FAILED;
    }
    // Nothing is open where everything is exact.
    if experiment
        .recipe
        .as_ref()
        .is_some_and(|recipe| recipe.is_exact)
    {
        return 0;
    }
    let has_verdict = |index: usize| {
        let effect = experiment.effects.get(index, &experiment.main);
        let verdict = effect.and_then(|effect| effect.verdict);
        verdict.is_some_and(Verdict::is_settled)
    };
    let inconclusive = experiment.variants.iter().enumerate().any(|(index, v)| {
        v.role == Role::Candidate && v.disqualified.is_none() && !has_verdict(index)
    });
    let open = if experiment.gates.is_empty() {
        inconclusive
    } else {
        answers(GateAnswer::Undecided)
    };
    if strict && open { UNDECIDED } else { 0 }
}
