//! Time zones that this machine has. The C library takes one that it does not have for UTC, without a word.

use std::fs;
use std::path::{Path, PathBuf};

use refit_knobs::near;

use crate::LaunchError;

/// Where the C library looks (tzset(3)).
pub const DIRECTORY: &str = "/usr/share/zoneinfo";

/// Whether the C library of a program with refit's own environment finds this zone.
///
/// # Errors
/// As [`check_in`].
pub fn check(zone: &str) -> Result<(), LaunchError> {
    let directory = std::env::var_os("TZDIR").map_or_else(|| DIRECTORY.into(), PathBuf::from);
    check_in(directory, zone)
}

/// Whether the C library finds this zone in a directory.
///
/// # Errors
/// [`LaunchError::NoZone`], with the zones of a similar name.
pub fn check_in(directory: PathBuf, zone: &str) -> Result<(), LaunchError> {
    // Without the data nobody knows.
    if is_there(&directory, zone) || is_rule(zone) || !directory.is_dir() {
        return Ok(());
    }
    let mut names = Vec::new();
    collect(&directory, "", &mut names);
    names.sort();
    let near = near(zone, names.iter().map(String::as_str));
    let near: Vec<String> = near.iter().map(|name| format!("`tz={name}`")).collect();
    Err(LaunchError::NoZone {
        zone: zone.to_owned(),
        hint: match near.is_empty() {
            true => "write it as in `tz=Europe/Berlin` or `tz=JST-9`".to_owned(),
            false => format!("did you mean {}?", near.join(" or ")),
        },
        directory,
    })
}

fn is_there(directory: &Path, zone: &str) -> bool {
    // A leading colon is ignored; an absolute path is the file itself.
    directory
        .join(zone.strip_prefix(':').unwrap_or(zone))
        .is_file()
}

/// `CET-1CEST`, `<+09>-9`: a name of three letters or more and an offset, as POSIX has it.
fn is_rule(zone: &str) -> bool {
    let rest = match zone.strip_prefix('<') {
        Some(quoted) => quoted
            .split_once('>')
            .map(|(name, rest)| (name.len(), rest)),
        None => {
            let length = zone.bytes().take_while(u8::is_ascii_alphabetic).count();
            Some((length, &zone[length..]))
        }
    };
    rest.is_some_and(|(length, rest)| {
        let offset = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        length >= 3 && offset.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Every file below the directory, named from there.
fn collect(directory: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = entry.path();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), names);
        // Zones begin with a capital; the tables beside them do not.
        } else if name.starts_with(|c: char| c.is_ascii_uppercase()) {
            names.push(format!("{prefix}{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_zones_too() {
        for zone in ["JST-9", "CET-1CEST,M3.5.0,M10.5.0/3", "<+09>-9", "UTC0"] {
            assert!(is_rule(zone), "{zone}");
        }
        for zone in ["Mars", "", "9", "UT1", "<+09", "Europe/Berlin"] {
            assert!(!is_rule(zone), "{zone}");
        }
    }
}
