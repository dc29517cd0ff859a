//! What the settings ask of the launcher.

use std::ffi::OsString;
use std::path::PathBuf;

use refit_knobs::{
    ALLOCATORS, Allocator, AllocatorKind, Class, Disk, DiskRule, Launch, Scope, Settings,
    SwitchRule, Thp, When,
};

fn settings(words: &str) -> Settings {
    Settings::parse(words.split_whitespace().map(OsString::from)).expect(words)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn named(name: &str) -> AllocatorKind {
    let found = ALLOCATORS.iter().find(|one| one.name == name);
    AllocatorKind::Named(found.expect("it has a row"))
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
                 thp=never tz=right/Japan env.LANG= preload=/b.so preload=/a.so env.A==x schema=/s.sql conf.queue=tmpfs load.sessions=4";
    let rule = |exe: Option<&str>, on| SwitchRule {
        scope: exe.map(exe_scope),
        on,
    };
    let expected = Launch {
        sync: vec![rule(None, false), rule(Some("cleanup"), true)],
        odirect: vec![rule(Some("mariadbd"), false)],
        disk: None,
        malloc: Some(Allocator {
            kind: named("jemalloc"),
            env: pairs(&[("MALLOC_CONF", "narenas:2,dirty_decay_ms:0")]),
        }),
        thp: Some(Thp::Never),
        program: None,
        tz: Some("right/Japan".to_owned()),
        env: pairs(&[("LANG", ""), ("A", "=x")]),
        preload: vec![PathBuf::from("/b.so"), PathBuf::from("/a.so")],
        schema: Some("/s.sql".to_owned()),
        load: pairs(&[("sessions", "4")]),
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
fn rules_of_paths_and_programs_keep_their_order() {
    let words = r"sync@/var/spool/=off sync@exe:qmgr=on sync@/var/spool/a\=b=on sync=off odirect@/srv/**.ibd=off";
    let path = |path: &str, on| SwitchRule {
        scope: Some(Scope::Path(path.to_owned())),
        on,
    };
    let settings = settings(words);
    let launch = settings.launch();
    assert_eq!(
        launch.sync,
        [
            path("/var/spool/", false),
            SwitchRule {
                scope: Some(exe_scope("qmgr")),
                on: true
            },
            path("/var/spool/a=b", true),
            SwitchRule {
                scope: None,
                on: false
            },
        ]
    );
    assert_eq!(launch.odirect, [path("/srv/**.ibd", false)]);
    assert_eq!(settings.to_string(), words);
}

#[test]
fn a_disk_is_described_in_plain_numbers() {
    let fail = |errno, when| Disk::Fail { errno, when };
    for (word, scope, disk) in [
        ("disk=8ms", None, Disk::Latency(vec![(5000, 8_000_000)])),
        (
            "disk@exe:cleanup=p50=4ms,p99.9=1.5s",
            Some(exe_scope("cleanup")),
            Disk::Latency(vec![(5000, 4_000_000), (9990, 1_500_000_000)]),
        ),
        (
            "disk@/srv/=/var/lib/slow.json",
            Some(Scope::Path("/srv/".to_owned())),
            Disk::Profile(PathBuf::from("/var/lib/slow.json")),
        ),
        ("disk=fail:EIO", None, fail((5, "EIO"), When::Always)),
        (
            "disk=fail:EIO,every=7",
            None,
            fail((5, "EIO"), When::Every(7)),
        ),
        (
            "disk=fail:ENOSPC,after=7",
            None,
            fail((28, "ENOSPC"), When::After(7)),
        ),
        (
            "disk=fail:EDQUOT,p=2.5%",
            None,
            fail((122, "EDQUOT"), When::Chance(25_000)),
        ),
        (
            "disk=fail:EROFS,p=1",
            None,
            fail((30, "EROFS"), When::Chance(1_000_000)),
        ),
    ] {
        assert_eq!(
            settings(word).launch().disk,
            Some(DiskRule { scope, disk }),
            "{word}"
        );
        assert_eq!(settings(word).class(), Class::ChangesBehaviour, "{word}");
    }
    assert_eq!(settings("disk@exe:x=real").launch(), Launch::default());
    assert_eq!(settings("disk=real").class(), Class::Safe);
}

#[test]
fn options_travel_in_the_allocators_own_variables() {
    for (word, kind, env) in [
        ("malloc=glibc", named("glibc"), &[][..]),
        (
            "malloc=glibc:arena_max=2,mmap_threshold=0x20000",
            named("glibc"),
            &[(
                "GLIBC_TUNABLES",
                "glibc.malloc.arena_max=2:glibc.malloc.mmap_threshold=0x20000",
            )][..],
        ),
        (
            "malloc=mimalloc:large_os_pages=1,decommit_delay=0",
            named("mimalloc"),
            &[
                ("MIMALLOC_LARGE_OS_PAGES", "1"),
                ("MIMALLOC_DECOMMIT_DELAY", "0"),
            ][..],
        ),
        (
            "malloc=tcmalloc:release_rate=2.5,memfs_malloc_path=/a:b",
            named("tcmalloc"),
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

#[test]
fn an_explanation_fits_its_scope_and_its_disk() {
    let text = |word: &str| {
        let e = settings(word).0[0].explain();
        let lists = [e.covers, e.not_covered, e.notes].concat();
        format!(
            "{}\n{}\n{}\n{}",
            e.swaps,
            e.risk,
            e.backend,
            lists.join("\n")
        )
    };
    for (word, has, has_not) in [
        (
            "sync@/srv/=off",
            &[
                "moment of the sync",
                "msync, syncfs and sync()",
                "are resolved when",
            ][..],
            &["/proc/self/exe"][..],
        ),
        (
            "sync=off",
            &["seccomp", "`@/PATH` to files"],
            &["msync, syncfs"],
        ),
        ("sync=on", &["real, not counted"], &["with the filter"]),
        (
            "odirect@/srv/=off",
            &["right after the open", "are resolved when"],
            &[],
        ),
        (
            "odirect=off",
            &["C library's fcntl(F_SETFL)"],
            &["set later with fcntl(F_SETFL), or"],
        ),
        (
            "disk=8ms",
            &[
                "8ms for each flush",
                "flushes are shared",
                "longer of both",
                "the two add up",
                "O_DSYNC",
            ],
            &["log-normal", "one queue", "after those before it"],
        ),
        ("disk=p50=4ms,p99=30ms", &["log-normal"], &["8ms for"]),
        ("disk=/a/slow.json", &["/a/slow.json", "--probe-disk"], &[]),
        (
            "disk=fail:ENOSPC,every=3",
            &[
                "one in 3 fails with ENOSPC",
                "kernel is not asked",
                "sync(2), which cannot fail",
            ],
            &["queue", "fdatasync, sync, syncfs"],
        ),
        ("disk=fail:EIO,p=1.5%", &["chance of 1.5 %"], &[]),
        ("disk=real", &["nothing"], &["seccomp"]),
    ] {
        let text = text(word);
        for part in has {
            assert!(text.contains(part), "{word}: {part} is not in {text}");
        }
        for part in has_not {
            assert!(!text.contains(part), "{word}: {part} is in {text}");
        }
    }
}

/// `Scope::Exe` of a name; names are made by parsing only.
fn exe_scope(name: &str) -> Scope {
    let word = format!("sync@exe:{name}=on");
    let setting: refit_knobs::Setting = word.parse().expect("a name");
    setting.scope().cloned().expect("a scope")
}
