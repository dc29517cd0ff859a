//! No circle of files: which file takes a name from which, read from the sources themselves.
//!
//! A file that only hands a name on (`pub use`) takes nothing: the arrow goes to the file that defines the name. Tests
//! are left out. What a macro makes, and methods, are not seen: a circle of those alone is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::file_graph::{Arrows, circles, describe};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::rust_code::code_only;
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(no_circle_of_rust_files).once(),
    test!(no_circle_of_c_files).once(),
];

fn no_circle_of_rust_files(_: &TestEnv) -> Outcome {
    let mut faults = Vec::new();
    let mut seen = 0;
    for package in directories(&source_dir().join("crates")) {
        let arrows = arrows(&Crate::read(&package.join("src")));
        seen += arrows.values().map(BTreeMap::len).sum::<usize>();
        let name = package.file_name().expect("an entry has a name");
        faults.extend(
            circles(&arrows).into_iter().map(|circle| {
                format!("{}: {}", name.to_string_lossy(), describe(&circle, &arrows))
            }),
        );
    }
    assert!(seen > 500, "only {seen} arrows between files were read");
    assert!(
        faults.is_empty(),
        "circles of files:\n{}",
        faults.join("\n")
    );
    Outcome::Pass
}

/// A C file and its header are one unit.
fn no_circle_of_c_files(_: &TestEnv) -> Outcome {
    let preload = source_dir().join("crates/refit-preload");
    let unit = |path: &Path| {
        let path = path.strip_prefix(&preload).expect("it lies below");
        path.with_extension("").to_string_lossy().into_owned()
    };
    let mut arrows = Arrows::new();
    for part in ["sync", "heap", "heap_new", "durability", "spawn"] {
        for path in files(&preload.join(part), &["c", "h"]) {
            let from = unit(&path);
            for header in included(&read(&path)) {
                // Of an architecture there is one directory each, and its files include none of these.
                let places = [part, "sync", "heap"].map(|part| preload.join(part).join(&header));
                let Some(to) = places.iter().find(|place| place.exists()) else {
                    continue;
                };
                let to = unit(to);
                if to != from {
                    arrows.entry(from.clone()).or_default().insert(to, header);
                }
            }
        }
    }
    let seen = arrows.values().map(BTreeMap::len).sum::<usize>();
    assert!(seen > 100, "only {seen} arrows between C files were read");
    let faults: Vec<String> = circles(&arrows)
        .iter()
        .map(|circle| describe(circle, &arrows))
        .collect();
    assert!(
        faults.is_empty(),
        "circles of C files:\n{}",
        faults.join("\n")
    );
    Outcome::Pass
}

fn included(source: &str) -> Vec<String> {
    let lines = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#include \""));
    lines
        .filter_map(|line| line.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// A module: its file, what that defines, and what its `use` lines bring in.
#[derive(Default)]
struct Module {
    file: String,
    code: String,
    defined: BTreeSet<String>,
    uses: Vec<Use>,
}

/// `use a::b as c;`, one for each name of a group. The name is `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    name: String,
    hands_on: bool,
}

/// The modules of a crate by their paths.
struct Crate(BTreeMap<Vec<String>, Module>);

impl Crate {
    fn read(src: &Path) -> Crate {
        let sources = files(src, &["rs"]).into_iter().filter_map(|path| {
            let inside = path.strip_prefix(src).expect("found below").to_owned();
            Some((
                module_path(&inside)?,
                inside.display().to_string(),
                read(&path),
            ))
        });
        Crate::of(sources)
    }

    fn of(sources: impl IntoIterator<Item = (Vec<String>, String, String)>) -> Crate {
        let modules = sources.into_iter().map(|(path, file, source)| {
            let code = without_tests(&code_only(&source));
            let (defined, uses) = (definitions(&code), uses(&code));
            (
                path,
                Module {
                    file,
                    code,
                    defined,
                    uses,
                },
            )
        });
        Crate(modules.collect())
    }

    /// Where a path leads that stands in this module: to a module, or to the file that defines the name.
    fn find(&self, from: &[String], path: &[String], depth: usize) -> Option<Found> {
        let mut at = from.to_vec();
        let mut rest = path;
        let mut relative = true;
        while let Some((first, others)) = rest.split_first() {
            match &**first {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                _ => break,
            }
            (relative, rest) = (false, others);
        }
        if relative {
            // What is not a child of this module may have been brought in by its `use` lines.
            let mut child = at.clone();
            child.push(rest.first()?.clone());
            if !self.0.contains_key(&child) {
                return self.brought_in(&at, rest, depth);
            }
        }
        for (index, name) in rest.iter().enumerate() {
            at.push(name.clone());
            if !self.0.contains_key(&at) {
                at.pop();
                return self.named(&at, &rest[index..], depth);
            }
        }
        Some(Found::Module(at))
    }

    /// A name in a module: defined there, or handed on from elsewhere.
    fn named(&self, module: &[String], rest: &[String], depth: usize) -> Option<Found> {
        let found = self.0.get(module)?;
        if found.defined.contains(&rest[0]) {
            return Some(Found::Name(found.file.clone(), rest[0].clone()));
        }
        self.brought_in(module, rest, depth)
    }

    fn brought_in(&self, module: &[String], rest: &[String], depth: usize) -> Option<Found> {
        if depth > 8 {
            return None;
        }
        let uses = &self.0.get(module)?.uses;
        let by_name = uses.iter().filter(|one| one.name == rest[0]);
        let by_all = uses.iter().filter(|one| one.name == "*");
        let named = by_name.map(|one| [&one.path[..], &rest[1..]].concat());
        let all = by_all.map(|one| [&one.path[..], rest].concat());
        named
            .chain(all)
            .find_map(|path| self.find(module, &path, depth + 1))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Module(Vec<String>),
    /// A file and the name that it defines.
    Name(String, String),
}

fn arrows(modules: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    for (path, module) in &modules.0 {
        let imported = module
            .uses
            .iter()
            .filter(|one| !one.hands_on)
            .map(|one| one.path.clone());
        for taken in imported.chain(paths(&module.code)) {
            if let Some(Found::Name(file, name)) = modules.find(path, &taken, 0)
                && file != module.file
                && !is_family(&file, &module.file)
            {
                arrows
                    .entry(module.file.clone())
                    .or_default()
                    .insert(file, name);
            }
        }
    }
    arrows
}

/// One is the parent of the other, or its parent's parent: they are one room, whose door is the parent.
fn is_family(a: &str, b: &str) -> bool {
    let room = |file: &str| {
        let stem = file.strip_suffix(".rs").unwrap_or(file);
        let stem = stem.strip_suffix("/mod").unwrap_or(stem);
        match stem {
            "lib" | "main" => String::new(),
            stem => format!("{stem}/"),
        }
    };
    a.starts_with(&room(b)) || b.starts_with(&room(a))
}

/// The module of a file below src/; `None` of a test.
fn module_path(inside: &Path) -> Option<Vec<String>> {
    let mut path: Vec<String> = inside
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if path.iter().any(|part| part == "tests") {
        return None;
    }
    if path.len() == 1 && (path[0] == "lib" || path[0] == "main") {
        path.clear();
    }
    path.pop_if(|last| last == "mod");
    Some(path)
}

/// Without the test module at the end.
fn without_tests(code: &str) -> String {
    let end = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    code[..end].to_owned()
}

/// What stands outside of all braces.
fn outer(code: &str) -> String {
    let mut depth = 0usize;
    let mut outer = String::new();
    for c in code.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outer.push(c),
            _ => {}
        }
        if c == '}' && depth == 0 {
            outer.push('\n');
        }
    }
    outer
}

fn definitions(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 9] = [
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "const",
        "static",
        "union",
        "macro_rules",
    ];
    let outer = outer(code);
    let words: Vec<&str> = words(&outer).collect();
    words
        .windows(2)
        .filter(|pair| KINDS.contains(&pair[0]) && !KINDS.contains(&pair[1]))
        .map(|pair| pair[1].to_owned())
        .collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The `use` lines, with their groups taken apart.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end_matches(' ');
        let starts = before.is_empty()
            || before.ends_with(['\n', ';', '}', '{'])
            || before.ends_with("pub")
            || before.ends_with(')');
        let Some(end) = code[at..].find(';').filter(|_| starts) else {
            continue;
        };
        let hands_on = before.ends_with("pub") || before.ends_with(')');
        take_apart(&code[at + 4..at + end], &[], hands_on, &mut found);
    }
    found
}

/// `a::{b, c as d}` → `a::b`, `a::c` by the name d.
fn take_apart(tree: &str, prefix: &[String], hands_on: bool, found: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let head = head.trim().trim_end_matches("::");
        let mut path = prefix.to_vec();
        path.extend(words(head).map(str::to_owned));
        let group = group.trim_end();
        let group = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 && start <= at => {
                    let part = &group[start..at];
                    if !part.trim().is_empty() {
                        take_apart(part, &path, hands_on, found);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path_text, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim())),
        None => (tree, None),
    };
    let mut path = prefix.to_vec();
    path.extend(words(path_text).map(str::to_owned));
    let all = path_text.trim_end().ends_with('*');
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let Some(last) = path.last().cloned() else {
        return;
    };
    let name = if all {
        "*".to_owned()
    } else {
        alias.map_or(last, str::to_owned)
    };
    found.push(Use {
        path,
        name,
        hands_on,
    });
}

/// The paths of two names and more that stand in code outside of `use` lines.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split(|c: char| !is_path(c))
        .map(|text| text.trim_matches(':'))
        .filter(|text| text.contains("::"))
        .map(|text| text.split("::").map(str::to_owned).collect())
        .collect()
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = listing
        .map(|entry| entry.expect("a readable directory").path())
        .collect();
    paths.sort();
    paths.into_iter().filter(|path| path.is_dir()).collect()
}

/// The files with one of these endings, of this directory and those below.
fn files(dir: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let listing = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = listing
        .map(|entry| entry.expect("a readable directory").path())
        .collect();
    paths.sort();
    let (dirs, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    let is_one = |path: &PathBuf| {
        path.extension()
            .is_some_and(|ending| endings.iter().any(|one| ending == *one))
    };
    let mut found: Vec<PathBuf> = files.into_iter().filter(is_one).collect();
    found.extend(dirs.iter().flat_map(|dir| self::files(dir, endings)));
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sources: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources = sources.iter().map(|(file, source)| {
            let path = module_path(Path::new(file)).expect("no test");
            (path, (*file).to_owned(), (*source).to_owned())
        });
        circles(&arrows(&Crate::of(sources)))
    }

    #[test]
    fn groups_and_other_names_are_taken_apart() {
        let found = uses("use a::{self, b::{C, D as E}, f::*};\npub use g::H;\n");
        let texts: Vec<String> = found
            .iter()
            .map(|one| {
                format!(
                    "{}={}{}",
                    one.name,
                    one.path.join("."),
                    if one.hands_on { "!" } else { "" }
                )
            })
            .collect();
        assert_eq!(texts, ["a=a", "C=a.b.C", "E=a.b.D", "*=a.f", "H=g.H!"]);
    }

    #[test]
    fn a_circle_is_found_through_a_name_that_is_handed_on() {
        let root = "mod a;\nmod b;\npub use a::A;\n";
        let a = "use crate::b::B;\npub struct A(B);\n";
        let forth = [("lib.rs", root), ("a.rs", a), ("b.rs", "pub struct B;\n")];
        assert_eq!(of(&forth), Vec::<Vec<String>>::new());
        let back = [
            ("lib.rs", root),
            ("a.rs", a),
            ("b.rs", "pub struct B;\nfn f() -> crate::A { loop {} }\n"),
        ];
        assert_eq!(of(&back), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn a_parent_and_its_child_are_one_room() {
        let parent = "mod child;\nuse child::made;\npub struct Part;\npub fn all() { made(); }\n";
        let child = "use super::Part;\npub fn made() -> Part { Part }\n";
        let files = [
            ("lib.rs", "mod p;"),
            ("p.rs", parent),
            ("p/child.rs", child),
        ];
        assert_eq!(of(&files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn tests_are_left_out() {
        let a = "pub struct A;\n#[cfg(test)]\nmod tests {\n use crate::b::B;\n}\n";
        assert_eq!(
            of(&[
                ("lib.rs", "mod a;mod b;"),
                ("a.rs", a),
                ("b.rs", "use crate::a::A;\npub struct B(A);")
            ]),
            Vec::<Vec<String>>::new()
        );
    }
}
