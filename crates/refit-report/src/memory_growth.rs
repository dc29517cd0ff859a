//! What `refit watch PID --per` prints: which part of a program's memory grows with its work.

use refit_lab::MemoryWatch;
use refit_stats::{FEWEST_SAMPLES, Growth, GrowthError, MemoryGrowth, MemoryVerdict, Part, Trend};

use crate::format::{bytes, count, plural};
use crate::memory_words::{self, name};
use crate::page::Page;

/// One line of a sample.
#[must_use]
pub fn line(watch: &MemoryWatch) -> String {
    let Some(point) = watch.points().last() else {
        return String::new();
    };
    let all: f64 = point.parts.iter().map(|(_, bytes)| bytes).sum();
    let parts = point.parts.iter().filter(|(_, size)| *size >= 1024.0);
    let parts: Vec<String> = parts
        .map(|(part, size)| format!("{} {}", name(*part), bytes(*size)))
        .collect();
    format!(
        "{:>12} operations {:>9}: {}\n",
        count(point.operations),
        bytes(all),
        parts.join(", ")
    )
}

/// The verdict with its evidence.
#[must_use]
pub fn verdict(watch: &MemoryWatch) -> String {
    let mut page = Page::default();
    match watch.result() {
        Ok(found) => {
            page.heading(&format!("verdict: {}", words(&found)));
            page.folded("next", next(found.verdict));
            evidence(&mut page, watch, &found);
        }
        Err(error) => {
            page.heading("verdict: none yet");
            page.folded("because", &refusal(error));
        }
    }
    if watch.unreadable() > 0 {
        let unread = plural(watch.unreadable(), "process");
        page.folded(
            "missing",
            &format!("{unread} of the tree could not be read by this user: sizes are lower bounds"),
        );
    }
    page.text()
}

fn evidence(page: &mut Page, watch: &MemoryWatch, found: &MemoryGrowth) {
    page.row("all", slope(&found.whole));
    for part in &found.parts {
        let share = format!("{:.0} % of what grows", part.share * 100.0);
        page.row(name(part.part), format!("{}; {share}", slope(&part.growth)));
        if let (Part::Stacks, Some((first, last))) = (part.part, watch.stacks()) {
            page.row(
                "",
                format!(
                    "{} at first, {} at the end",
                    plural(first, "stack"),
                    count(last as f64)
                ),
            );
        }
    }
    page.folded(
        "from",
        &format!(
            "{} over {} operations, after a warm-up of a third; without what a counting shim would tell, live and free \
             memory of an allocator are one",
            plural(found.whole.samples, "sample"),
            count(found.whole.operations)
        ),
    );
}

/// `grows by 48 B an operation [45 B, 52 B]`.
fn slope(growth: &Growth) -> String {
    let trend = match growth.trend {
        Trend::Grows => "grows",
        Trend::Falls => "falls",
        Trend::Settles => "fills up",
        Trend::Steps => "made one step",
        Trend::Level => "level",
        Trend::Unclear => "unclear",
    };
    format!(
        "{trend}: {} an operation, {:.0} % interval [{}, {}]",
        bytes(growth.slope),
        growth.level * 100.0,
        bytes(growth.low),
        bytes(growth.high)
    )
}

fn words(found: &MemoryGrowth) -> &'static str {
    match found.verdict {
        MemoryVerdict::None if found.whole.trend == Trend::Steps => "no growth, but one step",
        MemoryVerdict::None => "no growth",
        MemoryVerdict::Grows(part) => memory_words::verdict(part),
        MemoryVerdict::Settles => "no lasting growth seen: it fills up",
        MemoryVerdict::Unclear => "not known yet",
    }
}

fn next(verdict: MemoryVerdict) -> &'static str {
    let part = match verdict {
        MemoryVerdict::None => return "nothing; more operations would find slower growth",
        MemoryVerdict::Settles | MemoryVerdict::Unclear => {
            return "watch longer, over more operations";
        }
        MemoryVerdict::Grows(part) => part,
    };
    match part {
        Part::Live => "see who allocates it",
        Part::Internal | Part::External | Part::Retained | Part::Heap | Part::Anonymous => {
            "compare allocators: refit compare malloc=jemalloc malloc=glibc:arena_max=2 -- COMMAND"
        }
        Part::Stacks => "count the threads, and who starts them: ls /proc/PID/task",
        Part::File => {
            "the kernel takes such pages back when it needs memory; see which files: /proc/PID/maps"
        }
        Part::Shared => "see which segments and files: /proc/PID/maps",
        Part::Copied => "prepare before the fork what the children would write to",
        Part::Untouched => "compare without them: refit compare thp=never -- COMMAND",
    }
}

fn refusal(error: GrowthError) -> String {
    match error {
        GrowthError::TooFewSamples(count) => {
            format!("there are {}, and {FEWEST_SAMPLES} are needed", plural(count, "sample"))
        }
        GrowthError::NoOperations => {
            "the count of operations did not rise all the time: growth is measured against the work that is done".to_owned()
        }
        GrowthError::NotFinite | GrowthError::TooStrict => "a sample is not a finite number".to_owned(),
    }
}
