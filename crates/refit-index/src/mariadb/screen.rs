//! Which index the server uses, once it is there, and reads fewer rows with.

use std::collections::BTreeSet;

use super::catalog::Catalog;
use super::rows_read::{Index, Read, Try, read, trial_name};
use super::{run, statement};
use crate::candidate::{Candidate, Change, applied};
use crate::columns::bare;
use crate::error::IndexError;
use crate::instance::Instance;
use crate::name::new_name;
use crate::queries::Workload;
use refit_servers::sql::unquoted;

/// Rows that have to be read with an index, as a part of those without.
const WORTH: f64 = 0.9;
/// Numbers of rows that differ by less are the same.
const SAME: f64 = 1.05;
/// Indexes that one statement is proposed, each of another table.
const MOST_INDEXES: usize = 3;
/// Indexes that are tried for one statement.
const MOST_TRIED: usize = 16;

/// What came of it.
pub struct Screened {
    pub proposed: Vec<Candidate>,
    /// Indexes of the copy that statements use now, as (table, name).
    pub used: BTreeSet<(String, String)>,
}

/// The first statement of a group, and what was found for it so far.
struct Statement<'a> {
    group: usize,
    text: &'a str,
    /// Its tables' names, by what it calls them.
    tables: Vec<(String, String)>,
    possible: Vec<Index>,
    before: Read,
    /// The best set, and what is read with it.
    best: Option<(Vec<Index>, Read)>,
    /// The best index of one column.
    narrow: Option<(Vec<Index>, Read)>,
}

/// Asks for the first statement of each group that reads. An index that serves several is one candidate.
pub fn screen(
    instance: &Instance,
    workload: &Workload,
    catalog: &Catalog,
    database: &str,
) -> Result<Screened, IndexError> {
    let firsts: Vec<(usize, &str)> = workload
        .firsts()
        .filter(|(_, query)| !query.writes)
        .map(|(group, query)| (group, &*query.text))
        .collect();
    let texts: Vec<&str> = firsts.iter().map(|(_, text)| *text).collect();
    let now = Try {
        set: Vec::new(),
        statements: (0..texts.len()).collect(),
    };
    let before = read(instance, &texts, &[now])?.pop().unwrap_or_default();
    let understood = understood(instance, &texts)?;
    let mut statements = Vec::new();
    for (((group, text), before), understood) in firsts.into_iter().zip(before).zip(understood) {
        let Some(before) = before else { continue };
        let used = statement::used(&understood, database, &catalog.tables);
        let mut possible = Vec::new();
        for (table, used) in &used {
            for columns in used.candidates() {
                let table = table.clone();
                let index = Index { table, columns };
                if !catalog.has(&index.table, &index.columns) && !possible.contains(&index) {
                    possible.push(index);
                }
            }
        }
        possible.truncate(MOST_TRIED);
        let tables = used.into_iter().map(|(name, used)| (used.alias, name));
        statements.push(Statement {
            group,
            text,
            tables: tables.collect(),
            possible,
            before,
            best: None,
            narrow: None,
        });
    }
    for _ in 0..MOST_INDEXES {
        if !round(instance, &mut statements)? {
            break;
        }
    }
    let used = statements.iter().flat_map(|statement| {
        let of = |alias: &String| {
            let mut tables = statement.tables.iter();
            let found = tables.find(|(other, _)| other == alias);
            found.map_or_else(|| alias.clone(), |(_, name)| name.clone())
        };
        let used = statement.before.used.iter();
        used.map(move |(alias, index)| (of(alias), index.clone()))
    });
    Ok(Screened {
        used: used.collect(),
        proposed: proposed(&statements, catalog),
    })
}

/// Tries one more index for each statement; whether one was found.
fn round(instance: &Instance, statements: &mut [Statement]) -> Result<bool, IndexError> {
    let texts: Vec<&str> = statements.iter().map(|one| one.text).collect();
    let mut tries: Vec<Try> = Vec::new();
    for (at, statement) in statements.iter().enumerate() {
        let set = statement.best.as_ref().map_or(&[][..], |(set, _)| set);
        let has_table = |index: &&Index| set.iter().any(|one| one.table == index.table);
        for index in statement.possible.iter().filter(|index| !has_table(index)) {
            let set = [set, std::slice::from_ref(index)].concat();
            match tries.iter_mut().find(|one| one.set == set) {
                Some(same) => same.statements.push(at),
                None => tries.push(Try {
                    set,
                    statements: vec![at],
                }),
            }
        }
    }
    let found = read(instance, &texts, &tries)?;
    let mut any = false;
    for (at, statement) in statements.iter_mut().enumerate() {
        let of = |(one, read): (&Try, &Vec<Option<Read>>)| {
            let place = one.statements.iter().position(|other| *other == at)?;
            Some((one.set.clone(), read.get(place)?.clone()?))
        };
        let all = tries.iter().zip(&found).filter_map(of).collect();
        any |= statement.take(all);
    }
    Ok(any)
}

impl Statement<'_> {
    /// Keeps the best set of those that it uses whole; whether there is one.
    fn take(&mut self, all: Vec<(Vec<Index>, Read)>) -> bool {
        let rows = self
            .best
            .as_ref()
            .map_or(self.before.rows, |(_, read)| read.rows);
        let is_worth = |(set, read): &(Vec<Index>, Read)| {
            let is_used = |at| read.used.iter().any(|(_, name)| *name == trial_name(at));
            read.rows <= rows * WORTH && (0..set.len()).all(is_used)
        };
        let mut worth: Vec<_> = all.into_iter().filter(is_worth).collect();
        worth.sort_by(|(_, a), (_, b)| a.rows.total_cmp(&b.rows));
        let Some(least) = worth.first().map(|(_, read)| read.rows) else {
            return false;
        };
        if self.best.is_none() {
            let is_narrow = |(set, _): &&(Vec<Index>, Read)| set[0].columns.len() == 1;
            self.narrow = worth.iter().find(is_narrow).cloned();
        }
        // Of those with which as many are read, the one with the fewest columns.
        worth.retain(|(_, read)| read.rows <= least * SAME);
        worth.sort_by_key(|(set, _)| set.last().map(|index| index.columns.len()));
        self.best = Some(worth.swap_remove(0));
        true
    }
}

/// Each statement as the server understood it; empty where it did not tell.
fn understood(instance: &Instance, texts: &[&str]) -> Result<Vec<String>, IndexError> {
    let script: String = texts
        .iter()
        .map(|text| {
            format!("SELECT 'refit:all statement';\nEXPLAIN EXTENDED\n{text}\n;\nSHOW WARNINGS;\n")
        })
        .collect();
    let what = "EXPLAIN EXTENDED of the queries on the copy";
    let printed = run(instance, &script, what, "copy --force")?;
    let parts = printed.split("refit:all statement\n").skip(1);
    let note = |part: &str| {
        let mut lines = part.lines();
        let note = lines.find_map(|line| line.strip_prefix("Note\t1003\t"));
        note.unwrap_or_default().to_owned()
    };
    let mut all: Vec<String> = parts.map(note).collect();
    all.resize(texts.len(), String::new());
    Ok(all)
}

/// A set of indexes, and for each group of statements that would use it the reason.
type Found = (Vec<Index>, Vec<String>);

fn proposed(statements: &[Statement], catalog: &Catalog) -> Vec<Candidate> {
    let mut found: Vec<Found> = Vec::new();
    for statement in statements {
        let narrow = statement.narrow.as_ref().filter(|(narrow, _)| {
            let best = statement.best.as_ref();
            best.is_none_or(|(best, _)| best != narrow)
        });
        for (set, read) in statement.best.iter().chain(narrow) {
            let why = format!(
                "q{}: {} → {} (rows read {} → {})",
                statement.group,
                statement.before.steps,
                read.steps,
                statement.before.rows,
                read.rows
            );
            match found.iter_mut().find(|(known, _)| known == set) {
                Some((_, reasons)) => reasons.push(why),
                None => found.push((set.clone(), vec![why])),
            }
        }
    }
    let (mut taken, mut named) = (catalog.names(), Vec::new());
    let candidates = found.iter();
    candidates
        .map(|(set, reasons)| candidate(set, reasons, &mut taken, &mut named))
        .collect()
}

/// Candidates with the same index give it the same name.
fn candidate(
    set: &[Index],
    reasons: &[String],
    taken: &mut BTreeSet<String>,
    named: &mut Vec<(Index, String)>,
) -> Candidate {
    let mut reasons = reasons.join("; ");
    let (mut apply, mut inverse, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (at, index) in set.iter().enumerate() {
        let known = named.iter().find(|(known, _)| known == index);
        let name = known.map(|(_, name)| name.clone()).unwrap_or_else(|| {
            let columns = index.columns.iter().map(|column| unquoted(bare(column)));
            let name = new_name(&index.table, &columns.collect::<Vec<_>>(), taken);
            named.push((index.clone(), name.clone()));
            name
        });
        reasons = reasons.replace(&trial_name(at), &name);
        apply.push(index.create(&name));
        inverse.insert(0, index.drop(&name));
        names.push(name);
    }
    let plain = |column: &String| {
        let direction = &column[bare(column).len()..];
        unquoted(bare(column)) + direction
    };
    let applied = match set {
        [one] => {
            let columns: Vec<String> = one.columns.iter().map(plain).collect();
            applied(&names[0], columns.iter().map(String::as_str))
        }
        _ => None,
    };
    Candidate {
        change: Change::Add,
        applied,
        name: names.join("_"),
        apply: apply.join("\n"),
        inverse: inverse.join("\n"),
        why: format!("the copy was read with it: {reasons}"),
    }
}
