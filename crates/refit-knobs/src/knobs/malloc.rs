//! `malloc`: the allocator beneath the program. A named allocator is a file here and a line in the table.

pub(crate) mod allocator;
mod glibc;
mod jemalloc;
mod mimalloc;
pub(crate) mod takes;
mod tcmalloc;

use std::fmt;

use allocator::{Chosen, Named};

use super::choice::one_of;
use super::preload::{self, Library};
use crate::error::SettingError;
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::{Allocator, AllocatorKind, Launch};
use crate::nearest::nearest;
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "malloc",
    form: "malloc=glibc|jemalloc|mimalloc|tcmalloc[:OPTION=VALUE,…] or malloc=/path/lib.so",
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

pub(crate) static ALLOCATORS: &[&Named] = &[
    &glibc::ALLOCATOR,
    &jemalloc::ALLOCATOR,
    &mimalloc::ALLOCATOR,
    &tcmalloc::ALLOCATOR,
];

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
        allocator: &'static Named,
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
        allocator::parse(word, allocator, options)
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
                vec!["classed as safe because it is taken for an allocator; what else it does, refit does not know".to_owned()],
            ),
            Self::Named { allocator, options } => {
                let of_options = options.iter().filter_map(Chosen::note);
                let notes = of_options.chain(allocator.notes.iter().map(|&note| note.to_owned())).collect();
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
                kind: allocator.kind.clone(),
                env: allocator.environment(options),
            },
        });
    }
}

fn swaps(allocator: &Named, options: &[Chosen]) -> String {
    let name = allocator.name;
    let mut swaps = match allocator.kind {
        AllocatorKind::Glibc => "malloc and its relatives stay those of the C library".to_owned(),
        _ => format!("malloc and its relatives come from {name} instead of the C library"),
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
