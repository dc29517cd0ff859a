//! What a package manager's own lists have. They are asked as they lie on this machine, never over the network.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::family::Family;
use crate::table::all_names;

/// What the lists say of some names.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The names that can be installed, of those that were asked for.
    Lists(Vec<String>),
    /// They could not be asked: why.
    Unknown(String),
}

/// The command that answers, its words before the names; each reads what was downloaded before, and changes nothing.
fn question(family: Family) -> &'static [&'static str] {
    match family {
        Family::Debian => &["apt-cache", "policy"],
        // `-C`: from the cache alone; dnf(8), dnf5(8).
        Family::Fedora => &["dnf", "-q", "-C", "repoquery", "--qf", "%{name}\n"],
        Family::Suse => &[
            "zypper",
            "-q",
            "-n",
            "--no-refresh",
            "search",
            "--match-exact",
        ],
        Family::Arch => &["pacman", "-Si"],
        Family::Alpine => &["apk", "search", "--exact", "--quiet"],
    }
}

/// What was asked before, and the names that were found. apt can take a second to answer.
static ASKED: Mutex<(Vec<String>, Vec<String>)> = Mutex::new((Vec::new(), Vec::new()));

/// Asks which of these names can be installed, and with the first question of a process of all in the table.
pub(crate) fn ask(family: Family, names: &[&str]) -> Answer {
    let mut guard = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let (asked, found) = &mut *guard;
    let is_new = |name: &&str| !asked.iter().any(|one| one == name);
    let mut new: Vec<&str> = names.iter().copied().filter(is_new).collect();
    if !new.is_empty() {
        if asked.is_empty() {
            new.extend(all_names(family));
        }
        let Some(printed) = printed_about(family, &new) else {
            return Answer::Unknown(format!("{} does not run here", question(family)[0]));
        };
        found.extend(named(family, &printed));
        asked.extend(new.into_iter().map(str::to_owned));
    }
    let found: Vec<String> = found
        .iter()
        .filter(|name| names.contains(&&***name))
        .cloned()
        .collect();
    if found.is_empty() && !has_lists(family) {
        let manager = family.manager().name;
        return Answer::Unknown(format!("{manager} has no package lists yet"));
    }
    Answer::Lists(found)
}

/// What the manager prints of these names; `None`: it cannot be started.
fn printed_about(family: Family, names: &[&str]) -> Option<String> {
    let words = question(family);
    let output = Command::new(words[0])
        .args(&words[1..])
        .args(names)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    Some(String::from_utf8_lossy(&output.ok()?.stdout).into_owned())
}

/// Whether there are lists: they would have bash.
fn has_lists(family: Family) -> bool {
    let printed = printed_about(family, &["bash"]).unwrap_or_default();
    // apt knows what is installed even without them, and names /var/lib/dpkg/status alone as its source.
    let is_installed_only = family == Family::Debian && !printed.contains("://");
    !is_installed_only && named(family, &printed).iter().any(|name| name == "bash")
}

/// The names of what can be installed, in what such a command printed.
fn named(family: Family, printed: &str) -> Vec<String> {
    let mut names = Vec::new();
    match family {
        Family::Debian => {
            // NAME:, then `  Candidate: VERSION`, or `(none)` for a name without a package.
            let mut name = "";
            for line in printed.lines() {
                match line.trim().strip_prefix("Candidate: ") {
                    Some("(none)") => (),
                    Some(_) => names.push(name.to_owned()),
                    None if line.starts_with(' ') => (),
                    None => name = line.trim_end_matches(':'),
                }
            }
        }
        Family::Fedora | Family::Alpine => {
            names.extend(printed.split_whitespace().map(str::to_owned));
        }
        Family::Suse => {
            // `S  | Name | Summary | Type`
            let cells = printed.lines().filter_map(|line| line.split('|').nth(1));
            names.extend(cells.map(|cell| cell.trim().to_owned()));
        }
        Family::Arch => {
            // `Name            : jemalloc`
            let fields = printed.lines().filter_map(|line| line.split_once(':'));
            let own = fields.filter(|(key, _)| key.trim() == "Name");
            names.extend(own.map(|(_, value)| value.trim().to_owned()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_names_what_has_a_candidate() {
        let printed = "libmimalloc3:\n  Installed: (none)\n  Candidate: 3.0.1+ds-2.1\n  Version table:\n     3.0.1+ds-2.1 500\n        500 http://mirror trixie/main amd64 Packages\nlibtcmalloc-minimal4:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        assert_eq!(named(Family::Debian, printed), ["libmimalloc3"]);
    }

    #[test]
    fn each_manager_is_read_in_its_own_form() {
        let table = [
            (Family::Fedora, "jemalloc\ngperftools-libs\n"),
            (
                Family::Suse,
                "S | Name            | Summary | Type\n--+-----------------+---------+--------\n  | jemalloc        | x       | package\n  | gperftools-libs | y       | package\n",
            ),
            (
                Family::Arch,
                "Repository      : extra\nName            : jemalloc\nVersion         : 1:5.3.0-5\n\nRepository      : extra\nName            : gperftools-libs\n",
            ),
            (Family::Alpine, "jemalloc\ngperftools-libs\n"),
        ];
        for (family, printed) in table {
            let names = named(family, printed);
            for name in ["jemalloc", "gperftools-libs"] {
                assert!(names.iter().any(|one| one == name), "{family:?}: {names:?}");
            }
        }
    }
}
