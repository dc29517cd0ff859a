//! What holds for every word, of one setting or several: printing and parsing are inverse, nothing panics, every
//! suggestion is accepted.

use std::ffi::OsString;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::allocators::takes::Takes;
use crate::allocators::{ALLOCATORS, Chosen, Opt};
use crate::knobs::malloc::Malloc;
use crate::knobs::switch::{Kind, Switch};
use crate::knobs::{
    Value, conf, disk, env, load, odirect, preload, program, schema, sync, thp, tz,
};
use crate::scope::{PathProblem, plain};
use crate::{Disk, Hint, KNOBS, Scope, Setting, Settings, Thp, Variant, When, joined};

/// Text that a regex describes, or a plus, a backslash and what makes a plus join, without the `banned` letters.
fn tricky(regex: &'static str, banned: &'static [char]) -> impl Strategy<Value = String> {
    let mut pieces = vec!["+", "+", "+", "\\", "\\", "=", "@exe:", ".", "x", " ", "é"];
    pieces.extend(KNOBS.iter().map(|knob| knob.name));
    pieces.retain(|piece| !piece.contains(banned));
    let joining = prop::collection::vec(select(pieces), 1..7).prop_map(|pieces| pieces.concat());
    prop_oneof![regex, joining]
}

fn value_of(option: &'static Opt) -> BoxedStrategy<Chosen> {
    let value = match &option.takes {
        Takes::Words(words) => select(*words).prop_map(str::to_owned).boxed(),
        Takes::Text => tricky("[^,\0]{0,12}", &[',']).boxed(),
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
    tricky("[^\0:\\s]{0,20}", &[':', ' ']).prop_map(|path| preload::Library {
        path: format!("/{path}"),
    })
}

/// Nanoseconds of which some units hold whole numbers and some do not.
fn any_latency() -> impl Strategy<Value = u64> {
    prop_oneof![
        1..=60_000_000_000_u64,
        (1..=60_000_u64).prop_map(|ms| ms * 1_000_000),
        (1..=999_u64).prop_map(|us| us * 1_000),
    ]
}

fn any_disk() -> impl Strategy<Value = disk::Device> {
    let points = (
        prop::collection::btree_set(100..=9999_u32, 2..6),
        prop::collection::vec(any_latency(), 6),
    );
    let points = points.prop_map(|(percentiles, mut latencies)| {
        latencies.sort_unstable();
        percentiles.into_iter().zip(latencies).collect()
    });
    let errors = [(5, "EIO"), (28, "ENOSPC"), (122, "EDQUOT"), (30, "EROFS")];
    let when = prop_oneof![
        Just(When::Always),
        (1..=u64::MAX).prop_map(When::Every),
        (1..=u64::MAX).prop_map(When::After),
        (1..=1_000_000_u32).prop_map(When::Chance),
    ];
    prop_oneof![
        Just(None),
        any_latency().prop_map(|ns| Some(Disk::Latency(vec![(5000, ns)]))),
        points.prop_map(|points| Some(Disk::Latency(points))),
        tricky("[^\0]{0,20}", &[]).prop_map(|path| Some(Disk::Profile(format!("/{path}").into()))),
        (select(errors.to_vec()), when).prop_map(|(errno, when)| Some(Disk::Fail { errno, when })),
    ]
    .prop_map(|emulated| disk::Device { emulated })
}

fn any_scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        tricky("[^/\0]{1,15}", &[]).prop_map(|name| Scope::new(&format!("exe:{name}")).unwrap()),
        tricky("[^\0]{0,20}", &[]).prop_map(|path| Scope::Path(plain(&format!("/{path}")))),
        "(/[a-z.=+\\\\*?]{1,4}){1,4}/?".prop_map(|path| Scope::Path(plain(&path))),
    ]
}

fn switch(kind: &'static Kind, on: bool) -> Switch {
    Switch { kind, on }
}

fn any_value() -> impl Strategy<Value = Value> {
    let named = select(ALLOCATORS).prop_flat_map(|allocator| {
        options_of(allocator.options).prop_map(move |options| Malloc::Named { allocator, options })
    });
    let thp = select(&[Thp::Never, Thp::Madvise, Thp::Always][..]);
    let variable = ("[A-Za-z_][A-Za-z0-9_]{0,8}", tricky("[^\0]{0,20}", &[]))
        .prop_filter("refit's own", |(name, _)| {
            name != "LD_PRELOAD" && !name.starts_with("REFIT_")
        });
    prop_oneof![
        any::<bool>().prop_map(|on| Value::Sync(switch(&sync::KIND, on))),
        any::<bool>().prop_map(|on| Value::Odirect(switch(&odirect::KIND, on))),
        any_disk().prop_map(Value::Disk),
        named.prop_map(Value::Malloc),
        any_library().prop_map(|library| Value::Malloc(Malloc::Path(library))),
        thp.prop_map(|mode| Value::Thp(thp::HugePages { mode })),
        tricky("[^\0]{1,20}", &[]).prop_map(|zone| Value::Tz(tz::Zone { zone })),
        tricky("[^\0]{1,20}", &[]).prop_map(|path| Value::Program(program::Executable { path })),
        variable.prop_map(|(name, value)| Value::Env(env::Variable { name, value })),
        any_library().prop_map(Value::Preload),
        tricky("[^\0]{1,20}", &[]).prop_map(|path| Value::Schema(schema::File { path })),
        (
            "[a-z0-9_-]{1,5}|[a-z0-9_.-]{0,5}\\.[a-zA-Z0-9_./-]{0,5}",
            tricky("[^\0]{0,20}", &[])
        )
            .prop_map(|(name, value)| Value::Conf(conf::Declared { name, value })),
        ("[a-z][a-z0-9_]{0,5}", tricky("[^\0]{0,20}", &[]))
            .prop_map(|(name, value)| Value::Load(load::Asked { name, value })),
    ]
}

fn any_setting() -> impl Strategy<Value = Setting> {
    (prop::option::of(any_scope()), any_value()).prop_map(|(scope, value)| Setting {
        scope: scope.filter(|_| value.behaviour().knob().scoped),
        value,
    })
}

/// Some that agree, at least one.
fn any_settings() -> impl Strategy<Value = Settings> {
    prop::collection::vec(any_setting(), 1..6).prop_map(|some| {
        some.into_iter().fold(Settings::default(), |all, next| {
            all.join(&Settings(vec![next]))
        })
    })
}

/// What any word could join: a first text, then such as begin with a knob.
fn any_texts() -> impl Strategy<Value = Vec<String>> {
    let knobs: Vec<_> = KNOBS.iter().map(|knob| knob.name).collect();
    let begun = (
        select(knobs),
        select(&["=", "@", "."][..]),
        tricky(".{0,12}", &[]),
    );
    let begun = begun.prop_map(|(knob, mark, rest)| format!("{knob}{mark}{rest}"));
    (tricky(".{0,20}", &[]), prop::collection::vec(begun, 0..4)).prop_map(|(first, mut texts)| {
        texts.insert(0, first);
        texts
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
        "@/",
        ".",
        "..",
        "+",
        "+",
        "\\",
        "\\=",
        "/",
        "//",
        "p50=4ms",
        ",p99=30ms",
        "8ms",
        "8",
        "fail:",
        "EIO",
        ",every=",
        ",p=",
        "~/x.json",
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

pub(crate) fn holds_for(word: &str) -> Result<(), TestCaseError> {
    if let Ok(setting) = word.parse::<Setting>() {
        prop_assert_eq!(setting.to_string().parse::<Setting>(), Ok(setting));
    }
    match Variant::parse(word) {
        Ok(variant) => {
            prop_assert_eq!(Variant::parse(&variant.to_string()), Ok(variant.clone()));
            let settings = Settings::parse([word.into()]);
            prop_assert_eq!(settings.as_ref(), Ok(variant.settings()));
        }
        Err(error) => {
            prop_assert!(!error.to_string().is_empty());
            if let Some(Hint::DidYouMean(word) | Hint::Write(word) | Hint::AsIn(word)) =
                error.hint()
            {
                prop_assert!(
                    Variant::parse(word).is_ok(),
                    "{} is suggested by: {}",
                    word,
                    error
                );
            }
        }
    }
    Ok(())
}

#[test]
fn only_a_path_without_problems_is_a_scope() {
    for path in ["/a//b", "/./a", "/a/..", "a/b"] {
        assert_eq!(Scope::new(path), None, "{path}");
    }
    assert_eq!(PathProblem::of("/a=b/**"), None);
}

#[test]
fn every_option_of_an_allocator_has_an_example_that_prints_back() {
    for allocator in ALLOCATORS {
        for option in allocator.options {
            let value = option.takes.example();
            let word = format!(
                "malloc={}:{}{}{value}",
                allocator.name, option.name, allocator.separator
            );
            assert_eq!(word.parse::<Setting>().unwrap().to_string(), word);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_setting_parses_to_itself(setting in any_setting()) {
        prop_assert_eq!(setting.to_string().parse::<Setting>(), Ok(setting));
    }

    #[test]
    fn a_printed_variant_parses_to_itself(settings in any_settings()) {
        let variant = Variant::parse(&joined::join(settings.0.iter().map(ToString::to_string)));
        prop_assert_eq!(variant.as_ref().map(Variant::settings), Ok(&settings));
        prop_assert_eq!(variant.as_ref().map(Variant::class), Ok(settings.class()));
        let printed = variant.as_ref().map(ToString::to_string).unwrap_or_default();
        prop_assert_eq!(Variant::parse(&printed), variant);
    }

    #[test]
    fn texts_come_out_of_a_word_as_they_went_in(texts in any_texts()) {
        let word = joined::join(texts.iter().map(|text| joined::escape(text)));
        prop_assert_eq!(joined::split(&word), texts);
    }

    #[test]
    fn escaping_every_plus_is_never_wrong(setting in any_setting()) {
        let texts = joined::split(&setting.to_string());
        prop_assert_eq!(texts.len(), 1);
        // A trailing run of backslashes is not before a plus; all others are doubled with it.
        let mut parts: Vec<String> = texts[0].split('+').map(str::to_owned).collect();
        let last = parts.pop().unwrap_or_default();
        let escaped: String = parts
            .iter()
            .map(|part| format!("{part}{}\\+", &part[part.trim_end_matches('\\').len()..]))
            .collect();
        prop_assert_eq!(format!("{escaped}{last}").parse::<Setting>(), Ok(setting));
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
            let tz = launch.tz.iter().map(|_| "TZ");
            let variables = launch.env.iter().chain(of_malloc).map(|(name, _)| name.as_str());
            let mut names: Vec<_> = variables.chain(tz).collect();
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
