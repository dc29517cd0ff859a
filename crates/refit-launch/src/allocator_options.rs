//! Options that an installed allocator does not take. An allocator ignores them, or complains on the
//! program's stderr; so each is tried before the program starts.

use std::path::Path;
use std::process::{Command, Stdio};

use refit_knobs::{Allocator, AllocatorKind, NamedAllocator, Tells};

use crate::LaunchError;
use crate::target::Target;

/// Whether the allocator takes its options, as far as it tells. `library` is its file, `None` for the C
/// library's own.
///
/// # Errors
/// [`LaunchError::AllocatorOption`].
pub fn check(allocator: &Allocator, library: Option<&Path>) -> Result<(), LaunchError> {
    let AllocatorKind::Named(named) = allocator.kind else {
        return Ok(());
    };
    let refused = match (named.tells, library) {
        _ if allocator.env.is_empty() => None,
        (Tells::Tunables(always), _) => unknown_tunable(allocator, always),
        (Tells::Complaint(start, about), Some(library)) => {
            let printed = printed(allocator, library, None);
            printed.and_then(|printed| complaint(named, &printed, start, about))
        }
        (Tells::List { ask, always }, Some(library)) => {
            let printed = printed(allocator, library, Some(ask));
            printed.and_then(|printed| not_listed(named, &allocator.env, &printed, always))
        }
        _ => None,
    };
    refused.map_or(Ok(()), |reason| {
        Err(LaunchError::AllocatorOption { reason })
    })
}

const PROGRAM: &str = "/bin/true";

/// What a small program prints on stderr with these variables.
fn printed(allocator: &Allocator, library: &Path, ask: Option<(&str, &str)>) -> Option<String> {
    let variables = allocator
        .env
        .iter()
        .map(|(name, value)| (&**name, &**value));
    let output = Command::new(PROGRAM)
        .env_clear()
        .env("LD_PRELOAD", library)
        .envs(variables.chain(ask))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output();
    Some(String::from_utf8_lossy(&output.ok()?.stderr).into_owned())
}

/// The first line that begins with `start`, where it is about options.
fn complaint(named: &NamedAllocator, printed: &str, start: &str, about: &str) -> Option<String> {
    let complaint = printed.lines().find_map(|line| line.strip_prefix(start))?;
    let is_about_options = complaint.contains(about);
    is_about_options.then(|| format!("the installed {} refuses it: {complaint}", named.name))
}

/// An option that is not listed, where the list is written as it is known.
fn not_listed(
    named: &NamedAllocator,
    set: &[(String, String)],
    printed: &str,
    always: &str,
) -> Option<String> {
    let has = |option: &str| printed.contains(&format!("option '{option}':"));
    if !has(always) {
        return None;
    }
    let mut options = set.iter().flat_map(|(name, value)| {
        let reader = NamedAllocator::reader(name);
        let options = reader.and_then(|(_, variable)| variable.options);
        options.map_or_else(Vec::new, |options| options(name, value))
    });
    let unknown = options.find(|option| !has(option))?;
    Some(format!(
        "the installed {} has no option `{unknown}`",
        named.name
    ))
}

/// ld.so lists the tunables of its C library since glibc 2.33 (ld.so(8)).
fn unknown_tunable(allocator: &Allocator, always: &str) -> Option<String> {
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
    if !has(always) {
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
            kind: AllocatorKind::GLIBC,
            env: vec![("GLIBC_TUNABLES".to_owned(), tunables.to_owned())],
        }
    }

    #[test]
    fn a_tunable_that_the_c_library_lacks_is_named() {
        let always = "glibc.malloc.arena_max";
        let unknown = unknown_tunable(
            &glibc("glibc.malloc.arena_max=1:glibc.malloc.nosuch=2"),
            always,
        );
        let named = "this machine's C library has no tunable `glibc.malloc.nosuch`";
        assert_eq!(unknown.as_deref(), Some(named));
        assert_eq!(
            unknown_tunable(&glibc("glibc.malloc.arena_max=1"), always),
            None
        );
    }
}
