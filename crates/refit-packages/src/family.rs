//! Families of distributions, by os-release(5).

use std::fs;
use std::path::Path;

/// Distributions that share a package manager and the names of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Debian, Ubuntu, and what is made of them.
    Debian,
    /// Fedora, RHEL, and what is made of them.
    Fedora,
    /// openSUSE and SLES.
    Suse,
    /// Arch Linux.
    Arch,
    /// Alpine Linux.
    Alpine,
}

/// A family's package manager.
#[derive(Clone, Copy, Debug)]
pub struct Manager {
    /// Its command.
    pub name: &'static str,
    /// The words before the packages' names.
    pub install: &'static str,
}

/// A family, its column in the table, what ID or ID_LIKE of os-release names it, its package manager.
type Row = (Family, &'static str, &'static [&'static str], Manager);

const FAMILIES: [Row; 5] = [
    (
        Family::Debian,
        "debian",
        &["debian", "ubuntu"],
        Manager {
            name: "apt",
            install: "apt install",
        },
    ),
    (
        Family::Fedora,
        "fedora",
        &["fedora", "rhel", "centos", "amzn"],
        Manager {
            name: "dnf",
            install: "dnf install",
        },
    ),
    (
        Family::Suse,
        "suse",
        &["suse", "opensuse", "sles"],
        Manager {
            name: "zypper",
            install: "zypper install",
        },
    ),
    (
        Family::Arch,
        "arch",
        &["arch"],
        Manager {
            name: "pacman",
            install: "pacman -S",
        },
    ),
    (
        Family::Alpine,
        "alpine",
        &["alpine"],
        Manager {
            name: "apk",
            install: "apk add",
        },
    ),
];

impl Family {
    /// The family of the system below `root`; `None`: its os-release names none of these.
    #[must_use]
    pub fn of(root: &Path) -> Option<Family> {
        let places = ["etc/os-release", "usr/lib/os-release"];
        let text = places
            .iter()
            .find_map(|place| fs::read_to_string(root.join(place)).ok())?;
        let words = ["ID=", "ID_LIKE="].into_iter().flat_map(|key| {
            let value = text.lines().find_map(|line| line.strip_prefix(key));
            let value = value.unwrap_or_default().trim_matches(['"', '\'']);
            value.split(' ').collect::<Vec<_>>()
        });
        let mut found = words.filter_map(|word| {
            // opensuse-leap, opensuse-tumbleweed
            let word = word.split('-').next().unwrap_or(word);
            let row = FAMILIES.iter().find(|(_, _, ids, _)| ids.contains(&word))?;
            Some(row.0)
        });
        found.next()
    }

    fn row(self) -> &'static Row {
        let row = FAMILIES.iter().find(|(family, ..)| *family == self);
        row.expect("every family has a row")
    }

    /// Its column's name in the table.
    #[must_use]
    pub fn column(self) -> &'static str {
        self.row().1
    }

    /// Its package manager.
    #[must_use]
    pub fn manager(self) -> Manager {
        self.row().3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_decides() {
        let table = [
            ("ID=debian\nVERSION_ID=\"13\"\n", Some(Family::Debian)),
            (
                "NAME=Ubuntu\nID=ubuntu\nID_LIKE=debian\n",
                Some(Family::Debian),
            ),
            (
                "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
                Some(Family::Debian),
            ),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                Some(Family::Fedora),
            ),
            (
                "ID='opensuse-tumbleweed'\nID_LIKE=\"opensuse suse\"\n",
                Some(Family::Suse),
            ),
            ("ID=opensuse-leap\n", Some(Family::Suse)),
            ("ID=arch\n", Some(Family::Arch)),
            ("ID=alpine\n", Some(Family::Alpine)),
            ("ID=void\n", None),
            ("", None),
        ];
        for (text, expected) in table {
            let root = tempfile::tempdir().expect("a directory");
            fs::create_dir(root.path().join("etc")).expect("a directory");
            fs::write(root.path().join("etc/os-release"), text).expect("a file");
            assert_eq!(Family::of(root.path()), expected, "{text}");
        }
        let empty = tempfile::tempdir().expect("a directory");
        assert_eq!(Family::of(empty.path()), None);
    }
}
