//! Comparisons of several machines as one: the answer, a table for each variant, a forest plot.

mod html;
mod svg;
mod text;

use std::collections::BTreeMap;

use refit_lab::{
    EffectRecord, FactorRecord, MachineEffect, Pool, PooledEffect, PooledVariant, Verdict, measure,
};
use refit_run::printable;
use refit_stats::POOLED_ALPHA;

use crate::bar::Bars;
use crate::format;
use crate::gain::gives;
use crate::notes::{Note, note};
use crate::paint::Tone;
use crate::row::difference;
use crate::sentence::{NO, NOT_YET, ONLY_WHERE, WHERE, YES};
use crate::table::{Column, Content, Table};
use crate::values::in_unit;

pub use html::html;
pub use svg::svg;
pub use text::{markdown, terminal};

/// Below this many machines more of them help most.
const FEW: usize = 4;
/// Properties that are listed with their values.
const LISTED: usize = 3;

/// Characters of such a value.
const VALUE: usize = 48;

/// What was pooled, on one line.
fn title(pool: &Pool) -> String {
    let subject = subject(pool);
    match pool.question.as_deref() {
        Some(question) if !question.is_empty() => printable(&format!("{subject}: {question}")),
        _ => printable(&subject),
    }
}

/// The command's words, or the recipe's name.
fn subject(pool: &Pool) -> String {
    if pool.is_recipe {
        pool.command.join(" ")
    } else {
        format::command_line(&pool.command)
    }
}

/// One line of a variant's table.
struct Line {
    name: String,
    baseline: String,
    sync: String,
    effect: EffectRecord,
    change: String,
    results: String,
    pairs: String,
}

/// Each machine, the smallest ratio first; then all of them, then the next one.
fn lines(pool: &Pool, variant: &PooledVariant) -> Vec<Line> {
    let machines = variant.machines.iter().filter_map(|one| {
        let machine = pool.machines.get(one.machine)?;
        let sync = machine.sync_ns.map(format::duration);
        Some(Line {
            name: machine.name.clone(),
            baseline: machine.baseline.map_or(String::new(), |value| {
                in_unit(&pool.main, pool.unit, pool.unit_name.as_deref(), value)
            }),
            sync: sync.unwrap_or_default(),
            effect: of_machine(one),
            change: format::percent(one.change),
            results: format::grouped(one.results),
            pairs: format::grouped(one.pairs),
        })
    });
    let mut lines: Vec<Line> = machines.collect();
    lines.sort_by(|a, b| a.effect.change.total_cmp(&b.effect.change));
    if let Some(pooled) = &variant.pooled {
        let line = |name: &str, effect, change| Line {
            name: name.to_owned(),
            baseline: String::new(),
            sync: String::new(),
            effect,
            change,
            results: String::new(),
            pairs: String::new(),
        };
        let all = format::percent(pooled.change);
        lines.push(line("mean of all machines", of_all(pooled), all));
        lines.push(line("the next machine", of_next(pooled), String::new()));
    }
    lines
}

fn of_machine(one: &MachineEffect) -> EffectRecord {
    EffectRecord {
        change: one.change,
        interval: one.interval,
        verdict: Some(one.verdict),
        gain: one.gain,
        ..EffectRecord::default()
    }
}

fn of_all(pooled: &PooledEffect) -> EffectRecord {
    EffectRecord {
        change: pooled.change,
        interval: Some(pooled.interval),
        verdict: Some(pooled.verdict),
        gain: pooled.gain,
        ..EffectRecord::default()
    }
}

/// Where it will be: nothing is proven of it.
fn of_next(pooled: &PooledEffect) -> EffectRecord {
    EffectRecord {
        change: pooled.change,
        interval: Some(pooled.next),
        ..EffectRecord::default()
    }
}

fn table<'a>(pool: &Pool, lines: &'a [Line]) -> Table<'a> {
    let cells = |of: fn(&Line) -> &String| lines.iter().map(move |line| of(line).clone());
    let level = format!("{} interval", format::magnitude(1.0 - POOLED_ALPHA));
    let intervals = lines
        .iter()
        .map(|line| format::interval(line.effect.interval));
    let syncs = Column::numbers("a sync", cells(|line| &line.sync)).with(Content::Side);
    let has_syncs = lines.iter().any(|line| !line.sync.is_empty());
    let metric = format!("baseline's {}", pool.main);
    let baseline = Column::numbers(&metric, cells(|line| &line.baseline)).with(Content::Value);
    let verdicts = lines.iter().map(|line| verdict(pool, &line.effect));
    Table {
        name: Column::words("machine", cells(|line| &line.name)).with(Content::Name),
        numbers: [baseline]
            .into_iter()
            .chain(has_syncs.then_some(syncs))
            .chain([
                Column::numbers("vs baseline", cells(|line| &line.change)).with(Content::Change),
                Column::numbers(&level, intervals).with(Content::Interval),
            ])
            .collect(),
        bars: Some(Bars::new(
            lines.iter().map(|line| Some(&line.effect)),
            pool.delta,
        )),
        verdict: Column::verdicts("verdict", verdicts).with(Content::Verdict),
        extras: vec![
            Column::numbers("results", cells(|line| &line.results)).with(Content::Side),
            Column::numbers("round pairs", cells(|line| &line.pairs)).with(Content::Side),
        ],
    }
}

fn verdict(pool: &Pool, effect: &EffectRecord) -> (String, Tone) {
    match effect.verdict {
        None => (String::new(), Tone::Plain),
        Some(Verdict::Same) => (
            format!("same (±{})", format::margin(pool.delta)),
            Tone::Plain,
        ),
        Some(Verdict::Inconclusive) => ("inconclusive".to_owned(), Tone::Unsure),
        Some(word) => (
            difference(effect, word),
            if effect.gain { Tone::Good } else { Tone::Bad },
        ),
    }
}

/// A variant and what it risks.
fn heading(variant: &PooledVariant) -> String {
    printable(&format!("{} ({})", variant.name, variant.risk))
}

/// The answer: whether to take a variant, and on which condition; what each gives across machines, and where they differ.
fn sentence(pool: &Pool) -> String {
    let (mut free, mut risky, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut alone: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    // Another machine may tell.
    let mut is_open = false;
    for variant in &pool.variants {
        let name = format!("`{}`", variant.name);
        match (&variant.pooled, variant.machines.first()) {
            (Some(pooled), _) => {
                let told = part(pool, variant, pooled);
                is_open |= pooled.verdict == Verdict::Inconclusive;
                let gains = pooled.gain && explained(variant).is_none();
                match (gains, variant.risk.loss.risks_data()) {
                    (true, false) => free.push(told),
                    (true, true) => risky.push(told),
                    (false, _) => others.push(told),
                }
            }
            (None, Some(one)) => {
                let told = format!("{name} ({})", format::percent(one.change));
                alone.entry(one.machine).or_default().push(told);
            }
            (None, None) => {
                is_open |= variant.not_pooled.iter().any(|one| one.why == TOO_FEW);
                others.push(unmeasured(pool, variant));
            }
        }
    }
    is_open |= !alone.is_empty();
    for (machine, variants) in alone {
        let machine = pool.machines.get(machine).map_or("?", |one| &one.name);
        let variants = variants.join(", ");
        others.push(format!("on one machine only, {machine}: {variants}"));
    }
    let depends = pool.variants.iter().any(|one| explained(one).is_some());
    let lead_of_others = match (free.is_empty() && risky.is_empty(), depends, is_open) {
        (false, ..) | (_, true, _) => "",
        (.., true) => NOT_YET,
        _ => NO,
    };
    let lead_of_risky = if free.is_empty() { ONLY_WHERE } else { WHERE };
    let led = [
        (YES, free),
        (lead_of_risky, risky),
        (lead_of_others, others),
    ];
    let parts: Vec<String> = led
        .into_iter()
        .filter(|(_, parts)| !parts.is_empty())
        .map(|(lead, parts)| format!("{lead}{}", parts.join("; ")))
        .collect();
    printable(&parts.join("; "))
}

/// More runs may tell then.
const TOO_FEW: &str = "too few round pairs";

/// Why a variant has an effect on no machine.
fn unmeasured(pool: &Pool, variant: &PooledVariant) -> String {
    let name = format!("`{}`", variant.name);
    let mut reasons: Vec<&str> = variant.not_pooled.iter().map(|one| &*one.why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let machines = match pool.machines.len() {
        1 => "the only machine".to_owned(),
        n => format!("all {}", format::plural(n, "machine")),
    };
    match reasons.as_slice() {
        [] => format!("{name}: no machine has a result of it; compare it there"),
        [TOO_FEW] => format!("{name}: {TOO_FEW} on {machines}; measure for longer: --budget TIME"),
        reasons => format!("{name}: {} on {machines}", reasons.join(", or ")),
    }
}

/// By what machines differ that have different effects of it.
fn explained(variant: &PooledVariant) -> Option<&FactorRecord> {
    let by = variant.factors.iter().find(|factor| factor.explains);
    by.filter(|_| variant.pooled.is_some())
}

fn part(pool: &Pool, variant: &PooledVariant, pooled: &PooledEffect) -> String {
    let name = format!("`{}`", variant.name);
    let machines = format::plural(variant.machines.len(), "machine");
    let measure = measure(pool.measure);
    let effect = of_all(pooled);
    let size = format!(
        "{}, {}",
        format::percent(pooled.change),
        format::interval(Some(pooled.interval))
    );
    let across = match pooled.verdict {
        _ if pooled.gain => {
            format!(
                "{name} {}",
                gives(&effect, measure, &format!("{size}, across {machines}"))
            )
        }
        Verdict::Same => format!("{name} makes no difference across {machines} ({size})"),
        Verdict::Inconclusive => {
            format!("of {name} no effect is proven across {machines} ({size})")
        }
        word => format!("{name} is {word} across {machines} ({size})"),
    };
    match explained(variant) {
        Some(factor) => {
            let groups = factor.groups.iter().map(|group| {
                let machines = format::plural(group.machines.len(), "machine");
                let change = format::percent(group.change);
                let value = format::shortened(&group.value, VALUE);
                format!("{change} with {value} ({machines})")
            });
            let groups: Vec<String> = groups.collect();
            let groups = groups.join(", ");
            format!("what {name} gives depends on the {}: {groups}", factor.name)
        }
        None if pooled.differ => {
            let extremes = extremes(pool, variant);
            format!("{across}, and the machines differ: {extremes}")
        }
        None => across,
    }
}

/// Where its effect is the smallest and where the largest.
fn extremes(pool: &Pool, variant: &PooledVariant) -> String {
    let mut order: Vec<&MachineEffect> = variant.machines.iter().collect();
    order.sort_by(|a, b| a.change.total_cmp(&b.change));
    let told = |one: &MachineEffect| {
        let name = pool.machines.get(one.machine).map_or("?", |of| &*of.name);
        format!("{} on {name}", format::percent(one.change))
    };
    match order.as_slice() {
        [first, .., last] => format!("{} to {}", told(first), told(last)),
        _ => String::new(),
    }
}

/// What has to be known of a variant.
fn notes_of(pool: &Pool, variant: &PooledVariant) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(pooled) = &variant.pooled {
        if pooled.differ {
            notes.extend(factors(pool, variant));
        } else {
            let text = format!(
                "no difference between machines was found (effects that scatter so or more: {} of pools of equal machines)",
                format::magnitude(pooled.p_equal)
            );
            notes.push(note("", Tone::Plain, text));
        }
        if variant.machines.len() < FEW && !pooled.verdict.is_settled() {
            let text = format!(
                "the interval of {} is wide; measure on {FEW} or more",
                format::plural(variant.machines.len(), "machine")
            );
            notes.push(note("few machines:", Tone::Unsure, text));
        }
    }
    for left in &variant.not_pooled {
        let text = format!("{}: {}", left.file, left.why);
        notes.push(note("not pooled:", Tone::Unsure, text));
    }
    notes
}

/// By what machines differ.
fn factors(pool: &Pool, variant: &PooledVariant) -> Vec<Note> {
    let groups = |factor: &FactorRecord| {
        let group = factor.groups.iter().map(|group| {
            let names = group
                .machines
                .iter()
                .filter_map(|at| pool.machines.get(*at));
            let names: Vec<&str> = names.map(|machine| &*machine.name).collect();
            let change = format::percent(group.change);
            let value = format::shortened(&group.value, VALUE);
            format!("{change} with {value} ({})", few(&names))
        });
        group.collect::<Vec<_>>().join(", ")
    };
    let explaining = variant.factors.iter().filter(|factor| factor.explains);
    let mut notes: Vec<Note> = explaining
        .map(|factor| {
            let text = format!("by {}: {}", factor.name, groups(factor));
            note("machines differ", Tone::Plain, text)
        })
        .collect();
    if notes.is_empty() {
        let untold: Vec<&FactorRecord> = (variant.factors.iter())
            .filter(|factor| factor.p_equal.is_none())
            .collect();
        let listed = untold.iter().take(LISTED);
        let listed: Vec<String> = listed
            .map(|factor| format!("{}: {}", factor.name, groups(factor)))
            .collect();
        let more = untold.iter().skip(LISTED).map(|factor| &*factor.name);
        let more: Vec<&str> = more.collect();
        let mut text = match listed.is_empty() {
            true => "by none of the properties that refit stores".to_owned(),
            false => listed.join("; "),
        };
        if !more.is_empty() {
            text = format!("{text}; {}", more.join(", "));
        }
        if !untold.is_empty() {
            text.push_str(". Which of these is the cause, two machines of each kind would tell");
        }
        notes.push(note("machines differ", Tone::Plain, text));
    }
    notes
}

fn few(names: &[&str]) -> String {
    match names {
        [a, b, c, rest @ ..] if rest.len() > 1 => format!("{a}, {b}, {c} and {} more", rest.len()),
        _ => names.join(", "),
    }
}

/// What has to be known of the whole.
fn notes(pool: &Pool) -> Vec<Note> {
    let mut text = format!(
        "{} of {}; each machine counts once; the interval is Student's, of how their effects scatter",
        format::plural(pool.results.len(), "result"),
        format::plural(pool.machines.len(), "machine"),
    );
    let unnamed = pool
        .machines
        .iter()
        .filter(|machine| !machine.fixed.contains_key("machine"));
    let mut notes = Vec::new();
    if unnamed.count() > 0 {
        text.push_str(
            "; of results without a machine's name those with the same processor, cores and memory count as one machine",
        );
    }
    notes.push(note("", Tone::Plain, text));
    let next = "the next machine: where another one of this kind will measure its effect, in 95 % of cases";
    if pool.variants.iter().any(|variant| variant.pooled.is_some()) {
        notes.push(note("", Tone::Plain, next.to_owned()));
    }
    if !pool.with.is_empty() {
        let text = format!("{} under every variant", pool.with.join(" "));
        notes.push(note("with", Tone::Plain, text));
    }
    for result in pool.results.iter().filter(|result| result.interrupted) {
        let text = format!("{} was interrupted before the end of its plan", result.file);
        notes.push(note("warning:", Tone::Unsure, text));
    }
    let mut versions: Vec<&str> = pool.results.iter().map(|result| &*result.refit).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        let text = format!("measured by refit {}", versions.join(" and "));
        notes.push(note("warning:", Tone::Unsure, text));
    }
    notes
}

#[cfg(test)]
pub(crate) mod tests;
