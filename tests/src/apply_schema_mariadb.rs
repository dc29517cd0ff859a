//! `refit apply` of an index in a MariaDB server that runs in a tree (`--root`).

use std::process::Stdio;

use crate::apply_schema::{CUSTOMER, CUSTOMER_DAY, Shop};
use crate::runner::{Outcome, Test};
use crate::schema_server::{self, COLUMNS, Server, begun, command, ended, killed};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed, wait_until};

pub const TESTS: &[Test] = &[
    test!(mariadb_gets_an_index_and_loses_it).limit_seconds(180),
    test!(what_mariadb_cannot_index_online_is_refused).limit_seconds(180),
    test!(an_index_is_hidden_and_shown).limit_seconds(180),
    test!(a_statement_that_waits_in_mariadb_is_ended).limit_seconds(180),
    test!(killed_at_any_call).limit_seconds(600),
];

/// A shop in a MariaDB of its own.
fn mariadb(env: &TestEnv, test: impl Fn(&Shop, &Server)) -> Outcome {
    env.require_command("mariadbd");
    let root = crate::apply_mariadb::tree(env, "tree");
    let server = schema_server::mariadb(env, &root, &[]);
    server.sql(&format!(
        "CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, {COLUMNS}, note text)"
    ));
    server.sql(
        "INSERT INTO orders (customer_id, created_at, status) SELECT seq % 50, now(), 0 FROM seq_1_to_2000",
    );
    server.shop(env, &root, "mariadb/shop/orders", |shop| {
        test(shop, &server)
    });
    Outcome::Pass
}

fn mariadb_gets_an_index_and_loses_it(env: &TestEnv) -> Outcome {
    mariadb(env, |shop, server| {
        shop.there_and_back();
        shop.one_after_the_other();
        shop.newest_first();
        shop.of_a_renamed_table();
        // The server drops the index that it made for a foreign key when another one serves it.
        server.sql("CREATE TABLE customers (id int PRIMARY KEY)");
        server.sql("INSERT INTO customers SELECT seq - 1 FROM seq_1_to_50");
        server.sql("ALTER TABLE orders ADD INDEX day (created_at), ADD CONSTRAINT of_customer FOREIGN KEY (customer_id) REFERENCES customers (id)");
        let before = server.dump();
        assert!(
            before.contains("KEY `of_customer` (`customer_id`)"),
            "{before}"
        );
        expect_printed(
            &shop.refit("plan", &[shop.service, CUSTOMER_DAY]),
            0,
            "foreign key",
        );
        expect_code(&shop.apply(&[CUSTOMER_DAY]), 0);
        assert!(!server.dump().contains("KEY `of_customer` ("));
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
        // One in descending order does not serve it: the server keeps its own.
        let down = "conf.index.down=customer_id DESC,created_at";
        expect_code(&shop.apply(&[down]), 0);
        assert!(server.dump().contains("KEY `of_customer` ("));
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
        // Now that one is there of its own.
        expect_code(&shop.apply(&[CUSTOMER_DAY]), 0);
        assert!(server.dump().contains("KEY `of_customer` ("));
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
    })
}

fn what_mariadb_cannot_index_online_is_refused(env: &TestEnv) -> Outcome {
    mariadb(env, |shop, server| {
        shop.refused();
        server.sql("CREATE TABLE old (id int) ENGINE = MyISAM");
        server.sql("CREATE INDEX part ON orders (status, note(9))");
        let before = server.dump();
        for (service, setting, named) in [
            ("mariadb/shop/order", CUSTOMER, "there are: old, orders"),
            ("mariadb/shops/orders", CUSTOMER, "databases: shop"),
            ("mariadb/shop", CUSTOMER, "mariadb/DATABASE/TABLE"),
            ("mariadb/shop/a`b", CUSTOMER, "mariadb/DATABASE/TABLE"),
            ("mariadb/shop/old", "conf.index.one=id", "of MyISAM"),
            (
                "mariadb/shop/orders",
                "conf.index.one=note",
                "note is TEXT or BLOB",
            ),
            (
                "mariadb/shop/orders",
                "conf.index.primary=id",
                "conf.index.NAME",
            ),
            (
                "mariadb/shop/orders",
                "conf.ignored.one=on",
                "there are: part, PRIMARY",
            ),
            (
                "mariadb/shop/orders",
                "conf.ignored.part=yes",
                "is on or off",
            ),
            (
                "mariadb/shop/orders",
                "conf.ignored.part=off",
                "usable already",
            ),
        ] {
            let output = shop.refit("apply", &["--yes", service, setting]);
            expect_message(&output, 2, named);
            assert_eq!(shop.phase(), None);
        }
        assert_eq!(server.dump(), before);
    })
}

fn an_index_is_hidden_and_shown(env: &TestEnv) -> Outcome {
    mariadb(env, |shop, server| {
        let before = server.dump();
        expect_code(
            &shop.apply(&[CUSTOMER_DAY, "conf.ignored.customer_day=on"]),
            0,
        );
        expect_printed(
            &shop.refit("status", &["--exit-code"]),
            0,
            "customer_day IGNORED",
        );
        let after = server.dump();
        // An administrator uses it: it is not refit's to drop any more.
        server.sql("ALTER TABLE orders ALTER INDEX customer_day NOT IGNORED");
        expect_printed(
            &shop.refit("status", &["--exit-code"]),
            1,
            "expected IGNORED, found usable",
        );
        expect_message(
            &shop.revert(),
            3,
            "BTREE (customer_id, created_at) (usable)",
        );
        server.sql("ALTER TABLE orders ALTER INDEX customer_day IGNORED");
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
        assert_ne!(after, before);
        // One of refit's own, which was made before.
        expect_code(&shop.apply(&[CUSTOMER_DAY]), 0);
        let hidden = "conf.ignored.customer_day=on";
        expect_code(&shop.apply(&[hidden]), 0);
        assert_eq!(server.dump(), after);
        expect_printed(
            &shop.refit("status", &["--exit-code"]),
            0,
            "customer_day IGNORED",
        );
        let alone = [shop.service, CUSTOMER_DAY];
        expect_message(&shop.refit("revert", &alone), 2, "of the same index");
        assert_eq!(server.dump(), after);
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
        // One that is there.
        server.sql("CREATE INDEX customer ON orders (customer_id)");
        let before = server.dump();
        let hide = ["conf.ignored.customer=on"];
        expect_code(&shop.apply(&hide), 0);
        expect_printed(&shop.apply(&hide), 0, "nothing to do");
        let plan = server.sql("EXPLAIN SELECT * FROM orders WHERE customer_id = 1");
        assert!(!plan.contains("customer\t"), "{plan}");
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
        server.sql("ALTER TABLE orders ALTER INDEX customer IGNORED");
        let before = server.dump();
        expect_code(&shop.apply(&["conf.ignored.customer=off"]), 0);
        expect_printed(
            &shop.refit("status", &["--exit-code"]),
            0,
            "customer usable",
        );
        expect_code(&shop.revert(), 0);
        assert_eq!(server.dump(), before);
    })
}

fn a_statement_that_waits_in_mariadb_is_ended(env: &TestEnv) -> Outcome {
    mariadb(env, |shop, server| {
        let before = server.dump();
        let words: Vec<String> = server
            .client
            .iter()
            .filter(|word| *word != "-e")
            .cloned()
            .collect();
        let mut other = command(server.user, &words);
        let other = other.arg("--unbuffered").stdin(Stdio::piped());
        let mut other = other.stdout(Stdio::piped()).spawn().expect("it starts");
        let sql = b"BEGIN; SELECT count(*) FROM orders;\n";
        std::io::Write::write_all(other.stdin.as_mut().expect("a pipe"), sql).expect("it reads");
        // Not by INNODB_TRX, which shows nothing new to who asks more than ten times a second.
        let mut rows = std::io::BufReader::new(other.stdout.take().expect("a pipe"));
        let mut row = String::new();
        std::io::BufRead::read_line(&mut rows, &mut row).expect("it is printed");
        assert_eq!(row, "2000\n");
        let waits = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata%'";
        let refit = begun(shop);
        wait_until("ALTER TABLE", || server.sql(waits) == "1\n");
        killed(refit);
        assert_eq!(shop.phase().as_deref(), Some("applying"));
        expect_code(&shop.revert(), 0);
        assert_eq!(server.sql(waits), "0\n");
        assert_eq!(shop.phase(), None);
        // Nobody is waited for without end.
        expect_message(&shop.apply(&[CUSTOMER]), 1, "Lock wait timeout");
        ended(other);
        assert_eq!(server.dump(), before);
    })
}

fn killed_at_any_call(env: &TestEnv) -> Outcome {
    mariadb(env, |shop, _| shop.sweeps())
}
