//! The schema of a database as a setting: a table of cases for each database, each held to the same properties.
//!
//! After `apply` the catalog is that of the file loaded afresh, and a second plan is empty; `revert` gives the catalog and the
//! rows of before; no statement is refused by the database.

use std::process::Output;

use crate::apply::words;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

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
pub trait Database: Sync {
    /// As refit names it.
    fn service(&self) -> String;
    /// Drops all that it has, and runs statements.
    fn begin(&self, sql: &str);
    /// Runs statements.
    fn run(&self, sql: &str);
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
    /// What one call tells is not asked by another one: each starts a private server.
    pub is_quick: bool,
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
        if what == "random" {
            // What the rows do not allow is refused, and nothing else.
            let apply = ["--yes", "--accept=loses-data", &service, &setting];
            let output = self.refit("apply", &apply);
            if output.status.code() != Some(0) {
                let printed = described(&output);
                let is_of_rows = [
                    "constraint failed",
                    "points to no row",
                    "rows have NULL there",
                ];
                if !is_of_rows.iter().any(|text| printed.contains(text)) {
                    return Err(printed);
                }
                return unchanged("failed");
            }
            let revert = self.refit("revert", &[&service]);
            if revert.status.code() != Some(0) {
                let printed = described(&revert);
                std::fs::remove_dir_all(format!("{}/var/lib/refit/changes", self.root))
                    .expect("ours");
                // What is gone for good may be what other rows need.
                let is_of_rows = [
                    "constraint failed",
                    "points to no row",
                    "has no default",
                    "rows have NULL there",
                ];
                return match is_of_rows.iter().any(|text| printed.contains(text)) {
                    true => Ok(()),
                    false => Err(printed),
                };
            }
            self.database.begin(&case.before);
        }
        let plan = self.refit("plan", &[&service, &setting]);
        let again = |code: i32, text: &str| match self.is_quick {
            true => Ok(()),
            false => is(
                &self.refit("apply", &["--yes", &service, &setting]),
                code,
                text,
            ),
        };
        match what {
            "refused" => {
                is(&plan, 2, text)?;
                again(2, text)?;
                return unchanged("refused");
            }
            "fails" => {
                is(&plan, 0, "")?;
                let apply = self.refit("apply", &["--yes", &service, &setting]);
                is(&apply, 1, text)?;
                unchanged("failed")?;
                return is(&self.refit("status", &[]), 0, "nothing is applied");
            }
            "same" => {
                is(&plan, 0, "nothing to do")?;
                again(0, "nothing to do")?;
                return unchanged("the same");
            }
            "random" => {}
            "loses" | "stuck" => {
                is(&plan, 2, "--accept loses-data")?;
                again(2, "--accept loses-data")?;
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
        again(0, "nothing to do")?;
        is(
            &self.refit("status", &["--exit-code"]),
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
                &self.refit("status", &["--exit-code"]),
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
                &self.refit("status", &["--exit-code"]),
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
        if !["loses", "prints", "random"].contains(&what) {
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
        self.each(&cases);
    }

    /// Cases of which none fails.
    pub fn each(&self, cases: &[Case]) {
        let mut failed = Vec::new();
        for case in cases {
            if let Err(reason) = self.judge(case) {
                let Case {
                    name, before, file, ..
                } = case;
                println!("FAILED: {name}: {reason}\n{before}\n--\n{file}\n");
                failed.push(&case.name);
                let _ = self.refit("revert", &[&self.database.service()]);
            }
        }
        println!("counted: {} cases, {} failed", cases.len(), failed.len());
        assert!(failed.is_empty(), "{failed:?}");
    }

    /// A second file becomes one change with the first one, what others made stays, and what they altered stops a revert.
    pub fn with_others(&self) {
        let service = self.database.service();
        let apply = |text: &str| {
            let file = format!("schema={}", self.env.file("schema.sql", text));
            self.refit("apply", &["--yes", &service, &file])
        };
        let check = || self.refit("status", &["--exit-code"]);
        self.database
            .begin("CREATE TABLE t (a integer); INSERT INTO t VALUES (1)");
        let (before, rows) = (self.database.catalog(), self.database.rows());
        expect_code(&apply("CREATE TABLE t (a integer, b integer);"), 0);
        expect_code(
            &apply("CREATE TABLE t (a integer, b integer); CREATE TABLE o (x integer);"),
            0,
        );
        expect_printed(&check(), 0, "as the file declares it");
        // Beside the change.
        self.database.run("CREATE TABLE others (y integer)");
        expect_printed(&check(), 1, "others");
        // A plan of the file would destroy that, and says so.
        let file = format!("schema={}", self.env.path("schema.sql"));
        let plan = self.refit("plan", &[&service, &file]);
        expect_message(&plan, 2, "--accept loses-data");
        // In a table that the revert drops.
        self.database.run("CREATE INDEX theirs ON o (x)");
        let changed = self.database.catalog();
        expect_message(
            &self.refit("revert", &[&service]),
            3,
            "nothing was reverted",
        );
        assert_eq!(self.database.catalog(), changed);
        self.database.run("DROP INDEX theirs");
        // A column of the change, altered.
        self.database.run("ALTER TABLE o RENAME COLUMN x TO z");
        expect_message(
            &self.refit("revert", &[&service]),
            3,
            "nothing was reverted",
        );
        self.database.run("ALTER TABLE o RENAME COLUMN z TO x");
        expect_code(&self.refit("revert", &[&service]), 0);
        self.database.run("DROP TABLE others");
        assert_eq!(
            (self.database.catalog(), self.database.rows()),
            (before, rows)
        );
        // Words.
        let wrong = |settings: &[&str], text: &str| {
            let words = [&[&*service], settings].concat();
            expect_message(&self.refit("plan", &words), 2, text);
        };
        wrong(&["schema=/nowhere.sql"], "name a file of statements");
        wrong(&["malloc=jemalloc"], "what can: schema=FILE");
        wrong(&["conf.index.i=a"], "name a table after it");
        wrong(&[], "schema=FILE");
        wrong(&["--trial", &file], "neither a reboot nor a timer");
        let run = self.env.refit(&["run", &file, "--", "true"]);
        expect_message(&run, 125, "only a database has a schema");
    }
}
