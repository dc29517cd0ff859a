//! gperftools' tcmalloc; its options are the variables that its documentation lists (`docs/tcmalloc.adoc`).

use super::takes::Takes;
use super::{Chosen, NamedAllocator, Opt, Tells, Variable, opt};

pub(super) static ALLOCATOR: NamedAllocator = NamedAllocator {
    name: "tcmalloc",
    aliases: &[
        "tc",
        "gperftools",
        "google",
        "tcmalloc_minimal",
        "tcmalloc4",
        "libtcmalloc",
        "libtcmalloc_minimal",
        "libtcmalloc_minimal4",
        "libtcmalloc.so",
        "libtcmalloc_minimal.so",
        "tc_malloc",
    ],
    files: &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
    file_starts: &["libtcmalloc"],
    reads: &[Variable::family("TCMALLOC_", |name, _| {
        vec![name.to_owned()]
    })],
    is_deaf_when_secure: false,
    tells: Tells::Nothing,
    keeping: &[&["release_rate=10"]],
    options: OPTIONS,
    separator: '=',
    variables,
    backend: "LD_PRELOAD, and one TCMALLOC_… variable per option",
    notes: &[
        "this is the tcmalloc of gperftools, not the one that Google publishes under that name today",
        "the C library's mallinfo2 answers with zeros under another allocator",
    ],
};

/// gperftools looks at the first letter only; these are the words that mean what they say.
const FLAG: Takes = Takes::Words(&["true", "false", "yes", "no", "1", "0"]);
const SIZE: Takes = Takes::Number {
    min: 0,
    max: i64::MAX as i128,
    hexadecimal: false,
    words: &[],
};

static OPTIONS: &[Opt] = &[
    opt("release_rate", Takes::Fraction),
    opt("max_total_thread_cache_bytes", SIZE).aliases(&[
        "thread_cache",
        "thread_cache_bytes",
        "max_thread_cache",
    ]),
    opt("aggressive_decommit", FLAG),
    opt("heap_limit_mb", SIZE).note(&[], "beyond the limit allocations fail"),
    opt("large_alloc_report_threshold", SIZE).note(&[], "reports on the program's stderr"),
    opt("sample_parameter", SIZE).note(&[], "libtcmalloc_minimal does not sample"),
    opt("override_pagesize", SIZE),
    opt("skip_mmap", FLAG),
    opt("skip_sbrk", FLAG),
    opt("memfs_malloc_path", Takes::Text),
    opt("memfs_limit_mb", SIZE),
    opt("memfs_abort_on_fail", FLAG).note(&[], "an allocation that fails ends the program"),
    opt("memfs_ignore_mmap_fail", FLAG),
    opt("memfs_map_private", FLAG),
    opt("memfs_disable_fallback", FLAG).note(&[], "an allocation that memfs cannot serve fails"),
];

fn variables(options: &[Chosen]) -> Vec<(String, String)> {
    let name = |chosen: &Chosen| format!("TCMALLOC_{}", chosen.option.name.to_uppercase());
    options
        .iter()
        .map(|chosen| (name(chosen), chosen.value.clone()))
        .collect()
}
