//! The schema of an SQLite file as a setting.

use std::fs;
use std::process::Command;

use crate::runner::{Outcome, Test};
use crate::schema_cases::{Bench, Database};
use crate::test;
use crate::test_env::{TestEnv, described};

pub const TESTS: &[Test] = &[test!(each_case_of_sqlite_goes_there_and_back).limit_seconds(300)];

/// A file in a tree.
pub struct File {
    /// As it is named in the tree.
    pub name: String,
    pub path: String,
}

impl File {
    pub fn of(root: &str, name: &str) -> File {
        File {
            name: format!("/srv/{name}"),
            path: format!("{root}/srv/{name}"),
        }
    }

    pub fn asked(&self, words: &[&str]) -> String {
        let output = Command::new("sqlite3")
            .args(["-batch", "-bail", &self.path])
            .args(words)
            .output();
        let output = output.expect("sqlite3 is there");
        assert!(output.status.success(), "{words:?}: {}", described(&output));
        String::from_utf8(output.stdout).expect("text")
    }
}

/// What the pragmas tell of every object; statements without blanks, quotes and their case.
const CATALOG: &str = "
SELECT 'table', name, type, wr, strict FROM pragma_table_list
    WHERE schema = 'main' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name COLLATE NOCASE;
SELECT 'column', t.name, c.name, lower(c.type), c.\"notnull\", c.dflt_value, c.pk, c.hidden
    FROM pragma_table_list t, pragma_table_xinfo(t.name) c WHERE t.schema = 'main' AND t.type <> 'view'
    AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY t.name COLLATE NOCASE, c.name;
SELECT 'key', t.name, k.\"table\", k.\"from\", k.\"to\", k.on_update, k.on_delete
    FROM pragma_table_list t, pragma_foreign_key_list(t.name) k WHERE t.schema = 'main' ORDER BY 1, 2, 3, 4;
SELECT 'index', t.name, iif(i.origin = 'c', i.name, ''), i.\"unique\", i.origin, i.partial,
    (SELECT group_concat(coalesce(x.name, '?') || x.desc || x.coll) FROM pragma_index_xinfo(i.name) x WHERE x.key) AS columns
    FROM pragma_table_list t, pragma_index_list(t.name) i WHERE t.schema = 'main' ORDER BY 1, 2, 3, 7;
SELECT type, name, lower(replace(replace(replace(replace(sql, '\"', ''), '`', ''), ' ', ''), char(10), ''))
    FROM sqlite_schema WHERE type IN ('index', 'view', 'trigger') AND sql <> '' ORDER BY type, name;
PRAGMA integrity_check;";

impl Database for File {
    fn service(&self) -> String {
        format!("sqlite:{}", self.name)
    }

    fn begin(&self, sql: &str) {
        let _ = fs::remove_file(&self.path);
        self.asked(&["PRAGMA user_version = 1"]);
        // A word that begins with a dash would be an option.
        self.asked(&[&format!(" {sql}")]);
    }

    fn catalog(&self) -> String {
        self.asked(&[CATALOG])
    }

    fn rows(&self) -> String {
        let tables = self.asked(&[
            "SELECT group_concat('SELECT ''' || replace(name, '''', '''''') || ''', * FROM \"' || replace(name, '\"', '\"\"') \
             || '\"', '; ') FROM (SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
             AND name NOT IN ('sqlite_schema', 'sqlite_stat1') ORDER BY name)",
        ]);
        let rowids = self.asked(&[
            "SELECT group_concat('SELECT max(_rowid_) FROM \"' || replace(name, '\"', '\"\"') || '\"', '; ') FROM \
             (SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT wr \
             AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name)",
        ]);
        let asked = ["SELECT 1", &tables, &rowids]
            .into_iter()
            .filter(|sql| !sql.trim().is_empty());
        let asked: Vec<&str> = [".mode quote"].into_iter().chain(asked).collect();
        let rows = self.asked(&asked);
        let mut lines: Vec<&str> = rows.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }
}

fn each_case_of_sqlite_goes_there_and_back(env: &TestEnv) -> Outcome {
    bench(env, |bench| {
        bench.some(include_str!("schema_cases/sqlite.txt"), 4)
    })
}

fn bench(env: &TestEnv, test: impl Fn(&Bench)) -> Outcome {
    env.require_command("sqlite3");
    let root = crate::apply::tree(env, "tree");
    env.subdir("tree/srv");
    let (database, fresh) = (File::of(&root, "a shop.db"), File::of(&root, "fresh.db"));
    test(&Bench {
        env,
        root: &root,
        database: &database,
        fresh: &fresh,
    });
    Outcome::Pass
}
