//! What a setting is for, where it is not for everything.
//!
//! A scope ends at the first `=` after it; one that is part of it is written `\=`. As with `\+`, backslashes
//! directly before a `=` stand for half as many, the odd one being that of `\=`; any other backslash is itself.

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

impl Scope {
    /// The scope of that text, if it is one, without its `@` and without escapes.
    pub(crate) fn new(text: &str) -> Option<Self> {
        match text.strip_prefix("exe:") {
            Some(name) => ExeName::new(name).ok().map(Self::Exe),
            None => Some(Self::Path(text.to_owned()))
                .filter(|_| text.starts_with('/') && PathProblem::of(text).is_none()),
        }
    }
}

/// Prints what follows the `@`, with a backslash before each `=` that is part of it.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exe(name) => write!(f, "exe:{}", escape(name.as_str())),
            Self::Path(path) => f.write_str(&escape(path)),
        }
    }
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

/// Why no file's path can match an absolute one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathProblem {
    /// `//`.
    #[error("the kernel's own paths hold no `//`")]
    EmptyName,
    /// `.` or `..` between slashes.
    #[error("the kernel's own paths hold no `{0}`")]
    Dots(&'static str),
    /// More than a path can have.
    #[error("it has {0} bytes, and a path at most 4095")]
    TooLong(usize),
}

impl PathProblem {
    /// PATH_MAX of linux/limits.h, less the NUL that it counts.
    pub const MAX_BYTES: usize = 4095;

    /// What is wrong with a path that begins with `/`.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let dots = |dots| path.split('/').any(|name| name == dots);
        if path.len() > Self::MAX_BYTES {
            Some(Self::TooLong(path.len()))
        } else if path.contains("//") {
            Some(Self::EmptyName)
        } else if dots("..") {
            Some(Self::Dots(".."))
        } else if dots(".") {
            Some(Self::Dots("."))
        } else {
            None
        }
    }
}

/// The same path without `//`, `.` and `..`, as far as it is known without resolving links.
pub(crate) fn plain(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    let is_tree = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    let end = if is_tree && !names.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{end}", names.join("/"))
}

/// A scope's text and what follows the `=` that ends it.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let ends = |&(at, _): &(usize, &str)| {
        let before = &text[..at];
        (before.len() - before.trim_end_matches('\\').len()).is_multiple_of(2)
    };
    let (end, _) = text.match_indices('=').find(ends)?;
    Some((&text[..end], &text[end + 1..]))
}

/// The scope that was meant by a text that [`split`] gave.
pub(crate) fn unescape(text: &str) -> String {
    let mut scope = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('=') {
        scope.push_str(halved(before));
        scope.push('=');
        rest = after;
    }
    scope + halved(rest)
}

/// The text for a scope, to be followed by a `=`.
pub(crate) fn escape(scope: &str) -> String {
    let mut text = String::with_capacity(scope.len());
    let mut rest = scope;
    while let Some((before, after)) = rest.split_once('=') {
        text.extend([before, backslashes_at_the_end(before), "\\="]);
        rest = after;
    }
    text.extend([rest, backslashes_at_the_end(rest)]);
    text
}

fn backslashes_at_the_end(text: &str) -> &str {
    &text[text.trim_end_matches('\\').len()..]
}

/// The text without half of the backslashes that it ends with.
fn halved(text: &str) -> &str {
    &text[..text.len() - backslashes_at_the_end(text).len().div_ceil(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_count_only_before_an_equals_sign() {
        for (text, scope, value) in [
            ("/a=off", "/a", "off"),
            (r"/a\=b=off", "/a=b", "off"),
            (r"/a\\=off", r"/a\", "off"),
            (r"/a\\\=b=c=d", r"/a\=b", "c=d"),
            (r"/\a\\b=off", r"/\a\\b", "off"),
            ("=off", "", "off"),
        ] {
            let (head, after) = split(text).expect(text);
            assert_eq!((unescape(head).as_str(), after), (scope, value), "{text}");
            assert_eq!(escape(scope), head);
        }
        assert_eq!(split(r"/a\=off"), None);
        assert_eq!(split("/a"), None);
    }

    #[test]
    fn a_plain_path_names_the_same_file_or_tree() {
        for (path, expected) in [
            ("/", "/"),
            ("//", "/"),
            ("/..", "/"),
            ("/a//b/", "/a/b/"),
            ("/a/./b", "/a/b"),
            ("/a/b/../c", "/a/c"),
            ("/a/b/..", "/a/"),
            ("/../../a/.", "/a/"),
            ("/a/..", "/"),
        ] {
            assert_eq!(plain(path), expected, "{path}");
            assert_eq!(PathProblem::of(&plain(path)), None);
        }
        assert_eq!(PathProblem::of("/a/..b/.c/d..e/..."), None);
    }
}
