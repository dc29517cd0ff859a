//! jemalloc; its options are the `opt.*` names of jemalloc 5.3's manual, with what its source accepts.

use super::takes::Takes;
use super::{Chosen, NamedAllocator, Opt, Tells, Variable, names, opt};

pub(super) static ALLOCATOR: NamedAllocator = NamedAllocator {
    name: "jemalloc",
    aliases: &[
        "je",
        "jemalloc2",
        "libjemalloc",
        "libjemalloc2",
        "libjemalloc.so",
        "libjemalloc.so.2",
        "je_malloc",
    ],
    files: &["libjemalloc.so.2"],
    file_starts: &["libjemalloc"],
    reads: &[Variable::one(
        "MALLOC_CONF",
        Some(|_, value| names(value, ',', ':')),
    )],
    // secure_getenv(3).
    is_deaf_when_secure: true,
    // `<jemalloc>: Invalid conf pair: foo:bar` (src/jemalloc.c, malloc_conf_error).
    tells: Tells::Complaint("<jemalloc>: ", "conf"),
    keeping: &[&["dirty_decay_ms:0"], &["background_thread:true"]],
    options: OPTIONS,
    separator: ':',
    variables,
    backend: "LD_PRELOAD, and MALLOC_CONF for the options",
    notes: &[
        "MALLOC_CONF is read by every jemalloc in the tree, one that a program brings along included",
        "an option that the installed version was built without makes it complain on the program's stderr",
        "the C library's mallinfo2 answers with zeros under another allocator",
    ],
};

const FLAG: Takes = Takes::Words(&["true", "false"]);
const SIZE: Takes = from(0, u64::MAX);
/// -1 means never.
const OR_NEVER: Takes = from(-1, i64::MAX as u64);

const fn from(min: i128, max: u64) -> Takes {
    Takes::Number {
        min,
        max: max as i128,
        hexadecimal: true,
        words: &[],
    }
}

const PROFILING: &str = "only in builds with --enable-prof";

static OPTIONS: &[Opt] = &[
    opt("narenas", Takes::Number { min: 1, max: u32::MAX as i128, hexadecimal: true, words: &["default"] })
        .aliases(&["arenas", "arena_max"]),
    opt("dirty_decay_ms", OR_NEVER).aliases(&["decay", "decay_ms", "dirty_decay"]),
    opt("muzzy_decay_ms", OR_NEVER).aliases(&["muzzy_decay"]),
    opt("background_thread", FLAG).aliases(&["background_threads"]).note(
        &["true"],
        "jemalloc's manual warns that enabling it this way may crash or deadlock the program while it starts",
    ),
    opt("max_background_threads", from(1, u64::MAX)),
    opt("percpu_arena", Takes::Words(&["percpu", "phycpu", "disabled"])),
    opt("oversize_threshold", SIZE),
    opt("tcache", FLAG),
    opt("tcache_max", SIZE),
    opt("lg_tcache_max", from(0, 63)),
    opt("thp", Takes::Words(&["default", "always", "never"])).aliases(&["hugepages", "hugetlb"]),
    opt("metadata_thp", Takes::Words(&["disabled", "auto", "always"])),
    opt("retain", FLAG),
    opt("trust_madvise", FLAG),
    opt("dss", Takes::Words(&["disabled", "primary", "secondary"])),
    opt("lg_extent_max_active_fit", from(0, 63)),
    opt("cache_oblivious", FLAG).note(&[], "5.3.0 documents it but refuses it on the program's stderr; 5.3.1 reads it"),
    opt("zero_realloc", Takes::Words(&["alloc", "free", "abort"])).note(&["abort"], "realloc(p, 0) ends the program"),
    opt("junk", Takes::Words(&["true", "false", "alloc", "free"])),
    opt("zero", FLAG),
    opt("utrace", FLAG).note(&[], "only in builds with --enable-utrace, for systems that have utrace(2)"),
    opt("xmalloc", FLAG).note(&[], "only in builds with --enable-xmalloc; an allocation that fails ends the program"),
    opt("abort", FLAG).note(&["true"], "most of jemalloc's warnings end the program"),
    opt("abort_conf", FLAG).note(&["true"], "an option that jemalloc does not understand ends the program"),
    opt("confirm_conf", FLAG),
    opt("stats_print", FLAG).note(&["true"], "prints on the program's stderr when it ends"),
    opt("stats_print_opts", Takes::Text),
    opt("stats_interval", OR_NEVER),
    opt("stats_interval_opts", Takes::Text),
    opt("prof", FLAG).note(&["true"], PROFILING),
    opt("prof_prefix", Takes::Text).note(&[], PROFILING),
    opt("prof_active", FLAG).note(&[], PROFILING),
    opt("prof_thread_active_init", FLAG).note(&[], PROFILING),
    opt("lg_prof_sample", from(0, 63)).note(&[], PROFILING),
    opt("prof_accum", FLAG).note(&[], PROFILING),
    opt("lg_prof_interval", from(-1, 63)).note(&[], PROFILING),
    opt("prof_gdump", FLAG).note(&[], PROFILING),
    opt("prof_final", FLAG).note(&[], PROFILING),
    opt("prof_leak", FLAG).note(&[], PROFILING),
    opt("prof_leak_error", FLAG).note(&["true"], "a leak changes the program's exit code; only in builds with --enable-prof"),
];

fn variables(options: &[Chosen]) -> Vec<(String, String)> {
    let pair = |chosen: &Chosen| format!("{}:{}", chosen.option.name, chosen.value);
    let pairs: Vec<_> = options.iter().map(pair).collect();
    vec![("MALLOC_CONF".to_owned(), pairs.join(","))]
}
