//! The schema of a database as a setting: a table of cases for each database, each held to the same properties.
//!
//! After `apply` the catalog is that of the file loaded afresh, and a second plan is empty; `revert` gives the catalog and the
//! rows of before; no statement is refused by the database.

use std::process::Output;

use crate::apply::words;
use crate::test_env::{TestEnv, described};

/// A case of a table.
pub struct Case {
    pub name: String,
    /// What is special: `loses`, `refused TEXT` …; empty.
    pub what: String,
    pub before: String,
    pub file: String,
}

/// The cases of a text.
pub fn cases(text: &str) -> Vec<Case> {
    let mut all = text.split("\n== ");
    all.next().expect("what the text is");
    let cases = all.map(|text| {
        let (title, rest) = text.split_once('\n').expect("a title");
        let (name, what) = title.split_once(" | ").unwrap_or((title, ""));
        let rest = format!("\n{rest}");
        let (before, file) = rest.split_once("\n--\n").expect("a database and a file");
        Case {
            name: name.to_owned(),
            what: what.to_owned(),
            before: before.to_owned(),
            file: file.to_owned(),
        }
    });
    cases.collect()
}

/// A database of a test.
pub trait Database {
    /// As refit names it.
    fn service(&self) -> String;
    /// Drops all that it has, and runs statements.
    fn begin(&self, sql: &str);
    /// Its catalog, asked otherwise than refit does.
    fn catalog(&self) -> String;
    /// The rows of all tables.
    fn rows(&self) -> String;
}

/// A tree with databases: what refit changes, and one to load a file into.
pub struct Bench<'a> {
    pub env: &'a TestEnv,
    pub root: &'a str,
    pub database: &'a dyn Database,
    pub fresh: &'a dyn Database,
}

impl Bench<'_> {
    pub fn refit(&self, verb: &str, more: &[&str]) -> Output {
        self.env.refit(&words(verb, self.root, more))
    }

    /// Why a case does not hold.
    pub fn judge(&self, case: &Case) -> Result<(), String> {
        self.database.begin(&case.before);
        let file = self.env.file("schema.sql", &case.file);
        let setting = format!("schema={file}");
        let service = self.database.service();
        let (before, rows) = (self.database.catalog(), self.database.rows());
        let is = |output: &Output, code: i32, text: &str| {
            let printed = described(output);
            match output.status.code() == Some(code) && printed.contains(text) {
                true => Ok(()),
                false => Err(format!("not {code} and `{text}`: {printed}")),
            }
        };
        let unchanged = |when: &str| {
            let now = (self.database.catalog(), self.database.rows());
            match now == (before.clone(), rows.clone()) {
                true => Ok(()),
                false => Err(format!(
                    "{when}: {before}\n{rows}\nbecame {}\n{}",
                    now.0, now.1
                )),
            }
        };
        let (what, text) = case.what.split_once(' ').unwrap_or((&case.what, ""));
        let plan = self.refit("plan", &[&service, &setting]);
        match what {
            "refused" => {
                is(&plan, 2, text)?;
                is(
                    &self.refit("apply", &["--yes", &service, &setting]),
                    2,
                    text,
                )?;
                return unchanged("refused");
            }
            "fails" => {
                is(&plan, 0, "")?;
                is(
                    &self.refit("apply", &["--yes", &service, &setting]),
                    1,
                    text,
                )?;
                unchanged("failed")?;
                return is(&self.refit("status", &[]), 0, "nothing is applied");
            }
            "same" => {
                is(&plan, 0, "nothing to do")?;
                is(
                    &self.refit("apply", &["--yes", &service, &setting]),
                    0,
                    "nothing to do",
                )?;
                return unchanged("the same");
            }
            "loses" | "stuck" => {
                is(&plan, 2, "--accept loses-data")?;
                is(
                    &self.refit("apply", &["--yes", &service, &setting]),
                    2,
                    "--accept loses-data",
                )?;
                unchanged("not accepted")?;
            }
            _ => is(&plan, 0, "")?,
        }
        let is_final = String::from_utf8_lossy(&plan.stdout).contains("cannot revert");
        if is_final != (what == "noback") {
            return Err(format!("no way back: {}", described(&plan)));
        }
        let apply = ["--yes", "--accept=loses-data", &service, &setting];
        is(&self.refit("apply", &apply), 0, "")?;
        self.fresh.begin(&case.file);
        let (found, wanted) = (self.database.catalog(), self.fresh.catalog());
        if what != "stays" && what != "prints" && found != wanted {
            return Err(format!("applied: {found}\nand the file makes {wanted}"));
        }
        is(
            &self.refit("plan", &[&service, &setting]),
            0,
            "nothing to do",
        )?;
        is(&self.refit("apply", &apply), 0, "nothing to do")?;
        is(
            &self.refit("status", &["--check"]),
            0,
            "as the file declares it",
        )?;
        // What is exported makes the same.
        let exported = self.refit("status", &[&service, "--export", "schema"]);
        is(&exported, 0, "")?;
        let exported = self
            .env
            .file("exported.sql", &String::from_utf8_lossy(&exported.stdout));
        let again = self.refit("plan", &[&service, &format!("schema={exported}")]);
        is(&again, 0, "nothing to do")?;
        if what == "noback" {
            is(&self.refit("revert", &[&service]), 2, text)?;
            is(
                &self.refit("status", &["--check"]),
                0,
                "as the file declares it",
            )?;
            let records = format!("{}/var/lib/refit/changes", self.root);
            std::fs::remove_dir_all(records).expect("ours");
            return Ok(());
        }
        if what == "stuck" {
            is(&plan, 2, "a revert is refused")?;
            is(&self.refit("revert", &[&service]), 2, text)?;
            is(
                &self.refit("status", &["--check"]),
                0,
                "as the file declares it",
            )?;
            let records = format!("{}/var/lib/refit/changes", self.root);
            std::fs::remove_dir_all(records).expect("ours");
            return Ok(());
        }
        is(&self.refit("revert", &[&service]), 0, "")?;
        let now = self.database.catalog();
        if now != before && what != "prints" {
            return Err(format!("reverted: {now}\nand before: {before}"));
        }
        if what != "loses" && what != "prints" {
            unchanged("reverted")?;
        }
        is(&self.refit("status", &[]), 0, "nothing is applied")
    }

    /// Cases of a text, of which none fails: each `every`th, from another one each time, or all with REFIT_POINTS=all.
    pub fn some(&self, text: &str, every: usize) {
        let mut cases = cases(text);
        if std::env::var_os("REFIT_POINTS").is_none_or(|points| points != "all") {
            let first = std::process::id() as usize % every;
            println!("every {every}th case, from the one numbered {first}");
            cases = cases.into_iter().skip(first).step_by(every).collect();
        }
        let mut failed = Vec::new();
        for case in &cases {
            if let Err(reason) = self.judge(case) {
                println!("FAILED: {}: {reason}\n", case.name);
                failed.push(&case.name);
                let _ = self.refit("revert", &[&self.database.service()]);
            }
        }
        println!("counted: {} cases, {} failed", cases.len(), failed.len());
        assert!(failed.is_empty(), "{failed:?}");
    }
}
