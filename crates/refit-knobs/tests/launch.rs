//! What the settings ask of the launcher.

use std::ffi::OsString;
use std::path::PathBuf;

use refit_knobs::{Allocator, AllocatorKind, Class, Launch, Scope, Settings, SwitchRule, Thp};

fn settings(words: &str) -> Settings {
    Settings::parse(words.split_whitespace().map(OsString::from)).expect(words)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn no_settings_ask_for_nothing() {
    let none = settings("");
    assert!(none.is_empty());
    assert_eq!(none.launch(), Launch::default());
    assert_eq!(none.class(), Class::Safe);
    assert_eq!(none.to_string(), "");
}

#[test]
fn everything_keeps_its_order() {
    let words = "sync=off sync@exe:cleanup=on odirect@exe:mariadbd=off malloc=jemalloc:narenas=2,dirty_decay_ms:0 \
                 thp=never tz=right/Japan env.LANG= preload=/b.so preload=/a.so env.A==x conf.queue=tmpfs";
    let rule = |exe: Option<&str>, on| SwitchRule {
        scope: exe.map(exe_scope),
        on,
    };
    let expected = Launch {
        sync: vec![rule(None, false), rule(Some("cleanup"), true)],
        odirect: vec![rule(Some("mariadbd"), false)],
        disk: None,
        malloc: Some(Allocator {
            kind: AllocatorKind::Jemalloc,
            env: pairs(&[("MALLOC_CONF", "narenas:2,dirty_decay_ms:0")]),
        }),
        thp: Some(Thp::Never),
        env: pairs(&[("TZ", "right/Japan"), ("LANG", ""), ("A", "=x")]),
        preload: vec![PathBuf::from("/b.so"), PathBuf::from("/a.so")],
        conf: pairs(&[("queue", "tmpfs")]),
    };
    let settings = settings(words);
    assert_eq!(settings.launch(), expected);
    assert_eq!(
        settings.to_string(),
        words.replace("narenas=2", "narenas:2")
    );
}

#[test]
fn options_travel_in_the_allocators_own_variables() {
    for (word, kind, env) in [
        ("malloc=glibc", AllocatorKind::Glibc, &[][..]),
        (
            "malloc=glibc:arena_max=2,mmap_threshold=0x20000",
            AllocatorKind::Glibc,
            &[(
                "GLIBC_TUNABLES",
                "glibc.malloc.arena_max=2:glibc.malloc.mmap_threshold=0x20000",
            )][..],
        ),
        (
            "malloc=mimalloc:large_os_pages=1,decommit_delay=0",
            AllocatorKind::Mimalloc,
            &[
                ("MIMALLOC_LARGE_OS_PAGES", "1"),
                ("MIMALLOC_DECOMMIT_DELAY", "0"),
            ][..],
        ),
        (
            "malloc=tcmalloc:release_rate=2.5,memfs_malloc_path=/a:b",
            AllocatorKind::Tcmalloc,
            &[
                ("TCMALLOC_RELEASE_RATE", "2.5"),
                ("TCMALLOC_MEMFS_MALLOC_PATH", "/a:b"),
            ][..],
        ),
        (
            "malloc=/opt/je/lib.so",
            AllocatorKind::Path(PathBuf::from("/opt/je/lib.so")),
            &[][..],
        ),
    ] {
        assert_eq!(
            settings(word).launch().malloc,
            Some(Allocator {
                kind,
                env: pairs(env)
            }),
            "{word}"
        );
    }
}

#[test]
fn classes_are_those_of_the_design() {
    for (words, class, text) in [
        ("sync=on odirect@exe:x=on", Class::Safe, "safe"),
        ("sync@exe:x=off", Class::LosesOnCrash, "loses-on-crash"),
        (
            "odirect=off malloc=glibc",
            Class::LosesOnCrash,
            "loses-on-crash",
        ),
        ("malloc=/x.so thp=always", Class::Safe, "safe"),
        (
            "tz=UTC sync=off",
            Class::ChangesBehaviour,
            "changes-behaviour",
        ),
        ("env.A=1", Class::ChangesBehaviour, "changes-behaviour"),
        (
            "preload=/x.so",
            Class::ChangesBehaviour,
            "changes-behaviour",
        ),
    ] {
        assert_eq!(settings(words).class(), class, "{words}");
        assert_eq!(class.to_string(), text);
    }
    assert!(Class::Safe < Class::LosesOnCrash && Class::LosesOnCrash < Class::ChangesBehaviour);
}

#[test]
fn an_explanation_warns_of_what_its_options_do() {
    let notes = |word: &str| settings(word).0[0].explain().notes.join("\n");
    assert!(notes("malloc=jemalloc:background_thread:true").contains("may crash or deadlock"));
    assert!(!notes("malloc=jemalloc:background_thread:false").contains("deadlock"));
    assert!(notes("sync@exe:sh=off").contains("a script matches its interpreter"));
}

/// `Scope::Exe` of a name; names are made by parsing only.
fn exe_scope(name: &str) -> Scope {
    let word = format!("sync@exe:{name}=on");
    let setting: refit_knobs::Setting = word.parse().expect("a name");
    setting.scope().cloned().map(Scope::Exe).expect("a scope")
}
