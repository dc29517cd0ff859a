//! What the pictures of a series show: memory by part, and the waits, over time.

use std::ops::Range;

use refit_run::Memory;
use refit_run::series::{GroupSample, Sample, Series};

use crate::format;

/// More services share a colour with others.
const MOST: usize = 7;

/// Something that has a value at each sample.
pub struct Part {
    pub name: String,
    /// Bytes, or the share of the time, which is between 0 and 1.
    pub values: Vec<f64>,
    /// Index of its colour; `None`: grey.
    pub colour: Option<usize>,
}

/// Both pictures.
pub struct Parts {
    /// Seconds since the beginning, of each sample.
    pub seconds: Vec<f64>,
    /// Samples in a row at which the memory of what has a colour is known: between them the picture has a gap.
    pub known: Vec<Range<usize>>,
    /// In the order in which they are stacked, from below.
    pub memory: Vec<Part>,
    /// Only of those that waited.
    pub waits: Vec<Part>,
    /// Of what the memory is.
    pub title: String,
}

/// A kind of memory of one service.
type Kind = (&'static str, fn(&Memory) -> u64);

const KINDS: [Kind; 5] = [
    ("anonymous (heap, stacks)", |memory| {
        memory.pss_anonymous_bytes
    }),
    ("mapped files", |memory| memory.pss_file_bytes),
    ("shared memory", |memory| memory.pss_shared_bytes),
    ("page tables (beside PSS)", |memory| {
        memory.page_tables_bytes
    }),
    ("swapped out (beside PSS)", |memory| memory.swap_bytes),
];

/// Divides anonymous memory, the first of these parts, into the bytes of live blocks, the rounding of these blocks, and
/// the rest. A program may request more than it ever touches, so live blocks and rounding are limited to the anonymous
/// memory that there is.
fn heap_parts(series: &Series, mut all: Vec<Part>) -> Vec<Part> {
    let anonymous = all.remove(0).values;
    let cut = |of: fn(f64, f64, f64) -> f64| -> Vec<f64> {
        let samples = series.samples.iter().zip(&anonymous);
        let values = samples.map(|(sample, all)| {
            let heap = sample.heap.unwrap_or_default();
            let live = (heap.requested_bytes as f64).min(*all);
            let usable = (heap.usable_bytes as f64).min(*all).max(live);
            of(live, usable, *all)
        });
        values.collect()
    };
    let parts = [
        ("live, as requested", cut(|live, _, _| live)),
        (
            "rounding of live blocks",
            cut(|live, usable, _| usable - live),
        ),
        (
            "free heap, stacks, other anonymous",
            cut(|_, usable, all| all - usable),
        ),
    ];
    let parts = parts
        .into_iter()
        .enumerate()
        .map(|(colour, (name, values))| Part {
            name: name.to_owned(),
            values,
            colour: Some(colour),
        });
    let mut parts: Vec<Part> = parts.collect();
    for part in all {
        let colour = part.colour.map(|colour| colour + 2);
        parts.push(Part { colour, ..part });
    }
    parts
}

impl Parts {
    pub fn of(series: &Series) -> Parts {
        let shown = shown(series);
        let one = |group: usize, value: &dyn Fn(&GroupSample) -> f64| -> Vec<f64> {
            let samples = series.samples.iter();
            samples
                .map(|sample| {
                    sample
                        .groups
                        .iter()
                        .find(|one| one.group == group)
                        .map_or(0.0, value)
                })
                .collect()
        };
        let name = |group: usize| {
            series
                .groups
                .get(group)
                .map_or("?", |group| &group.name)
                .to_owned()
        };
        let (memory, title) = match shown[..] {
            [only] => {
                let kind = |(colour, (kind, of)): (usize, &Kind)| Part {
                    name: (*kind).to_owned(),
                    values: one(only, &|sample| {
                        sample
                            .memory
                            .as_ref()
                            .map_or(0.0, |memory| of(memory) as f64)
                    }),
                    colour: Some(colour),
                };
                let all = KINDS.iter().enumerate().map(kind);
                let all: Vec<Part> = match series.samples.iter().any(|one| one.heap.is_some()) {
                    true => heap_parts(series, all.collect()),
                    false => all.collect(),
                };
                let all = all.into_iter();
                let memory = all.filter(|part| part.values.iter().any(|value| *value > 0.0));
                (memory.collect(), format!("Memory of {}", name(only)))
            }
            _ => (
                services(series, &shown),
                "Proportional memory (PSS) by service".to_owned(),
            ),
        };
        let waits = shown.iter().enumerate().map(|(i, group)| Part {
            name: name(*group),
            values: series
                .samples
                .iter()
                .map(|sample| {
                    let one = sample.groups.iter().find(|one| one.group == *group);
                    let busy = one
                        .and_then(|one| one.syncs.as_ref())
                        .map_or(0, |syncs| syncs.busy_us);
                    (busy as f64 / sample.lasted_us.max(1) as f64).min(1.0)
                })
                .collect(),
            colour: (i < MOST).then_some(i),
        });
        Parts {
            seconds: series
                .samples
                .iter()
                .map(|sample| sample.at_ms as f64 / 1000.0)
                .collect(),
            known: known(series, &shown),
            memory,
            waits: waits
                .filter(|part| part.values.iter().any(|value| *value > 0.0))
                .collect(),
            title,
        }
    }

    /// The sum of the parts below each part, and with it, at each sample.
    pub fn stacked(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        let mut below = vec![0.0; self.seconds.len()];
        let mut stack = Vec::new();
        for part in &self.memory {
            let above: Vec<f64> = below
                .iter()
                .zip(&part.values)
                .map(|(below, value)| below + value)
                .collect();
            stack.push((below, above.clone()));
            below = above;
        }
        stack
    }

    /// The length of the time axis.
    pub fn span(&self) -> f64 {
        self.seconds.last().copied().unwrap_or(0.0).max(1e-3)
    }
}

/// Runs of samples in which none of the groups that have a colour lacks its memory. One whose memory was never read is
/// not shown at all; of the others together a part may be missing.
fn known(series: &Series, shown: &[usize]) -> Vec<Range<usize>> {
    let mut coloured = shown[..shown.len().min(MOST)].to_vec();
    coloured.retain(|group| most_of(series, *group) > 0);
    let is_known = |sample: &Sample| {
        let lacks = |one: &GroupSample| {
            coloured.contains(&one.group) && one.processes > 0 && one.memory.is_none()
        };
        !sample.groups.iter().any(lacks)
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, _) in (0..)
        .zip(&series.samples)
        .filter(|(_, sample)| is_known(sample))
    {
        match runs.last_mut() {
            Some(run) if run.end == index => run.end += 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// Groups by the most memory that they had.
fn shown(series: &Series) -> Vec<usize> {
    let mut most: Vec<(u64, usize)> = (0..series.groups.len())
        .map(|group| (most_of(series, group), group))
        .collect();
    most.sort_by_key(|(most, group)| (std::cmp::Reverse(*most), *group));
    most.into_iter().map(|(_, group)| group).collect()
}

fn most_of(series: &Series, group: usize) -> u64 {
    let all = series
        .samples
        .iter()
        .flat_map(|sample| &sample.groups)
        .filter(|one| one.group == group);
    all.filter_map(|one| one.memory)
        .map(|memory| memory.pss_bytes)
        .max()
        .unwrap_or(0)
}

/// The largest, and all others together above them.
fn services(series: &Series, shown: &[usize]) -> Vec<Part> {
    let values = |groups: &[usize]| -> Vec<f64> {
        let of = |one: &GroupSample| one.memory.filter(|_| groups.contains(&one.group));
        let sum = |sample: &Sample| {
            sample
                .groups
                .iter()
                .filter_map(of)
                .map(|memory| memory.pss_bytes as f64)
                .sum()
        };
        series.samples.iter().map(sum).collect()
    };
    let (large, small) = shown.split_at(shown.len().min(MOST));
    let mut parts: Vec<Part> = large
        .iter()
        .enumerate()
        .map(|(colour, group)| Part {
            name: series.groups[*group].name.clone(),
            values: values(&[*group]),
            colour: Some(colour),
        })
        .collect();
    if !small.is_empty() {
        parts.push(Part {
            name: format::plural(small.len(), "other"),
            values: values(small),
            colour: None,
        });
    }
    parts.retain(|part| part.values.iter().any(|value| *value > 0.0));
    parts
}

/// Round times on the axis and what stands at each.
pub fn time_ticks(span: f64) -> Vec<(f64, String)> {
    let (unit, name) = match span {
        _ if span <= 180.0 => (1.0, "s"),
        _ if span <= 10_800.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    };
    let steps = crate::html::chart::steps(span, unit);
    steps
        .into_iter()
        .map(|at| (at, format!("{} {name}", round(at / unit))))
        .collect()
}

fn round(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use refit_run::series::LiveHeap;

    use super::super::sample;
    use super::*;

    #[test]
    fn a_counted_heap_cuts_anonymous_memory_and_exceeds_it_nowhere() {
        let mut series = sample::machine();
        series.groups.truncate(1);
        let mib = |count: u64| count << 20;
        for sample in &mut series.samples {
            sample.groups.truncate(1);
        }
        let heap = |requested, usable| LiveHeap {
            requested_bytes: mib(requested),
            usable_bytes: mib(usable),
            ..LiveHeap::default()
        };
        series.samples[0].heap = Some(heap(50, 55));
        series.samples[1].heap = Some(heap(500, 600));
        let parts = Parts::of(&series).memory;
        let at = |sample: usize| -> Vec<u64> {
            let first = parts[..3].iter();
            first.map(|part| part.values[sample] as u64 >> 20).collect()
        };
        assert_eq!([at(0), at(1), at(2)], [[50, 5, 25], [80, 0, 0], [0, 0, 80]]);
        assert_eq!(parts[3].name, "mapped files");
    }

    #[test]
    fn several_services_are_stacked_and_one_is_told_by_kind() {
        let series = sample::machine();
        let parts = Parts::of(&series);
        let names: Vec<&str> = parts.memory.iter().map(|part| &*part.name).collect();
        assert_eq!(names, ["app\u{1b}[2J", "postfix"]);
        assert_eq!((parts.waits.len(), parts.waits[0].values[1]), (1, 0.08));
        assert_eq!(parts.waits[0].colour, Some(1), "as its memory");
        let stack = parts.stacked();
        assert_eq!(stack[1].0, stack[0].1);

        let mut one = sample::machine();
        one.groups.truncate(1);
        for sample in &mut one.samples {
            sample.groups.truncate(1);
        }
        let parts = Parts::of(&one);
        assert_eq!(parts.memory.len(), 4, "nothing is swapped out");
        assert_eq!(parts.title, "Memory of postfix");
    }

    #[test]
    fn what_was_not_read_is_a_gap_and_not_nothing() {
        let mut series = sample::machine();
        let known = |series: &Series| -> Vec<(usize, usize)> {
            let runs = Parts::of(series).known.into_iter();
            runs.map(|run| (run.start, run.end)).collect()
        };
        assert_eq!(known(&series), [(0, 60)]);
        series.samples[10].groups[0].memory = None;
        assert_eq!(known(&series), [(0, 10), (11, 60)]);
        // It has ended: then nothing is known.
        series.samples[10].groups[0].processes = 0;
        assert_eq!(known(&series), [(0, 60)]);
        // It may never be read, and is not shown.
        for sample in &mut series.samples {
            sample.groups[0].memory = None;
            sample.groups[0].processes = 4;
        }
        assert_eq!(known(&series), [(0, 60)]);
    }

    #[test]
    fn many_services_share_the_last_colour() {
        let mut series = sample::machine();
        let group = series.groups[0].clone();
        let of = series.samples[0].groups[0].clone();
        for index in 2..12 {
            series.groups.push(group.clone());
            series.samples[3].groups.push(GroupSample {
                group: index,
                ..of.clone()
            });
        }
        let parts = Parts::of(&series);
        assert_eq!(parts.memory.len(), 8);
        assert_eq!(parts.memory[7].name, "5 others");
    }

    #[test]
    fn times_are_round() {
        let texts =
            |span| -> Vec<String> { time_ticks(span).into_iter().map(|(_, text)| text).collect() };
        assert_eq!(texts(10.0), ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]);
        assert_eq!(
            texts(600.0),
            ["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]
        );
        assert_eq!(texts(1.0)[1], "0.2 s");
        assert_eq!(texts(0.0), ["0 s"]);
    }
}
