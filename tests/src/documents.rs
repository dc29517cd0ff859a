//! The pages for people: what they name is there.

use std::fs;
use std::path::{Path, PathBuf};

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(every_path_and_link_of_a_page_leads_somewhere).once(),
    test!(every_crate_is_on_the_map).once(),
];

/// The pages at the top of the source.
const TOP: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.ja.md",
    "README.md",
    "SECURITY.md",
];

/// How a path begins that is meant from the top of the source.
const FOLDERS: &[&str] = &[
    ".ci/",
    ".github/",
    "bench/",
    "crates/",
    "docs/",
    "packaging/",
    "recipes/",
    "scripts/",
    "tests/",
];

/// In place of a name that the reader chooses.
const PLACEHOLDER: &str = "NAME";

fn every_path_and_link_of_a_page_leads_somewhere(env: &TestEnv) -> Outcome {
    let source = source_dir();
    if !source.join(TOP[0]).exists() {
        env.skip("only a part of the source is here");
    }
    let mut pages: Vec<PathBuf> = TOP.iter().map(|name| source.join(name)).collect();
    pages.extend(pages_in(&source.join("docs")));
    for recipe in fs::read_dir(source.join("recipes")).expect("it is there") {
        pages.extend(pages_in(&recipe.expect("it stays").path()));
    }
    let (mut asked, mut wrong) = (0, Vec::new());
    for page in &pages {
        let text = fs::read_to_string(page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        let beside = page.parent().expect("it is in a directory");
        for path in paths(&text) {
            asked += 1;
            if !source.join(path).exists() {
                wrong.push(format!("{}: there is no {path}", page.display()));
            }
        }
        for link in links(&text) {
            asked += 1;
            if !leads(beside, page, link) {
                wrong.push(format!("{}: {link} leads nowhere", page.display()));
            }
        }
    }
    println!("{asked} paths and links of {} pages", pages.len());
    assert!(asked > 500, "{asked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Outcome::Pass
}

fn every_crate_is_on_the_map(env: &TestEnv) -> Outcome {
    let map = source_dir().join("ARCHITECTURE.md");
    if !map.exists() {
        env.skip("only a part of the source is here");
    }
    let map = fs::read_to_string(map).expect("it is text");
    let crates = fs::read_dir(source_dir().join("crates")).expect("they are there");
    let names = crates.map(|one| one.expect("it stays").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let missing: Vec<String> = names
        .filter(|name| !map.contains(&format!("\n| `{name}` |")))
        .collect();
    assert!(missing.is_empty(), "not in ARCHITECTURE.md: {missing:?}");
    Outcome::Pass
}

fn pages_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let files = entries.map(|entry| entry.expect("it stays").path());
    let mut pages: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.sort();
    pages
}

/// The words that begin with a folder of the source.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
    let words = text.split(move |c| !is_of_path(c));
    let words = words.map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.contains(PLACEHOLDER)
    })
}

/// The targets of links that are not of another site.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.split("](").skip(1);
    let targets = ends.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace))
}

/// Whether a link of a page leads to a file, and to a heading of it where it names one.
fn leads(beside: &Path, page: &Path, link: &str) -> bool {
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (link, None),
    };
    let target = match file {
        "" => page.to_owned(),
        file => beside.join(file),
    };
    let Some(heading) = heading else {
        return target.exists();
    };
    let text = fs::read_to_string(target).unwrap_or_default();
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles.map(anchor).any(|anchor| anchor == heading)
}

/// What a heading is called in links: small letters, digits and hyphens.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_links_are_found_in_prose_code_and_tables() {
        let text = "See `crates/a/src/b.rs`, docs/c.md: `recipes/NAME/`, https://x/docs/d.md\n| [e](f.md#g-h) | [i](https://j) |";
        assert_eq!(
            paths(text).collect::<Vec<_>>(),
            ["crates/a/src/b.rs", "docs/c.md"]
        );
        assert_eq!(links(text).collect::<Vec<_>>(), ["f.md#g-h"]);
        assert_eq!(
            anchor("## How to read the `answer`"),
            "how-to-read-the-answer"
        );
    }
}
