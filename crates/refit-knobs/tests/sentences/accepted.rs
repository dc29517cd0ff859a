//! Words that are accepted.

use refit_knobs::Setting;

#[test]
fn accepted_words_print_in_canonical_form() {
    for (word, canonical) in [
        ("sync=on", "sync=on"),
        ("sync@exe:python3.11=off", "sync@exe:python3.11=off"),
        ("sync@exe:g++=off", "sync@exe:g++=off"),
        ("odirect@exe:mariadbd=off", "odirect@exe:mariadbd=off"),
        (
            "sync@/var/spool/postfix/=off",
            "sync@/var/spool/postfix/=off",
        ),
        ("sync@/=off", "sync@/=off"),
        ("sync@/srv/*/db.?/**.log=on", "sync@/srv/*/db.?/**.log=on"),
        ("odirect@/a+b@c:d é/..x=off", "odirect@/a+b@c:d é/..x=off"),
        (r"sync@/a\=b\=c/=off", r"sync@/a\=b\=c/=off"),
        (r"sync@/a\b\\=off", r"sync@/a\b\\=off"),
        (r"sync@exe:a\=b=off", r"sync@exe:a\=b=off"),
        (r"sync@/x\+tz.y+z/=off", r"sync@/x\+tz.y+z/=off"),
        ("disk=real", "disk=real"),
        ("disk=8000us", "disk=8ms"),
        ("disk=0.5ms", "disk=500us"),
        ("disk=60s", "disk=60s"),
        ("disk@exe:cleanup=1.50ms", "disk@exe:cleanup=1.5ms"),
        (
            "disk@/srv/=p50=4000us,p99.90=0.03s",
            "disk@/srv/=p50=4ms,p99.9=30ms",
        ),
        ("disk=p1=1ns,p99.99=1ns", "disk=p1=1ns,p99.99=1ns"),
        ("disk=/var/lib/a+b,c.json", "disk=/var/lib/a+b,c.json"),
        ("disk=fail:EIO", "disk=fail:EIO"),
        ("disk=fail:ENOSPC,after=007", "disk=fail:ENOSPC,after=7"),
        ("disk=fail:EDQUOT,every=1", "disk=fail:EDQUOT,every=1"),
        ("disk=fail:EROFS,p=1%", "disk=fail:EROFS,p=0.01"),
        ("disk=fail:EIO,p=0.000001", "disk=fail:EIO,p=0.000001"),
        ("disk=fail:EIO,p=100%", "disk=fail:EIO,p=1"),
        ("malloc=glibc", "malloc=glibc"),
        ("malloc=glibc:arena_max:2", "malloc=glibc:arena_max=2"),
        (
            "malloc=jemalloc:narenas=2,dirty_decay_ms:0",
            "malloc=jemalloc:narenas:2,dirty_decay_ms:0",
        ),
        (
            "malloc=jemalloc:prof_prefix:/tmp/a:b=c",
            "malloc=jemalloc:prof_prefix:/tmp/a:b=c",
        ),
        ("malloc=mimalloc:verbose:1", "malloc=mimalloc:verbose=1"),
        ("malloc=/usr/lib/x+y.so", "malloc=/usr/lib/x+y.so"),
        ("thp=madvise", "thp=madvise"),
        ("tz=:America/New_York", "tz=:America/New_York"),
        ("tz=UTC+3", "tz=UTC+3"),
        ("env.EMPTY=", "env.EMPTY="),
        ("env.CXXFLAGS=-O2 -g a=b+c=d", "env.CXXFLAGS=-O2 -g a=b+c=d"),
        ("preload=/opt/x.so", "preload=/opt/x.so"),
        (
            r"preload=/opt/x\+env.d/lib.so",
            r"preload=/opt/x\+env.d/lib.so",
        ),
        (r"sync@exe:clang\+\+=off", "sync@exe:clang++=off"),
    ] {
        assert_eq!(word.parse::<Setting>().expect(word).to_string(), canonical);
    }
}
