//! Words of a command line that no grammar made.

use refit_fuzz::Target;

use crate::properties::holds_for;
use crate::{KNOBS, Settings};

/// A line of it is a word.
#[test]
fn settings() {
    let words = [
        "sync=off",
        "sync@exe:cleanup=off",
        "sync@/var/spool/postfix/=off",
        "odirect=off",
        "disk=8ms",
        "disk=p50=4ms,p99=30ms",
        "disk=fail:EIO,every=3",
        "disk=fail:ENOSPC,p=0.5",
        "disk=/a/profile.json",
        "malloc=glibc:arena_max=2,trim_threshold=1",
        "malloc=jemalloc:narenas:2,background_thread:true",
        "malloc=mimalloc:purge_delay=0",
        "malloc=tcmalloc",
        "malloc=/usr/lib/x.so",
        "thp=never",
        "program=/bin/true",
        "tz=UTC",
        "env.NAME=value",
        "preload=/usr/lib/x.so",
        "conf.journal=wal",
        "sync=off+malloc=jemalloc+tz=UTC",
        "env.A=1\\+sync=off",
        "sync@/a/**/x*?=off\nsync=on",
    ];
    let marks = [
        "@exe:", "@/", "+", "\\+", "\\\\", "fail:", "every=", "after=", "p50=", "ms", "us", "s",
        "/./", "//",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "settings")
        .seeds(words)
        .words(KNOBS.iter().map(|knob| knob.name))
        .words(marks)
        .longest(512)
        .run(|input| {
            let text = String::from_utf8_lossy(input);
            let words: Vec<&str> = text.split('\n').collect();
            for word in &words {
                if let Err(error) = holds_for(word) {
                    panic!("{word:?}: {error}");
                }
            }
            match Settings::parse(words.iter().map(Into::into)) {
                Ok(settings) => {
                    let printed = settings.to_string();
                    assert_eq!(settings.launch(), settings.launch());
                    assert!(printed.split(' ').count() >= words.len(), "{printed}");
                }
                // It names the offending text, which is one of the words.
                Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
            }
        });
}
