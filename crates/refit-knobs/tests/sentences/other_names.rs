//! Names that other tools use for what refit has.

use refit_knobs::Setting;

#[test]
fn what_people_call_it_leads_to_what_it_is_called_here() {
    for (word, meant) in [
        ("fsync=drop", "sync=off"),
        ("fdatasync@exe:a=no", "sync@exe:a=off"),
        ("eatmydata=on", "sync=off"),
        ("nosync=1", "sync=off"),
        ("SYNC=OFF", "sync=off"),
        ("direct=0", "odirect=off"),
        ("o_direct=disabled", "odirect=off"),
        ("alloc=je", "malloc=jemalloc"),
        (
            "allocator=libjemalloc:narena:2",
            "malloc=jemalloc:narenas:2",
        ),
        (
            "malloc=jemaloc:narena=2,decay=0",
            "malloc=jemalloc:narenas:2,dirty_decay_ms:0",
        ),
        ("malloc=system", "malloc=glibc"),
        ("malloc=tcmalloc-minimal", "malloc=tcmalloc"),
        (
            "malloc=mimalloc:MIMALLOC_PURGE_DELAY=0",
            "malloc=mimalloc:purge_delay=0",
        ),
        ("hugepages=no", "thp=never"),
        ("transparent_hugepage=always", "thp=always"),
        ("timezone=Japan", "tz=Japan"),
        ("TZ=Japan", "tz=Japan"),
        ("LD_PRELOAD=/x.so", "preload=/x.so"),
        ("TMP=/x", "env.TMP=/x"),
        ("FOO=bar", "env.FOO=bar"),
        ("fsync_latency=8ms", "disk=8ms"),
        ("latency@/srv/=8", "disk@/srv/=8ms"),
        (r"fsync@/a\=b/=drop", r"sync@/a\=b/=off"),
        ("http_proxy=x", "env.http_proxy=x"),
    ] {
        let sentence = word.parse::<Setting>().expect_err(word).to_string();
        assert!(
            sentence.ends_with(&format!("; did you mean `{meant}`?")),
            "{word}: {sentence}"
        );
    }
}
