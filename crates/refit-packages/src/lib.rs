//! What refit and its recipes need, and how it is installed on this machine: one table of packages by purpose
//! (docs/packages.md), the family of distributions that os-release(5) names, and its package manager's own lists, which
//! decide between the names of a purpose. A hint names no package that these lists do not have.
//!
//! Nothing here installs anything.

mod family;
mod lists;
mod owners;
mod table;

use std::path::Path;

pub use family::Family;
pub use lists::Answer;
pub use owners::owners;
use table::names;

/// How to install what the words need, as one line that starts a sentence: `install it: apt install libjemalloc2`.
/// A word is a purpose of the table, or a package's name of this distribution.
///
/// It asks the package manager, which takes some 50 ms: for messages that are printed, not for a loop.
#[must_use]
pub fn how_to_install<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match Family::of(Path::new("/")) {
        Some(family) => line(family, &words, |names| lists::ask(family, names)),
        None => {
            let packages = words.iter().map(|word| names(Family::Debian, word)[0]);
            let packages: Vec<&str> = packages.collect();
            format!(
                "install it by this system's package manager; Debian calls it {}",
                packages.join(" ")
            )
        }
    }
}

/// The line for words of a family; `ask`: which of some names the package lists have.
fn line(family: Family, words: &[&str], ask: impl FnOnce(&[&str]) -> Answer) -> String {
    let all: Vec<&str> = words
        .iter()
        .flat_map(|word| names(family, word))
        .filter(|name| *name != table::NONE)
        .collect();
    let answer = if all.is_empty() {
        Answer::Lists(Vec::new())
    } else {
        ask(&all)
    };
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for word in words {
        let names = names(family, word).into_iter();
        let mut names = names.filter(|name| *name != table::NONE);
        let chosen = match &answer {
            Answer::Lists(have) => names.find(|name| have.iter().any(|one| one == name)),
            Answer::Unknown(_) => names.next(),
        };
        match chosen {
            Some(name) if found.contains(&name) => (),
            Some(name) => found.push(name),
            None => missing.push(*word),
        }
    }
    let manager = family.manager();
    let installs = format!("install it: {} {}", manager.install, found.join(" "));
    let lacks = format!(
        "{}'s package lists do not have: {}",
        manager.name,
        missing.join(", ")
    );
    let mut line = match (found.is_empty(), missing.is_empty()) {
        (false, true) => installs,
        (false, false) => format!("{installs} ({lacks})"),
        (true, _) => lacks,
    };
    if let Answer::Unknown(reason) = answer
        && !found.is_empty()
    {
        line += &format!(" (not looked up: {reason})");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn have(names: &[&str]) -> Answer {
        Answer::Lists(names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_lists_decide_between_the_names_of_a_purpose() {
        let table = [
            (
                &["libmimalloc3"][..],
                "install it: apt install libmimalloc3",
            ),
            (
                &["libmimalloc2.0"],
                "install it: apt install libmimalloc2.0",
            ),
            (
                &["libmimalloc3", "libmimalloc2.0"],
                "install it: apt install libmimalloc3",
            ),
            (&[], "apt's package lists do not have: mimalloc"),
        ];
        for (lists, expected) in table {
            let line = line(Family::Debian, &["mimalloc"], |_| have(lists));
            assert_eq!(line, expected, "{lists:?}");
        }
    }

    #[test]
    fn what_the_lists_lack_is_named_beside_what_they_have() {
        let shown = line(
            Family::Debian,
            &["ruby", "mruby-dev", "ruby", "my-own"],
            |asked| {
                assert_eq!(asked, ["ruby", "libmruby-dev", "ruby", "my-own"]);
                have(&["ruby", "my-own"])
            },
        );
        assert_eq!(
            shown,
            "install it: apt install ruby my-own (apt's package lists do not have: mruby-dev)"
        );
    }

    #[test]
    fn without_lists_the_first_name_is_given_as_not_looked_up() {
        let shown = line(Family::Fedora, &["tcmalloc"], |_| {
            Answer::Unknown("dnf has no lists yet".to_owned())
        });
        assert_eq!(
            shown,
            "install it: dnf install gperftools-libs (not looked up: dnf has no lists yet)"
        );
    }

    #[test]
    fn a_purpose_that_a_family_has_no_package_for_is_not_asked_for() {
        let shown = line(Family::Arch, &["mruby-dev"], |_| panic!("nothing to ask"));
        assert_eq!(shown, "pacman's package lists do not have: mruby-dev");
    }
}
