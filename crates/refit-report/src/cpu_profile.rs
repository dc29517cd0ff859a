//! Where a program was on the processors: as lines of the summary, and as a profile.

use std::collections::BTreeMap;

use refit_run::{CpuPaths, CpuProfile, Frame, RunReport, printable};

use crate::format::{duration, file_name, plural};
use crate::stacks::{Profile, Stacks, Weight, call_chain};

/// Executables of the summary, functions of each, and callers of each of these.
const MOST_EXECUTABLES: usize = 3;
const MOST_FUNCTIONS: usize = 3;
const MOST_CALLERS: usize = 5;
/// What is less than this share is not worth a line.
const SMALL: f64 = 0.05;
/// Less processor time than this is not compared with the samples: the kernel tells it in ticks (HZ of 100 at least).
const LEAST_COMPARED_NS: u64 = 100_000_000;
/// A smaller part that was not sampled is within what both know.
const SAME: f64 = 0.1;
/// What names of the kernel's functions end with.
const OF_KERNEL: &str = "[kernel]";

/// The lines of a run.
pub(crate) fn lines(report: &RunReport, lines: &mut Vec<String>) {
    if let Some(profile) = &report.cpu {
        of_profile(profile, lines);
        lines.extend(not_sampled(report, profile));
    }
}

/// What `refit watch --cpu` prints.
#[must_use]
pub fn cpu_lines(profile: &CpuProfile) -> String {
    let mut all = Vec::new();
    of_profile(profile, &mut all);
    all.iter()
        .map(|line| format!("{}\n", printable(line)))
        .collect()
}

fn of_profile(profile: &CpuProfile, lines: &mut Vec<String>) {
    let samples = profile.samples();
    let whose = if profile.kernel {
        ""
    } else {
        ", of the program's own code alone (the kernel's needs root, or kernel.perf_event_paranoid=1)"
    };
    if samples == 0 {
        lines.push(format!("on a processor: not once seen there{whose}"));
        return;
    }
    lines.push(format!(
        "on a processor, by {}, one for each {}{whose}:",
        plural(samples, "sample"),
        duration(profile.period_ns as f64)
    ));
    for executable in profile.executables.iter().take(MOST_EXECUTABLES) {
        if executable.samples() as f64 >= SMALL * samples as f64 {
            of_executable(profile, executable, lines);
        }
    }
    if profile.lost > 0 {
        lines.push(format!(
            "  {} lost, for which there was no room",
            plural(profile.lost, "sample")
        ));
    }
}

/// What belongs to one function.
#[derive(Default)]
struct Function<'a> {
    samples: u64,
    in_kernel: u64,
    /// By the path that leads to it.
    paths: BTreeMap<Vec<&'a Frame>, u64>,
}

fn of_executable(profile: &CpuProfile, executable: &CpuPaths, lines: &mut Vec<String>) {
    let mut functions: BTreeMap<&str, Function> = BTreeMap::new();
    for path in &executable.paths {
        let mut frames = profile.frames_of(path);
        let is_kernel = |frame: &&&Frame| frame.function.ends_with(OF_KERNEL);
        let kernel = frames.iter().rev().take_while(is_kernel).count();
        // To the innermost function that is not the kernel's.
        frames.truncate(frames.len() - kernel);
        let name = frames.last().map_or(OF_KERNEL, |frame| &frame.function);
        let function = functions.entry(name).or_default();
        function.samples += path.samples;
        *function.paths.entry(frames).or_default() += path.samples;
        if kernel > 0 {
            function.in_kernel += path.samples;
        }
    }
    let mut functions: Vec<Function> = functions.into_values().collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.samples));
    let (samples, all) = (executable.samples(), profile.samples());
    lines.push(format!(
        "  {:.0} % {}",
        100.0 * samples as f64 / all as f64,
        file_name(&executable.executable)
    ));
    for function in functions.iter().take(MOST_FUNCTIONS) {
        let share = function.samples as f64 / all as f64;
        if share < SMALL {
            break;
        }
        let most = function.paths.iter().max_by_key(|(_, samples)| **samples);
        let chain = match most {
            Some((frames, _)) if !frames.is_empty() => call_chain(frames, MOST_CALLERS),
            _ => "the kernel, for no code of the program".to_owned(),
        };
        let in_kernel = 100.0 * function.in_kernel as f64 / function.samples as f64;
        let in_kernel = match function.paths.keys().all(|frames| frames.is_empty()) {
            false if in_kernel >= 10.0 => format!(", {in_kernel:.0} % of it in the kernel"),
            _ => String::new(),
        };
        lines.push(format!("    {:.0} % {chain}{in_kernel}", 100.0 * share));
    }
    for (objects, what) in [
        (&executable.not_unwound, "no path leads through"),
        (&executable.without_names, "no names for all functions of"),
    ] {
        if !objects.is_empty() {
            lines.push(format!("    {what} {}", objects.join(", ")));
        }
    }
}

/// What wait4(2) knows and no sample has: programs with more rights than their caller, and what was lost.
fn not_sampled(report: &RunReport, profile: &CpuProfile) -> Option<String> {
    let usage = &report.run.metrics.usage;
    let used = match profile.kernel {
        true => usage.user_ns.saturating_add(usage.system_ns),
        false => usage.user_ns,
    };
    let sampled = profile.samples().saturating_mul(profile.period_ns);
    let missing = used.saturating_sub(sampled);
    let is_large = used >= LEAST_COMPARED_NS && missing as f64 >= SAME * used as f64;
    is_large.then(|| {
        format!(
            "  {} of {} on a processor were not sampled: programs with more rights than their caller, or samples that were lost",
            duration(missing as f64),
            duration(used as f64)
        )
    })
}

/// The time on a processor, by where it was.
#[must_use]
pub fn cpu_profile(profile: &CpuProfile) -> Profile<'_> {
    Profile {
        title: "Time on a processor, by where the program was",
        weight: Weight::Time,
        executables: profile
            .executables
            .iter()
            .map(|one| Stacks {
                executable: &one.executable,
                stacks: one
                    .paths
                    .iter()
                    .map(|path| {
                        let ns = path.samples.saturating_mul(profile.period_ns);
                        (profile.frames_of(path), ns)
                    })
                    .collect(),
            })
            .collect(),
    }
}
