//! Which index the planner would use, if it were there: hypopg.

use std::collections::BTreeSet;

use super::catalog::{self, Table};
use super::plan::Plan;
use super::psql;
use crate::candidate::{Candidate, Change, applied};
use crate::columns::bare;
use crate::error::IndexError;
use crate::instance::Instance;
use crate::name::new_name;
use crate::queries::Workload;

/// What a plan has to cost with an index, as a part of what it costs without.
const WORTH: f64 = 0.9;
/// Costs that differ by less are the same.
const SAME: f64 = 1.05;
/// Indexes that one query is proposed.
const MOST_INDEXES: usize = 3;

/// What came of it.
pub struct Screened {
    pub proposed: Vec<Candidate>,
    /// Indexes of the database that plans read now.
    pub used: BTreeSet<String>,
}

/// An index: the number of its table, and columns as written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Index {
    table: usize,
    columns: Vec<String>,
}

/// Makes hypopg ready in the copy; an error that names its package where it is not installed.
pub fn expect_hypopg(instance: &Instance) -> Result<(), IndexError> {
    let script = ". \"$REFIT_RECIPE/server.sh\" && client -c 'SHOW server_version_num' \
                  -c \"SELECT count(*) FROM pg_available_extensions WHERE name = 'hypopg'\"";
    let printed = instance.run(script, "the search for hypopg")?;
    let mut lines = printed.lines().filter_map(|line| line.parse::<u32>().ok());
    let version = lines.next().unwrap_or_default() / 10_000;
    if lines.next() != Some(1) {
        return Err(IndexError::Missing {
            program: "hypopg, which asks PostgreSQL what it would do with an index".to_owned(),
            package: format!("postgresql-{version}-hypopg"),
        });
    }
    let script =
        ". \"$REFIT_RECIPE/server.sh\" && client -c 'CREATE EXTENSION IF NOT EXISTS hypopg'";
    instance.run(script, "CREATE EXTENSION hypopg").map(drop)
}

/// Indexes, and for each group of queries that would use them the reason, and their names in its plan.
type Found = (Vec<Index>, Vec<(String, Vec<String>)>);
/// Indexes, the plan with them, and their names in it.
type Tried = (Vec<Index>, Plan, Vec<String>);

/// Asks for the first query of each group. An index that serves several is one candidate.
pub fn screen(
    instance: &Instance,
    workload: &Workload,
    tables: &[Table],
) -> Result<Screened, IndexError> {
    let mut found: Vec<Found> = Vec::new();
    let mut used = BTreeSet::new();
    for (group, query) in workload.firsts() {
        let query = Query {
            instance,
            tables,
            text: &query.text,
        };
        let Some((before, _)) = query.with(&[vec![]])?.pop().flatten() else {
            continue;
        };
        used.extend(before.indexes());
        for (indexes, after, names) in query.best(&before)? {
            let why = format!(
                "q{group}: {} → {} (cost {:.0} → {:.0})",
                before.steps(),
                after.steps(),
                before.cost(),
                after.cost()
            );
            match found.iter_mut().find(|(known, _)| *known == indexes) {
                Some((_, reasons)) => reasons.push((why, names)),
                None => found.push((indexes, vec![(why, names)])),
            }
        }
    }
    let (mut taken, mut named) = (catalog::names(instance)?, Vec::new());
    let proposed = found
        .into_iter()
        .map(|(indexes, reasons)| candidate(&indexes, &reasons, tables, &mut taken, &mut named));
    Ok(Screened {
        proposed: proposed.collect(),
        used,
    })
}

struct Query<'a> {
    instance: &'a Instance,
    tables: &'a [Table],
    text: &'a str,
}

/// A plan, and the names that hypopg gave to the indexes.
type Planned = (Plan, Vec<String>);

impl Query<'_> {
    /// Its plan with each of these sets of indexes; `None` where one of them cannot be made.
    fn with(&self, sets: &[Vec<Index>]) -> Result<Vec<Option<Planned>>, IndexError> {
        let mut script = String::new();
        for set in sets {
            script += "\\echo @set\nSELECT WHERE hypopg_reset() IS NULL;\n";
            for index in set {
                let columns = index.columns.join(", ");
                let statement = format!(
                    "CREATE INDEX ON {} ({columns})",
                    self.tables[index.table].written
                );
                let statement = statement.replace('\'', "''");
                script += &format!("SELECT indexname FROM hypopg_create_index('{statement}');\n");
            }
            script += &format!(
                "\\echo @plan\nEXPLAIN (FORMAT JSON, VERBOSE)\n{}\n;\n",
                self.text
            );
        }
        let printed = psql(self.instance, &script, "EXPLAIN with hypopg")?;
        let planned = printed
            .split("@set\n")
            .skip(1)
            .zip(sets)
            .map(|(text, set)| {
                let (names, plan) = text.split_once("@plan\n")?;
                let names: Vec<String> = names
                    .lines()
                    .filter(|line| !line.is_empty())
                    .map(str::to_owned)
                    .collect();
                (names.len() == set.len()).then_some(())?;
                Some((Plan::parse(plan)?, names))
            });
        Ok(planned.collect())
    }

    /// Indexes that could serve it and that are not there yet.
    fn possible(&self, plan: &Plan) -> Vec<Index> {
        let mut all = Vec::new();
        for ((schema, name), used) in plan.used() {
            let is_it = |table: &Table| table.schema == schema && table.name == name;
            let Some(table) = self.tables.iter().position(is_it) else {
                continue;
            };
            let there = |columns: &[String]| {
                let bare: Vec<&str> = columns.iter().map(|column| bare(column)).collect();
                let is_plain = bare
                    .iter()
                    .zip(columns)
                    .all(|(bare, column)| bare == column);
                let mut indexes = self.tables[table].indexes.iter();
                is_plain
                    && indexes.any(|index| {
                        index
                            .iter()
                            .map(|c| &**c)
                            .take(bare.len())
                            .eq(bare.iter().copied())
                    })
            };
            for columns in used.candidates() {
                let index = Index { table, columns };
                if !there(&index.columns) && !all.contains(&index) {
                    all.push(index);
                }
            }
        }
        all
    }

    /// What is worth trying: the indexes with which the planner expects the least, one after the
    /// other; and the best one of a single column, which costs less to keep.
    fn best(&self, before: &Plan) -> Result<Vec<Tried>, IndexError> {
        let possible = self.possible(before);
        let mut best: Vec<Tried> = Vec::new();
        let mut narrow = None;
        let (mut set, mut cost) = (Vec::new(), before.cost());
        while set.len() < MOST_INDEXES {
            let sets: Vec<Vec<Index>> = possible
                .iter()
                .filter(|index| !set.contains(*index))
                .map(|index| [&*set, std::slice::from_ref(index)].concat())
                .collect();
            let plans = self.with(&sets)?;
            let mut worth: Vec<Tried> = sets
                .into_iter()
                .zip(plans)
                .filter_map(|(set, planned)| planned.map(|(plan, names)| (set, plan, names)))
                .filter(|(_, plan, names)| {
                    let used = plan.indexes();
                    plan.cost() <= cost * WORTH && names.iter().all(|name| used.contains(name))
                })
                .collect();
            worth.sort_by(|(_, a, _), (_, b, _)| a.cost().total_cmp(&b.cost()));
            let Some(least) = worth.first().map(|(_, plan, _)| plan.cost()) else {
                break;
            };
            if set.is_empty() {
                let is_narrow = |(set, ..): &&Tried| set[0].columns.len() == 1;
                narrow = worth.iter().find(is_narrow).cloned();
            }
            // Of those that cost the same, the one with the fewest columns.
            worth.retain(|(_, plan, _)| plan.cost() <= least * SAME);
            worth.sort_by_key(|(set, ..)| set.last().map(|index| index.columns.len()));
            let first = worth.swap_remove(0);
            (set, cost) = (first.0.clone(), first.1.cost());
            best = vec![first];
        }
        best.extend(narrow.filter(|(narrow, ..)| *narrow != set));
        Ok(best)
    }
}

/// Candidates with the same index give it the same name.
fn candidate(
    indexes: &[Index],
    reasons: &[(String, Vec<String>)],
    tables: &[Table],
    taken: &mut BTreeSet<String>,
    named: &mut Vec<(Index, String)>,
) -> Candidate {
    let mut reasons: Vec<(String, Vec<String>)> = reasons.to_vec();
    let (mut apply, mut inverse, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for (at, index) in indexes.iter().enumerate() {
        let table = &tables[index.table];
        let known = named.iter().find(|(known, _)| known == index);
        let name = known.map(|(_, name)| name.clone()).unwrap_or_else(|| {
            let columns = index.columns.iter().map(|column| bare(column).to_owned());
            let name = new_name(&table.name, &columns.collect::<Vec<_>>(), taken);
            named.push((index.clone(), name.clone()));
            name
        });
        for (why, names) in &mut reasons {
            *why = why.replace(&names[at], &name);
        }
        apply.push(format!(
            "CREATE INDEX {name} ON {} ({});",
            table.written,
            index.columns.join(", ")
        ));
        inverse.insert(0, format!("DROP INDEX {}{name};", table.prefix));
        all.push(name);
    }
    let reasons: Vec<String> = reasons.into_iter().map(|(why, _)| why).collect();
    let applied = match indexes {
        [one] => applied(&all[0], one.columns.iter().map(|column| &**column)),
        _ => None,
    };
    Candidate {
        change: Change::Add,
        applied,
        name: all.join("_"),
        apply: apply.join("\n"),
        inverse: inverse.join("\n"),
        why: format!("proposed by hypopg since {}", reasons.join("; ")),
    }
}
