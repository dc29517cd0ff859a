//! gperftools' tcmalloc; its options are the variables that its documentation lists (`docs/tcmalloc.adoc`).

use super::allocator::{Chosen, Named, Opt, opt};
use super::takes::Takes;
use crate::launch::AllocatorKind;

pub(super) static ALLOCATOR: Named = Named {
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
    kind: AllocatorKind::Tcmalloc,
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
