//! tests/conformance/differences.toml: where refit is documented to answer otherwise than the kernel.

use std::fs;

use serde::Deserialize;

use crate::cells::{Cell, Program};
use crate::locations::source_dir;
use crate::sys;

/// One entry. Of `backends`, `programs`, `interfaces` and `kinds` each may end in `*`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    backends: Vec<String>,
    /// All when there are none.
    #[serde(default)]
    programs: Vec<String>,
    /// Whether it occurs only where the program is root's: for others there is no difference.
    #[serde(default)]
    only_as_root: bool,
    interfaces: Vec<String>,
    kinds: Vec<String>,
    /// An errno's name, or words of a cell's note.
    pub kernel: String,
    /// What stands in their place: `0` for an errno.
    pub refit: String,
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    difference: Vec<Difference>,
}

/// All of them, in the file's order.
pub fn read() -> Vec<Difference> {
    let path = source_dir().join("tests/conformance/differences.toml");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
    let file: File =
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.difference
}

/// Whether one of the patterns, each of which may end in `*`, is this name.
fn any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |prefix| name.starts_with(prefix))
}

impl Difference {
    /// Whether the entry is for this backend and this program.
    pub fn is_for(&self, backend: &str, program: &Program) -> bool {
        any(&self.backends, backend)
            && (!self.only_as_root || sys::euid() == 0)
            && (self.programs.is_empty() || any(&self.programs, program.name))
    }

    /// The cell as refit is documented to answer it, where this entry speaks of it.
    pub fn applied(&self, program: &Program, cell: &Cell) -> Option<Cell> {
        if !any(&self.interfaces, &cell.interface) || !any(&self.kinds, &cell.kind) {
            return None;
        }
        let mut other = cell.clone();
        if self.kernel.contains('=') {
            other.note = cell.note.replacen(&self.kernel, &self.refit, 1);
            return (other.note != cell.note).then_some(other);
        }
        (cell.errno == self.kernel).then(|| {
            other.result.clone_from(&self.refit);
            program.no_errno().clone_into(&mut other.errno);
            other
        })
    }

    /// The words of `interfaces` and `kinds` that this cell answers to.
    pub fn words_for(&self, cell: &Cell) -> Vec<String> {
        let interfaces = self.interfaces.iter();
        let kinds = self.kinds.iter();
        interfaces
            .filter(|pattern| matches(pattern, &cell.interface))
            .chain(kinds.filter(|pattern| matches(pattern, &cell.kind)))
            .cloned()
            .collect()
    }

    /// All words of `interfaces` and `kinds`.
    pub fn words(&self) -> impl Iterator<Item = &String> {
        self.interfaces.iter().chain(&self.kinds)
    }

    /// Backends, interfaces, kinds.
    pub fn words_of_each(&self) -> [&[String]; 3] {
        [&self.backends, &self.interfaces, &self.kinds]
    }

    /// None are all.
    pub fn programs(&self) -> &[String] {
        &self.programs
    }
}
