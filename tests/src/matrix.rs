//! Every kind of program on every backend, cell by cell, beside the bare kernel in the same run.

use std::collections::{BTreeMap, BTreeSet};

use crate::backends::{BACKENDS, Backend};
use crate::cells::{Answers, Cell, PROGRAMS, Program};
use crate::differences::{self, Difference};
use crate::fixture::Missing;
use crate::test_env::TestEnv;

/// How many cells answered how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub exact: usize,
    pub documented: usize,
}

/// One program on one backend.
pub struct Row {
    pub program: &'static Program,
    pub backend: &'static Backend,
    /// False where its compiler is not installed.
    pub can_be_built: bool,
    /// Why it was not tried; then the rest is empty.
    pub skipped: Option<String>,
    pub by_interface: BTreeMap<String, Tally>,
    /// What refit says it answered without the kernel.
    pub suppressed: u64,
    /// Groups and their durable calls that reached a filesystem; none where nobody can see that.
    pub durable: BTreeMap<&'static str, u64>,
    /// Cells that are neither the kernel's nor documented, each with what it should be.
    pub wrong: Vec<String>,
    /// Groups that could not be tried, each with the reason.
    pub missing: Vec<String>,
}

/// All that was seen.
pub struct Matrix {
    pub rows: Vec<Row>,
    pub differences: Vec<Difference>,
    /// Cells of each difference, by its place in the list.
    pub occurred: Vec<usize>,
    /// Words of differences whose backend was tried and that no cell answered to.
    pub idle: Vec<String>,
}

/// Groups in which every durable call can be taken away, by whatever way.
const WHOLE: &[&str] = &["descriptors", "cancel"];

impl Row {
    /// What the witness saw that should not be; `on` is the row in which every call is real.
    pub fn wrongly_durable(&self, on: &Row) -> Vec<String> {
        let calls = self.durable.iter();
        let wrong = calls.filter(|&(group, calls)| {
            let real = on.durable.get(group).copied().unwrap_or_default();
            // A path scope leaves to the disk what lies elsewhere.
            let whole = WHOLE.contains(group) && !self.backend.is_by_path();
            match self.backend.is_on() {
                true => *calls != real,
                false => *calls > if whole { 0 } else { real },
            }
        });
        wrong
            .map(|(group, calls)| format!("{group}: {calls} durable calls reached the disk"))
            .collect()
    }

    pub fn tally(&self) -> Tally {
        self.by_interface
            .values()
            .copied()
            .fold(Tally::default(), Tally::plus)
    }
}

impl Tally {
    pub fn plus(self, other: Self) -> Self {
        Self {
            exact: self.exact + other.exact,
            documented: self.documented + other.documented,
        }
    }
}

/// What each cell should be, and by which difference.
pub fn expected(
    differences: &[Difference],
    backend: &str,
    program: &Program,
    bare: &Cell,
) -> (Cell, Option<usize>) {
    let mut entries = differences.iter().enumerate();
    entries
        .find_map(|(at, entry)| {
            let applied = entry
                .is_for(backend, program)
                .then(|| entry.applied(program, bare));
            Some((applied.flatten()?, Some(at)))
        })
        .unwrap_or_else(|| (bare.clone(), None))
}

/// Fails the test where two runs did not print the same cells.
pub fn paired<'a>(bare: &'a [Cell], got: &'a [Cell]) -> impl Iterator<Item = (&'a Cell, &'a Cell)> {
    let name = |cell: &Cell| (cell.interface.clone(), cell.kind.clone());
    let [names, got_names] = [bare, got].map(|cells| cells.iter().map(name).collect::<Vec<_>>());
    assert_eq!(names, got_names, "not the same cells");
    std::iter::zip(bare, got)
}

pub fn run(env: &TestEnv) -> Matrix {
    let mut seen = Seen {
        differences: differences::read(),
        ..Seen::default()
    };
    let rows = PROGRAMS
        .iter()
        .flat_map(|program| seen.program(env, program))
        .collect();
    let occurred = (0..seen.differences.len())
        .map(|at| seen.occurred.get(&at).copied().unwrap_or_default())
        .collect();
    let idle = seen.idle();
    Matrix {
        rows,
        occurred,
        idle,
        differences: seen.differences,
    }
}

#[derive(Default)]
struct Seen {
    differences: Vec<Difference>,
    occurred: BTreeMap<usize, usize>,
    /// Differences whose backend was tried, and the words of them that cells answered to.
    tried: BTreeSet<usize>,
    answered: BTreeSet<(usize, String)>,
}

impl Seen {
    fn program(&mut self, env: &TestEnv, program: &'static Program) -> Vec<Row> {
        let bare: Result<Vec<Answers>, Missing> = program.executable().map(|_| {
            let groups = program.groups.iter();
            groups.map(|group| program.bare(env, group, None)).collect()
        });
        let rows = BACKENDS.iter().map(|backend| {
            let mut row = Row {
                program,
                backend,
                can_be_built: bare.is_ok(),
                skipped: None,
                by_interface: BTreeMap::new(),
                suppressed: 0,
                durable: BTreeMap::new(),
                wrong: Vec::new(),
                missing: Vec::new(),
            };
            match (&bare, backend.why_not(program)) {
                (Err(Missing::Broken(reason)), _) => panic!("{}: {reason}", program.name),
                (Err(Missing::Compiler(reason)), _) => row.skipped = Some(reason.clone()),
                (_, Some(reason)) => row.skipped = Some(reason.to_owned()),
                (Ok(bare), None) => self.fill(env, &mut row, bare),
            }
            row
        });
        rows.collect()
    }

    fn fill(&mut self, env: &TestEnv, row: &mut Row, bare: &[Answers]) {
        let is_for = |entry: &Difference| entry.is_for(row.backend.name, row.program);
        let entries = self.differences.iter().enumerate();
        self.tried
            .extend(entries.filter(|(_, entry)| is_for(entry)).map(|(at, _)| at));
        for (group, bare) in std::iter::zip(row.program.groups, bare) {
            let run = row.backend.run(env, row.program, group);
            let got = run.answers;
            row.suppressed += run.suppressed;
            row.durable.extend(run.durable.map(|calls| (*group, calls)));
            assert_eq!(bare.missing, got.missing, "{}, {group}", row.program.name);
            if let Some(reason) = &bare.missing {
                row.missing.push(format!("{group}: {reason}"));
            }
            for (bare, got) in paired(&bare.cells, &got.cells) {
                self.compare(row, bare, got);
            }
        }
    }

    fn compare(&mut self, row: &mut Row, bare: &Cell, got: &Cell) {
        let (expected, by) = expected(&self.differences, row.backend.name, row.program, bare);
        if *got != expected {
            row.wrong.push(format!("{got}    (should be {expected})"));
            return;
        }
        let tally = row.by_interface.entry(bare.interface.clone()).or_default();
        let Some(at) = by else {
            tally.exact += 1;
            return;
        };
        tally.documented += 1;
        *self.occurred.entry(at).or_default() += 1;
        let words = self.differences[at].words_for(bare);
        self.answered
            .extend(words.into_iter().map(|word| (at, word)));
    }

    fn idle(&self) -> Vec<String> {
        let tried = self.tried.iter();
        tried
            .flat_map(|&at| {
                self.differences[at]
                    .words()
                    .map(move |word| (at, word.clone()))
            })
            .filter(|word| !self.answered.contains(word))
            .map(|(at, word)| format!("{word} of the difference “{}”", self.differences[at].why))
            .collect()
    }
}
