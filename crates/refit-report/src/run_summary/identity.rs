//! What resident memory consisted of, when it was the most.

use refit_run::{IdentityTerm, MEMORY_PARTS, MemoryIdentity, PurgeAnswer};

use crate::format::{bytes, duration, file_name, grouped, plural};

/// Less private memory that is not the heap's is not worth a line.
const LARGE_MAPPINGS: u64 = 1 << 20;

/// What the allocator could have given back.
pub fn purge(answer: &PurgeAnswer) -> String {
    let purge = match answer {
        PurgeAnswer::Unknown(why) => return format!("purge: unknown: {why}"),
        PurgeAnswer::Measured(purge) => purge,
    };
    let times = match purge.measured {
        0 | 1 => String::new(),
        n => format!("; the most of {} measurements", grouped(n)),
    };
    let later = purge.unknown_later.as_ref();
    let later = later.map(|why| format!("; unknown after that: {why}"));
    // What is compared was read in the same copy; the rest is of another moment.
    let of = purge.copy_bytes.map(|all| {
        let all = bytes(all as f64);
        format!(" of {all} of anonymous memory")
    });
    format!(
        "purge would give back {}{}: of {}; the reading before it, after {}: {} resident, {} retained, {} in fragments{times}{}",
        bytes(purge.given_back_bytes as f64),
        of.unwrap_or_default(),
        file_name(&purge.executable),
        duration(purge.at_ms as f64 * 1e6),
        bytes(purge.rss_bytes as f64),
        bytes(purge.retained_bytes as f64),
        bytes(purge.fragments_bytes as f64),
        later.unwrap_or_default(),
    )
}

/// `is_limited`: an address-space limit left no room for the table of live blocks of some heap.
/// `peak_bytes`: what was live at the peak of a heap, requested, by the executable's path.
pub fn lines(
    memory: Option<&MemoryIdentity>,
    is_limited: bool,
    peak_bytes: impl Fn(&str) -> Option<u64>,
    lines: &mut Vec<String>,
) {
    let Some(memory) = memory else {
        let reason = match is_limited {
            true => "live blocks are told from the rest only where the address space has no limit",
            false => "the program ended before it was read",
        };
        lines.push(format!("memory: unknown: {reason}"));
        return;
    };
    let several = match memory.processes {
        0 | 1 => String::new(),
        n => format!(
            ", the largest of {} that have {} together (PSS)",
            plural(n, "process"),
            bytes(memory.tree_pss_bytes as f64)
        ),
    };
    lines.push(format!(
        "memory of {}{several}, after {}, {}: {} resident",
        file_name(&memory.executable),
        duration(memory.at_ms as f64 * 1e6),
        match memory.readings {
            1 => "the only reading".to_owned(),
            n => format!("the most of {}", plural(n, "reading")),
        },
        bytes(memory.rss_bytes as f64)
    ));
    let peak = peak_bytes(&memory.executable).unwrap_or(0);
    // Below that the end of a program explains it.
    if peak > memory.requested_bytes.saturating_mul(2) && peak - memory.requested_bytes > 1 << 20 {
        lines.push(format!(
            "  not its peak: {} were requested and live then, and {} at the peak of its heap",
            bytes(memory.requested_bytes as f64),
            bytes(peak as f64)
        ));
    }
    let mut terms: Vec<&IdentityTerm> = memory.terms.iter().collect();
    terms.sort_by_key(|term| std::cmp::Reverse(term.rss_bytes));
    let is_shown = |term: &&&IdentityTerm| term.rss_bytes > 0;
    for term in terms.iter().filter(is_shown) {
        let known = MEMORY_PARTS.iter().find(|(_, name, ..)| *name == term.term);
        let (what, source) = known.map_or(("", ""), |(_, _, what, source)| (*what, *source));
        lines.push(line(term.rss_bytes as f64, &term.term, what, source));
    }
    lines.extend(not_of_the_heap(memory));
    let unexplained = memory.unexplained_bytes as f64;
    // The sign stands before the bytes.
    let share = 100.0 * unexplained.abs() / memory.rss_bytes.max(1) as f64;
    let moved = match memory.moved_bytes.max(memory.rss_moved_bytes) {
        0 => String::new(),
        moved => format!("; ±{} while it was read", bytes(moved as f64)),
    };
    lines.push(format!(
        "  {:>9}  unexplained ({share:.1} %{moved})",
        signed(unexplained)
    ));
    if memory.not_resident_bytes > 0 {
        lines.push(format!(
            "  and {} that were requested and never touched, or are swapped out",
            bytes(memory.not_resident_bytes as f64)
        ));
    }
    if let Some(huge) = huge_pages(memory.huge_pages_could_add_bytes) {
        lines.push(format!("  {huge}"));
    }
}

/// Where the counted heap is the smaller part of private memory: what is counted is not what the program uses.
fn not_of_the_heap(memory: &MemoryIdentity) -> Option<String> {
    let of = |names: &[&str]| -> u64 {
        let terms = memory.terms.iter();
        let terms = terms.filter(|term| names.contains(&&*term.term));
        terms.map(|term| term.rss_bytes).sum()
    };
    let heap = of(&["live", "rounding", "headers", "fragments", "retained"]);
    let mappings = of(&["mappings"]);
    (mappings > heap && mappings >= LARGE_MAPPINGS).then(|| {
        format!(
            "  the heap that was counted is {} of {} of private memory: the rest comes from mmap(2), or from an \
             allocator that refit does not see",
            bytes(heap as f64),
            bytes((heap + mappings) as f64)
        )
    })
}

/// What more huge pages would cost, where they would cost anything.
pub fn huge_pages(could_add_bytes: Option<u64>) -> Option<String> {
    let added = could_add_bytes.filter(|added| *added > 0)?;
    Some(format!(
        "with transparent huge pages wherever they fit (`always`) up to {} more would be resident",
        bytes(added as f64)
    ))
}

fn line(size: f64, name: &str, what: &str, source: &str) -> String {
    format!("  {:>9}  {name}: {what} ({source})", bytes(size))
}

fn signed(size: f64) -> String {
    let sign = if size < 0.0 { "−" } else { "" };
    format!("{sign}{}", bytes(size.abs()))
}

#[cfg(test)]
mod tests {
    use refit_run::Purge;

    use super::*;

    #[test]
    fn the_largest_term_comes_first_and_the_rest_is_shown() {
        let term = |name: &str, mib: u64| IdentityTerm {
            term: name.to_owned(),
            rss_bytes: mib << 20,
            tree_pss_bytes: mib << 20,
        };
        let memory = MemoryIdentity {
            threads: 1,
            at_ms: 2400,
            readings: 7,
            processes: 3,
            tree_pss_bytes: 90 << 20,
            pid: 5,
            executable: "/usr/bin/ruby".to_owned(),
            rss_bytes: 61 << 20,
            rss_moved_bytes: 8 << 10,
            terms: vec![term("files", 11), term("live", 50), term("shared", 0)],
            unexplained_bytes: -4096,
            requested_bytes: 0,
            not_resident_bytes: 1 << 20,
            moved_bytes: 0,
            huge_pages_could_add_bytes: Some(98 << 20),
        };
        let mut found = Vec::new();
        lines(Some(&memory), false, |_| None, &mut found);
        let expected = [
            "memory of ruby, the largest of 3 processes that have 90 MiB together (PSS), after 2.40 s, the most of 7 \
             readings: 61 MiB resident",
            "     50 MiB  live: requested from malloc and not freed (counted; pagemap)",
            "     11 MiB  files: pages of mapped files (smaps)",
            "   −4.0 KiB  unexplained (0.0 %; ±8.0 KiB while it was read)",
            "  and 1.0 MiB that were requested and never touched, or are swapped out",
            "  with transparent huge pages wherever they fit (`always`) up to 98 MiB more would be resident",
        ];
        assert_eq!(found, expected);
        lines(None, false, |_| None, &mut found);
        assert!(found[6].ends_with("before it was read"), "{found:?}");
        lines(None, true, |_| None, &mut found);
        assert!(found[7].ends_with("has no limit"), "{found:?}");
        // A heap that was read once, long before its peak.
        let early = MemoryIdentity {
            readings: 1,
            requested_bytes: 513 << 10,
            ..memory
        };
        found.clear();
        lines(Some(&early), false, |_| Some(8_900 << 10), &mut found);
        assert!(found[0].contains("the only reading: "), "{found:?}");
        let expected = "  not its peak: 513 KiB were requested and live then, and 8.7 MiB at the peak of its heap";
        assert_eq!(found[1], expected);
    }

    #[test]
    fn a_purge_is_one_line() {
        let measured = Purge {
            at_ms: 7170,
            measured: 2,
            executable: "/usr/bin/ruby".to_owned(),
            retained_bytes: 77 << 20,
            copy_bytes: Some(120 << 20),
            given_back_bytes: 79 << 20,
            ..Purge::default()
        };
        let expected = "purge would give back 79 MiB of 120 MiB of anonymous memory: of ruby; the reading before it, after \
                        7.17 s: 0 B resident, 77 MiB retained, 0 B in fragments; the most of 2 measurements";
        assert_eq!(purge(&PurgeAnswer::Measured(measured)), expected);
        let unknown = PurgeAnswer::Unknown("it has 2 threads".to_owned());
        assert_eq!(purge(&unknown), "purge: unknown: it has 2 threads");
    }
}
