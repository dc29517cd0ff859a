//! docs/conformance.md: written by `make conformance`, and held by a test against what was just seen.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::backends::BACKENDS;
use crate::matrix::{Matrix, Row, Tally};

const HEAD: &str = "\
# Conformance

`make conformance` writes this file; a test compares it with the results of its own run.

A *cell* is one call on one kind of object: fsync of a pipe, msync across a hole, openat2 with O_SYNC of a missing
file. The program tests/conformance/cells prints for each cell the result, the errno (and whether a success left errno
unchanged) and the state of the descriptor that the call returned. Built in each of the ways below, it runs first
without refit, and then under refit; what the kernel answers without refit in the same run is correct. Any difference
that is not documented here fails the test, and so does a documented difference that does not occur.

`sync=on` has to be exact everywhere: refit then only counts. `reached the disk` is what the witness counted in the
same runs: sync calls on files that reached the filesystem; where refit was to suppress them, also by group of cells.
(What io_submit submits is done by kernel threads, and is not counted here.)
";

/// The document as it should be after this run.
pub fn of(matrix: &Matrix) -> String {
    let mut text = format!("{HEAD}\n{}\n", machine());
    text += "\n## Programs and backends\n\n";
    text += "| program | `refit run` | exact | documented | reached the disk | not tried |\n\
             |---|---|--:|--:|---|---|\n";
    for row in matrix.rows.iter().filter(|row| row.skipped.is_none()) {
        let _ = writeln!(text, "{}", line(row));
    }
    for ((program, reason), words) in skipped(matrix) {
        let _ = writeln!(
            text,
            "| {program} | {} | | | | {reason} |",
            words.join(", ")
        );
    }
    let total = matrix
        .rows
        .iter()
        .map(Row::tally)
        .fold(Tally::default(), Tally::plus);
    let _ = writeln!(
        text,
        "\nIn total {} answers: {} exact, {} documented, none else.",
        total.exact + total.documented,
        total.exact,
        total.documented
    );
    text += &differences(matrix);
    text += &interfaces(matrix);
    text
}

/// A row of the first table.
fn line(row: &Row) -> String {
    let (durable, missing) = (durable(row), row.missing.join("; "));
    format!("{} {durable} | {missing} |", beginning(row))
}

/// As far as it needs no witness.
pub fn beginning(row: &Row) -> String {
    let (what, words) = (row.program.what, row.backend.words());
    let Tally { exact, documented } = row.tally();
    format!("| {what} | `{words}` | {exact} | {documented} |")
}

/// How many durable calls did, and where refit was to take them away: of which groups.
fn durable(row: &Row) -> String {
    let all: u64 = row.durable.values().sum();
    if row.backend.is_on() || all == 0 {
        return all.to_string();
    }
    let left = row.durable.iter().filter(|(_, calls)| **calls > 0);
    let left: Vec<String> = left
        .map(|(group, calls)| format!("{group} {calls}"))
        .collect();
    format!("{all} ({})", left.join(", "))
}

/// What was not tried: by program and reason.
fn skipped(matrix: &Matrix) -> BTreeMap<(&str, &str), Vec<String>> {
    let mut skipped: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for row in &matrix.rows {
        if let Some(reason) = &row.skipped {
            let words = skipped.entry((row.program.what, reason)).or_default();
            words.push(format!("`{}`", row.backend.words()));
        }
    }
    skipped
}

fn differences(matrix: &Matrix) -> String {
    let mut text = String::from(
        "\n## Documented differences\n\n\
         | backend | cells | calls | objects | the kernel | refit | why |\n|---|--:|---|---|---|---|---|\n",
    );
    for (entry, cells) in std::iter::zip(&matrix.differences, &matrix.occurred) {
        if *cells == 0 {
            continue; // its backend could not be tried
        }
        let [backends, interfaces, kinds] = entry.words_of_each().map(|words| words.join(", "));
        let backends = match entry.programs() {
            [] => backends,
            programs => format!("{backends} ({})", programs.join(", ")),
        };
        let _ = writeln!(
            text,
            "| {backends} | {cells} | {} | {} | {} | {} | {} |",
            escaped(&interfaces),
            escaped(&kinds),
            entry.kernel,
            entry.refit,
            entry.why
        );
    }
    text
}

fn interfaces(matrix: &Matrix) -> String {
    let tried: Vec<&str> = BACKENDS
        .iter()
        .filter(|backend| {
            let mut rows = matrix.rows.iter();
            rows.any(|row| row.backend.name == backend.name && row.skipped.is_none())
        })
        .map(|backend| backend.name)
        .collect();
    let mut by_interface: BTreeMap<&str, BTreeMap<&str, Tally>> = BTreeMap::new();
    for row in &matrix.rows {
        for (interface, tally) in &row.by_interface {
            let sums = by_interface.entry(interface).or_default();
            let sum = sums.entry(row.backend.name).or_default();
            *sum = sum.plus(*tally);
        }
    }
    let mut text = format!(
        "\n## Calls\n\nCells of all programs together; after a plus sign, those with a documented difference.\n\n\
         | call | {} |\n|---{}|\n",
        tried.join(" | "),
        "|--:".repeat(tried.len())
    );
    for (interface, sums) in by_interface {
        let _ = write!(text, "| {} ", escaped(interface));
        for backend in &tried {
            let shown = sums
                .get(backend)
                .map_or_else(String::new, |sum| match sum.documented {
                    0 => sum.exact.to_string(),
                    documented => format!("{} + {documented}", sum.exact),
                });
            let _ = write!(text, "| {shown} ");
        }
        text += "|\n";
    }
    text
}

/// Markdown's own characters in names of calls and in patterns.
fn escaped(text: &str) -> String {
    text.replace('_', "\\_").replace('*', "\\*")
}

/// Where it was seen: on another kernel other answers may be right.
pub fn machine() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
    let arch = std::env::consts::ARCH.replace("x86_64", "x86-64");
    format!("Seen on: Linux {version}, {arch}, as root, on ext4.")
}
