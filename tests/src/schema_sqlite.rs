//! The schema of an SQLite file as a setting.

use std::fs;
use std::process::Command;

use crate::apply::words;
use crate::apply_schema::{Shop, sqlite};
use crate::points::all_points;
use crate::random::{Random, seed};
use crate::runner::{Outcome, Test};
use crate::schema_cases::{Bench, Case, Database};
use crate::schema_random::schema;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(each_case_of_sqlite_goes_there_and_back).limit_seconds(600),
    test!(a_second_file_and_others).limit_seconds(120),
    test!(the_standard_input_is_a_file_too),
    test!(killed_at_any_call).limit_seconds(600).once(),
    test!(random_schemas_go_there_and_back)
        .limit_seconds(3600)
        .once(),
];

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

    fn run(&self, sql: &str) {
        self.asked(&[sql]);
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
        is_quick: false,
    });
    Outcome::Pass
}

fn a_second_file_and_others(env: &TestEnv) -> Outcome {
    bench(env, |bench| bench.with_others())
}

fn the_standard_input_is_a_file_too(env: &TestEnv) -> Outcome {
    bench(env, |bench| {
        bench.database.begin("CREATE TABLE t (a)");
        let service = bench.database.service();
        let with_input = |verb: &str, more: &[&str], text: &str| {
            let more = [more, &[&service, "schema=-"]].concat();
            let input = fs::File::open(env.file("input.sql", text)).expect("ours");
            let mut command = env.refit_command(&words(verb, bench.root, &more));
            command.stdin(input).output().expect("it starts")
        };
        let text = "CREATE TABLE t (a, b);";
        expect_printed(&with_input("plan", &[], text), 0, "ADD COLUMN b");
        expect_code(&with_input("apply", &["--yes"], text), 0);
        expect_printed(&with_input("apply", &["--yes"], text), 0, "nothing to do");
        expect_message(
            &with_input("plan", &[], "FOO;"),
            2,
            "standard input:1: near",
        );
        expect_code(&bench.refit("revert", &[&service, "schema"]), 0);
    })
}

fn killed_at_any_call(env: &TestEnv) -> Outcome {
    sqlite(env, |shop, _| {
        let file = env.file(
            "schema.sql",
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, created_at TEXT NOT NULL, \
             status INTEGER NOT NULL CHECK (status >= 0), note TEXT); CREATE INDEX note ON orders (note); \
             CREATE VIEW open AS SELECT id FROM orders WHERE status = 0;",
        );
        let shop = Shop {
            service: "sqlite:/srv/a shop.db",
            root: shop.root.clone(),
            dump: &|| (shop.dump)().replace("IF NOT EXISTS \"orders\"", "orders"),
            ..*shop
        };
        let setting = format!("schema={file}");
        shop.sweep("apply", &setting);
        shop.sweep("revert", &setting);
    })
}

/// Two schemas of random tables, and the way from one to the other.
fn random_schemas_go_there_and_back(env: &TestEnv) -> Outcome {
    let seed = seed();
    let pairs = if all_points() { 300 } else { 12 };
    bench(env, |bench| {
        let mut random = Random::new(seed);
        let cases = (0..pairs).map(|number| Case {
            name: format!("pair {number} of seed {seed}"),
            what: "random".to_owned(),
            before: schema(&mut random, true),
            file: schema(&mut random, false),
        });
        bench.each(&cases.collect::<Vec<_>>());
    })
}
