//! By what machines differ: properties that have other values where the effect is another.

use std::collections::BTreeMap;

use refit_stats::{Block, p_equal, standing};

use super::DIFFER;
use super::record::{FactorRecord, GroupRecord, MachineRecord};

/// Of a machine, that says nothing of its kind.
const NAMES: [&str; 2] = ["machine", "directory"];
/// Where the next of the sorted times is more than this many times as long, another group begins.
const APART: f64 = 2.0;

/// What tells machines apart best first.
pub(super) fn factors(machines: &[MachineRecord], blocks: &[(usize, Block)]) -> Vec<FactorRecord> {
    let mut properties: Vec<&str> = (blocks.iter())
        .flat_map(|(machine, _)| machines[*machine].fixed.keys())
        .map(String::as_str)
        .filter(|name| !NAMES.contains(name))
        .collect();
    properties.sort_unstable();
    properties.dedup();
    let by_name = properties.into_iter().map(|name| {
        let value = |machine: usize| machines[machine].fixed.get(name).cloned();
        factor(name, blocks, value)
    });
    let times = times(machines, blocks);
    let by_time = factor("sync time", blocks, |machine| times.get(&machine).cloned());
    let mut factors: Vec<FactorRecord> = by_name.flatten().chain(by_time).collect();
    let known: Vec<f64> = factors.iter().filter_map(|factor| factor.p_equal).collect();
    let stand = standing(&known, DIFFER);
    let tested = factors.iter_mut().filter(|factor| factor.p_equal.is_some());
    for (factor, stands) in tested.zip(stand) {
        factor.explains = stands;
    }
    let order = |factor: &FactorRecord| factor.p_equal.unwrap_or(1.0);
    factors.sort_by(|a, b| order(a).total_cmp(&order(b)));
    factors
}

/// `None` where all machines have the same value.
fn factor(
    name: &str,
    blocks: &[(usize, Block)],
    value: impl Fn(usize) -> Option<String>,
) -> Option<FactorRecord> {
    let mut by_value: BTreeMap<String, Vec<(usize, Block)>> = BTreeMap::new();
    for (machine, block) in blocks {
        let value = value(*machine).unwrap_or_else(|| "unknown".to_owned());
        by_value.entry(value).or_default().push((*machine, *block));
    }
    if by_value.len() < 2 {
        return None;
    }
    let joined = |of: &[(usize, Block)]| {
        let blocks: Vec<Block> = of.iter().map(|(_, block)| *block).collect();
        Block::joined(&blocks)
    };
    let tested = by_value.values().filter(|of| of.len() > 1);
    let tested: Vec<Block> = tested.filter_map(|of| joined(of)).collect();
    let groups = by_value.iter().filter_map(|(value, of)| {
        Some(GroupRecord {
            value: value.clone(),
            machines: of.iter().map(|(machine, _)| *machine).collect(),
            change: joined(of)?.log_ratio.exp_m1(),
        })
    });
    let mut groups: Vec<GroupRecord> = groups.collect();
    groups.sort_by(|a, b| a.change.total_cmp(&b.change));
    Some(FactorRecord {
        name: name.to_owned(),
        p_equal: (tested.len() > 1).then(|| p_equal(&tested)),
        groups,
        explains: false,
    })
}

/// The time of a sync call, in groups with gaps between them: `0.21 ms`, or from the shortest to the longest.
fn times(machines: &[MachineRecord], blocks: &[(usize, Block)]) -> BTreeMap<usize, String> {
    let known = blocks.iter();
    let known = known.filter_map(|(machine, _)| Some((*machine, machines[*machine].sync_ns?)));
    let mut sorted: Vec<(usize, f64)> = known.collect();
    sorted.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut times = BTreeMap::new();
    for group in sorted.chunk_by(|(_, a), (_, b)| *b <= APART * a) {
        let (least, most) = (shown(group[0].1), shown(group[group.len() - 1].1));
        let text = if least == most {
            least
        } else {
            format!("{least} to {most}")
        };
        times.extend(group.iter().map(|(machine, _)| (*machine, text.clone())));
    }
    times
}

/// Two digits and a unit.
fn shown(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "µs"),
        _ => (ns / 1e6, "ms"),
    };
    let decimals = usize::from(value < 10.0);
    format!("{value:.decimals$} {unit}")
}
