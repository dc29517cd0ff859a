//! mimalloc; its options are those of mimalloc 2.0.9 (`src/options.c`), without the deprecated ones, and purge_delay of
//! later versions.

use super::takes::Takes;
use super::{Chosen, NamedAllocator, Opt, Tells, Variable, opt};

pub(super) static ALLOCATOR: NamedAllocator = NamedAllocator {
    name: "mimalloc",
    aliases: &[
        "mi",
        "mimalloc2",
        "libmimalloc",
        "libmimalloc2",
        "libmimalloc.so",
        "libmimalloc.so.2",
        "mi_malloc",
    ],
    files: &[
        "libmimalloc.so.3",
        "libmimalloc.so.2",
        "libmimalloc.so.2.0",
        "libmimalloc.so",
    ],
    file_starts: &["libmimalloc"],
    reads: &[Variable::family(FAMILY, |name, _| {
        vec![name[FAMILY.len()..].to_lowercase()]
    })],
    is_deaf_when_secure: false,
    // src/options.c.
    tells: Tells::List {
        ask: ("MIMALLOC_VERBOSE", "1"),
        always: "verbose",
    },
    keeping: &[&["decommit_delay=0", "purge_delay=0"]],
    options: OPTIONS,
    separator: '=',
    variables,
    backend: "LD_PRELOAD, and one MIMALLOC_… variable per option",
    notes: &[
        "these are the options of mimalloc 2.0, but for purge_delay, as decommit_delay is called since 2.1; other versions ignore a variable that they do not know, without a word",
        "mimalloc looks at the first 256 variables of the environment only",
        "the C library's mallinfo2 answers with zeros under another allocator",
    ],
};

const FAMILY: &str = "MIMALLOC_";

/// What mimalloc reads as 1 and 0, in any case; it is lower case here.
const WORDS: &[&str] = &["true", "yes", "on", "false", "no", "off"];
/// mimalloc keeps every option in a long and reads it with strtol, base 10.
const LONG: Takes = Takes::Number {
    min: 0,
    max: i64::MAX as i128,
    hexadecimal: false,
    words: &[],
};
const FLAG: Takes = Takes::Number {
    min: 0,
    max: 1,
    hexadecimal: false,
    words: WORDS,
};
const LEVEL: Takes = Takes::Number {
    min: 0,
    max: 9,
    hexadecimal: false,
    words: WORDS,
};
const OR_MINUS_ONE: Takes = Takes::Number {
    min: -1,
    max: i64::MAX as i128,
    hexadecimal: false,
    words: &[],
};

static OPTIONS: &[Opt] = &[
    opt("show_errors", FLAG),
    opt("show_stats", FLAG).note(&[], "prints on the program's stderr when it ends"),
    opt("verbose", LEVEL).note(&[], "prints on the program's stderr"),
    opt("eager_commit", FLAG),
    opt("eager_commit_delay", LONG),
    opt("large_os_pages", FLAG).aliases(&["allow_large_os_pages", "hugetlb", "thp", "hugepages"]),
    opt("reserve_huge_os_pages", LONG),
    opt("reserve_huge_os_pages_at", OR_MINUS_ONE),
    opt("reserve_os_memory", LONG),
    opt("page_reset", FLAG),
    opt("abandoned_page_decommit", FLAG).aliases(&["abandoned_page_reset", "abandoned_page_purge"]),
    opt("allow_decommit", FLAG).aliases(&["purge_decommits", "reset_decommits"]),
    opt("decommit_delay", LONG).aliases(&["reset_delay"]),
    // decommit_delay under the name that it has since mimalloc 2.1.
    opt("purge_delay", LONG),
    opt("segment_decommit_delay", LONG),
    opt("decommit_extend_delay", LONG).aliases(&["purge_extend_delay"]),
    opt("use_numa_nodes", LONG),
    opt("limit_os_alloc", FLAG)
        .aliases(&["disallow_os_alloc"])
        .note(
            &[],
            "memory comes from reserved arenas only, so allocations can fail",
        ),
    opt("max_segment_reclaim", LONG),
    opt("max_errors", OR_MINUS_ONE),
    opt("max_warnings", OR_MINUS_ONE),
    opt("os_tag", LONG),
    opt("destroy_on_exit", FLAG).note(
        &[],
        "memory that is freed or read after exit handlers ran is gone by then",
    ),
];

fn variables(options: &[Chosen]) -> Vec<(String, String)> {
    let name = |chosen: &Chosen| format!("{FAMILY}{}", chosen.option.name.to_uppercase());
    options
        .iter()
        .map(|chosen| (name(chosen), chosen.value.clone()))
        .collect()
}
