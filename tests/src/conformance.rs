//! Does a program get the kernel's own answers, swapped or not?
//!
//! Every cell (a call on a kind of object: tests/conformance/cells) is asked of the bare kernel first, and that
//! is what it must be under refit, errno included, unless tests/conformance/differences.toml says otherwise;
//! there it must be otherwise. What came to the kernel is judged in conformance_counts.rs.

use std::fs;
use std::process::ExitCode;

use crate::backends::Backend;
use crate::cells::{Answers, Cell, Program};
use crate::locations::source_dir;
use crate::matrix::{self, Matrix, Row, expected, paired};
use crate::runner::{self, Outcome, Test};
use crate::test_env::TestEnv;
use crate::{conformance_document as document, differences, test};

pub const TESTS: &[Test] = &[
    test!(every_cell_is_the_kernels_or_documented).limit_seconds(600),
    test!(the_kernel_answers_as_documented),
    test!(a_preload_that_always_answers_0_would_be_noticed),
    test!(a_preload_that_zeroes_errno_would_be_noticed),
    test!(a_filter_that_always_answers_0_would_be_noticed),
];

fn every_cell_is_the_kernels_or_documented(env: &TestEnv) -> Outcome {
    let matrix = matrix::run(env);
    let mut exact = 0;
    for row in &matrix.rows {
        let what = format!("{}, {}", row.program.name, row.backend.words());
        match &row.skipped {
            Some(reason) => println!("{what}: skipped, {reason}"),
            None => println!("{what}: {:?}, {} wrong", row.tally(), row.wrong.len()),
        }
        exact += row.tally().exact;
        let wrong = row.wrongly_durable(on_row(&matrix, row));
        assert!(wrong.is_empty(), "{what}: {wrong:?}");
        let had_to = row.skipped.is_none() && row.backend.counts_suppressed(row.program);
        assert!(
            row.suppressed > 0 || !had_to,
            "{what}: nothing was suppressed"
        );
        let first = row.wrong.iter().take(12);
        first.for_each(|wrong| println!("  {wrong}"));
    }
    assert!(exact > 0, "nothing was tried");
    let Matrix { rows, idle, .. } = &matrix;
    assert!(rows.iter().all(|row| row.wrong.is_empty()), "see above");
    let path = source_dir().join("docs/conformance.md");
    let written = fs::read_to_string(&path).expect("make conformance writes it");
    if !written.contains(&document::machine()) {
        // Another kernel has other answers: refit's are its, or documented, but not as often.
        println!("docs/conformance.md is of another kernel; idle here: {idle:#?}");
        return Outcome::Pass;
    }
    assert!(
        idle.is_empty(),
        "documented, and it does not occur: {idle:#?}"
    );
    if env.as_root() {
        hold_document(&matrix, &written);
    }
    Outcome::Pass
}

/// The row of the same program in which refit only counts, and the kernel has to see everything.
fn on_row<'a>(matrix: &'a Matrix, row: &Row) -> &'a Row {
    let mut rows = matrix.rows.iter();
    let on = rows.find(|on| on.program.name == row.program.name && on.backend.name == "seccomp on");
    let on = on.expect("the table names it");
    let seen: u64 = on.durable.values().sum();
    assert!(seen > 0 || on.durable.is_empty(), "the witness saw nothing");
    on
}

/// docs/conformance.md says what was just seen; of programs that cannot be built here, or where there is no
/// witness, the lines of the others as far as they go.
fn hold_document(matrix: &Matrix, written: &str) {
    let mut rows = matrix.rows.iter().filter(|row| row.skipped.is_none());
    let is_whole = matrix.rows.iter().all(|row| row.can_be_built)
        && rows.clone().all(|row| !row.durable.is_empty());
    if is_whole {
        let seen = document::of(matrix);
        assert!(
            written == seen,
            "docs/conformance.md is not what was seen; run make conformance:\n{seen}"
        );
    }
    let absent = rows.find(|row| !written.contains(&document::beginning(row)));
    let absent = absent.map(document::beginning);
    assert_eq!(absent, None, "docs/conformance.md has no such line");
}

/// `--conformance`: what docs/conformance.md should be, on stdout, unless something is wrong.
pub fn print_document() -> ExitCode {
    let matrix = match runner::test_env().map(|env| matrix::run(&env)) {
        Ok(matrix) => matrix,
        Err(error) => {
            eprintln!("refit-tests: {error:#}");
            return ExitCode::from(2);
        }
    };
    let named = |row: &'_ Row| {
        let what = format!("{}, {}", row.program.name, row.backend.name);
        let wrong = row.wrong.iter();
        wrong
            .map(move |wrong| format!("{what}: {wrong}"))
            .collect::<Vec<_>>()
    };
    let wrong: Vec<String> = matrix.rows.iter().flat_map(named).collect();
    if !wrong.is_empty() || !matrix.idle.is_empty() {
        let idle = &matrix.idle;
        eprintln!("refit-tests: not as documented: {wrong:#?} {idle:#?}");
        return ExitCode::FAILURE;
    }
    print!("{}", document::of(&matrix));
    ExitCode::SUCCESS
}

/// Some cells that facts about Linux 6.18 give by hand, so that the fixture itself is not blind.
fn the_kernel_answers_as_documented(env: &TestEnv) -> Outcome {
    let glibc = Program::named("glibc");
    for (group, lines) in [
        (
            "descriptors",
            &[
                "fsync regular_rdonly 0 kept",
                "fsync path_file -1 EBADF",
                "fdatasync pipe_read -1 EINVAL",
                "syncfs socket_unix 0 kept",
                "sync_file_range eventfd -1 ESPIPE",
                "sync_file_range_bad_flags directory -1 EINVAL",
                "fsync proc_file -1 EINVAL",
            ][..],
        ),
        (
            "ranges",
            &[
                "msync hole -1 ENOMEM",
                "msync length_wraps 0 kept",
                "msync invalidate_locked -1 EBUSY",
            ],
        ),
        (
            "cancel",
            &[
                "fsync cancellation_pending 1 kept",
                "sync cancellation_pending 0 kept",
            ],
        ),
        ("kernel_aio", &["io_submit_fsync pipe_read -1 EINVAL"]),
    ] {
        let answers = glibc.bare(env, group, None).cells;
        let printed: Vec<String> = answers.iter().map(Cell::to_string).collect();
        for line in lines {
            assert!(
                printed.iter().any(|cell| cell == line),
                "{line} is not in {printed:#?}"
            );
        }
    }
    // The kernel completes a lone __O_SYNC, and keeps every other bit that was asked for.
    let opens = glibc.bare(env, "opens", None).cells;
    let asked = opens.iter().filter(|cell| cell.kind.contains("SYNC"));
    for cell in asked.clone() {
        let bits = if cell.kind.contains("O_DSYNC") {
            "sync=O_DSYNC "
        } else {
            "sync=O_SYNC "
        };
        assert!(cell.note.starts_with(bits), "{cell}");
    }
    assert!(asked.count() > 50);
    Outcome::Pass
}

/// How many cells of a mutant's are neither the kernel's nor documented for this backend.
fn wrong_cells(backend: &Backend, program: &Program, bare: &[Cell], mutant: &[Cell]) -> usize {
    let differences = differences::read();
    paired(bare, mutant)
        .filter(|(bare, got)| expected(&differences, backend.name, program, bare).0 != **got)
        .count()
}

/// A preload mutant fails at least so many cells of each group.
fn is_noticed(env: &TestEnv, mutant: &str, groups: &[(&str, usize)]) {
    let (mutant, glibc) = (env.program(mutant), Program::named("glibc"));
    for (group, at_least) in groups {
        let bare = glibc.bare(env, group, None).cells;
        let got = glibc.bare(env, group, Some(&mutant)).cells;
        let wrong = wrong_cells(Backend::named("preload off"), glibc, &bare, &got);
        println!("{group}: {wrong} of {} wrong", bare.len());
        assert!(wrong >= *at_least, "{group}: only {wrong} cells are wrong");
    }
}

fn a_preload_that_always_answers_0_would_be_noticed(env: &TestEnv) -> Outcome {
    let groups = [
        ("descriptors", 240),
        ("ranges", 8),
        ("opens", 50),
        ("cancel", 4),
    ];
    is_noticed(env, "always_zero", &groups);
    Outcome::Pass
}

fn a_preload_that_zeroes_errno_would_be_noticed(env: &TestEnv) -> Outcome {
    is_noticed(env, "zeroes_errno", &[("descriptors", 80), ("ranges", 14)]);
    Outcome::Pass
}

/// strace answers the calls of a static program in the kernel's place.
fn a_filter_that_always_answers_0_would_be_noticed(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let program = Program::named("glibc-static");
    for (group, at_least) in [("descriptors", 300), ("ranges", 16)] {
        let bare = program.bare(env, group, None).cells;
        let words = program.words(env, group, "mutant");
        let calls = "inject=fsync,fdatasync,syncfs,sync_file_range,msync:retval=0";
        let mut command = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", calls, "--"];
        command.extend(words.iter().map(String::as_str));
        let got = Answers::parse(&env.run(&command).stdout).cells;
        let wrong = wrong_cells(Backend::named("seccomp off"), program, &bare, &got);
        println!("{group}: {wrong} of {} wrong", bare.len());
        assert!(wrong >= at_least, "{group}: only {wrong} cells are wrong");
    }
    Outcome::Pass
}
