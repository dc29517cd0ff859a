//! `refit recipes new --from-unit`: the configuration is found by what the unit starts.

use std::fs;
use std::path::Path;

use crate::recipe_folder::{finish, refit};
use crate::recipe_from::{expect_texts, expect_written, new};
use crate::recipes::{check, require};
use crate::remains::nothing_left;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message, expect_printed, expect_refused};

pub const TESTS: &[Test] = &[
    test!(a_unit_leads_to_its_configuration).limit_seconds(300),
    test!(a_unit_that_is_not_known_writes_nothing),
];

/// Units of Debian's packages, the configuration of each, and the shipped recipe with its load.
fn units(env: &TestEnv) -> [[String; 3]; 3] {
    let mut versions = fs::read_dir("/etc/postgresql").into_iter().flatten();
    let Some(Ok(version)) = versions.next() else {
        env.skip("no cluster in /etc/postgresql");
    };
    let version = version.file_name().to_string_lossy().into_owned();
    [
        ["redis-server", "/etc/redis/redis.conf", "redis-aof"],
        [
            &format!("postgresql@{version}-main.service"),
            &format!("/etc/postgresql/{version}/main/postgresql.conf"),
            "postgres-pgbench",
        ],
        ["mariadb", "/etc/mysql/my.cnf", "mariadb-commits"],
    ]
    .map(|unit| unit.map(str::to_owned))
}

fn a_unit_leads_to_its_configuration(env: &TestEnv) -> Outcome {
    for [unit, main, shipped] in &units(env) {
        if !Path::new(main).parent().is_some_and(Path::exists) {
            env.skip(&format!("no {main}"));
        }
        if fs::read(main).is_err() {
            // Debian's redis.conf is not for everybody.
            let output = finish(&mut refit(
                env,
                &["recipes", "new", shipped, "--from-unit", unit],
            ));
            expect_message(&output, 2, &format!("cannot read {main}"));
            assert!(!Path::new(&env.path(shipped)).exists());
            continue;
        }
        let name = format!("{shipped}-as-here");
        let told = new(env, &name, "--from-unit", unit);
        let unit = unit.trim_end_matches(".service");
        expect_texts(
            &told,
            &[&format!("  of the unit {unit} its command line counts")],
        );
        expect_written(env, &format!("{name}/root{main}"));
        if unit.starts_with("postgresql") {
            continue;
        }
        let folder = format!("./{name}");
        let output = check(env, &folder, &[]);
        require(env, shipped, &output);
        expect_printed(&output, 0, &format!("ok      {name}: baseline: "));
        nothing_left(env, &name);
    }
    Outcome::Pass
}

fn a_unit_that_is_not_known_writes_nothing(env: &TestEnv) -> Outcome {
    let next = "systemctl list-unit-files";
    for (unit, texts) in [
        (
            "no-such-unit",
            ["systemd has no service of this name", next],
        ),
        (
            "../redis-server",
            ["systemd has no service of this name", next],
        ),
        (
            "redis-server\n",
            ["systemd has no service of this name", next],
        ),
        (
            "systemd-journald",
            [
                "systemd-journald, which refit does not know",
                "--template daemon",
            ],
        ),
        ("mariadb@two", ["one of several servers", "--from FILE.cnf"]),
    ] {
        let installed = unit.starts_with("systemd") || unit.starts_with("mariadb");
        let file = format!(
            "/lib/systemd/system/{}.service",
            unit.trim_end_matches("two")
        );
        if !installed || Path::new(&file).exists() {
            expect_refused(
                env,
                &["recipes", "new", "mine", "--from-unit", unit],
                &texts,
            );
        }
    }
    let both = [
        "recipes",
        "new",
        "mine",
        "--from-unit",
        "a",
        "--from",
        "/etc/redis",
    ];
    expect_refused(env, &both, &["cannot be used with"]);
    assert!(!Path::new(&env.path("mine")).exists());
    Outcome::Pass
}
