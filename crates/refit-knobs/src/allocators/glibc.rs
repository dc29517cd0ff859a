//! The C library's own allocator; its options are the `glibc.malloc.*` tunables of glibc 2.36.

use super::takes::Takes;
use super::{Chosen, NamedAllocator, Opt, Tells, Variable, names, opt};

pub(super) static ALLOCATOR: NamedAllocator = NamedAllocator {
    name: "glibc",
    aliases: &["libc", "system", "default", "ptmalloc", "ptmalloc2", "gnu"],
    files: &["libc.so.6"],
    file_starts: &["libc.so.6", "libc-2."],
    reads: &[
        Variable::one("GLIBC_TUNABLES", Some(of_malloc)),
        // mallopt(3).
        Variable::one("MALLOC_ARENA_MAX", None),
        Variable::one("MALLOC_ARENA_TEST", None),
        Variable::one("MALLOC_TOP_PAD_", None),
        Variable::one("MALLOC_PERTURB_", None),
        Variable::one("MALLOC_MMAP_MAX_", None),
        Variable::one("MALLOC_MMAP_THRESHOLD_", None),
        Variable::one("MALLOC_TRIM_THRESHOLD_", None),
    ],
    // ld.so drops them.
    is_deaf_when_secure: true,
    tells: Tells::Tunables("glibc.malloc.arena_max"),
    keeping: &[&["arena_max=2"], &["trim_threshold=131072"]],
    options: OPTIONS,
    separator: '=',
    variables,
    backend: "GLIBC_TUNABLES, which ld.so reads when a program starts; nothing is preloaded",
    notes: &[
        "a tunable that this glibc does not know is ignored without a word: compare with `ld.so --list-tunables`",
        "programs built for musl have another allocator, which has no options",
    ],
};

const SIZE: Takes = up_to(0, u64::MAX);

const fn up_to(min: i128, max: u64) -> Takes {
    Takes::Number {
        min,
        max: max as i128,
        hexadecimal: true,
        words: &[],
    }
}

// Limits as `ld.so --list-tunables` prints them: out of them a value is ignored.
static OPTIONS: &[Opt] = &[
    opt("arena_max", up_to(1, u64::MAX)).aliases(&["arenas", "narenas", "m_arena_max"]),
    opt("arena_test", up_to(1, u64::MAX)),
    opt("mmap_max", up_to(0, 0x7fff_ffff)),
    opt("mmap_threshold", SIZE),
    opt("trim_threshold", SIZE),
    opt("top_pad", SIZE),
    opt("perturb", up_to(0, 255)),
    opt("check", up_to(0, 3)).note(&[], "works only with libc_malloc_debug.so preloaded, and may abort the program"),
    opt("tcache_max", SIZE),
    opt("tcache_count", SIZE).aliases(&["tcache"]),
    opt("tcache_unsorted_limit", SIZE),
    opt("mxfast", SIZE).aliases(&["fastbin", "fastbins"]),
    opt("hugetlb", SIZE).aliases(&["thp", "hugepages"]).note(
        &[],
        "1 asks for transparent huge pages with madvise, 2 or a size takes pages from the hugetlb pool; since glibc 2.35",
    ),
];

fn of_malloc(_: &str, tunables: &str) -> Vec<String> {
    let mut all = names(tunables, ':', '=');
    all.retain(|name| name.starts_with("glibc.malloc."));
    all
}

fn variables(options: &[Chosen]) -> Vec<(String, String)> {
    let tunable = |chosen: &Chosen| format!("glibc.malloc.{}={}", chosen.option.name, chosen.value);
    let tunables: Vec<_> = options.iter().map(tunable).collect();
    vec![("GLIBC_TUNABLES".to_owned(), tunables.join(":"))]
}
