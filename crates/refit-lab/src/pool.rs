//! Comparisons of the same thing on several machines, as one: the effect per machine, across machines, and whether
//! machines differ.
//!
//! A machine is one block, whatever the number of its results. What is pooled is the main metric, of the first
//! measurement of each result: a confirmation was made only where a variant had won, so it does not count.

mod factors;
mod input;
mod record;

use refit_stats::{Block, Effect, FEWEST_PAIRS, Interval, Levels, Method, POOLED_ALPHA};
use thiserror::Error;

pub use self::input::PoolInput;
#[cfg(feature = "schema")]
pub use self::record::schema;
pub use self::record::{
    FactorRecord, GroupRecord, MachineEffect, MachineRecord, NotPooled, POOL_SCHEMA, Pool,
    PooledEffect, PooledVariant, ResultRecord,
};
use crate::metric::measure;
use crate::tune::Risk;
use crate::verdict::Verdict;

/// Machines that are less likely than this to have the same effect are told to differ.
const DIFFER: f64 = 0.05;

/// Why results cannot be pooled.
#[derive(Debug, Error)]
pub enum PoolError {
    /// Fewer than two results.
    #[error(
        "{0} cannot be pooled: name two results or more, or a directory of them\n  make another: refit compare --json FILE …"
    )]
    TooFew(String),
    /// A result of something else.
    #[error(
        "{file} is of another {what} than {first}: {here}, and there {there}\n  pool results of one {what} at a time"
    )]
    Other {
        /// It.
        file: String,
        /// The result that it was compared with.
        first: String,
        /// What is different.
        what: &'static str,
        /// Of it.
        here: String,
        /// Of the other.
        there: String,
    },
    /// The same comparison twice.
    #[error(
        "{file} and {other} hold the same comparison (started at the same time, with seed {seed:#x})\n  leave one of them out"
    )]
    Twice {
        /// The later one.
        file: String,
        /// The earlier one.
        other: String,
        /// Of both.
        seed: u64,
    },
    /// A recipe whose result is a table of answers.
    #[error(
        "{0} holds exact answers: there is no effect to be pooled\n  refit report {0} shows them"
    )]
    Exact(String),
    /// A result that has none of the variants of the others.
    #[error(
        "{file} has no variant that {first} has: {here}, and there {there}\n  pool results with the same variants"
    )]
    NoCommonVariant {
        /// It.
        file: String,
        /// The first.
        first: String,
        /// Variants of it.
        here: String,
        /// Variants of the first.
        there: String,
    },
}

/// Pools results. They are taken in the order of their start.
///
/// # Errors
/// Results that are not of the same thing, twice the same, or fewer than two.
pub fn pool(mut inputs: Vec<PoolInput>) -> Result<Pool, PoolError> {
    match inputs.as_slice() {
        [] => return Err(PoolError::TooFew("nothing".to_owned())),
        [one] => return Err(PoolError::TooFew(one.file.clone())),
        [first, rest @ ..] => {
            inputs.iter().try_for_each(PoolInput::has_effects)?;
            rest.iter().try_for_each(|input| input.is_as(first))?;
        }
    }
    inputs.sort_by(|a, b| (a.started_unix, &a.file).cmp(&(b.started_unix, &b.file)));
    refuse_twice(&inputs)?;
    let machines = machines(&inputs);
    let machine_of = |input: &PoolInput| {
        let mut known = machines.iter();
        known.position(|machine| machine.is_of(input)).unwrap_or(0)
    };
    let results = inputs.iter().map(|input| input.record(machine_of(input)));
    let results: Vec<ResultRecord> = results.collect();
    let mut names: Vec<&str> = Vec::new();
    for variant in inputs.iter().flat_map(|input| &input.variants) {
        if !names.contains(&&*variant.name) {
            names.push(&variant.name);
        }
    }
    let variants = names
        .iter()
        .map(|name| variant(name, &inputs, &results, &machines));
    let variants = variants.collect();
    let first = &inputs[0];
    Ok(Pool {
        schema: POOL_SCHEMA,
        kind: "pool".to_owned(),
        refit: env!("CARGO_PKG_VERSION").to_owned(),
        words: None,
        command: first.command.clone(),
        question: first.question.clone(),
        main: first.main.clone(),
        measure: first.measure,
        unit: first.unit,
        unit_name: first.unit_name.clone(),
        is_recipe: first.is_recipe,
        with: first.with.clone(),
        delta: first.delta,
        results,
        machines,
        variants,
    })
}

fn refuse_twice(inputs: &[PoolInput]) -> Result<(), PoolError> {
    let mut order: Vec<&PoolInput> = inputs.iter().collect();
    order.sort_by_key(|input| (input.started_unix, input.seed));
    for pair in order.windows(2) {
        if (pair[0].started_unix, pair[0].seed) == (pair[1].started_unix, pair[1].seed)
            && pair[0].machine() == pair[1].machine()
        {
            return Err(PoolError::Twice {
                file: pair[1].file.clone(),
                other: pair[0].file.clone(),
                seed: pair[0].seed,
            });
        }
    }
    Ok(())
}

/// In the order of their first result.
fn machines(inputs: &[PoolInput]) -> Vec<MachineRecord> {
    let mut machines: Vec<MachineRecord> = Vec::new();
    for input in inputs {
        if !machines.iter().any(|machine| machine.is_of(input)) {
            let of: Vec<&PoolInput> = (inputs.iter())
                .filter(|other| other.machine() == input.machine())
                .collect();
            machines.push(MachineRecord::of(&of));
        }
    }
    machines
}

fn variant(
    name: &str,
    inputs: &[PoolInput],
    results: &[ResultRecord],
    machines: &[MachineRecord],
) -> PooledVariant {
    let mut not_pooled = Vec::new();
    let mut risk = Risk::NONE;
    // Of each machine its results, and the round pairs of them.
    let mut measured: Vec<(Vec<Block>, usize)> = vec![Default::default(); machines.len()];
    for (input, result) in inputs.iter().zip(results) {
        let of = input.variants.iter().find(|variant| variant.name == name);
        let why = match of {
            None => Some("it was not compared".to_owned()),
            Some(variant) => {
                risk = risk.and(variant.risk);
                match &variant.measured {
                    Ok((block, pairs)) => {
                        measured[result.machine].0.push(*block);
                        measured[result.machine].1 += pairs;
                        None
                    }
                    Err(why) => Some(why.clone()),
                }
            }
        };
        not_pooled.extend(why.map(|why| NotPooled {
            file: input.file.clone(),
            why,
        }));
    }
    let blocks: Vec<(usize, Block)> = (measured.iter().enumerate())
        .filter_map(|(machine, (blocks, _))| Some((machine, Block::joined(blocks)?)))
        .collect();
    let first = &inputs[0];
    let effects = blocks.iter().map(|(machine, block)| {
        let ends = block.interval(POOLED_ALPHA);
        let (results, pairs) = &measured[*machine];
        let (verdict, gain) = judged(ends, first);
        MachineEffect {
            machine: *machine,
            change: block.log_ratio.exp_m1(),
            interval: ends[1].is_finite().then_some(ends.map(f64::exp_m1)),
            verdict,
            gain,
            results: results.len(),
            pairs: *pairs,
        }
    });
    let alone: Vec<Block> = blocks.iter().map(|(_, block)| *block).collect();
    let pooled = refit_stats::pool(&alone).map(|pooled| {
        let (verdict, gain) = judged(pooled.interval, first);
        PooledEffect {
            change: pooled.log_ratio.exp_m1(),
            interval: pooled.interval.map(f64::exp_m1),
            next: pooled.next.map(f64::exp_m1),
            p_equal: pooled.p_equal,
            differ: pooled.p_equal < DIFFER,
            verdict,
            gain,
        }
    });
    let differ = pooled.as_ref().is_some_and(|pooled| pooled.differ);
    PooledVariant {
        name: name.to_owned(),
        risk,
        machines: effects.collect(),
        factors: if differ {
            factors::factors(machines, &blocks)
        } else {
            Vec::new()
        },
        pooled,
        not_pooled,
    }
}

/// What an interval proves, and whether that is a gain.
fn judged([low, high]: [f64; 2], of: &PoolInput) -> (Verdict, bool) {
    let effect = Effect {
        log_ratio: f64::midpoint(low, high),
        interval: Some(Interval {
            low,
            high,
            level: 1.0 - POOLED_ALPHA,
            method: Method::Student,
        }),
        pairs: FEWEST_PAIRS,
        levels: Levels {
            ranks: POOLED_ALPHA,
            early: POOLED_ALPHA,
        },
    };
    let proven = refit_stats::verdict(&effect, of.delta);
    let measure = measure(of.measure);
    (Verdict::new(proven, measure), proven.is_gain(measure))
}

#[cfg(test)]
mod tests;
