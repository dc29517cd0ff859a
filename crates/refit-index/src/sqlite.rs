//! SQLite: candidates are what `.expert` of sqlite3 proposes, and indexes that no plan uses.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use refit_recipe::InstanceDirectory;
use serde::{Deserialize, Serialize};

use crate::Made;
use crate::candidate::{Candidate, Unused, dropped};
use crate::copy::{self, SqliteFrom, output, packed, write};
use crate::error::IndexError;
use crate::instance::directory;
use crate::queries::Workload;
use crate::recipe_text::{Parts, Server, made};
use refit_servers::sql::Dialect;

mod expert;

use expert::{Proposal, candidate, expert, quoted_if_odd};

const SQLITE: Server = Server {
    name: "SQLite",
    packages: &["sqlite", "python"],
    commands: &["sqlite3", "python3", "gzip"],
    files: &[],
    scripts: &[
        ("queries.py", include_str!("../scripts/sqlite/queries.py")),
        ("setup.sh", include_str!("../scripts/sqlite/setup.sh")),
        ("analyze.sh", include_str!("../scripts/sqlite/analyze.sh")),
        ("index.sh", include_str!("../scripts/sqlite/index.sh")),
        ("check.sh", include_str!("../scripts/sqlite/check.sh")),
    ],
    service: "setup = \"sh $REFIT_RECIPE/setup.sh\"\n",
};

/// The recipe of an SQLite database.
///
/// # Errors
/// [`IndexError`].
pub fn make(
    from: &Path,
    how: SqliteFrom,
    queries: Option<&Path>,
    name: &str,
) -> Result<Made, IndexError> {
    let typed = from.display().to_string();
    let file = queries.ok_or_else(|| IndexError::NoQueries {
        from: typed.clone(),
    })?;
    let workload = Workload::read(file, Dialect::Sqlite)?;
    let (_, directory) = directory(name, &SQLITE)?;
    let scratch = Scratch(directory);
    copy::sqlite(from, how, &scratch.path("data.db"))?;
    let (workload, seconds) = scratch.run_once(workload)?;
    let workload = workload.or_none(file)?;
    scratch.write_queries(&workload)?;
    let plans = scratch.plans(&workload)?;
    let mut taken = scratch.names()?;
    let mut candidates = scratch.proposed(&workload, &plans, &mut taken)?;
    candidates.extend(scratch.unused(&plans)?);
    let copy = packed(&scratch.path("data.db"), from)?;
    let files = vec![
        ("queries.json".to_owned(), json(&workload)),
        ("data.db.gz".to_owned(), copy),
    ];
    let parts = Parts {
        name,
        typed: &typed,
        server: &SQLITE,
        load: "command = \"env PATH=/usr/bin:$PATH python3 $REFIT_RECIPE/queries.py load $REFIT_OPERATIONS\"\n",
        table: "env PATH=/usr/bin:$PATH python3 $REFIT_RECIPE/queries.py plans",
        size: "the file: the tables and all indexes",
        seconds,
        workload: &workload,
        candidates: &candidates,
    };
    made(&parts, files)
}

#[derive(Serialize)]
struct Stored<'a> {
    group: usize,
    writes: bool,
    text: &'a str,
}

fn json(workload: &Workload) -> Vec<u8> {
    let queries = workload.queries.iter().map(|query| Stored {
        group: query.group,
        writes: query.writes,
        text: &query.text,
    });
    let queries: Vec<Stored> = queries.collect();
    let mut text = serde_json::to_string_pretty(&queries).expect("texts and numbers are JSON");
    text.push('\n');
    text.into_bytes()
}

/// What became of a statement that was tried.
#[derive(Deserialize)]
struct Tried {
    seconds: Option<f64>,
    error: Option<String>,
}

/// An index of the database.
#[derive(Deserialize)]
struct Known {
    name: String,
    tbl_name: String,
    sql: String,
}

/// The directory with the copy, which goes with it.
struct Scratch(InstanceDirectory);

impl Scratch {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.recipe().join(name)
    }

    fn sqlite3(&self, arguments: &[&str]) -> Result<String, IndexError> {
        let mut command = Command::new("sqlite3");
        command.args(["-batch", "-init", "/dev/null", "-readonly"]);
        command.args(arguments).stdin(std::process::Stdio::null());
        output(
            command.current_dir(self.0.recipe()),
            "sqlite3",
            "sqlite3 on the copy",
        )
    }

    fn python(&self, what: &str) -> Result<String, IndexError> {
        // Debian's, whatever a user's PATH has before it: as the recipe runs it.
        let mut command = Command::new("/usr/bin/python3");
        command
            .args(["queries.py", what])
            .env("REFIT_RECIPE", self.0.recipe());
        output(
            command.current_dir(self.0.recipe()),
            "python3",
            "a run of the queries on the copy",
        )
    }

    fn write_queries(&self, workload: &Workload) -> Result<(), IndexError> {
        write(&self.path("queries.json"), &json(workload))
    }

    /// Those that can be run, and the seconds of all of them.
    fn run_once(&self, workload: Workload) -> Result<(Workload, f64), IndexError> {
        self.write_queries(&workload)?;
        let printed = self.python("try")?;
        let tried: Vec<Tried> = printed
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let seconds = tried.iter().filter_map(|tried| tried.seconds).sum();
        let failed = tried.into_iter().enumerate();
        let failed: Vec<(usize, String)> = failed
            .filter_map(|(i, tried)| Some((i, tried.error?)))
            .collect();
        Ok((workload.without(&failed), seconds))
    }

    /// Of each group: how SQLite reads now.
    fn plans(&self, workload: &Workload) -> Result<Vec<String>, IndexError> {
        let printed = self.python("plans")?;
        let plan = |line: &str| line.split_once('\t').map(|(_, plan)| plan.to_owned());
        let plans: Vec<String> = printed.lines().filter_map(plan).collect();
        if plans.len() != workload.groups.len() {
            return Err(IndexError::Failed {
                what: "EXPLAIN QUERY PLAN".to_owned(),
                output: printed,
            });
        }
        Ok(plans)
    }

    fn names(&self) -> Result<BTreeSet<String>, IndexError> {
        let printed = self.sqlite3(&["data.db", "SELECT lower(name) FROM sqlite_schema"])?;
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// What `.expert` proposes for the first query of each group. An index that serves several
    /// is one candidate.
    fn proposed(
        &self,
        workload: &Workload,
        plans: &[String],
        taken: &mut BTreeSet<String>,
    ) -> Result<Vec<Candidate>, IndexError> {
        let mut found: Vec<(Vec<Proposal>, Vec<String>)> = Vec::new();
        for (i, before) in plans.iter().enumerate() {
            let mut of = workload.queries.iter().filter(|query| query.group == i + 1);
            let Some(query) = of.next() else { continue };
            let printed = self.sqlite3(&["data.db", ".expert", &query.text])?;
            let (proposals, after) = expert(&printed);
            if proposals.is_empty() {
                continue;
            }
            let why = format!("q{}: {before} → {after}", i + 1);
            match found.iter_mut().find(|(known, _)| *known == proposals) {
                Some((_, reasons)) => reasons.push(why),
                None => found.push((proposals, vec![why])),
            }
        }
        Ok(found
            .into_iter()
            .map(|(proposals, reasons)| candidate(&proposals, &reasons, taken))
            .collect())
    }

    /// Indexes that no plan uses, that keep nothing unique, and that begin with no foreign key.
    fn unused(&self, plans: &[String]) -> Result<Vec<Candidate>, IndexError> {
        let query = "SELECT name, tbl_name, sql FROM sqlite_schema s WHERE type = 'index' AND sql IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM pragma_index_list(s.tbl_name) l WHERE l.name = s.name AND l.\"unique\")
            AND NOT EXISTS (SELECT 1 FROM pragma_index_info(s.name) i
                JOIN pragma_foreign_key_list(s.tbl_name) f ON f.\"from\" = i.name WHERE i.seqno = 0)
            ORDER BY name";
        let printed = self.sqlite3(&["-json", "data.db", query])?;
        let known: Vec<Known> = match printed.trim() {
            "" => Vec::new(),
            text => serde_json::from_str(text).map_err(|error| IndexError::Failed {
                what: "the list of indexes".to_owned(),
                output: error.to_string(),
            })?,
        };
        let is_unused = |index: &Known| !plans.iter().any(|plan| plan_uses(plan, &index.name));
        let unused = known.into_iter().filter(is_unused).map(|index| Unused {
            apply: format!("DROP INDEX {};", quoted_if_odd(&index.name)),
            inverse: format!("{};", index.sql),
            name: index.name,
            table: index.tbl_name,
        });
        Ok(dropped(unused))
    }
}

fn plan_uses(plan: &str, index: &str) -> bool {
    plan.split("; ").any(|line| {
        let Some((_, rest)) = line.split_once("INDEX ") else {
            return false;
        };
        rest.strip_prefix(index)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_used_where_its_whole_name_stands() {
        let plan = "SEARCH t USING COVERING INDEX a b (x=?); USE TEMP B-TREE FOR ORDER BY";
        assert!(plan_uses(plan, "a b"));
        assert!(!plan_uses(plan, "a"));
        assert!(plan_uses("SCAN t USING INDEX c", "c"));
        assert!(!plan_uses("SCAN t USING INDEX cc", "c"));
    }
}
