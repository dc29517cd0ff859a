//! What malloc gave out: how much was live, and what the allocator's rounding took.

use refit_run::{
    ExecutableHeap, HeapReport, HeapSize, SizeClass, SizeFit, UncountedHeap, WithoutTable,
};

use crate::coverage::some;
use crate::format::{bytes, file_name, grouped, plural};

/// At most this many executables and size classes.
pub const MOST_EXECUTABLES: usize = 3;
const MOST_CLASSES: usize = 3;
/// Names in the list of what was not counted.
const MOST_GAPS: usize = 8;

/// Where no heap was counted.
pub const NO_HEAP: &str = "heap: unknown: no process was counted";

pub fn lines(heap: &HeapReport, lines: &mut Vec<String>) {
    for executable in heap.executables.iter().take(MOST_EXECUTABLES) {
        of_executable(executable, lines);
    }
    if heap.executables.len() > MOST_EXECUTABLES {
        let more = heap.executables.len() - MOST_EXECUTABLES;
        lines.push(format!(
            "heap: {} more (--json names all)",
            plural(more, "executable")
        ));
    }
    if heap.executables.is_empty() {
        lines.push(NO_HEAP.to_owned());
    }
    lines.extend(not_counted(&heap.uncounted));
}

/// Who was not counted, and why.
pub fn not_counted(uncounted: &[UncountedHeap]) -> Option<String> {
    let uncounted = uncounted.iter().map(|one| {
        let name = file_name(&one.executable);
        format!("{name} ×{} ({})", grouped(one.processes), one.reason)
    });
    let uncounted: Vec<String> = uncounted.collect();
    (!uncounted.is_empty()).then(|| format!("heap not counted: {}", some(&uncounted)))
}

fn of_executable(executable: &ExecutableHeap, lines: &mut Vec<String>) {
    let largest = &executable.largest;
    let name = file_name(&executable.executable);
    let which = match executable.processes {
        0 | 1 => String::new(),
        n => format!(", the largest of {}", plural(n, "process")),
    };
    let (peak, end) = match &largest.without_table {
        None => (size(&largest.peak), size(&largest.end)),
        Some(bounds) => (usable(&largest.peak), bounded(&largest.end, bounds)),
    };
    lines.push(format!(
        "heap of {name}{which}: at its peak {}; at its end {}; {}, {} in all",
        peak,
        end,
        plural(executable.allocations, "allocation"),
        bytes(executable.allocated_bytes as f64)
    ));
    let wasteful = wasteful(&largest.classes);
    if !wasteful.is_empty() {
        lines.push(format!(
            "  rounding at its end, the most first: {}",
            wasteful.join(", ")
        ));
    }
    lines.extend(fit(&largest.fit));
    let counts = [
        (executable.untracked, "blocks not counted"),
        (
            executable.vanished,
            "blocks freed by functions that are not seen",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let gaps = counts
        .map(|(count, what)| format!("{} {what}", grouped(count)))
        .chain(executable.gaps.iter().take(MOST_GAPS).cloned());
    let gaps: Vec<String> = gaps.collect();
    if !gaps.is_empty() {
        lines.push(format!("  not exact: {}", gaps.join("; ")));
    }
}

/// `1.4 MiB usable in 10,000 blocks`.
fn usable(size: &HeapSize) -> String {
    let usable = bytes(size.usable_bytes as f64);
    format!("{usable} usable in {}", plural(size.blocks, "block"))
}

/// `1.4 MiB usable in 10,000 blocks, 1.1 MiB to 1.3 MiB of them requested`.
fn bounded(size: &HeapSize, bounds: &WithoutTable) -> String {
    let least = bytes(bounds.least_requested_bytes as f64);
    let most = bytes(bounds.most_requested_bytes as f64);
    let requested = match least == most {
        true => least,
        false => format!("{least} to {most}"),
    };
    format!("{}, {requested} of them requested", usable(size))
}

/// `1.2 MiB requested in 10,000 blocks, 1.4 MiB usable (14 % rounding)`.
fn size(size: &HeapSize) -> String {
    if size.blocks == 0 {
        return "nothing".to_owned();
    }
    let share = 100.0 * size.internal_bytes() as f64 / size.usable_bytes.max(1) as f64;
    format!(
        "{} requested in {}, {} usable ({share:.0} % rounding)",
        bytes(size.requested_bytes as f64),
        plural(size.blocks, "block"),
        bytes(size.usable_bytes as f64)
    )
}

/// What the blocks would take elsewhere, the least first; `None` where that hardly differs.
fn fit(fits: &[SizeFit]) -> Option<String> {
    let mut fits: Vec<&SizeFit> = fits.iter().collect();
    fits.sort_by_key(|fit| fit.bytes);
    let (least, most) = (fits.first()?.bytes, fits.last()?.bytes);
    if most - least < 4096 || (most - least) * 20 < most {
        return None;
    }
    let alike = fits.chunk_by(|a, b| a.bytes == b.bytes);
    let parts: Vec<String> = alike
        .map(|fits| {
            let names: Vec<&str> = fits.iter().map(|fit| &*fit.allocator).collect();
            format!("{} with {}", bytes(fits[0].bytes as f64), names.join(", "))
        })
        .collect();
    Some(format!(
        "  its blocks of up to 32 KiB would take, by size classes alone: {}",
        parts.join("; ")
    ))
}

fn wasteful(classes: &[SizeClass]) -> Vec<String> {
    let mut classes: Vec<&SizeClass> = classes.iter().collect();
    classes.retain(|class| class.live.internal_bytes() >= 4096);
    classes.sort_by_key(|class| std::cmp::Reverse(class.live.internal_bytes()));
    let classes = classes.into_iter().take(MOST_CLASSES);
    classes
        .map(|class| {
            format!(
                "{} bytes ×{}: {} of {}",
                range(class),
                grouped(class.live.blocks),
                bytes(class.live.internal_bytes() as f64),
                bytes(class.live.usable_bytes as f64)
            )
        })
        .collect()
}

/// `17–24`, in bytes.
fn range(class: &SizeClass) -> String {
    let from = match class.above_bytes {
        0 => 0,
        above => above + 1,
    };
    match class.up_to_bytes {
        Some(to) => format!("{}–{}", grouped(from), grouped(to)),
        None => format!("{} and more", grouped(from)),
    }
}
