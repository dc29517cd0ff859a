//! What holds for every word: printing and parsing are inverse, nothing panics, every suggestion is accepted.

use std::ffi::OsString;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::knob::Value;
use crate::knob::malloc::{ALLOCATORS, Chosen, Malloc, Opt, Takes};
use crate::knob::{env, odirect, preload, sync, thp, tz};
use crate::scope::ExeName;
use crate::word::refuse_joined;
use crate::{Hint, KNOBS, Setting, Settings, Thp};

fn value_of(option: &'static Opt) -> BoxedStrategy<Chosen> {
    let value = match &option.takes {
        Takes::Words(words) => select(*words).prop_map(str::to_owned).boxed(),
        Takes::Text => "[^,\0]{0,12}".boxed(),
        Takes::Fraction => "[0-9]{1,5}(\\.[0-9]{1,5})?".boxed(),
        Takes::Number { min, max, .. } => {
            (*min..=*max).prop_map(|number| number.to_string()).boxed()
        }
    };
    value
        .prop_map(move |value| Chosen { option, value })
        .boxed()
}

fn options_of(known: &'static [Opt]) -> impl Strategy<Value = Vec<Chosen>> {
    let some =
        prop::sample::subsequence((0..known.len()).collect::<Vec<_>>(), 0..=known.len().min(5));
    some.prop_shuffle().prop_flat_map(|some| {
        some.into_iter()
            .map(|nth| value_of(&known[nth]))
            .collect::<Vec<_>>()
    })
}

fn any_library() -> impl Strategy<Value = preload::Library> {
    "/[^\0:\\s]{0,20}".prop_map(|path| preload::Library { path })
}

fn any_value() -> impl Strategy<Value = Value> {
    let named = select(ALLOCATORS).prop_flat_map(|allocator| {
        options_of(allocator.options).prop_map(move |options| Malloc::Named { allocator, options })
    });
    let thp = select(&[Thp::Never, Thp::Madvise, Thp::Always][..]);
    let variable = ("[A-Za-z_][A-Za-z0-9_]{0,8}", "[^\0]{0,20}")
        .prop_filter("refit's own", |(name, _)| {
            name != "LD_PRELOAD" && !name.starts_with("REFIT_")
        });
    prop_oneof![
        any::<bool>().prop_map(|on| Value::Sync(sync::SyncCalls { on })),
        any::<bool>().prop_map(|on| Value::Odirect(odirect::DirectIo { on })),
        named.prop_map(Value::Malloc),
        any_library().prop_map(|library| Value::Malloc(Malloc::Path(library))),
        thp.prop_map(|mode| Value::Thp(thp::HugePages { mode })),
        "[^\0]{1,20}".prop_map(|zone| Value::Tz(tz::Zone { zone })),
        variable.prop_map(|(name, value)| Value::Env(env::Variable { name, value })),
        any_library().prop_map(Value::Preload),
    ]
}

fn any_setting() -> impl Strategy<Value = Setting> {
    let scope = prop::option::of("[^/=\0]{1,15}".prop_map(|name| ExeName::new(&name).unwrap()));
    (scope, any_value())
        .prop_map(|(scope, value)| Setting {
            scope: scope.filter(|_| value.behaviour().knob().scoped),
            value,
        })
        .prop_filter("not two settings in one word", |setting| {
            refuse_joined(&setting.to_string()).is_ok()
        })
}

/// Words that get past the first checks: the grammar's own pieces in some order.
fn word_like() -> impl Strategy<Value = String> {
    let mut pieces: Vec<&str> = vec![
        "=",
        "=",
        ":",
        ",",
        "@",
        "@exe:",
        ".",
        "+",
        "/",
        "on",
        "off",
        "of",
        "drop",
        "jemalloc",
        "je",
        "glibc",
        "mimalloc",
        "tcmalloc",
        "narenas",
        "narena",
        "arena_max",
        "verbose",
        "1",
        "-1",
        "true",
        "never",
        "FOO",
        "LD_PRELOAD",
        "REFIT_X",
        "fsync",
        "nosync",
        "\0",
        " ",
        "é",
        "",
    ];
    pieces.extend(KNOBS.iter().map(|knob| knob.name));
    prop::collection::vec(select(pieces), 0..9).prop_map(|pieces| pieces.concat())
}

/// An accepted word with one slip of the finger.
fn slipped() -> impl Strategy<Value = String> {
    (
        any_setting(),
        any::<Index>(),
        prop::option::of(any::<char>()),
        any::<bool>(),
    )
        .prop_map(|(setting, at, typed, drop)| {
            let mut letters: Vec<char> = setting.to_string().chars().collect();
            let at = at.index(letters.len());
            if drop {
                letters.remove(at);
            }
            letters.splice(at..at, typed);
            letters.into_iter().collect()
        })
}

fn holds_for(word: &str) -> Result<(), TestCaseError> {
    match word.parse::<Setting>() {
        Ok(setting) => prop_assert_eq!(setting.to_string().parse::<Setting>(), Ok(setting)),
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            if let Some(Hint::DidYouMean(word) | Hint::Write(word) | Hint::AsIn(word)) =
                error.hint()
            {
                prop_assert!(
                    word.parse::<Setting>().is_ok(),
                    "{} is suggested by: {}",
                    word,
                    error
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_setting_parses_to_itself(setting in any_setting()) {
        prop_assert_eq!(setting.to_string().parse::<Setting>(), Ok(setting));
    }

    #[test]
    fn every_setting_explains_itself(setting in any_setting()) {
        let explanation = setting.explain();
        prop_assert_eq!(explanation.setting, setting.to_string());
        prop_assert_eq!(explanation.class, setting.class());
        prop_assert!(!explanation.swaps.is_empty() && !explanation.risk.is_empty() && !explanation.backend.is_empty());
    }

    #[test]
    fn settings_print_in_command_order(settings in prop::collection::vec(any_setting(), 0..4)) {
        let words: Vec<String> = settings.iter().map(ToString::to_string).collect();
        if let Ok(parsed) = Settings::parse(words.iter().map(OsString::from)) {
            prop_assert_eq!(parsed.to_string(), words.join(" "));
            prop_assert_eq!(parsed.class(), settings.iter().map(Setting::class).max().unwrap_or(crate::Class::Safe));
            let launch = parsed.launch();
            let of_malloc = launch.malloc.iter().flat_map(|malloc| &malloc.env);
            let mut names: Vec<_> = launch.env.iter().chain(of_malloc).map(|(name, _)| name).collect();
            let all = names.len();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused_with_a_sentence(text in any::<String>()) {
        holds_for(&text)?;
    }

    #[test]
    fn any_pieces_of_the_grammar_are_parsed_or_refused_with_a_sentence(text in word_like()) {
        holds_for(&text)?;
    }

    #[test]
    fn a_slip_of_the_finger_is_parsed_or_refused_with_a_sentence(text in slipped()) {
        holds_for(&text)?;
    }
}
