//! `refit recipes new NAME --from postgresql://…`: the server is only read, its password stays out, and the index that a
//! person would choose is found, measured and handed over.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::compared::{effect, number, printed};
use crate::processes::{children, status_line};
use crate::recipe_folder::{finish, refit};
use crate::recipe_index::new;
use crate::remains::{base, nothing_left};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::schema_server::{self, Server, command, made, own, user};
use crate::sys::send_signal;
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_printed, wait_for, wait_until,
};

pub const TESTS: &[Test] = &[
    test!(postgresql_finds_the_missing_index_and_is_only_read).limit_seconds(600),
    test!(postgresql_takes_odd_names_and_archives).limit_seconds(600),
    test!(pg_stat_statements_get_values_from_the_copy).limit_seconds(600),
    test!(ctrl_c_ends_the_private_server_and_removes_the_copy),
    test!(postgresql_addresses_that_cannot_be_read).limit_seconds(180),
];

const QUERIES: &str = "-- a customer's page
SELECT id, at FROM orders WHERE customer_id = 7 ORDER BY at DESC LIMIT 20;
SELECT note FROM orders WHERE id = 77;
INSERT INTO orders (customer_id, at, note) VALUES (7, 1, 'new');
SELECT note FROM orders WHERE id = $1;
SELECT * FROM nothing_there;
SELECT 1 \\! touch ran
;
";

/// Its password, as typed in a URL and as the server takes it.
const TYPED: &str = "open%40sesame";
const PASSWORD: &str = "open@sesame";

/// A server with an empty database `shop`, which the role `reader` may read with a password.
fn server(env: &TestEnv) -> (Server, String) {
    let programs = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = programs.map(|entry| entry.expect("readable").file_name());
    let Some(version) = versions.max() else {
        env.skip("PostgreSQL is not installed");
    };
    let version = version.to_string_lossy().into_owned();
    let hypopg = format!("/usr/share/postgresql/{version}/extension/hypopg.control");
    if !Path::new(&hypopg).exists() {
        env.skip("hypopg is not installed");
    }
    let programs = format!("/usr/lib/postgresql/{version}/bin");
    let user = user(env, "postgres");
    let above = env.subdir("server");
    made(&above, user, &["run"]);
    let socket = format!("{above}/run");
    let data = format!("{socket}/data");
    let initdb = format!("{programs}/initdb");
    let words = [
        &*initdb,
        "--no-sync",
        "--auth=trust",
        "--username=owner",
        "--locale=C.UTF-8",
        &data,
    ];
    schema_server::printed(user, &own(&words));
    let access = format!("{data}/pg_hba.conf");
    let text = fs::read_to_string(&access).expect("initdb wrote it");
    fs::write(access, format!("local all reader scram-sha-256\n{text}")).expect("likewise");
    let sockets = format!("unix_socket_directories={socket}");
    let log = fs::File::create(env.path("server.log")).expect("ours");
    let postgres = format!("{programs}/postgres");
    let words = [
        &*postgres,
        "-D",
        &data,
        "-F",
        "-c",
        &sockets,
        "-c",
        "listen_addresses=",
        "-c",
        "autovacuum=off",
        "-c",
        "shared_preload_libraries=pg_stat_statements",
    ];
    let child = command(user, &own(&words)).stderr(log).spawn();
    let client = |database: &str| {
        let psql = format!("{programs}/psql");
        let words = [
            &*psql, "-XqAtw", "-h", &socket, "-U", "owner", "-d", database,
        ];
        own(&[&words[..], &["-v", "ON_ERROR_STOP=1", "-c"]].concat())
    };
    let dump = format!("{programs}/pg_dump");
    let server = Server {
        child: child.expect("it starts"),
        user,
        client: client("shop"),
        dump: own(&[&dump, "-w", "-h", &socket, "-U", "owner", "shop"]),
    };
    let create = [client("postgres"), own(&["CREATE DATABASE shop"])].concat();
    wait_until("PostgreSQL", || {
        let output = command(user, &create).output().expect("it starts");
        output.status.success()
    });
    server.sql(&format!(
        "CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; GRANT pg_read_all_data TO reader"
    ));
    (server, socket)
}

fn all_text(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("it is ours") {
        let path = entry.expect("readable").path();
        match path.is_dir() {
            true => all.extend(all_text(&path)),
            false => {
                let bytes = fs::read(&path).expect("it is ours");
                all.push((path.display().to_string(), bytes));
            }
        }
    }
    all
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

fn postgresql_finds_the_missing_index_and_is_only_read(env: &TestEnv) -> Outcome {
    let (server, socket) = server(env);
    server.sql(
        "CREATE TABLE orders (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, customer_id int, at int, note text);
         INSERT INTO orders (customer_id, at, note)
            SELECT i % 4999, i % 1009, 'order ' || i FROM generate_series(1, 300000) i;
         ANALYZE",
    );
    let before = server.dump();
    let address = format!("postgresql://reader:{TYPED}@/shop?host={socket}");
    let output = new(env, "shop", &address, QUERIES);
    expect_code(&output, 0);
    let name = "orders_customer_id_at_idx";
    let ddl = format!("CREATE INDEX {name} ON orders (customer_id, at);");
    let shown = printed(&output);
    for text in [
        &*ddl,
        "proposed by hypopg since q1: Limit; Sort; Seq Scan on orders → Limit; ",
        "  SELECT note FROM orders WHERE id = $1: write a value in the place of $1\n",
        "  SELECT * FROM nothing_there: relation \"nothing_there\" does not exist\n",
        "  SELECT 1 \\! touch ran: a backslash outside of quotes\n",
    ] {
        assert!(shown.contains(text), "{text}\n{}", described(&output));
    }
    assert!(!Path::new(&env.path("ran")).exists());
    // Only read, and nobody else reads the copy; the password stays out of everything.
    assert_eq!(server.dump(), before);
    let folder = env.path("shop");
    let mode = fs::metadata(&folder).expect("it was written").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let files = all_text(Path::new(&folder));
    assert!(files.iter().any(|(path, _)| path.ends_with("/data.pgdump")));
    for secret in [TYPED, PASSWORD, "SCRAM-SHA"] {
        assert!(!contains(&output.stdout, secret), "{}", described(&output));
        assert!(!contains(&output.stderr, secret), "{}", described(&output));
        let with = files.iter().find(|(_, bytes)| contains(bytes, secret));
        assert!(with.is_none(), "{secret} in {}", with.expect("one").0);
    }

    let base = base(env);
    let args = ["recipes", "check", "./shop", "--dir", &base];
    let output = finish(&mut refit(env, &args));
    expect_printed(
        &output,
        0,
        &format!("ok      shop: conf.index={name}: 3 statements"),
    );
    let options = ["--rounds", "8", "--json", "result.json"];
    let args = [&["compare", "./shop", "--dir", &base], &options[..]].concat();
    let output = finish(&mut refit(env, &args));
    expect_code(&output, 0);
    let text = fs::read_to_string(env.path("result.json")).expect("it was written");
    let result: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    expect_valid(&result);
    assert_eq!(
        result["recipe"]["applied"][format!("conf.index={name}")],
        format!("conf.index.{name}=customer_id,at")
    );
    let effect = effect(&result, &format!("conf.index={name}"), "q1");
    // A seventieth of the plan's cost: seen in few rounds, whatever else the machine does. Their interval is too wide then.
    assert!(number(&effect["change"]) < -0.5, "{effect}");
    nothing_left(env, "shop");

    // What was printed is what the database takes, both ways; with it, nothing is left to be proposed.
    server.sql(&ddl);
    assert_ne!(server.dump(), before);
    let output = new(env, "shop2", &address, QUERIES);
    expect_message(&output, 2, "no index is proposed for these 3 queries");
    assert!(!Path::new(&env.path("shop2")).exists());
    let inverse = fs::read_to_string(env.path(&format!("shop/indexes/index-{name}.inverse.sql")));
    server.sql(&inverse.expect("it was written"));
    assert_eq!(server.dump(), before);
    Outcome::Pass
}

fn pg_stat_statements_get_values_from_the_copy(env: &TestEnv) -> Outcome {
    let (server, socket) = server(env);
    let address = format!("postgresql://owner@/shop?host={socket}");
    let args = ["recipes", "new", "shop", "--from", &address];
    let output = finish(&mut refit(env, &args));
    expect_message(&output, 2, "\"pg_stat_statements\" does not exist");
    server.sql(
        "CREATE EXTENSION pg_stat_statements;
         CREATE TABLE orders (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, customer_id int, at int, note text);
         INSERT INTO orders (customer_id, at, note)
            SELECT i * 7919 % 500, i * 31 % 1000, 'order ' || i FROM generate_series(1, 20001) i;
         ANALYZE",
    );
    server.sql("SELECT id, at FROM orders WHERE customer_id = 7 ORDER BY at DESC LIMIT 20");
    server.sql("SELECT note FROM orders WHERE id IN (77, 78)");
    server.sql("INSERT INTO orders (customer_id, at, note) VALUES (7, 1, 'it''s new')");
    let before = server.dump();
    let output = finish(&mut refit(env, &args));
    expect_code(&output, 0);
    let shown = printed(&output);
    // 20002 rows: the ids' median is 10001.
    for text in [
        "CREATE INDEX orders_customer_id_idx ON orders (customer_id);",
        ": SELECT note FROM orders WHERE id IN ('10001', '10001')\n",
        "  INSERT INTO orders (customer_id, at, note) VALUES ($1, $2, $3): it is compared with no column",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert_eq!(server.dump(), before);
    Outcome::Pass
}

fn postgresql_takes_odd_names_and_archives(env: &TestEnv) -> Outcome {
    let (server, _) = server(env);
    server.sql(
        r#"CREATE SCHEMA "s; x"; CREATE TYPE mood AS ENUM ('a', 'b');
        CREATE TABLE "s; x"."a'b ""c" ("x'y" int, "Select" text, mood mood, p point, n int);
        INSERT INTO "s; x"."a'b ""c" SELECT i, 'n ' || i, 'a', point(i, i), i FROM generate_series(1, 20000) i;
        CREATE INDEX "no one" ON "s; x"."a'b ""c" (mood);
        ALTER TABLE "s; x"."a'b ""c" ENABLE ROW LEVEL SECURITY;
        CREATE POLICY mine ON "s; x"."a'b ""c" TO reader USING (n > 0);
        ALTER DATABASE shop SET search_path = "s; x", public"#,
    );
    let archive = env.path("shop.dump");
    let words = [&*server.dump, &own(&["-Fc"])].concat();
    let dump = command(server.user, &words).output().expect("it starts");
    expect_code(&dump, 0);
    fs::write(&archive, dump.stdout).expect("ours");
    let queries = r#"SELECT * FROM "a'b ""c" WHERE "x'y" = 1 AND p IS NOT NULL;
        SELECT count(*) FROM "a'b ""c" WHERE "Select" = $$n 5; \ '$$;"#;
    let output = new(env, "odd", &archive, queries);
    expect_code(&output, 0);
    let shown = printed(&output);
    for text in [
        r#"CREATE INDEX a_b_c_x_y_idx ON "a'b ""c" ("x'y");"#,
        r#"CREATE INDEX a_b_c_select_idx ON "a'b ""c" ("Select");"#,
        "  conf.drop=no_one\n      DROP INDEX \"no one\";\n",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert_eq!(shown.matches("conf.").count(), 3, "{shown}");
    let args = ["recipes", "check", "./odd", "--dir", &base(env)];
    let output = finish(&mut refit(env, &args));
    expect_printed(&output, 0, "ok      odd: conf.drop=no_one: 2 statements");
    assert_eq!(
        printed(&output).matches("ok  ").count(),
        4,
        "{}",
        described(&output)
    );
    nothing_left(env, "odd");
    Outcome::Pass
}

/// Of the processes below this one, the one of this name.
fn below(parent: u32, name: &str) -> Option<u32> {
    children(parent).into_iter().find_map(|pid| {
        let is_it = status_line(pid, "Name").is_some_and(|known| known == name);
        if is_it { Some(pid) } else { below(pid, name) }
    })
}

fn ctrl_c_ends_the_private_server_and_removes_the_copy(env: &TestEnv) -> Outcome {
    let (server, _) = server(env);
    let archive = env.path("shop.dump");
    let words = [&*server.dump, &own(&["-Fc"])].concat();
    let dump = command(server.user, &words).output().expect("it starts");
    expect_code(&dump, 0);
    fs::write(&archive, dump.stdout).expect("ours");
    let queries = env.file("queries.sql", "SELECT pg_sleep(10000);");
    let args = [
        "recipes",
        "new",
        "shop",
        "--from",
        &archive,
        "--queries",
        &queries,
    ];
    let mut new = refit(env, &args);
    let new = new.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let new = new.expect("refit starts");
    // The backend has its query when psql has sent it; before that there is as much to remove.
    wait_for("psql, with the queries", || {
        let pid = below(new.id(), "psql")?;
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.contains("script.sql"))
            .then_some(())
    });
    let postgres = wait_for("the private server", || below(new.id(), "postgres"));
    let cwd = fs::read_link(format!("/proc/{postgres}/cwd")).expect("it runs");
    let directory = cwd
        .ancestors()
        .find(|path| path.parent() == Some(Path::new("/var/tmp")));
    let directory = directory.expect("the copy lies in /var/tmp");
    let mode = fs::metadata(directory)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o007, 0, "others enter {}", directory.display());
    send_signal(new.id() as i32, libc::SIGINT);
    let output = new.wait_with_output().expect("it ends");
    expect_message(&output, 2, "interrupted");
    assert!(!directory.exists(), "{} is left", directory.display());
    assert!(!Path::new(&format!("/proc/{postgres}")).exists());
    assert!(!Path::new(&env.path("shop")).exists());
    Outcome::Pass
}

fn postgresql_addresses_that_cannot_be_read(env: &TestEnv) -> Outcome {
    let nowhere = format!(
        "postgresql://me:{TYPED}@/shop?host={}",
        env.subdir("nowhere")
    );
    for (address, text) in [
        (&*nowhere, "the copy of postgresql://me@/shop?host="),
        ("postgresql://me:open@sesame/x@h/shop", "write @ as %40"),
        ("mysql://me:open@sesame@h/shop", "--from is not a database"),
        (
            "dbname=shop password='open@sesame",
            "words of libpq are KEY=VALUE",
        ),
    ] {
        let output = new(env, "shop", address, "SELECT 1;");
        expect_message(&output, 2, text);
        assert!(
            !contains(&output.stderr, "sesame"),
            "{}",
            described(&output)
        );
        assert!(!Path::new(&env.path("shop")).exists());
    }
    let archive = env.file("archive", "PGDMP");
    let args = ["recipes", "new", "shop", "--from", &archive];
    expect_message(&finish(&mut refit(env, &args)), 2, "--queries FILE");
    Outcome::Pass
}
