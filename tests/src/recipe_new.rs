//! `refit recipes new`: a recipe of one's own that works at once, and what is refused.

use std::fs;
use std::path::Path;

use crate::compared::printed;
use crate::recipe_folder::{finish, refit};
use crate::recipes::{check, recipe, require};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_printed, expect_refused,
};

pub const TESTS: &[Test] = &[
    test!(a_command_works_unasked_and_is_compared).limit_seconds(300),
    test!(a_daemon_works_unasked),
    test!(a_database_works_unasked).limit_seconds(300),
    test!(a_mail_server_works_unasked).limit_seconds(300),
    test!(what_is_refused_writes_nothing),
];

/// Writes a recipe from a template, and checks it. `shipped`: the recipe that the template is made of.
fn works(env: &TestEnv, template: &str, shipped: &str) {
    let name = format!("my-{template}");
    let args = ["recipes", "new", &name, "--template", template];
    let output = finish(&mut refit(env, &args));
    expect_code(&output, 0);
    let next = format!("next: refit recipes check ./{name}, then refit compare ./{name}\n");
    assert!(printed(&output).ends_with(&next), "{}", described(&output));
    let output = check(env, &format!("./{name}"), &[]);
    require(env, shipped, &output);
    if recipe(shipped)["needs"]["root"] == true && !env.as_root() {
        expect_message(&output, 2, "needs root");
        return;
    }
    expect_code(&output, 0);
    let baseline = format!("ok      {name}: baseline: ");
    assert!(
        printed(&output).contains(&baseline),
        "{}",
        described(&output)
    );
}

fn a_command_works_unasked_and_is_compared(env: &TestEnv) -> Outcome {
    works(env, "command", "append-log");
    let base = base(env);
    let args = ["compare", "./my-command", "--dir", &base, "--rounds", "2"];
    let output = finish(&mut refit(env, &args));
    expect_printed(&output, 0, "\nsync=off ");
    // Once it is changed, refit asks before it runs its commands.
    let file = env.path("my-command/recipe.toml");
    let text = fs::read_to_string(&file).expect("it was written");
    fs::write(&file, text + "\n").expect("the test's directory is ours");
    let output = check(env, "./my-command", &[]);
    expect_message(&output, 2, "--yes");
    Outcome::Pass
}

fn a_daemon_works_unasked(env: &TestEnv) -> Outcome {
    works(env, "daemon", "redis-aof");
    Outcome::Pass
}

fn a_database_works_unasked(env: &TestEnv) -> Outcome {
    works(env, "database", "postgres-pgbench");
    Outcome::Pass
}

fn a_mail_server_works_unasked(env: &TestEnv) -> Outcome {
    works(env, "mail", "postfix-cleanup");
    Outcome::Pass
}

fn what_is_refused_writes_nothing(env: &TestEnv) -> Outcome {
    env.subdir("there");
    let new = ["recipes", "new"];
    for (more, texts) in [
        (
            &["../up", "--template", "command"][..],
            &["invalid name `../up`", "recipes new NAME"][..],
        ),
        (&["a b", "--template", "mail"], &["invalid name `a b`"]),
        (
            &["there", "--template", "daemon"],
            &["there is there already", "recipes new NAME"],
        ),
        (
            &["mine", "--template", "none"],
            &["none", "command, daemon, database, mail"],
        ),
        (&["mine"], &["--template"]),
    ] {
        expect_refused(env, &[&new[..], more].concat(), texts);
    }
    for name in ["../up", "a b", "mine"] {
        assert!(!Path::new(&env.path(name)).exists(), "{name}");
    }
    let inside = fs::read_dir(env.path("there")).expect("it is there");
    assert_eq!(inside.count(), 0);
    Outcome::Pass
}
