//! `malloc`: the allocator beneath the program.

use std::fmt;

use super::choice::one_of;
use super::preload::{self, Library};
use crate::allocators::{ALLOCATORS, AllocatorKind, Chosen, FORM, NamedAllocator, Opt};
use crate::error::{Hint, SettingError};
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::{Allocator, Launch};
use crate::nearest::nearest;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "malloc",
    form: FORM,
    about: "the memory allocator and its options",
    example: "malloc=jemalloc",
    scoped: false,
    has_members: false,
    once: true,
    permanent: "malloc=",
    grounds: &[
        Ground::Unit,
        Ground::ServerEnvironment,
        Ground::Wrapper,
        Ground::Container,
        Ground::Pod,
    ],
    values,
    aliases: &["allocator", "alloc"],
    opposites: &[],
};

/// The allocators; their options once one of them was typed, after those that are there already.
fn values(typed: &str) -> Vec<String> {
    let named = typed.split_once(':').and_then(|(name, options)| {
        let allocator = ALLOCATORS.iter().find(|allocator| allocator.name == name)?;
        Some((allocator, options))
    });
    let Some((allocator, options)) = named else {
        return ALLOCATORS
            .iter()
            .map(|allocator| allocator.name.to_owned())
            .collect();
    };
    let (before, last) = match options.rsplit_once(',') {
        Some((before, last)) => (format!("{}:{before},", allocator.name), last),
        None => (format!("{}:", allocator.name), options),
    };
    allocator
        .candidates(last)
        .into_iter()
        .map(|option| format!("{before}{option}"))
        .collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Malloc {
    Named {
        allocator: &'static NamedAllocator,
        options: Vec<Chosen>,
    },
    Path(Library),
}

pub(crate) fn parse(word: &Word) -> Result<Malloc, SettingError> {
    let (name, options) = match word.value.split_once(':') {
        Some((name, options)) => (name, Some(options)),
        None => (word.value, None),
    };
    if name.contains('/') {
        return preload::parse(word).map(Malloc::Path);
    }
    let allocator = ALLOCATORS
        .iter()
        .copied()
        .find(|allocator| allocator.name == name);
    let allocator = allocator.ok_or_else(|| unknown_allocator(word, name, options))?;
    let options = options.map_or(Ok(Vec::new()), |options| {
        parse_options(word, allocator, options)
    })?;
    Ok(Malloc::Named { allocator, options })
}

fn unknown_allocator(word: &Word, name: &str, options: Option<&str>) -> SettingError {
    let known = ALLOCATORS
        .iter()
        .map(|allocator| (allocator.name, allocator.aliases));
    let meant = nearest(name, known).and_then(|meant| {
        let with_options =
            options.and_then(|options| word.with_value(&format!("{meant}:{options}")));
        with_options.or_else(|| word.with_value(meant))
    });
    let mut names: Vec<_> = ALLOCATORS.iter().map(|allocator| allocator.name).collect();
    names.push("/path/lib.so");
    word.unknown_value(one_of(&names), meant)
}

/// The part after `malloc=NAME:`.
fn parse_options(
    word: &Word,
    allocator: &'static NamedAllocator,
    text: &str,
) -> Result<Vec<Chosen>, SettingError> {
    let mut options: Vec<Chosen> = Vec::new();
    for part in text.split(',') {
        let next = parse_one(word, allocator, text, part)?;
        if options.iter().any(|chosen| chosen.option == next.option) {
            let (option, word) = (next.option.name, format!("{}={}", word.head, word.value));
            return Err(SettingError::OptionTwice {
                allocator: allocator.name,
                option,
                word,
            });
        }
        options.push(next);
    }
    Ok(options)
}

fn parse_one(
    word: &Word,
    allocator: &'static NamedAllocator,
    text: &str,
    part: &str,
) -> Result<Chosen, SettingError> {
    let name_of = allocator.name;
    if part.is_empty() {
        let kept: Vec<_> = text.split(',').filter(|part| !part.is_empty()).collect();
        let colon = if kept.is_empty() { "" } else { ":" };
        let mended = word.with_value(&format!("{name_of}{colon}{}", kept.join(",")));
        let hint = mended.map_or_else(|| word.as_in_example(), Hint::Write);
        return Err(SettingError::EmptyOption {
            value: word.value.to_owned(),
            hint,
        });
    }
    // Both ways of writing are understood for every allocator; its own is printed back.
    let at = part.find([':', '=']);
    let name = &part[..at.unwrap_or(part.len())];
    let known = allocator.options.iter().find(|option| option.name == name);
    let option = known.ok_or_else(|| unknown_option(word, allocator, text, part, name))?;
    let example = || as_in(allocator, option);
    let expected = option.takes.expected();
    match at.map(|at| &part[at + 1..]) {
        Some(value) if option.takes.accepts(value) => Ok(Chosen {
            option,
            value: value.to_owned(),
        }),
        None | Some("") => Err(SettingError::NoOptionValue {
            allocator: name_of,
            option: option.name,
            expected,
            hint: example(),
        }),
        Some(value) => {
            let value = value.to_owned();
            Err(SettingError::BadOptionValue {
                allocator: name_of,
                option: option.name,
                value,
                expected,
                hint: example(),
            })
        }
    }
}

fn unknown_option(
    word: &Word,
    allocator: &'static NamedAllocator,
    text: &str,
    part: &str,
    name: &str,
) -> SettingError {
    let known = allocator
        .options
        .iter()
        .map(|option| (option.name, option.aliases));
    let meant = nearest(name, known);
    let mended = meant.and_then(|meant| {
        let mended = format!("{meant}{}", &part[name.len()..]);
        let options = text
            .split(',')
            .map(|other| if other == part { &mended } else { other });
        word.with_value(&format!(
            "{}:{}",
            allocator.name,
            options.collect::<Vec<_>>().join(",")
        ))
    });
    let (known, hint) = match mended {
        Some(mended) => (String::new(), Hint::DidYouMean(mended)),
        None => {
            let names: Vec<_> = allocator.options.iter().map(|option| option.name).collect();
            let mut options = allocator.options.iter();
            let example = options
                .clone()
                .find(|option| meant == Some(option.name))
                .or(options.next());
            let hint =
                example.map_or_else(|| word.as_in_example(), |option| as_in(allocator, option));
            (format!(" (it has {})", names.join(", ")), hint)
        }
    };
    SettingError::UnknownOption {
        allocator: allocator.name,
        option: name.to_owned(),
        known,
        hint,
    }
}

/// A setting of only that option.
fn as_in(allocator: &NamedAllocator, option: &Opt) -> Hint {
    let value = option.takes.example();
    Hint::AsIn(format!(
        "malloc={}:{}{}{value}",
        allocator.name, option.name, allocator.separator
    ))
}

impl fmt::Display for Malloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(library) => library.fmt(f),
            Self::Named { allocator, options } => {
                f.write_str(allocator.name)?;
                for (nth, Chosen { option, value }) in options.iter().enumerate() {
                    let before = if nth == 0 { ':' } else { ',' };
                    write!(f, "{before}{}{}{value}", option.name, allocator.separator)?;
                }
                Ok(())
            }
        }
    }
}

impl Behaviour for Malloc {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        Class::Safe
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        let (swaps, backend, notes) = match self {
            Self::Path(library) => (
                format!("malloc and its relatives come from {library} instead of the C library"),
                "LD_PRELOAD",
                vec![
                    "it is taken for an allocator; what else it does, refit does not know"
                        .to_owned(),
                ],
            ),
            Self::Named { allocator, options } => {
                let of_options = options.iter().filter_map(Chosen::note);
                let notes = of_options
                    .chain(allocator.notes.iter().map(|&note| note.to_owned()))
                    .collect();
                (swaps(allocator, options), allocator.backend, notes)
            }
        };
        Prose {
            swaps,
            risk: "no data at risk; memory use, speed, and what happens after the program's own memory bugs change",
            backend,
            covers: &[
                "dynamically linked programs and what they start, also where a parent clears the environment: refit \
                 puts these variables back (not with --no-follow-env)",
            ],
            not_covered: &[
                "statically linked programs, most Go programs among them",
                "setuid and setgid programs: ld.so ignores such variables there",
                "32-bit programs, and programs built for another C library",
                "programs that export a malloc of their own, or link or bring another allocator, and memory taken straight from mmap(2)",
                "libraries opened with RTLD_DEEPBIND: they keep the C library's allocator, next to the new one",
            ],
            notes,
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.malloc = Some(match self {
            Self::Path(library) => Allocator {
                kind: AllocatorKind::Path(library.to_path()),
                env: Vec::new(),
            },
            Self::Named { allocator, options } => Allocator {
                kind: AllocatorKind::Named(allocator),
                env: allocator.environment(options),
            },
        });
    }
}

fn swaps(allocator: &NamedAllocator, options: &[Chosen]) -> String {
    let name = allocator.name;
    let mut swaps = match allocator.is_c_librarys() {
        true => "malloc and its relatives stay those of the C library".to_owned(),
        false => format!("malloc and its relatives come from {name} instead of the C library"),
    };
    let variables = allocator.environment(options);
    if !variables.is_empty() {
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        swaps.push_str(&format!(", with {}", variables.join(" ")));
    }
    swaps
}
