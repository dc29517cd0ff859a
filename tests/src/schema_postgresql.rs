//! The schema of a PostgreSQL database as a setting.

use std::io::Write;
use std::process::Stdio;

use crate::apply_schema::Shop;
use crate::apply_schema_postgresql::postgresql;
use crate::runner::{Outcome, Test};
use crate::schema_cases::{Bench, Database};
use crate::schema_server::{COLUMNS, Server, command, printed};
use crate::test;
use crate::test_env::{TestEnv, expect_code, wait_until};

pub const TESTS: &[Test] = &[
    test!(each_case_of_postgresql_goes_there_and_back)
        .limit_seconds(7200)
        .once(),
    test!(a_second_file_and_others).limit_seconds(300),
    test!(what_is_locked_is_waited_for).limit_seconds(300),
    // Each call starts a private server more than once.
    test!(killed_at_any_call).limit_seconds(3600).when_named(),
];

/// A database of a server.
struct PgDatabase<'a> {
    server: &'a Server,
    name: &'a str,
}

impl PgDatabase<'_> {
    fn words(&self, database: &str) -> Vec<String> {
        let words = self.server.client.iter();
        let words = words.map(|word| {
            if word == "shop" {
                database.to_owned()
            } else {
                word.clone()
            }
        });
        words.collect()
    }

    fn asked(&self, database: &str, sql: &str) -> String {
        let mut words = self.words(database);
        words.push(sql.to_owned());
        printed(self.server.user, &words)
    }
}

/// What pg_dump does not tell by itself: the tables, with their rows.
const TABLES: &str = "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables \
    WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1";

impl Database for PgDatabase<'_> {
    fn service(&self) -> String {
        format!("postgresql/{}", self.name)
    }

    fn begin(&self, sql: &str) {
        self.asked(
            "postgres",
            &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name),
        );
        self.asked("postgres", &format!("CREATE DATABASE {}", self.name));
        self.asked(self.name, sql);
    }

    fn run(&self, sql: &str) {
        self.asked(self.name, sql);
    }

    /// pg_dump has an order of its own, but for columns.
    fn catalog(&self) -> String {
        let words = self.server.dump.iter();
        let words = words.map(|word| {
            if word == "shop" {
                self.name.to_owned()
            } else {
                word.clone()
            }
        });
        let words: Vec<String> = words.collect();
        let text = printed(self.server.user, &words);
        let lines = text.lines().map(|line| line.trim().trim_end_matches(','));
        let is_of_schema = |line: &&str| {
            !line.is_empty() && !line.starts_with("--") && !line.contains("restrict ")
        };
        let mut lines: Vec<&str> = lines.filter(is_of_schema).collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    fn rows(&self) -> String {
        let tables = self.asked(self.name, TABLES);
        let rows = tables.lines().map(|table| {
            let sql = format!("SELECT to_jsonb(t) FROM {table} t ORDER BY to_jsonb(t)");
            format!("{table}\n{}", self.asked(self.name, &sql))
        });
        rows.collect()
    }
}

fn each_case_of_postgresql_goes_there_and_back(env: &TestEnv) -> Outcome {
    bench(env, |bench, _| {
        bench.some(include_str!("schema_cases/postgresql.txt"), 16)
    })
}

fn a_second_file_and_others(env: &TestEnv) -> Outcome {
    bench(env, |bench, _| bench.with_others())
}

/// Somebody reads the table until refit was seen to wait for it; what is made belongs to whom the tables belong to.
fn what_is_locked_is_waited_for(env: &TestEnv) -> Outcome {
    bench(env, |bench, server| {
        bench.database.begin("CREATE TABLE t (a integer)");
        let other = PgDatabase {
            server,
            name: "cases",
        };
        other.run("CREATE ROLE app; ALTER TABLE t OWNER TO app");
        let mut words = other.words("cases");
        // Its statements come by its standard input.
        words.retain(|word| word != "-c");
        let reader = command(server.user, &words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut reader = reader.expect("it starts");
        let mut statements = reader.stdin.take().expect("piped");
        let begun = statements.write_all(b"BEGIN; SELECT * FROM t;\n");
        begun.and_then(|()| statements.flush()).expect("it reads");
        let locks = |granted: &str| {
            let of_table = "SELECT count(*) > 0 FROM pg_locks WHERE relation = 't'::regclass AND";
            other.asked("cases", &format!("{of_table} {granted}")) == "t\n"
        };
        wait_until("the reader's lock", || locks("granted"));
        let file = env.file(
            "schema.sql",
            "CREATE TABLE t (a integer, b integer); CREATE TABLE o (x integer); CREATE INDEX i ON t (b);",
        );
        let service = bench.database.service();
        let apply = std::thread::scope(|scope| {
            let apply = || bench.refit("apply", &["--yes", &service, &format!("schema={file}")]);
            let apply = scope.spawn(apply);
            wait_until("refit waits for the lock", || locks("NOT granted"));
            statements.write_all(b"COMMIT;\n").expect("it reads");
            drop(statements);
            apply.join().expect("it ends")
        });
        expect_code(&apply, 0);
        reader.wait().expect("ours");
        let owners = "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
        assert_eq!(other.asked("cases", owners), "app\n");
        expect_code(&bench.refit("revert", &[&service]), 0);
    })
}

/// What is one transaction is there as a whole, or not at all.
fn killed_at_any_call(env: &TestEnv) -> Outcome {
    postgresql(env, |shop, _| {
        let file = env.file(
            "schema.sql",
            &format!(
                "CREATE TABLE orders (id integer GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, {COLUMNS}, note text \
                 DEFAULT 'none'); CREATE VIEW seen AS SELECT id FROM orders; CREATE TABLE o (x integer);"
            ),
        );
        let shop = Shop {
            service: "postgresql/shop",
            root: shop.root.clone(),
            ..*shop
        };
        let setting = format!("schema={file}");
        shop.sweep("apply", &setting);
        shop.sweep("revert", &setting);
    })
}

fn bench(env: &TestEnv, test: impl Fn(&Bench, &Server)) -> Outcome {
    postgresql(env, |shop, server| {
        let (database, fresh) = (
            PgDatabase {
                server,
                name: "cases",
            },
            PgDatabase {
                server,
                name: "fresh",
            },
        );
        let bench = Bench {
            env,
            root: &shop.root,
            database: &database,
            fresh: &fresh,
            is_quick: true,
        };
        test(&bench, server);
    })
}
