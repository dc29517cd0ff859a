//! Settings joined in one word: what is read, what is printed, and the sentence for what is neither.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use refit_knobs::{Class, Scope, Settings, SwitchRule, Variant};

fn variant(word: &str) -> Variant {
    Variant::parse(word).expect(word)
}

fn settings(words: &str) -> Settings {
    Settings::parse(words.split_whitespace().map(OsString::from)).expect(words)
}

#[test]
fn a_joined_word_holds_its_settings_in_order() {
    for (word, words, class) in [
        ("sync=off", "sync=off", Class::LosesOnCrash),
        (
            "malloc=jemalloc+thp=never",
            "malloc=jemalloc thp=never",
            Class::Safe,
        ),
        (
            "sync=off+sync@exe:g++=on+malloc=glibc:arena_max:2+tz=UTC+3+env.A=",
            "sync=off sync@exe:g++=on malloc=glibc:arena_max=2 tz=UTC+3 env.A=",
            Class::ChangesBehaviour,
        ),
    ] {
        let variant = variant(word);
        assert_eq!(variant.settings(), &settings(words), "{word}");
        assert_eq!(variant.class(), class, "{word}");
        assert_eq!(variant.to_string(), word.replace("max:2", "max=2"));
        assert_eq!(settings(word), settings(words), "{word}");
    }
}

#[test]
fn an_escaped_plus_is_part_of_the_value() {
    let library = r"preload=/opt/x\+env.d/lib.so";
    assert_eq!(
        settings(library).launch().preload,
        [PathBuf::from("/opt/x+env.d/lib.so")]
    );
    for (word, canonical, env) in [
        (
            r"env.A=1\+sync=off",
            r"env.A=1\+sync=off",
            &[("A", "1+sync=off")][..],
        ),
        (r"env.A=1\+2", "env.A=1+2", &[("A", "1+2")]),
        (r"env.A=a\\+", r"env.A=a\\+", &[("A", r"a\+")]),
        (r"env.A=C:\x\", r"env.A=C:\x\", &[("A", r"C:\x\")]),
        (
            r"env.A=C:\x\\+env.B=\\\+tz=",
            r"env.A=C:\x\\+env.B=\\\+tz=",
            &[("A", r"C:\x\"), ("B", r"\+tz=")],
        ),
    ] {
        let variant = variant(word);
        let launch = variant.settings().launch();
        let pairs: Vec<_> = launch
            .env
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        assert_eq!(pairs, env, "{word}");
        assert_eq!(variant.to_string(), canonical);
    }
}

#[test]
fn the_baseline_swaps_nothing_and_is_never_typed() {
    let baseline = Variant::baseline();
    assert!(baseline.settings().is_empty());
    assert_eq!(baseline.class(), Class::Safe);
    assert_eq!(baseline.to_string(), "baseline");
    assert_eq!(format!("{baseline:>10}|"), "  baseline|");
}

#[test]
fn each_refusal_has_its_sentence() {
    for (word, sentence) in [
        (
            "baseline",
            "`baseline` is always included; leave it out, and name what to compare it with, as in `sync=off`",
        ),
        (
            "Bare",
            "`bare` is not a variant but an option; write `--bare` in its place",
        ),
        (
            "",
            "an empty word is not a setting; write a setting as in `sync=off`, or the command after `--`",
        ),
        (
            "+sync=off+tz=UTC",
            "there is no setting before the first `+`; write `sync=off+tz=UTC`",
        ),
        (
            "+tz=UTC+tz=Japan",
            "`tz` is given twice, `tz=UTC` and `tz=Japan`; keep one of them",
        ),
        (
            "+sync=of",
            "`sync` cannot be `of`: expected `on` or `off`; did you mean `sync=off`?",
        ),
        (
            "malloc=je+sync=off",
            "`malloc` cannot be `je`: expected `glibc`, `jemalloc`, `mimalloc`, `tcmalloc` or `/path/lib.so`; \
             did you mean `malloc=jemalloc`?",
        ),
        (
            "malloc=glibc+sync=off+malloc=jemalloc",
            "`malloc` is given twice, `malloc=glibc` and `malloc=jemalloc`; keep one of them",
        ),
        (
            "tz=UTC+env.TZ=Japan",
            "`tz=UTC` and `env.TZ=Japan` both set TZ; keep one of them",
        ),
        // No knob's name after the plus, so it did not join; that name is what to mend.
        (
            "sync=off+maloc=jemalloc",
            "unknown setting `maloc`; did you mean `malloc=jemalloc`?",
        ),
        (
            "thp=never+malloc=jemalloc:narenas:2+syn=off",
            "unknown setting `syn`; did you mean `sync=off`?",
        ),
        (
            r"sync=off\+malloc=jemalloc",
            "`sync` cannot be `off+malloc=jemalloc`: expected `on` or `off`; write it as in `sync=off`",
        ),
    ] {
        let error = Variant::parse(word).expect_err(word);
        assert_eq!(error.to_string(), sentence, "{word}");
    }
    let word = OsStr::from_bytes(b"sync=off+env.A=\xff");
    let sentence = Variant::parse_os(word).expect_err("not UTF-8").to_string();
    assert!(sentence.contains("is not UTF-8"), "{sentence}");
}

#[test]
fn a_suggestion_is_escaped_as_it_has_to_be_typed() {
    let error = Variant::parse(r"LD_PRELOAD=/opt/x\+env.d/lib.so").expect_err("no such knob");
    assert!(
        error
            .to_string()
            .ends_with(r"; did you mean `preload=/opt/x\+env.d/lib.so`?"),
        "{error}"
    );
}

#[test]
fn what_is_joined_later_replaces_what_it_excludes() {
    let with = settings("sync=off malloc=jemalloc env.A=1 env.MALLOC_CONF=narenas:2");
    for (more, expected) in [
        (
            "thp=never+malloc=glibc",
            "sync=off env.A=1 env.MALLOC_CONF=narenas:2 thp=never malloc=glibc",
        ),
        (
            "env.A=2+tz=UTC",
            "sync=off malloc=jemalloc env.MALLOC_CONF=narenas:2 env.A=2 tz=UTC",
        ),
        (
            "malloc=jemalloc:narenas:4",
            "sync=off env.A=1 malloc=jemalloc:narenas:4",
        ),
        (
            "sync=on",
            "sync=off malloc=jemalloc env.A=1 env.MALLOC_CONF=narenas:2 sync=on",
        ),
    ] {
        let joined = with.join(variant(more).settings());
        assert_eq!(joined.to_string(), expected, "{more}");
    }
    assert_eq!(with.join(Variant::baseline().settings()), with);
    assert_eq!(Settings::default().join(&with), with);
}

#[test]
fn of_two_that_may_repeat_the_later_wins() {
    let more = variant("sync@exe:cleanup=on+sync=on+odirect=on");
    let both = settings("odirect=off sync=off").join(more.settings());
    let rule = |exe: Option<&str>, on| SwitchRule {
        scope: exe.map(exe_scope),
        on,
    };
    let launch = both.launch();
    assert_eq!(
        launch.sync,
        [
            rule(None, false),
            rule(Some("cleanup"), true),
            rule(None, true)
        ]
    );
    assert_eq!(launch.odirect, [rule(None, false), rule(None, true)]);
}

/// `Scope::Exe` of a name; names are made by parsing only.
fn exe_scope(name: &str) -> Scope {
    let word = format!("sync@exe:{name}=on");
    let setting: refit_knobs::Setting = word.parse().expect("a name");
    setting.scope().cloned().expect("a scope")
}
