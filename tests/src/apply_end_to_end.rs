//! From a recipe to a service that stays changed, and back: measured and cut on this machine, applied on a Debian 12 that
//! systemd boots beside it. Only by `make test-services`.

use crate::apply_booted::{booted, expect_same_files, files, inside, up};
use crate::crash::require_lab;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(postgresql_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(redis_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
];

/// A service, and its recipe.
struct Subject {
    recipe: &'static str,
    service: &'static str,
    /// Lines of its recipe.toml, and what they are here: less load, so that it takes two minutes.
    edits: &'static [(&'static str, &'static str)],
    /// What is gained at a bounded loss.
    variant: &'static str,
    /// Writes `$0` to the service, and prints all that was written and the setting.
    health: &'static str,
    /// Before anything: on a container that stayed up nothing is left of another run.
    clear: &'static str,
    before: &'static str,
    after: &'static str,
}

const POSTGRESQL: Subject = Subject {
    recipe: "postgres-pgbench",
    service: "postgresql",
    edits: &[
        ("operations = 8000", "operations = 2000"),
        ("length = \"8s\"", "length = \"2s\""),
    ],
    variant: "conf.synchronous_commit=off",
    health: "cd /; psql() { setpriv --reuid=postgres --clear-groups psql -XAtqc \"$1\"; }; \
             psql \"INSERT INTO kept VALUES ('$0')\" && psql 'SELECT word FROM kept' && psql 'SHOW synchronous_commit'",
    clear: "cd /; setpriv --reuid=postgres --clear-groups psql -XAtqc 'DROP TABLE IF EXISTS kept' \
            -c 'CREATE TABLE kept (word text)'",
    before: "on",
    after: "off",
};

const REDIS: Subject = Subject {
    recipe: "redis-aof",
    service: "redis-server",
    edits: &[
        ("operations = 10000", "operations = 2000"),
        ("length = \"8s\"", "length = \"2s\""),
    ],
    variant: "conf.appendfsync=everysec",
    health: "redis-cli RPUSH kept $0 >&2 && redis-cli LRANGE kept 0 -1 && redis-cli CONFIG GET appendfsync | tail -1",
    // Debian's redis has everysec: first it is asked to sync each write.
    clear: "redis-cli DEL kept && redis-cli CONFIG SET appendfsync always",
    before: "always",
    after: "everysec",
};

fn from_recipe_and_back(env: &TestEnv, subject: &Subject) -> Outcome {
    require_lab(env);
    let folder = env.path("recipe");
    expect_code(&env.refit(&["recipes", "copy", subject.recipe, &folder]), 0);
    let file = format!("{folder}/recipe.toml");
    let mut text = std::fs::read_to_string(&file).expect("copied");
    for (from, to) in subject.edits {
        assert!(text.contains(from), "{from}: {text}");
        text = text.replace(from, to);
    }
    std::fs::write(&file, text).expect("the folder is ours");
    let words = ["compare", &folder, subject.variant, "--yes", "--confirm"];
    let prove = [
        "--prove", "--cuts", "24", "--budget", "7m", "--json", "r.json",
    ];
    let compared = env.refit(&[&words[..], &prove].concat());
    expect_code(&compared, 0);

    up(env);
    expect_code(
        &booted(env, &["put", &env.path("r.json"), "/root/r.json"]),
        0,
    );
    let mut written: Vec<String> = Vec::new();
    let mut is_healthy = |word: &str, setting: &str| {
        written.push(word.to_owned());
        let found = inside(env, 0, &["sh", "-c", subject.health, word]);
        let expected = format!("{}\n{setting}\n", written.join("\n"));
        assert_eq!(found, expected);
    };
    inside(env, 0, &["sh", "-c", subject.clear]);
    let before = files(env);
    is_healthy("one", subject.before);
    // The risk is somebody's decision.
    let plan = booted(env, &["x", "refit", "plan", "--from", "/root/r.json"]);
    expect_code(&plan, 2);
    let text = described(&plan);
    for words in [
        "lost at most",
        "when measured again",
        "to accept it: --accept bounded-loss",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let apply = ["refit", "apply", "--from", "/root/r.json", "--yes"];
    inside(env, 2, &apply);
    assert_eq!(files(env), before);
    let accepted = ["--accept", "bounded-loss", "--confirm-within", "10m"];
    inside(env, 0, &[&apply[..], &accepted].concat());
    is_healthy("two", subject.after);
    inside(env, 0, &["refit", "confirm", subject.service]);
    is_healthy("three", subject.after);
    let status = inside(env, 0, &["refit", "status", "--check", subject.service]);
    assert!(
        status.contains("bounded-loss") && status.contains("/root/r.json"),
        "{status}"
    );
    inside(env, 0, &["refit", "revert", subject.service]);
    is_healthy("four", subject.before);
    expect_same_files(env, &before);
    println!(
        "counted: {}",
        described(&compared)
            .lines()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    );
    Outcome::Pass
}

fn postgresql_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    from_recipe_and_back(env, &POSTGRESQL)
}

fn redis_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    from_recipe_and_back(env, &REDIS)
}
