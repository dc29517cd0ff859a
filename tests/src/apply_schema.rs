//! `refit apply` of an index in a tree (`--root`): an SQLite file, and what is the same for all databases.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::apply::words;
use crate::points::Points;
use crate::runner::{Outcome, Test};
use crate::schema_server::{begun, child_of};
use crate::sys::kill_point::{KillPoint, run_to};
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_printed, refit_path, wait_until,
};

pub const TESTS: &[Test] = &[
    test!(an_index_is_made_and_taken_back),
    test!(what_is_no_index_of_a_table_is_refused),
    test!(a_file_that_others_have_locked_is_left).limit_seconds(120),
    test!(what_can_be_named_is_told),
    test!(killed_while_the_index_waits),
    test!(a_file_that_is_gone_is_forgotten),
    test!(killed_at_any_call).limit_seconds(300),
];

const SQLITE: &str = "sqlite:/srv/a shop.db/orders";
pub const CUSTOMER_DAY: &str = "conf.index.customer_day=customer_id,created_at";
pub const CUSTOMER: &str = "conf.index.customer=customer_id";

/// A database in a tree.
pub struct Shop<'a> {
    pub env: &'a TestEnv,
    pub root: String,
    pub service: &'a str,
    /// Runs SQL; what it printed.
    pub sql: &'a dyn Fn(&str) -> String,
    /// All definitions.
    pub dump: &'a dyn Fn() -> String,
    /// The statement that drops an index.
    pub drop_of: &'a dyn Fn(&str) -> String,
}

impl Shop<'_> {
    pub fn refit(&self, verb: &str, more: &[&str]) -> std::process::Output {
        self.env.refit(&words(verb, &self.root, more))
    }

    pub fn apply(&self, settings: &[&str]) -> std::process::Output {
        self.refit("apply", &[&["--yes", self.service], settings].concat())
    }

    pub fn revert(&self) -> std::process::Output {
        self.refit("revert", &[self.service])
    }

    /// The word of `status` for the table; `None` where it has no change.
    pub fn phase(&self) -> Option<String> {
        let output = self.refit("status", &["--json", "-"]);
        expect_code(&output, 0);
        let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let phase = status["services"].get(0)?["phase"].as_str();
        Some(phase.expect("a word").to_owned())
    }

    /// Made, again, dropped by hand, made otherwise by hand, and taken back.
    pub fn there_and_back(&self) {
        let before = (self.dump)();
        assert!(
            before.contains("orders") && !before.contains("customer_day"),
            "{before}"
        );
        let (service, all) = (self.service, [CUSTOMER_DAY, CUSTOMER]);
        let planned = self.refit("plan", &[service, CUSTOMER_DAY]);
        expect_printed(&planned, 0, "(safe)");
        expect_printed(&planned, 0, "holds");
        assert_eq!((self.dump)(), before, "a plan makes nothing");
        expect_code(&self.apply(&all), 0);
        expect_printed(&self.apply(&all), 0, "nothing to do");
        expect_printed(&self.apply(&[CUSTOMER]), 0, "nothing to do");
        let after = (self.dump)();
        assert!(after.contains("customer_day"), "{after}");
        let check = || self.refit("status", &["--exit-code"]);
        expect_printed(&check(), 0, "index customer_day usable");
        // Somebody drops one: that is told, and nothing is left to take back of it.
        let drop = (self.drop_of)("customer");
        (self.sql)(&drop);
        expect_printed(&check(), 1, "found not there");
        expect_code(&self.apply(&all), 3);
        // Somebody has another one by this name: it stays.
        (self.sql)("CREATE INDEX customer ON orders (status)");
        expect_printed(&check(), 1, "status");
        let changed = (self.dump)();
        expect_message(&self.revert(), 3, "nothing was reverted");
        assert_eq!((self.dump)(), changed);
        (self.sql)(&drop);
        expect_printed(&self.revert(), 0, "index customer was as before already");
        assert_eq!((self.dump)(), before);
        expect_message(&self.revert(), 2, "has no change");
    }

    /// A second index beside the first one, and each goes alone.
    pub fn one_after_the_other(&self) {
        let before = (self.dump)();
        expect_code(&self.apply(&[CUSTOMER]), 0);
        let first = (self.dump)();
        let other = ["conf.index.customer=status"];
        expect_message(&self.apply(&other), 2, "there is an index customer already");
        expect_code(&self.apply(&[CUSTOMER_DAY]), 0);
        let both = (self.dump)();
        assert!(both != first && first != before, "{both}");
        let check = || self.refit("status", &["--exit-code"]);
        expect_printed(&check(), 0, "index customer_day usable");
        expect_printed(&check(), 0, "index customer usable");
        let without = |index: &str| {
            let name = format!("conf.index.{index}");
            expect_code(&self.refit("revert", &[self.service, &name]), 0);
        };
        without("customer_day");
        assert_eq!((self.dump)(), first);
        expect_code(&check(), 0);
        expect_code(&self.apply(&[CUSTOMER_DAY]), 0);
        without("customer");
        assert!(!(self.dump)().contains("customer)") && (self.dump)() != before);
        expect_code(&check(), 0);
        expect_code(&self.revert(), 0);
        assert_eq!((self.dump)(), before);
    }

    /// The index is there under another table, and a revert neither drops it nor forgets it.
    pub fn of_a_renamed_table(&self) {
        let before = (self.dump)();
        expect_code(&self.apply(&[CUSTOMER]), 0);
        (self.sql)("ALTER TABLE orders RENAME TO former");
        let renamed = (self.dump)();
        expect_message(&self.revert(), 3, "nothing was reverted");
        assert_eq!((self.dump)(), renamed);
        expect_printed(&self.refit("status", &["--exit-code"]), 1, "former");
        (self.sql)("ALTER TABLE former RENAME TO orders");
        expect_code(&self.revert(), 0);
        assert_eq!((self.dump)(), before);
    }

    /// In the order of a page that shows the last ones first.
    pub fn newest_first(&self) {
        let before = (self.dump)();
        let settings = [
            "conf.index.newest=customer_id, created_at desc",
            CUSTOMER_DAY,
        ];
        expect_code(&self.apply(&settings), 0);
        expect_printed(&self.apply(&settings), 0, "nothing to do");
        let after = (self.dump)();
        assert!(after.contains(" DESC)"), "{after}");
        let check = self.refit("status", &["--exit-code"]);
        expect_printed(&check, 0, " DESC)");
        expect_printed(&check, 0, "index newest usable");
        (self.sql)(&(self.drop_of)("newest"));
        (self.sql)("CREATE INDEX newest ON orders (customer_id, created_at)");
        expect_printed(&self.refit("status", &["--exit-code"]), 1, " DESC), found ");
        expect_message(&self.revert(), 3, " DESC)");
        (self.sql)(&(self.drop_of)("newest"));
        expect_code(&self.revert(), 0);
        assert_eq!((self.dump)(), before);
    }

    /// What is there is not made, and not taken back.
    pub fn refused(&self) {
        let before = (self.dump)();
        (self.sql)("CREATE INDEX there ON orders (status)");
        (self.sql)("CREATE INDEX mixed ON orders (status, id DESC)");
        let made = (self.dump)();
        for (setting, named) in [
            (
                "conf.index.there=customer_id",
                "there is an index there already",
            ),
            (
                "conf.index.other=status",
                "index there is of these columns already",
            ),
            (
                "conf.index.other=statu",
                "no column `statu`; it has: id, customer_id",
            ),
            ("conf.index.other=status,status", "named twice"),
            ("conf.index.other=status,status DESC", "named twice"),
            (
                "conf.index.other=status asc,id desc",
                "index mixed is of these columns already: (status, id DESC)",
            ),
            (
                "conf.index.other=id,customer_id where status IN (1, 2)",
                "`where status IN (1, 2)`: refit makes no partial index",
            ),
            (
                "conf.index.other=abs(status)",
                "`abs(status)` is not a column, nor a column and DESC",
            ),
            (
                "conf.index.other=id,status NULLS LAST",
                "`status NULLS LAST` is not a column, nor a column and DESC",
            ),
            ("conf.index.other=", "no column ``"),
            ("conf.indexes.other=status", "conf.index.NAME=COLUMN"),
            ("conf.index.9a=status", "letters, digits and _"),
            ("malloc=jemalloc", "cannot be applied"),
        ] {
            expect_message(&self.apply(&[setting]), 2, named);
        }
        let both = [CUSTOMER, "conf.index.other=customer_id"];
        expect_message(&self.apply(&both), 2, "index customer is of these columns");
        for flag in ["--trial", "--confirm-within=1h"] {
            expect_message(
                &self.apply(&[flag, CUSTOMER]),
                2,
                "neither a reboot nor a timer",
            );
        }
        expect_code(
            &self.refit("plan", &[self.service, "conf.index.other=status DESC"]),
            0,
        );
        assert_eq!((self.dump)(), made);
        (self.sql)(&(self.drop_of)("there"));
        (self.sql)(&(self.drop_of)("mixed"));
        assert_eq!((self.dump)(), before);
    }

    pub fn sweeps(&self) {
        self.sweep("apply", CUSTOMER_DAY);
        self.sweep("revert", CUSTOMER_DAY);
    }

    /// `refit VERB`, killed before and after calls of its own that change files.
    pub fn sweep(&self, verb: &str, setting: &str) {
        let before = (self.dump)();
        let apply = words("apply", &self.root, &["--yes", self.service, setting]);
        let revert = words("revert", &self.root, &[self.service]);
        let run = |words: &[&str], point| {
            let mut command = self.env.command(&refit_path());
            command.args(words).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let (calls, was_killed) = run_to(&mut command, point).expect("it is traced");
            assert_eq!(was_killed, point.is_some(), "{point:?} of {words:?}");
            calls
        };
        // The first one makes the directory of the records too.
        expect_code(&self.env.refit(&apply), 0);
        expect_code(&self.env.refit(&revert), 0);
        let of_apply = run(&apply, None);
        let after = (self.dump)();
        let of_revert = run(&revert, None);
        assert!((self.dump)() == before && after != before, "{after}");
        let calls = if verb == "apply" { of_apply } else { of_revert };
        assert!(calls >= 5, "{calls} calls of {verb} were seen");
        let mut seen = BTreeMap::new();
        let points = Points::of(KillPoint::around(calls));
        for &point in &points.tried {
            if verb == "revert" {
                expect_code(&self.env.refit(&apply), 0);
            }
            run(if verb == "revert" { &revert } else { &apply }, Some(point));
            let phase = self.phase();
            let now = (self.dump)();
            assert!(now == before || now == after, "{point:?}: {now}");
            match phase.as_deref() {
                None => assert_eq!(now, before, "{point:?}: status names no change"),
                Some("applied") => assert_eq!(now, after, "{point:?}: status calls it applied"),
                Some(_) => {
                    expect_code(&self.refit("status", &["--exit-code"]), 1);
                    expect_message(&self.env.refit(&apply), 2, "was interrupted");
                }
            }
            let key = format!(
                "{phase:?}, {}",
                if now == before { "none" } else { "there" }
            );
            *seen.entry(key).or_insert(0) += 1;
            if phase.is_some() {
                expect_code(&self.env.refit(&revert), 0);
            }
            assert_eq!((self.dump)(), before, "{point:?}: reverted");
            expect_code(&self.env.refit(&apply), 0);
            assert_eq!((self.dump)(), after, "{point:?}: applied again");
            expect_code(&self.env.refit(&revert), 0);
        }
        println!(
            "counted: {verb}: {calls} calls that change files; kills: {points}; status after them: {seen:?}"
        );
        assert!(seen.len() > 2, "{seen:?}");
    }
}

/// A shop in an SQLite file.
/// Generated columns are columns; a name has to be one that every database takes, and which part is wrong is told.
fn what_can_be_named_is_told(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, file| {
        asked(
            file,
            "CREATE TABLE made (a, kept AS (a + 1) STORED, read AS (a + 2))",
        );
        let made = shop.service.replace("/orders", "/made");
        let made = Shop {
            service: &made,
            root: shop.root.clone(),
            ..*shop
        };
        let before = (made.dump)();
        expect_code(&made.apply(&["conf.index.both=kept,read DESC"]), 0);
        expect_printed(&made.refit("status", &["--exit-code"]), 0, "usable");
        expect_code(&made.revert(), 0);
        assert_eq!((made.dump)(), before);
        let named = |name: &str| format!("conf.index.{name}=customer_id");
        for (setting, why) in [
            (
                named(&"n".repeat(64)),
                "has 64 bytes, and PostgreSQL takes 63",
            ),
            (named("1st"), "begins with no digit"),
            (named("a-b"), "letters, digits and _"),
            (named("sqlite_a"), "begin with sqlite_"),
            (named("primary"), "primary key"),
            ("conf.queue=x".to_owned(), "conf.index.NAME=COLUMN"),
        ] {
            let output = shop.refit("plan", &[shop.service, &setting]);
            expect_message(&output, 2, why);
        }
        let planned = shop.refit("plan", &[shop.service, &named(&"n".repeat(63))]);
        expect_code(&planned, 0);
        let nothing = shop.refit("plan", &[shop.service]);
        expect_message(&nothing, 2, "conf.index.NAME=COLUMN");
    })
}

pub fn sqlite(env: &TestEnv, test: impl Fn(&Shop, &str)) -> Outcome {
    env.require_command("sqlite3");
    let root = crate::apply::tree(env, "tree");
    env.subdir("tree/srv");
    let file = format!("{root}/srv/a shop.db");
    let sql = |sql: &str| asked(&file, sql);
    sql(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, \
         created_at TEXT NOT NULL, status INTEGER NOT NULL); INSERT INTO orders WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, i % 50, i, 0 FROM n",
    );
    let dump = || asked(&file, ".schema") + &asked(&file, "PRAGMA integrity_check");
    let shop = Shop {
        env,
        root,
        service: SQLITE,
        sql: &sql,
        dump: &dump,
        drop_of: &|index| format!("DROP INDEX {index}"),
    };
    test(&shop, &file);
    Outcome::Pass
}

fn asked(file: &str, sql: &str) -> String {
    let output = Command::new("sqlite3").args(["-bail", file, sql]).output();
    let output = output.expect("sqlite3 is there");
    assert!(output.status.success(), "{sql}: {}", described(&output));
    String::from_utf8(output.stdout).expect("text")
}

fn an_index_is_made_and_taken_back(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, file| {
        shop.there_and_back();
        shop.one_after_the_other();
        shop.newest_first();
        asked(file, "PRAGMA journal_mode = wal");
        shop.there_and_back();
    })
}

fn what_is_no_index_of_a_table_is_refused(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, file| {
        shop.refused();
        let text = format!("{}/srv/text", shop.root);
        fs::write(&text, "SQLite format 4").expect("ours");
        asked(file, "CREATE VIEW seen AS SELECT * FROM orders");
        asked(file, "CREATE VIRTUAL TABLE words USING fts5(word)");
        for (service, named) in [
            ("sqlite:/srv/a shop.db", "it has: orders, words"),
            ("sqlite:/srv/a shop.db/order", "there are: orders"),
            ("sqlite:/srv/a shop.db/seen", "no table seen"),
            ("sqlite:/srv/a shop.db/words", "virtual"),
            ("sqlite:/srv/text/orders", "not an SQLite database"),
            ("sqlite:/srv/none.db/orders", "does not exist"),
            ("sqlite:srv/a shop.db/orders", "does not exist"),
            ("sqlite:", "does not exist"),
        ] {
            let output = shop.refit("apply", &["--yes", service, CUSTOMER]);
            expect_message(&output, 2, named);
        }
        // By another name its journal would not be found.
        let other = format!("{}/srv/other", shop.root);
        fs::hard_link(file, &other).expect("ours");
        expect_message(&shop.apply(&[CUSTOMER]), 2, "other name");
        fs::remove_file(&other).expect("ours");
        std::os::unix::fs::symlink(file, &other).expect("ours");
        let by_link = ["--yes", "sqlite:/srv/other/orders", CUSTOMER];
        expect_message(&shop.refit("apply", &by_link), 2, "symbolic link");
    })
}

/// A client that began a transaction as a writer.
fn writer(file: &str) -> Child {
    let mut child = Command::new("sqlite3")
        .args(["-bail", file])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sqlite3 is there");
    let input = child.stdin.as_mut().expect("a pipe");
    // The question below holds the same lock for a moment: the writer waits for it.
    writeln!(input, ".timeout 20000\nBEGIN IMMEDIATE;").expect("it reads");
    wait_until("the writer's lock", || {
        let asked = Command::new("sqlite3")
            .args([file, "BEGIN IMMEDIATE"])
            .output();
        !asked.expect("sqlite3 is there").status.success()
    });
    child
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().expect("ours");
}

fn a_file_that_others_have_locked_is_left(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, file| {
        let before = (shop.dump)();
        let other = writer(file);
        let output = shop.apply(&[CUSTOMER]);
        expect_message(&output, 1, "database is locked");
        expect_message(&output, 1, "all was taken back");
        expect_message(&output, 1, "fuser -v");
        end(other);
        assert_eq!((shop.dump)(), before);
        assert_eq!(shop.phase(), None);
        expect_code(&shop.apply(&[CUSTOMER]), 0);
    })
}

/// sqlite3 goes on when refit is killed, and refit waits for it.
fn killed_while_the_index_waits(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, file| {
        let before = (shop.dump)();
        let other = writer(file);
        let mut refit = begun(shop);
        wait_until("CREATE INDEX", || {
            let words = fs::read(format!("/proc/{}/cmdline", child_of(&refit)));
            String::from_utf8_lossy(&words.unwrap_or_default()).contains("CREATE INDEX")
        });
        refit.kill().expect("ours");
        refit.wait().expect("ours");
        end(other);
        assert_eq!(shop.phase().as_deref(), Some("applying"));
        assert_ne!((shop.dump)(), before);
        expect_code(&shop.revert(), 0);
        assert_eq!((shop.dump)(), before);
    })
}

fn a_file_that_is_gone_is_forgotten(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, file| {
        expect_code(&shop.apply(&[CUSTOMER]), 0);
        fs::remove_file(file).expect("ours");
        expect_printed(&shop.refit("status", &["--exit-code"]), 1, "not there");
        expect_code(&shop.revert(), 0);
        assert_eq!(shop.phase(), None);
    })
}

fn killed_at_any_call(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, _| shop.sweeps())
}
