//! `refit compare`: which variant is better, by how much, and how sure that is.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use refit_knobs::{Settings, Variant};
use refit_lab::experiment::Role;
use refit_lab::{Experiment, Request, compare};
use refit_launch::session::remove_abandoned;
use refit_meter::session_in_use;

use super::output::{self, Output};
use super::progress::Bar;
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
    remove_abandoned(session_in_use);
    let mut bar = Bar::new(args.quiet, &output);
    let experiment = compare(&request, &mut bar);
    bar.finish();
    let experiment = experiment?;
    output.write(&experiment)?;
    output::print(&experiment)?;
    Ok(code(&experiment, args.strict))
}

fn request(args: &CompareArgs) -> Result<Request> {
    let candidates = args
        .variants
        .iter()
        .map(|word| Variant::parse_os(word))
        .collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!("the variant {} is given twice; name it once", twice[0]);
    }
    if args.command.is_empty() {
        bail!("no command to compare\n  write it behind `--`: refit compare sync=off -- COMMAND");
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
    Ok(Request {
        command,
        candidates,
        with: Settings::parse(args.with.clone())?,
        bare: args.bare,
        budget: args.budget,
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
    })
}

/// A new seed, short enough to be typed.
fn seed() -> u64 {
    let mut bytes = [0; 4];
    // Any number is a seed.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(bytes).into()
}

/// The answer of the whole comparison.
fn code(experiment: &Experiment, strict: bool) -> u8 {
    let mut candidates = experiment
        .variants
        .iter()
        .filter(|v| v.role == Role::Candidate)
        .peekable();
    if candidates.peek().is_some() && candidates.all(|variant| variant.disqualified.is_some()) {
        return TROUBLE;
    }
    let answers = |word: &str| experiment.gates.iter().any(|gate| gate.answer == word);
    if answers("failed") {
        return FAILED;
    }
    let has_verdict = |index: usize| {
        let effect = experiment.effect(index, "wall");
        let verdict = effect.and_then(|effect| effect.verdict.as_deref());
        verdict.is_some_and(|word| word != "inconclusive")
    };
    let inconclusive = experiment.variants.iter().enumerate().any(|(index, v)| {
        v.role == Role::Candidate && v.disqualified.is_none() && !has_verdict(index)
    });
    let open = if experiment.gates.is_empty() {
        inconclusive
    } else {
        answers("undecided")
    };
    if strict && open { UNDECIDED } else { 0 }
}
