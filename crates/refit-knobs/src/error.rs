//! Why a word is not a setting: one sentence each, ending with what to type next.

use std::fmt;

use thiserror::Error;

use crate::scope::{ExeNameProblem, PathProblem};

/// What to type instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// What was most likely meant; a word that parses.
    DidYouMean(String),
    /// What was typed, without what cannot stand there; a word that parses.
    Write(String),
    /// An example of the form; a word that parses, too.
    AsIn(String),
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DidYouMean(word) => write!(f, "did you mean `{word}`?"),
            Self::Write(word) => write!(f, "write `{word}`"),
            Self::AsIn(word) => write!(f, "write it as in `{word}`"),
        }
    }
}

/// Why words are not settings. The caller puts its own name before the sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "each variant is its sentence")]
pub enum SettingError {
    #[error("`{word}` is not UTF-8, and a setting has to be; write it in UTF-8")]
    NotUtf8 { word: String },
    #[error("`{word}` holds a NUL byte, which neither a path nor a variable can; write it without")]
    Nul { word: String },
    #[error(
        "an empty word is not a setting; write a setting as in `sync=off`, or the command after `--`"
    )]
    Empty,
    #[error("`{word}` is not a setting (no `=`); a command goes after `--`: refit run … -- {word}")]
    NotASetting { word: String },
    #[error(
        "`{word}` is not a setting (no `=`); write it as in `{example}`, or for the command: refit run … -- {word}"
    )]
    KnobAlone { word: String, example: &'static str },
    #[error("there is no setting before the first `+`; {hint}")]
    NothingBefore { hint: Hint },
    #[error("`{word}` joins several settings where one is expected; write `{first}` alone")]
    Several { word: String, first: String },
    #[error(
        "`baseline` is always included; leave it out, and name what to compare it with, as in `sync=off`"
    )]
    Baseline,
    #[error("`bare` is not a variant but an option; write `--bare` in its place")]
    Bare,

    #[error("unknown setting `{knob}`{}; {hint}", all_unless_near(known, hint))]
    UnknownKnob {
        knob: String,
        known: String,
        hint: Hint,
    },
    #[error("`{knob}` takes no scope, and `{scope}` was given; {hint}")]
    NoScope {
        knob: &'static str,
        scope: String,
        hint: Hint,
    },
    #[error(
        "`{scope}` is not a scope: programs are `@exe:NAME`, files are `@/PATH`, which begins with `/`; {hint}"
    )]
    UnknownScope { scope: String, hint: Hint },
    #[error("`{name}` cannot be the name of an executable: {problem}; {hint}")]
    BadExeName {
        name: String,
        problem: ExeNameProblem,
        hint: Hint,
    },
    #[error("`{path}` would match no file: {problem}; {hint}")]
    BadPath {
        path: String,
        problem: PathProblem,
        hint: Hint,
    },
    #[error(
        "`{knob}` cannot be `{value}`, and the first `=` ended the scope (write `\\=` for one that is part of it); {hint}"
    )]
    ScopeCutShort {
        knob: &'static str,
        value: String,
        hint: Hint,
    },
    #[error(
        "`{word}` is not a setting: `\\=` is part of the scope, and no `=` ends the scope; {hint}"
    )]
    ScopeWithoutEnd { word: String, hint: Hint },
    #[error("`{knob}` has no parts, and `.{member}` was given; {hint}")]
    NoMember {
        knob: &'static str,
        member: String,
        hint: Hint,
    },
    #[error("`{knob}` needs the name of a variable; {hint}")]
    NeedsMember { knob: &'static str, hint: Hint },

    #[error("`{knob}` cannot be `{value}`: expected {expected}; {hint}")]
    UnknownValue {
        knob: &'static str,
        value: String,
        expected: String,
        hint: Hint,
    },
    #[error("`{word}` has no value: expected {expected}; {hint}")]
    NoValue {
        word: String,
        expected: String,
        hint: Hint,
    },

    #[error("`{part}` is not valid in `{knob}=…`: expected {expected}; {hint}")]
    BadPart {
        knob: &'static str,
        part: String,
        expected: String,
        hint: Hint,
    },
    #[error(
        "`{knob}` needs the absolute path of a profile, not `{path}` (in a shell: {shell}); {hint}"
    )]
    RelativeProfile {
        knob: &'static str,
        path: String,
        shell: String,
        hint: Hint,
    },

    #[error("`{name}` is not a variable's name (letters, digits and `_`, no digit first); {hint}")]
    BadVariable { name: String, hint: Hint },
    #[error(
        "`{name}` is not a valid name after `conf.` (lower case letters, digits, `_` and `-`; after a dot capitals and `/` too); {hint}"
    )]
    BadConf { name: String, hint: Hint },
    #[error(
        "`{name}` is not a valid name after `load.` (lower case letters, digits and `_`, a letter first); {hint}"
    )]
    BadLoad { name: String, hint: Hint },
    #[error("`env.LD_PRELOAD` would take the place of refit's own library; {hint}")]
    LdPreload { hint: Hint },
    #[error(
        "`{name}` cannot be set: names that begin with `REFIT_` are refit's own; choose another name, as in `env.NAME=VALUE`"
    )]
    RefitVariable { name: String },

    #[error("`{knob}` needs an absolute path, not `{path}`; {hint}")]
    RelativeLibrary {
        knob: &'static str,
        path: String,
        hint: Hint,
    },
    #[error("`{path}` cannot be preloaded: ld.so splits its list at {separator:?}; choose a path without it, {}", as_in(.knob))]
    LibrarySeparator {
        knob: &'static str,
        path: String,
        separator: char,
    },

    #[error("{allocator} has no option `{option}`{known}; {hint}")]
    UnknownOption {
        allocator: &'static str,
        option: String,
        /// Every option, if none is like what was typed.
        known: String,
        hint: Hint,
    },
    #[error("{allocator}'s `{option}` cannot be `{value}`: expected {expected}; {hint}")]
    BadOptionValue {
        allocator: &'static str,
        option: &'static str,
        value: String,
        expected: String,
        hint: Hint,
    },
    #[error("{allocator}'s `{option}` has no value: expected {expected}; {hint}")]
    NoOptionValue {
        allocator: &'static str,
        option: &'static str,
        expected: String,
        hint: Hint,
    },
    #[error("`{value}` has an empty option; {hint}")]
    EmptyOption { value: String, hint: Hint },
    #[error("{allocator}'s `{option}` is given twice in `{word}`; keep one of them")]
    OptionTwice {
        allocator: &'static str,
        option: &'static str,
        word: String,
    },

    #[error("`{what}` is given twice, `{first}` and `{second}`; keep one of them")]
    GivenTwice {
        what: String,
        first: String,
        second: String,
    },
    #[error("`{first}` and `{second}` both set {variable}; keep one of them")]
    SameVariable {
        variable: String,
        first: String,
        second: String,
    },
}

/// All there are, where none is like what was typed.
fn all_unless_near(known: &str, hint: &Hint) -> String {
    match hint {
        Hint::DidYouMean(_) => String::new(),
        Hint::Write(_) | Hint::AsIn(_) => format!(" (there are {known})"),
    }
}

fn as_in(knob: &str) -> String {
    format!("as in `{knob}=/abs/path.so`")
}

impl SettingError {
    /// What to type instead, where there is a word for it.
    #[must_use]
    pub fn hint(&self) -> Option<&Hint> {
        match self {
            Self::NothingBefore { hint }
            | Self::UnknownKnob { hint, .. }
            | Self::NoScope { hint, .. }
            | Self::UnknownScope { hint, .. }
            | Self::BadExeName { hint, .. }
            | Self::BadPath { hint, .. }
            | Self::ScopeCutShort { hint, .. }
            | Self::ScopeWithoutEnd { hint, .. }
            | Self::NoMember { hint, .. }
            | Self::NeedsMember { hint, .. }
            | Self::UnknownValue { hint, .. }
            | Self::NoValue { hint, .. }
            | Self::BadPart { hint, .. }
            | Self::RelativeProfile { hint, .. }
            | Self::BadVariable { hint, .. }
            | Self::BadConf { hint, .. }
            | Self::BadLoad { hint, .. }
            | Self::LdPreload { hint }
            | Self::RelativeLibrary { hint, .. }
            | Self::UnknownOption { hint, .. }
            | Self::BadOptionValue { hint, .. }
            | Self::NoOptionValue { hint, .. }
            | Self::EmptyOption { hint, .. } => Some(hint),
            Self::NotUtf8 { .. }
            | Self::Nul { .. }
            | Self::Empty
            | Self::NotASetting { .. }
            | Self::KnobAlone { .. }
            | Self::Several { .. }
            | Self::Baseline
            | Self::Bare
            | Self::RefitVariable { .. }
            | Self::LibrarySeparator { .. }
            | Self::OptionTwice { .. }
            | Self::GivenTwice { .. }
            | Self::SameVariable { .. } => None,
        }
    }
}
