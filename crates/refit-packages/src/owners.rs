//! The packages that files came with, as dpkg knows them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The packages that own these files, each with its version: `redis-tools` → `5:7.0.15-1`. None without dpkg.
#[must_use]
pub fn owners(files: impl IntoIterator<Item = PathBuf>) -> BTreeMap<String, String> {
    let mut owned = Vec::new();
    for file in files {
        // A link can be another package's, or nobody's: see update-alternatives(1).
        let target = file.canonicalize().ok();
        for path in [Some(file), target].into_iter().flatten() {
            let path = path.to_string_lossy().into_owned();
            // dpkg knows files of /bin and the like by these names, which are links into /usr.
            owned.extend(path.strip_prefix("/usr").map(str::to_owned));
            owned.push(path);
        }
    }
    let names = names(&asked(&["-S", "--"], &owned));
    let versions = asked(&["-W", "-f", "${Package} ${Version}\\n", "--"], &names);
    let pairs = versions.lines().filter_map(|line| line.split_once(' '));
    let installed = pairs.filter(|(_, version)| !version.is_empty());
    installed
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect()
}

/// Of lines like `a, b:amd64: /path`; `diversion by a from: /path` names no owner.
fn names(printed: &str) -> Vec<String> {
    let owners = printed
        .lines()
        .filter(|line| !line.starts_with("diversion by "))
        .filter_map(|line| line.split_once(": "));
    let names = owners.flat_map(|(names, _)| names.split(", ").map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

/// What dpkg-query prints. It exits with 1 if it does not know one of them, and still prints the others.
fn asked(options: &[&str], about: &[String]) -> String {
    if about.is_empty() {
        return String::new();
    }
    let output = Command::new("dpkg-query")
        .args(options)
        .args(about)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_and_diversions_are_not() {
        let printed =
            "diversion by dash from: /bin/sh\ndash: /bin/sh\nlibc6:amd64, libc6:i386: /usr/lib/x\n";
        assert_eq!(names(printed), ["dash", "libc6:amd64", "libc6:i386"]);
    }
}
