//! Indexes in the databases of a Debian that systemd boots: what is there is asked of the database itself, over a reboot, an
//! upgrade of the server, an administrator's own statements, and a server that is stopped.

use std::process::Output;

use crate::apply_booted::{booted, files_of_disk, inside, up};
use crate::apply_booted_packages::{HIGHER, apt, repacked, server_package, status, version};
use crate::apply_schema::{CUSTOMER, CUSTOMER_DAY};
use crate::runner::{Outcome, Test};
use crate::schema_server::COLUMNS;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[test!(indexes_are_made_kept_and_taken_back)
    .alone()
    .when_named()
    .limit_seconds(900)];

/// A database of the machine.
struct Shop {
    /// Its table, as it is typed.
    service: &'static str,
    package: &'static str,
    /// A shell command that makes the database empty of what an earlier run left.
    clear: &'static str,
    /// What numbers 2000 rows.
    numbers: &'static str,
    /// Runs the SQL that is its next word.
    client: &'static [&'static str],
    /// Prints all definitions.
    dump: &'static [&'static str],
    /// How a statement that drops an index ends after its name.
    drop_end: &'static str,
    /// Shell commands after which the database cannot be asked, and after which it can again.
    stop: &'static str,
    start: &'static str,
}

const SHOPS: [Shop; 3] = [
    Shop {
        service: "postgresql/shop/orders",
        package: "postgresql",
        clear: "cd / && setpriv --reuid=postgres --clear-groups dropdb --if-exists --force shop && \
                setpriv --reuid=postgres --clear-groups createdb shop",
        numbers: "SELECT n FROM generate_series(1, 2000) n",
        client: &[
            "-u",
            "postgres",
            "psql",
            "-XqAtvON_ERROR_STOP=1",
            "shop",
            "-c",
        ],
        dump: &["-u", "postgres", "pg_dump", "--schema-only", "shop"],
        drop_end: "",
        stop: "systemctl stop postgresql",
        start: "systemctl start postgresql",
    },
    Shop {
        service: "mariadb/shop/orders",
        package: "mariadb-server",
        clear: "mariadb -e 'DROP DATABASE IF EXISTS shop; CREATE DATABASE shop'",
        numbers: "SELECT seq AS n FROM seq_1_to_2000",
        client: &["mariadb", "-BN", "shop", "-e"],
        dump: &["mariadb-dump", "--no-data", "--skip-dump-date", "shop"],
        drop_end: " ON orders",
        stop: "systemctl stop mariadb",
        start: "systemctl start mariadb",
    },
    // Any user's file. Without its program it cannot be asked.
    Shop {
        service: "sqlite:/srv/shop/shop.db/orders",
        package: "sqlite3",
        clear: "rm -rf /srv/shop && install -d -o www-data -g www-data /srv/shop",
        numbers: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i AS n FROM n",
        client: &["-u", "www-data", "sqlite3", "-bail", "/srv/shop/shop.db"],
        dump: &[
            "-u",
            "www-data",
            "sqlite3",
            "-bail",
            "/srv/shop/shop.db",
            ".schema",
        ],
        drop_end: "",
        stop: "mv /usr/bin/sqlite3 /root/sqlite3",
        start: "mv /root/sqlite3 /usr/bin/sqlite3",
    },
];

impl Shop {
    fn sql(&self, env: &TestEnv, sql: &str) {
        inside(env, 0, &[self.client, &[sql]].concat());
    }

    /// All definitions, without the words that pg_dump makes up.
    fn dump(&self, env: &TestEnv) -> String {
        let text = inside(env, 0, self.dump);
        let lines = text.lines().filter(|line| !line.contains("restrict "));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn drop(&self, index: &str) -> String {
        format!("DROP INDEX {index}{}", self.drop_end)
    }

    fn refit(&self, env: &TestEnv, verb: &[&str], settings: &[&str]) -> Output {
        booted(
            env,
            &[&["x", "refit"], verb, &[self.service], settings].concat(),
        )
    }

    fn apply(&self, env: &TestEnv) -> Output {
        self.refit(env, &["apply", "--yes"], &[CUSTOMER_DAY, CUSTOMER])
    }

    /// The definitions are these, and status reports both indexes as made.
    #[track_caller]
    fn expect_made(&self, env: &TestEnv, made: &str) {
        assert_eq!(self.dump(env), made, "{}", self.service);
        let lines = ["ok: index customer_day usable", "ok: index customer usable"];
        status(env, 0, self.service, &lines);
    }
}

fn indexes_are_made_kept_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let has_sqlite = booted(env, &["x", "test", "-x", "/usr/bin/sqlite3"]);
    assert!(
        has_sqlite.status.success(),
        "the root of scripts/booted has no sqlite3; make it again: scripts/booted down --wipe"
    );
    let before = files_of_disk(env);
    let dumps = SHOPS.each_ref().map(|shop| make(env, shop));
    assert_eq!(files_of_disk(env), before, "an index is no file");
    expect_code(&booted(env, &["reboot"]), 0);
    for (shop, (empty, made)) in SHOPS.iter().zip(&dumps) {
        shop.expect_made(env, made);
        upgrade(env, shop, made);
        stop(env, shop, made);
        edit_and_take_back(env, shop, empty, made);
        println!("{}: kept, found changed, taken back", shop.service);
    }
    assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
    assert_eq!(files_of_disk(env), before);
    println!("counted: indexes of {} databases", SHOPS.len());
    Outcome::Pass
}

/// Planned and made; the definitions before and after.
fn make(env: &TestEnv, shop: &Shop) -> (String, String) {
    inside(env, 0, &["sh", "-c", shop.clear]);
    shop.sql(
        env,
        &format!("CREATE TABLE orders (id integer PRIMARY KEY, {COLUMNS})"),
    );
    shop.sql(
        env,
        &format!(
            "INSERT INTO orders SELECT n, n % 50, '2026-01-01', 0 FROM ({}) numbers",
            shop.numbers
        ),
    );
    let empty = shop.dump(env);
    assert!(!empty.contains("customer_day"), "{empty}");
    let plan = shop.refit(env, &["plan"], &[CUSTOMER_DAY, CUSTOMER]);
    expect_printed(&plan, 0, "(safe)");
    assert_eq!(shop.dump(env), empty, "a plan makes nothing");
    expect_code(&shop.apply(env), 0);
    expect_printed(&shop.apply(env), 0, "nothing to do");
    let made = shop.dump(env);
    assert!(made.contains("customer_day"), "{made}");
    shop.expect_made(env, &made);
    (empty, made)
}

/// The packages' scripts restart the server.
fn upgrade(env: &TestEnv, shop: &Shop, made: &str) {
    let package = &server_package(env, shop.package);
    let old = version(env, package);
    for version in [&old, &format!("{old}{HIGHER}")] {
        let deb = repacked(env, package, version, "");
        apt(env, 0, &["install", "--reinstall", &deb]);
        shop.expect_made(env, made);
    }
}

/// What cannot be asked is neither right nor wrong, and stays.
fn stop(env: &TestEnv, shop: &Shop, made: &str) {
    inside(env, 0, &["sh", "-c", shop.stop]);
    let printed = status(env, 0, shop.service, &["unknown: index customer_day"]);
    assert!(!printed.contains("ok: index"), "{printed}");
    expect_message(&shop.refit(env, &["revert"], &[]), 2, "cannot be asked");
    inside(env, 0, &["sh", "-c", shop.start]);
    shop.expect_made(env, made);
}

fn edit_and_take_back(env: &TestEnv, shop: &Shop, empty: &str, made: &str) {
    // An administrator has another index by the name of one.
    shop.sql(env, &shop.drop("customer"));
    let gone = ["DIFFERS: index customer:", "found not there"];
    status(env, 1, shop.service, &gone);
    shop.sql(env, "CREATE INDEX customer ON orders (status)");
    let other = shop.dump(env);
    status(env, 1, shop.service, &["DIFFERS: index customer:"]);
    expect_code(&shop.apply(env), 3);
    let refused = shop.refit(env, &["revert"], &[]);
    expect_message(&refused, 3, "nothing was reverted");
    // Both definitions.
    let text = described(&refused);
    let line = |begin: &str| text.lines().find(|line| line.trim().starts_with(begin));
    for (begin, column) in [("refit made:", "customer_id"), ("it is now:", "status")] {
        let line = line(begin).unwrap_or_default();
        assert!(line.contains(column), "{begin} {column}: {text}");
    }
    assert_eq!(shop.dump(env), other);
    // Theirs goes, and refit's other one with the change.
    shop.sql(env, &shop.drop("customer"));
    let reverted = shop.refit(env, &["revert"], &[]);
    expect_printed(&reverted, 0, "index customer was as before already");
    assert_eq!(shop.dump(env), empty);
    // All by refit.
    expect_code(&shop.apply(env), 0);
    assert_eq!(shop.dump(env), made);
    expect_code(&shop.refit(env, &["revert"], &[]), 0);
    assert_eq!(shop.dump(env), empty);
}
