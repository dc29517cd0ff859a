//! The allocators that refit knows by name, each with all that is known of it: a new one is a file in `allocators/`, its
//! line in the table, and its packages in docs/packages.md.
//!
//! Options are known here because the allocators themselves ignore what they do not understand, or complain about it on
//! the program's stderr.

mod glibc;
mod jemalloc;
mod mimalloc;
pub(crate) mod takes;
mod tcmalloc;

use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use takes::Takes;

/// Every allocator that has a name; the C library's is the first.
pub static ALLOCATORS: &[&NamedAllocator] = &[
    &glibc::ALLOCATOR,
    &jemalloc::ALLOCATOR,
    &mimalloc::ALLOCATOR,
    &tcmalloc::ALLOCATOR,
];

/// How the setting is written.
pub(crate) const FORM: &str =
    "malloc=glibc|jemalloc|mimalloc|tcmalloc[:OPTION=VALUE,…] or malloc=/path/lib.so";

/// The allocator that a `malloc=` setting names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AllocatorKind {
    /// One that has a name, as the system has it.
    Named(&'static NamedAllocator),
    /// A library by absolute path.
    Path(PathBuf),
}

impl AllocatorKind {
    /// The C library's own: nothing to preload.
    pub const GLIBC: AllocatorKind = AllocatorKind::Named(&glibc::ALLOCATOR);
}

/// An allocator that refit knows by name.
#[derive(Debug)]
pub struct NamedAllocator {
    /// The setting's word, and its purpose in the table of packages.
    pub name: &'static str,
    /// What other words mean it; suggested, never accepted.
    pub(crate) aliases: &'static [&'static str],
    /// Names of its library's file, the preferred first.
    pub files: &'static [&'static str],
    /// How the name of its library's file begins, in any version.
    pub(crate) file_starts: &'static [&'static str],
    /// What it reads of the environment.
    pub reads: &'static [Variable],
    /// In secure-execution mode (ld.so(8)) it reads none of that; else this is not known.
    pub is_deaf_when_secure: bool,
    /// How an installed one tells that it has no such option.
    pub tells: Tells,
    /// Options that decide how much freed memory it keeps, as `NAME=VALUE`: each by its names, one for each version.
    pub keeping: &'static [&'static [&'static str]],
    pub(crate) options: &'static [Opt],
    /// Between an option and its value, as the allocator's own documentation writes it.
    pub(crate) separator: char,
    /// The variables that carry these options; only called with at least one.
    pub(crate) variables: fn(&[Chosen]) -> Vec<(String, String)>,
    pub(crate) backend: &'static str,
    pub(crate) notes: &'static [&'static str],
}

/// A variable that an allocator reads.
#[derive(Debug)]
pub struct Variable {
    /// Its name, or how the names of a family begin.
    name: &'static str,
    is_family: bool,
    /// From name and value: the options that it sets, by the names that the allocator's file holds; `None`: the variable
    /// is one option, whose name no file need hold.
    pub options: Option<Options>,
}

/// The options that a variable sets, from its name and value.
pub type Options = fn(&str, &str) -> Vec<String>;

/// How an installed allocator tells that it has no such option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Not at all.
    Nothing,
    /// ld.so lists the tunables of its C library, this one among them.
    Tunables(&'static str),
    /// A line on stderr that begins with the first text, and holds the second where it is about options.
    Complaint(&'static str, &'static str),
    /// With this variable and value it lists all on stderr, this option among them.
    List {
        /// The variable that asks for the list, and its value.
        ask: (&'static str, &'static str),
        /// An option that each version has.
        always: &'static str,
    },
}

impl PartialEq for NamedAllocator {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for NamedAllocator {}

impl Hash for NamedAllocator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl NamedAllocator {
    /// The allocator whose library has this file name, of any version. musl's allocator has no name here: musl is
    /// `libc.so` or `ld-musl-ARCH.so.1` (musl's INSTALL), and glibc `libc.so.6`, before 2.34 a link to `libc-VERSION.so`.
    #[must_use]
    pub fn of_file(name: &str) -> Option<&'static NamedAllocator> {
        let has = |one: &&&NamedAllocator| {
            let mut starts = one.file_starts.iter();
            starts.any(|start| name.starts_with(start))
        };
        ALLOCATORS.iter().find(has).copied()
    }

    /// Who reads a variable, and how.
    #[must_use]
    pub fn reader(variable: &str) -> Option<(&'static NamedAllocator, &'static Variable)> {
        let readings = ALLOCATORS
            .iter()
            .flat_map(|one| one.reads.iter().map(|reads| (*one, reads)));
        let mut readings = readings.filter(|(_, reads)| match reads.is_family {
            true => variable.starts_with(reads.name),
            false => variable == reads.name,
        });
        readings.next()
    }

    /// It is the C library's own, which nothing has to preload.
    #[must_use]
    pub fn is_c_librarys(&self) -> bool {
        *self == glibc::ALLOCATOR
    }

    /// What a sentence calls it.
    #[must_use]
    pub fn title(&self) -> String {
        match self.is_c_librarys() {
            true => format!("{}'s malloc", self.name),
            false => self.name.to_owned(),
        }
    }
}

impl Variable {
    /// One variable.
    const fn one(name: &'static str, options: Option<Options>) -> Variable {
        Variable {
            name,
            is_family: false,
            options,
        }
    }

    /// All variables whose names begin so.
    const fn family(start: &'static str, options: Options) -> Variable {
        Variable {
            name: start,
            is_family: true,
            options: Some(options),
        }
    }
}

/// The names before `assign` in parts that `between` separates.
fn names(value: &str, between: char, assign: char) -> Vec<String> {
    let parts = value.split(between);
    let names = parts.map(|part| part.split(assign).next().unwrap_or_default());
    names.map(|name| name.trim().to_owned()).collect()
}

/// One option that an allocator has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opt {
    pub name: &'static str,
    pub takes: Takes,
    /// What it is called elsewhere; suggested, never accepted.
    pub(crate) aliases: &'static [&'static str],
    note: Option<Note>,
}

/// Something to say when the option has one of these values, or any if none is listed.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    when: &'static [&'static str],
    text: &'static str,
}

/// An option with its value, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub option: &'static Opt,
    pub value: String,
}

impl NamedAllocator {
    /// Options to choose from, or the words that one of them takes, given what is typed of it.
    pub(crate) fn candidates(&self, typed: &str) -> Vec<String> {
        let named = typed
            .split_once(['=', self.separator])
            .and_then(|(name, _)| {
                let option = self.options.iter().find(|option| option.name == name)?;
                Some((&typed[..=name.len()], option))
            });
        match named {
            Some((head, option)) => {
                let words = option.takes.words().iter();
                words.map(|word| format!("{head}{word}")).collect()
            }
            None => {
                let names = self.options.iter();
                names
                    .map(|option| format!("{}{}", option.name, self.separator))
                    .collect()
            }
        }
    }
}

const fn opt(name: &'static str, takes: Takes) -> Opt {
    Opt {
        name,
        takes,
        aliases: &[],
        note: None,
    }
}

impl Opt {
    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn note(self, when: &'static [&'static str], text: &'static str) -> Self {
        Self {
            note: Some(Note { when, text }),
            ..self
        }
    }
}

impl Chosen {
    /// What there is to say about this option with this value.
    pub(crate) fn note(&self) -> Option<String> {
        let note = self.option.note.as_ref()?;
        let applies = note.when.is_empty() || note.when.contains(&self.value.as_str());
        applies.then(|| format!("{}: {}", self.option.name, note.text))
    }
}

impl NamedAllocator {
    /// The variables that carry these options.
    pub(crate) fn environment(&self, options: &[Chosen]) -> Vec<(String, String)> {
        if options.is_empty() {
            Vec::new()
        } else {
            (self.variables)(options)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_librarys_file_tells_the_allocator_in_any_version() {
        for (file, name) in [
            ("libc.so.6", Some("glibc")),
            ("libc-2.31.so", Some("glibc")),
            ("libc.so", None),
            ("ld-musl-x86_64.so.1", None),
            ("libc.musl-x86_64.so.1", None),
            ("libjemalloc.so.1", Some("jemalloc")),
            ("libmimalloc-secure.so.2.0", Some("mimalloc")),
            ("libtcmalloc_minimal.so.4", Some("tcmalloc")),
            ("libother.so", None),
        ] {
            let found = NamedAllocator::of_file(file);
            assert_eq!(found.map(|one| one.name), name, "{file}");
        }
        for one in ALLOCATORS {
            for file in one.files {
                assert_eq!(NamedAllocator::of_file(file), Some(*one));
            }
            assert!(FORM.contains(one.name), "{FORM}");
        }
    }
}
