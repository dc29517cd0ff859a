//! Whether a service does its work with a change, as a command tells (`--health`), on a Debian that systemd boots.

use crate::apply_booted::{booted, expect_same_files, files, inside, up};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_message};

pub const TESTS: &[Test] = &[
    test!(what_does_not_work_with_a_change_is_taken_back)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(mail_has_to_flow_where_a_recipe_asks_for_it)
        .alone()
        .when_named()
        .limit_seconds(400),
];

fn what_does_not_work_with_a_change_is_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let apply = ["x", "refit", "apply", "--yes", "cron", "tz=UTC", "--health"];
    let applied = |health: &str| booted(env, &[&apply[..], &[health]].concat());
    let pid = || {
        inside(
            env,
            0,
            &["systemctl", "show", "-p", "MainPID", "--value", "cron"],
        )
    };
    let first = pid();
    expect_message(
        &applied("exit 7"),
        2,
        "`exit 7` ended with 7 before the change, so nothing was changed",
    );
    assert_eq!(pid(), first, "not restarted");
    expect_same_files(env, &before);

    let without = "! systemctl show -p Environment cron | grep TZ";
    let output = applied(without);
    expect_message(&output, 1, "all was taken back: `! systemctl show");
    expect_message(&output, 1, "ended with 1 with the change");
    assert!(
        !described(&output).contains("without the change"),
        "it works again"
    );
    assert_ne!(pid(), first, "restarted");
    expect_same_files(env, &before);

    // A service that the change, or the restart, broke for good.
    let once = "! systemctl show -p Environment cron | grep TZ || { touch /root/broken; }; test ! -e /root/broken";
    expect_message(&applied(once), 1, "without the change `! systemctl show");
    inside(env, 0, &["rm", "/root/broken"]);
    expect_same_files(env, &before);

    // What it prints is no part of the result; who confirms asks again.
    let words = [
        &apply[1..],
        &[
            "echo heard; test ! -e /root/broken",
            "--confirm-within",
            "2h",
        ],
    ]
    .concat();
    let printed = inside(env, 0, &words);
    assert!(!printed.contains("heard"), "{printed}");
    let status = inside(env, 0, &["refit", "status", "cron"]);
    assert!(
        status.contains("health         echo heard; test ! -e /root/broken"),
        "{status}"
    );
    inside(env, 0, &["touch", "/root/broken"]);
    let confirm = booted(env, &["x", "refit", "confirm", "cron"]);
    expect_message(&confirm, 2, "so it was not confirmed");
    inside(env, 0, &["rm", "/root/broken"]);
    inside(env, 0, &["refit", "confirm", "cron"]);
    let exported = inside(env, 0, &["refit", "status", "cron", "--export"]);
    assert_eq!(
        exported,
        "refit apply '--health=echo heard; test ! -e /root/broken' cron.service tz=UTC\n"
    );
    inside(env, 0, &["refit", "revert", "cron"]);
    expect_same_files(env, &before);

    // One that does not end, and does not want to.
    expect_message(
        &applied("trap '' TERM; while :; do sleep 1; done"),
        2,
        "was killed before the change",
    );
    expect_same_files(env, &before);
    Outcome::Pass
}

/// The command of the shipped recipe.
fn mail_flows(env: &TestEnv) -> String {
    let text = env.refit(&["recipes", "copy", "postfix-cleanup", "copy"]);
    expect_message(&text, 0, "");
    let text = std::fs::read_to_string(env.path("copy/recipe.toml")).expect("copied");
    let recipe: toml::Table = text.parse().expect("TOML");
    recipe["health"].as_str().expect("it has one").to_owned()
}

fn mail_has_to_flow_where_a_recipe_asks_for_it(env: &TestEnv) -> Outcome {
    up(env);
    let health = mail_flows(env);
    let before = files(env);
    let boxes = || inside(env, 0, &["sh", "-c", "ls -l /var/mail; postqueue -p"]);
    let mails = boxes();
    let apply = ["refit", "apply", "--yes", "--health", &health, "postfix"];
    inside(
        env,
        0,
        &[&apply[..], &["conf.initial_destination_concurrency=20"]].concat(),
    );
    assert_eq!(boxes(), mails, "none was delivered, none is left");
    inside(env, 0, &["refit", "revert", "postfix"]);
    expect_same_files(env, &before);

    // Postfix takes this value, runs, and delivers nothing.
    let deaf = [&["x"], &apply[..], &["conf.local_transport=error:closed"]].concat();
    let output = booted(env, &deaf);
    expect_message(&output, 1, "all was taken back: `# a mail to postmaster");
    assert!(
        !described(&output).contains("without the change"),
        "mail flows again"
    );
    assert_eq!(boxes(), mails);
    expect_same_files(env, &before);
    inside(env, 0, &["sh", "-c", &health]);
    Outcome::Pass
}
