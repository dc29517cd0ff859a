//! `refit recipes new NAME --from mariadb://…`, or a file of mariadb-dump: the server is only read, its password stays out,
//! and the index that a person would choose is found, measured and handed over.

use std::fs;
use std::path::Path;

use crate::compared::printed;
use crate::recipe_folder::{finish, refit};
use crate::recipe_index::new;
use crate::recipe_index_server::{Missing, NAME, contains, found_and_handed_over};
use crate::remains::{base, nothing_left};
use crate::runner::{Outcome, Test};
use crate::schema_server::{self, Server, command};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(mariadb_finds_the_missing_index_and_is_only_read).limit_seconds(600),
    test!(mariadb_takes_odd_names_and_slow_query_logs).limit_seconds(600),
    test!(performance_schema_has_statements).limit_seconds(600),
    test!(mariadb_addresses_that_cannot_be_read).limit_seconds(60),
];

/// Its password, as typed in a URL and as the server takes it.
const TYPED: &str = "open%40sesame";
const PASSWORD: &str = "open@sesame";

const QUERIES: &str = "-- a customer's page
SELECT id, at FROM orders WHERE customer_id = 7 ORDER BY at DESC LIMIT 20;
SELECT note FROM orders WHERE id = 77;
INSERT INTO orders (customer_id, at, note) VALUES (7, 1, 'new');
SELECT note FROM orders WHERE id = ?;
SELECT * FROM nothing_there;
SELECT 1 \\! touch ran
;
";

/// A server, and the address of its database `shop` for a user who may only read.
fn server(env: &TestEnv, options: &[&str]) -> (Server, String) {
    env.require_command("mariadbd");
    let root = env.subdir("server");
    let server = schema_server::mariadb(env, &root, options);
    server.sql(&format!(
        "CREATE USER reader@localhost IDENTIFIED BY '{PASSWORD}'; GRANT SELECT, SHOW VIEW ON shop.* TO reader@localhost; \
         GRANT SELECT ON performance_schema.* TO reader@localhost"
    ));
    let address = format!("mariadb://reader:{TYPED}@/shop?socket={root}/run/mysqld/mysqld.sock");
    (server, address)
}

fn orders(server: &Server, rows: u32) {
    server.sql(&format!(
        "CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, customer_id int, at int, note text);
         INSERT INTO orders (customer_id, at, note)
            SELECT seq % 4999, seq % 1009, CONCAT('order ', seq) FROM seq_1_to_{rows}"
    ));
}

fn mariadb_finds_the_missing_index_and_is_only_read(env: &TestEnv) -> Outcome {
    let (server, address) = server(env, &[]);
    orders(&server, 200_000);
    found_and_handed_over(
        env,
        &server,
        &address,
        &Missing {
            queries: QUERIES,
            archive: "/data.sql.gz",
            ddl: &format!("CREATE INDEX {NAME} ON `orders` (`customer_id`, `at`);"),
            told: &[
                "the copy was read with it: q1: all of orders, sorted → orders by orders_customer_id_at_idx (rows read 200",
                "  SELECT note FROM orders WHERE id = ?: write a value in the place of ?\n",
                "  SELECT * FROM nothing_there: Table 'shop.nothing_there' doesn't exist\n",
                "  SELECT 1 \\! touch ran: a backslash outside of quotes\n",
            ],
            secrets: &[TYPED, PASSWORD],
        },
    );
    // Its accounts, asked for in a run: one is known by the user of the system, the other by a password of this run's own.
    let check = env.path("shop/check.sh");
    let text = fs::read_to_string(&check).expect("it was written");
    let asked = "mariadb --defaults-file=\"$REFIT_DIR/my.cnf\" --user=copy -e 'SELECT 1' >/dev/null 2>&1 && exit 3\n\
                 [ \"$(stat -c %a \"$REFIT_DIR/my.cnf\")\" = 600 ] || exit 4\n\
                 [ \"$(sed -n 's/^password = //p' \"$REFIT_DIR/my.cnf\" | tr -d '\\n' | wc -c)\" = 32 ] || exit 5\n";
    let (head, rest) = text.split_once("set -eu\n").expect("as all scripts");
    fs::write(&check, format!("{head}set -eu\n{asked}{rest}"))
        .expect("the test's directory is ours");
    let base = base(env);
    let args = ["recipes", "check", "./shop", "--yes", "--dir", &base];
    let output = finish(&mut refit(env, &args));
    expect_printed(&output, 0, "ok      shop: baseline: 3 statements");
    Outcome::Pass
}

/// Views and triggers that somebody defined who is not in the copy, indexes of all kinds, and two joined tables.
fn mariadb_takes_odd_names_and_slow_query_logs(env: &TestEnv) -> Outcome {
    let (server, _) = server(env, &[]);
    server.sql(
        "CREATE USER nobody@localhost; GRANT ALL ON shop.* TO nobody@localhost;
         CREATE TABLE `a'b ``c` (`x'y` int, `Select` varchar(40), p point, n int, t text, KEY `no one` (n, `Select`(5)), \
         FULLTEXT KEY words (t)) ENGINE=InnoDB;
         INSERT INTO `a'b ``c` SELECT seq, CONCAT('n ', seq), POINT(seq, seq), seq % 7, 'word' FROM seq_1_to_20000;
         CREATE TABLE names (id int, name varchar(40));
         INSERT INTO names SELECT seq, CONCAT('name ', seq) FROM seq_1_to_5000;
         CREATE DEFINER=nobody@localhost VIEW named AS SELECT n.name, a.n FROM names n JOIN `a'b ``c` a ON a.`x'y` = n.id;
         CREATE DEFINER=nobody@localhost TRIGGER small BEFORE INSERT ON names FOR EACH ROW SET NEW.name = LOWER(NEW.name)",
    );
    let dump = env.path("shop.sql");
    let mut words = server.dump.clone();
    words.retain(|word| word != "-d");
    let output = command(server.user, &words).output().expect("it starts");
    expect_code(&output, 0);
    fs::write(&dump, output.stdout).expect("ours");
    let log = "# Time: 261124  0:00:01\n# User@Host: root[root] @ localhost []\n\
               # Query_time: 2.0  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 20000\nuse shop;\nSET timestamp=1764000000;\n\
               SELECT * FROM `a'b ``c` WHERE `Select` = 'n 5; \\\\ ''' OR `Select` = \"n 7\";\n\
               SET timestamp=1764000001;\nSELECT name FROM named WHERE name = 'name 77';\n\
               SET timestamp=1764000002;\nSELECT count(*) FROM `a'b ``c` WHERE t = 'word';\n\
               SET timestamp=1764000003;\nINSERT INTO names VALUES (0, 'X');\n";
    let output = new(env, "odd", &dump, log);
    expect_code(&output, 0);
    let shown = printed(&output);
    for text in [
        "CREATE INDEX a_b_c_select_idx ON `a'b ``c` (`Select`);",
        "CREATE INDEX names_name_idx ON `names` (`name`);",
        "CREATE INDEX a_b_c_x_y_idx ON `a'b ``c` (`x'y`);",
        "  conf.drop=no_one\n      DROP INDEX `no one` ON `a'b ``c`;\n",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains("left out"), "{shown}");
    let inverse = fs::read_to_string(env.path("odd/indexes/drop-no_one.inverse.sql"));
    assert_eq!(
        inverse.expect("it was written"),
        "CREATE INDEX `no one` ON `a'b ``c` (`n`, `Select`(5));\n"
    );
    let args = ["recipes", "check", "./odd", "--dir", &base(env)];
    let output = finish(&mut refit(env, &args));
    expect_printed(&output, 0, "ok      odd: conf.drop=no_one: 4 statements");
    nothing_left(env, "odd");
    Outcome::Pass
}

fn performance_schema_has_statements(env: &TestEnv) -> Outcome {
    let (server, address) = server(env, &[]);
    orders(&server, 20_000);
    let args = ["recipes", "new", "shop", "--from", &address];
    let output = finish(&mut refit(env, &args));
    expect_message(&output, 2, "performance_schema has none of this database");
    drop(server);
    fs::remove_dir_all(env.path("server")).expect("it is ours");
    let on = [
        "--performance-schema=ON",
        "--performance-schema-consumer-events-statements-current=ON",
        "--performance-schema-consumer-events-statements-history-long=ON",
    ];
    let (server, address) = self::server(env, &on);
    orders(&server, 20_000);
    server.sql("SELECT id, at FROM orders WHERE customer_id = 7 ORDER BY at DESC LIMIT 20");
    server.sql("SELECT note FROM orders WHERE id IN (77, 78)");
    let args = ["recipes", "new", "shop", "--from", &address];
    let output = finish(&mut refit(env, &args));
    expect_code(&output, 0);
    let shown = printed(&output);
    for text in [
        "CREATE INDEX orders_customer_id_idx ON `orders` (`customer_id`);",
        ": SELECT note FROM orders WHERE id IN (77, 78)\n",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    Outcome::Pass
}

fn mariadb_addresses_that_cannot_be_read(env: &TestEnv) -> Outcome {
    env.require_command("mariadb-dump");
    for (address, told) in [
        ("mariadb://h", "needs the name of a database"),
        ("mariadb://me:topsecret@h/shop?ssl=1", "socket=/PATH alone"),
        ("mariadb://me:topsecret@/shop?socket=/nothing", "/nothing"),
    ] {
        let output = new(env, "shop", address, QUERIES);
        expect_message(&output, 2, told);
        assert!(
            !contains(&output.stderr, "topsecret"),
            "{}",
            described(&output)
        );
        assert!(!Path::new(&env.path("shop")).exists());
    }
    let empty = env.file("dump.sql", "-- MariaDB dump 10.19\n");
    let args = ["recipes", "new", "shop", "--from", &empty];
    expect_message(&finish(&mut refit(env, &args)), 2, "which queries?");
    Outcome::Pass
}
