//! Options that an installed allocator does not take. An allocator ignores them, or complains on the
//! program's stderr; so each is tried before the program starts.

use std::path::Path;
use std::process::{Command, Stdio};

use refit_knobs::{Allocator, AllocatorKind};

use crate::LaunchError;
use crate::target::Target;

/// Whether the allocator takes its options, as far as it tells. `library` is its file, `None` for the C
/// library's own.
///
/// # Errors
/// [`LaunchError::AllocatorOption`].
pub fn check(allocator: &Allocator, library: Option<&Path>) -> Result<(), LaunchError> {
    let refused = match (&allocator.kind, library) {
        _ if allocator.env.is_empty() => None,
        (AllocatorKind::Glibc, _) => unknown_tunable(allocator),
        (AllocatorKind::Jemalloc, Some(library)) => jemallocs_complaint(allocator, library),
        (AllocatorKind::Mimalloc, Some(library)) => unknown_to_mimalloc(allocator, library),
        // The others tell nothing.
        _ => None,
    };
    refused.map_or(Ok(()), |reason| {
        Err(LaunchError::AllocatorOption { reason })
    })
}

const PROGRAM: &str = "/bin/true";

/// What a small program prints on stderr with these variables.
fn printed(allocator: &Allocator, library: &Path, more: &[(&str, &str)]) -> Option<String> {
    let variables = allocator
        .env
        .iter()
        .map(|(name, value)| (&**name, &**value));
    let output = Command::new(PROGRAM)
        .env_clear()
        .env("LD_PRELOAD", library)
        .envs(variables.chain(more.iter().copied()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output();
    Some(String::from_utf8_lossy(&output.ok()?.stderr).into_owned())
}

/// `<jemalloc>: Invalid conf pair: foo:bar` (jemalloc, src/jemalloc.c, malloc_conf_error).
fn jemallocs_complaint(allocator: &Allocator, library: &Path) -> Option<String> {
    let printed = printed(allocator, library, &[])?;
    let complaint = printed
        .lines()
        .find_map(|line| line.strip_prefix("<jemalloc>: "))?;
    let is_about_options = complaint.contains("conf");
    is_about_options.then(|| format!("the installed jemalloc refuses it: {complaint}"))
}

/// With MIMALLOC_VERBOSE it lists each option that it has (src/options.c).
fn unknown_to_mimalloc(allocator: &Allocator, library: &Path) -> Option<String> {
    let printed = printed(allocator, library, &[("MIMALLOC_VERBOSE", "1")])?;
    let has = |option: &str| printed.contains(&format!("option '{option}':"));
    // One that is always there; else the list is written otherwise.
    if !has("verbose") {
        return None;
    }
    let mut names = allocator
        .env
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("MIMALLOC_"));
    let unknown = names
        .find(|name| !has(&name.to_lowercase()))?
        .to_lowercase();
    Some(format!("the installed mimalloc has no option `{unknown}`"))
}

/// ld.so lists the tunables of its C library since glibc 2.33 (ld.so(8)).
fn unknown_tunable(allocator: &Allocator) -> Option<String> {
    let loader = Target::look(Path::new(PROGRAM)).interpreter;
    let output = Command::new(loader)
        .arg("--list-tunables")
        .env_clear()
        .output()
        .ok()?;
    let list = String::from_utf8_lossy(&output.stdout);
    let has = |tunable: &str| {
        list.lines()
            .any(|line| line.starts_with(&format!("{tunable}:")))
    };
    if !has("glibc.malloc.arena_max") {
        return None;
    }
    let set = allocator.env.iter().flat_map(|(_, value)| value.split(':'));
    let mut names = set.filter_map(|tunable| Some(tunable.split_once('=')?.0));
    let unknown = names.find(|name| !has(name))?;
    Some(format!(
        "this machine's C library has no tunable `{unknown}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glibc(tunables: &str) -> Allocator {
        Allocator {
            kind: AllocatorKind::Glibc,
            env: vec![("GLIBC_TUNABLES".to_owned(), tunables.to_owned())],
        }
    }

    #[test]
    fn a_tunable_that_the_c_library_lacks_is_named() {
        let unknown = unknown_tunable(&glibc("glibc.malloc.arena_max=1:glibc.malloc.nosuch=2"));
        let named = "this machine's C library has no tunable `glibc.malloc.nosuch`";
        assert_eq!(unknown.as_deref(), Some(named));
        assert_eq!(unknown_tunable(&glibc("glibc.malloc.arena_max=1")), None);
    }
}
