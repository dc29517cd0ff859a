//! Why the memory of each variant is what it is: what grows with the operations, and what there is at the end.

use refit_lab::experiment::{Experiment, VariantRecord};
use refit_lab::{MemoryAnswer, MemoryCause, MemoryReason};
use refit_run::CallPath;

use super::note::{Note, note};
use crate::format::{bytes, plural};
use crate::memory_words;
use crate::paint::Tone;
use crate::stacks::call_chain;

/// Terms, and functions of a path, that are shown.
const MOST_TERMS: usize = 4;
const MOST_FUNCTIONS: usize = 4;
/// A term differs from the baseline's where the difference is this part of the baseline's memory.
const DIFFERS: f64 = 0.01;

/// One note for each variant that was asked.
pub fn memory(experiment: &Experiment) -> Vec<Note> {
    let baseline = experiment.variants.first().and_then(known);
    let asked = experiment.variants.iter().enumerate();
    asked
        .filter_map(|(index, variant)| {
            let of = baseline.filter(|_| index > 0);
            let text = match variant.memory.as_ref()? {
                MemoryAnswer::Known(reason) => told(experiment, reason, of),
                MemoryAnswer::Unknown(why) => format!("not known: {why}"),
            };
            let text = format!("{}: {text}", variant.name);
            Some(note("why:", Tone::Plain, text))
        })
        .collect()
}

fn known(variant: &VariantRecord) -> Option<&MemoryReason> {
    match variant.memory.as_ref()? {
        MemoryAnswer::Known(reason) => Some(reason),
        MemoryAnswer::Unknown(_) => None,
    }
}

fn told(experiment: &Experiment, reason: &MemoryReason, baseline: Option<&MemoryReason>) -> String {
    let mut parts = vec![verdict(reason)];
    let unit = experiment
        .recipe
        .as_ref()
        .map_or("operation", |one| &one.unit);
    parts.extend(growth(reason, unit));
    let sizes = match baseline {
        None => sizes(reason),
        Some(baseline) => differences(reason, baseline),
    };
    let at_end = bytes(reason.pss_bytes as f64);
    let of = match reason.processes {
        1 => String::new(),
        more => format!(" in {}", plural(more, "process")),
    };
    parts.push(format!("{at_end}{of} at the end of the window: {sizes}"));
    for (size, what) in [
        (reason.fork_copies_bytes, "copies after a fork"),
        (reason.untouched_bytes, "untouched parts of huge pages"),
    ] {
        if size as f64 >= reason.pss_bytes as f64 * DIFFERS {
            parts.push(format!("{} of it are {what}", bytes(size as f64)));
        }
    }
    let is_live = reason.cause == MemoryCause::Live;
    if let (true, Some(by)) = (is_live && baseline.is_none(), &reason.allocated_by) {
        parts.push(allocated_by(by, reason));
    }
    if baseline.is_none_or(|baseline| baseline.cause != reason.cause) {
        parts.push(format!("next: {}", next(experiment, reason)));
    }
    parts.join("; ")
}

fn verdict(reason: &MemoryReason) -> String {
    let part = reason.cause.part();
    let content = memory_words::content(part);
    match grows(reason) {
        true => memory_words::verdict(part).to_owned(),
        false => format!(
            "the largest part is {}: {content}",
            memory_words::name(part)
        ),
    }
}

/// Parts with a smaller share of what grows are left out.
const LEAST_SHARE: f64 = 0.01;

fn growth(reason: &MemoryReason, unit: &str) -> Option<String> {
    if let Some(why) = &reason.not_judged {
        return Some(format!("growth was not judged: {why}"));
    }
    let growth = reason.growth.as_ref()?;
    if growth.is_empty() {
        return Some("nothing grows with the operations for certain".to_owned());
    }
    let grown = growth.iter().filter(|one| one.share >= LEAST_SHARE);
    let grown = grown.map(|one| {
        let [low, high] = one.interval.map(bytes);
        format!(
            "{} +{} a {unit} [{low}, {high}], {:.0} % of what grows",
            memory_words::name(one.cause.part()),
            bytes(one.bytes),
            one.share * 100.0
        )
    });
    Some(grown.collect::<Vec<_>>().join(", "))
}

fn grows(reason: &MemoryReason) -> bool {
    reason
        .growth
        .as_ref()
        .is_some_and(|growth| !growth.is_empty())
}

/// The largest, from the largest on.
fn largest<'a>(terms: impl Iterator<Item = (&'a str, f64)>) -> Vec<(&'a str, f64)> {
    let mut all: Vec<(&str, f64)> = terms.collect();
    all.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    all.truncate(MOST_TERMS);
    all
}

fn sizes(reason: &MemoryReason) -> String {
    let terms = reason
        .terms
        .iter()
        .map(|(term, size)| (&**term, *size as f64));
    let told = largest(terms).into_iter();
    told.map(|(term, size)| format!("{term} {}", bytes(size)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// `retained +20 MiB, stacks −1.0 MiB`.
fn differences(reason: &MemoryReason, baseline: &MemoryReason) -> String {
    let of =
        |reason: &MemoryReason, term: &str| reason.terms.get(term).map_or(0.0, |size| *size as f64);
    // Each has all terms.
    let more = baseline
        .terms
        .keys()
        .map(|term| (&**term, of(reason, term) - of(baseline, term)));
    let more = more.filter(|(_, more)| more.abs() >= baseline.pss_bytes as f64 * DIFFERS);
    let told = largest(more).into_iter().map(|(term, more)| {
        let sign = if more > 0.0 { "+" } else { "" };
        format!("{term} {sign}{}", bytes(more))
    });
    match told.collect::<Vec<_>>() {
        none if none.is_empty() => "as the baseline".to_owned(),
        told => format!("{} than the baseline", told.join(", ")),
    }
}

/// The innermost function first.
fn allocated_by(path: &CallPath, reason: &MemoryReason) -> String {
    let live = reason.terms.get("live").map_or(0, |size| *size);
    format!(
        "about {:.0} % of what is live was allocated by {}",
        (100.0 * path.bytes as f64 / live.max(1) as f64).min(100.0),
        call_chain(&path.frames.iter().collect::<Vec<_>>(), MOST_FUNCTIONS)
    )
}

fn next(experiment: &Experiment, reason: &MemoryReason) -> String {
    let recipe = experiment.recipe.as_ref();
    let name = recipe.map_or("RECIPE", |one| one.folder.as_deref().unwrap_or(&one.name));
    let of_allocators = format!("refit compare --memory {name}");
    match reason.cause {
        MemoryCause::Live if grows(reason) => {
            "mend it where it is allocated; another allocator only changes what each block costs"
                .to_owned()
        }
        MemoryCause::Live => "the program would have to need less, or share more".to_owned(),
        MemoryCause::Internal => format!("other size classes: {of_allocators}"),
        MemoryCause::External | MemoryCause::Retained => {
            format!("an allocator, or an option, that gives free pages back: {of_allocators}")
        }
        MemoryCause::Stacks => "fewer threads, or less on the stack of each".to_owned(),
        MemoryCause::Copied => format!(
            "prepare before the fork what children write to; and an allocator by which they write to fewer pages: {of_allocators}"
        ),
        MemoryCause::Files => {
            "nothing: the kernel takes such pages back when it needs memory".to_owned()
        }
        MemoryCause::HugePages => format!("without them: refit compare {name} thp=never"),
        MemoryCause::Mappings | MemoryCause::Shared => "see which: /proc/PID/maps".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use refit_lab::GrowingCause;
    use refit_run::Frame;

    const MIB: u64 = 1 << 20;

    fn reason(cause: MemoryCause, terms: &[(&str, u64)]) -> MemoryReason {
        MemoryReason {
            cause,
            growth: None,
            not_judged: None,
            processes: 1,
            pss_bytes: terms.iter().map(|(_, mib)| mib * MIB).sum(),
            terms: terms
                .iter()
                .map(|(term, mib)| ((*term).to_owned(), mib * MIB))
                .collect(),
            fork_copies_bytes: 0,
            untouched_bytes: 0,
            allocated_by: None,
        }
    }

    fn texts(experiment: &Experiment) -> Vec<String> {
        memory(experiment)
            .into_iter()
            .map(|note| note.text)
            .collect()
    }

    #[test]
    fn each_variant_has_its_cause_and_the_baseline_its_sizes() {
        let mut experiment = sample::service().experiment;
        assert!(texts(&experiment).is_empty());
        let mut leak = reason(
            MemoryCause::Live,
            &[("live", 38), ("files", 2), ("retained", 0)],
        );
        leak.growth = Some(vec![GrowingCause {
            cause: MemoryCause::Live,
            bytes: 200.0,
            interval: [193.0, 205.0],
            share: 0.95,
        }]);
        leak.allocated_by = Some(CallPath {
            frames: ["main", "b", "a"]
                .map(|function| Frame {
                    function: function.to_owned(),
                    ..Frame::default()
                })
                .into(),
            bytes: 37 * MIB,
            samples: 70,
        });
        let mut kept = reason(MemoryCause::Retained, &[("live", 38), ("retained", 60)]);
        kept.growth = Some(Vec::new());
        kept.fork_copies_bytes = MIB;
        experiment.variants[0].memory = Some(MemoryAnswer::Known(leak.clone()));
        experiment.variants[1].memory = Some(MemoryAnswer::Known(kept));
        experiment.variants[2].memory = Some(MemoryAnswer::Unknown("its run failed: x".to_owned()));
        let told = texts(&experiment);
        assert_eq!(
            told[0],
            "baseline: a leak, or data that the program still needs; live +200 B a mail [193 B, 205 B], 95 % of what \
             grows; 40 MiB at the end of the window: live 38 MiB, files 2.0 MiB, retained 0 B; about 97 % of what is \
             live was allocated by a < b < main; next: mend it where it is allocated; another allocator only changes \
             what each block costs"
        );
        assert!(told[1].contains(
            ": the largest part is retained: free pages that the allocator does not give back; nothing grows \
             with the operations for certain; 98 MiB at the end of the window: retained +60 MiB, files −2.0 MiB than the baseline; 1.0 MiB of \
             it are copies after a fork; next: an allocator, or an option, that gives free pages back: refit compare \
             --memory "
        ), "{}", told[1]);
        assert!(
            told[2].ends_with(": not known: its run failed: x"),
            "{}",
            told[2]
        );
        // Of the same cause, and as large.
        leak.allocated_by = None;
        experiment.variants[1].memory = Some(MemoryAnswer::Known(leak));
        let told = texts(&experiment);
        assert!(
            told[1].ends_with("40 MiB at the end of the window: as the baseline"),
            "{}",
            told[1]
        );
    }
}
