//! What a setting is for, where it is not for everything.

use std::fmt;

use thiserror::Error;

/// What a setting is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `@exe:NAME`.
    Exe(ExeName),
    /// `@/PATH`: an absolute path; one that ends with `/` is the tree below it. `*` and `?` match within a name,
    /// `**` also across names.
    Path(String),
}

/// The last part of what `/proc/self/exe` points to; what `@exe:NAME` matches.
///
/// At most 63 bytes, so that a name and its NUL fit one 64-byte field of the session's policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExeName(String);

/// Why a text cannot be an executable's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ExeNameProblem {
    /// Nothing after `@exe:`.
    #[error("it is empty")]
    Empty,
    /// A path, or part of one.
    #[error("it is the last part of /proc/self/exe, which has no `/`")]
    Slash,
    /// More than [`ExeName::MAX_BYTES`].
    #[error("it has {0} bytes, and at most 63 fit")]
    TooLong(usize),
}

impl ExeName {
    /// The longest name that fits.
    pub const MAX_BYTES: usize = 63;

    pub(crate) fn new(name: &str) -> Result<Self, ExeNameProblem> {
        if name.is_empty() {
            Err(ExeNameProblem::Empty)
        } else if name.contains('/') {
            Err(ExeNameProblem::Slash)
        } else if name.len() > Self::MAX_BYTES {
            Err(ExeNameProblem::TooLong(name.len()))
        } else {
            Ok(Self(name.to_owned()))
        }
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
