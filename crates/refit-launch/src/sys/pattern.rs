//! `pattern.c`, as refit calls it.

use std::ffi::CString;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

unsafe extern "C" {
    fn refit_pattern_matches(pattern: *const c_char, path: *const c_char) -> c_int;
}

/// Whether an absolute path is one of a scope's: `*` and `?` match within a name, `**` across names, and a pattern
/// that ends with `/` means that directory and all that is below it.
pub fn matches(pattern: &str, path: &Path) -> bool {
    match (
        CString::new(pattern),
        CString::new(path.as_os_str().as_bytes()),
    ) {
        // SAFETY: both end with NUL and outlive the call, which keeps neither.
        (Ok(pattern), Ok(path)) => unsafe {
            refit_pattern_matches(pattern.as_ptr(), path.as_ptr()) != 0
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_they_say() {
        for (pattern, path, expected) in [
            ("/a", "/a", true),
            ("/a", "/a/b", false),
            ("/a", "/ab", false),
            ("/a/", "/a/b", true),
            ("/a/", "/a/b/c", true),
            ("/a/", "/a", true),
            ("/a/", "/a/", true),
            ("/a/", "/ab", false),
            ("/", "/a", true),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/", true),
            ("/a/*", "/a/b/c", false),
            ("/a/*.db", "/a/x.db", true),
            ("/a/*.db", "/a/x.db.old", false),
            ("/a/*.db", "/a/x.db.db", true),
            ("/a/*.db", "/a/b/x.db", false),
            ("/a/**.db", "/a/b/x.db", true),
            ("/a/**/x", "/a/b/c/x", true),
            ("/a/**/x*y", "/a/b/xz/xzzy", true),
            ("/a/**/x*y", "/a/b/xz/xzz", false),
            ("/*/incoming/", "/spool/incoming/A/1", true),
            ("/*/incoming/", "/var/spool/incoming/1", false),
            ("/**/incoming/", "/var/spool/incoming/1", true),
            ("/a?c", "/abc", true),
            ("/a?c", "/a/c", false),
            ("/a?", "/a", false),
            ("/a*/", "/abc", true),
            ("/a*/", "/abc/d", true),
            ("/a*/", "/b/abc", false),
            ("/a*b*c", "/aXbYbZc", true),
            ("/a*b*c", "/aXcYb", false),
            ("", "/a", false),
        ] {
            assert_eq!(
                matches(pattern, Path::new(path)),
                expected,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn many_stars_end_soon() {
        let pattern = format!("/{}b", "**a*".repeat(30));
        let path = format!("/{}", "a/".repeat(400));
        assert!(!matches(&pattern, Path::new(&path)));
    }
}
