//! A second change of a service that has one: it is the change that one apply of all settings makes, goes back by setting
//! or whole, and where it fails the first one stays.

use std::fs;
use std::path::Path;

use crate::apply::{self, DROP_IN, SETTINGS, UNTIL_CONFIRMED, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};
use crate::{
    apply_mariadb, apply_postfix, apply_postgresql, apply_redis, apply_rsyslog, apply_sysctl,
    apply_wrapper,
};

pub const TESTS: &[Test] = &[
    test!(it_is_what_one_apply_of_all_settings_makes).limit_seconds(120),
    test!(a_setting_that_is_given_again_has_the_last_word),
    test!(a_file_that_the_new_form_does_not_edit_goes_back),
    test!(one_that_is_not_confirmed_goes_back_to_the_first),
    test!(a_trial_goes_back_to_the_first),
    test!(what_cannot_be_added_leaves_the_first).limit_seconds(120),
    test!(a_risk_is_accepted_of_what_is_added),
];

/// A kind of service, and settings of it.
struct Subject {
    tree: fn(&TestEnv, &str) -> String,
    service: &'static str,
    settings: &'static [&'static str],
}

const SUBJECTS: [Subject; 10] = [
    Subject {
        tree: apply::tree,
        service: "a",
        settings: &[SETTINGS[0], SETTINGS[1], "thp=never", "sync=off"],
    },
    // It has an LD_PRELOAD of its own.
    Subject {
        tree: apply::tree,
        service: "b",
        settings: &["tz=UTC", SETTINGS[0], "env.WORD=1"],
    },
    Subject {
        tree: apply_redis::tree,
        service: apply_redis::APPLY[1],
        settings: &[SETTINGS[0], "conf.maxmemory=1gb", "conf.hz=20"],
    },
    Subject {
        tree: apply_postgresql::tree,
        service: apply_postgresql::APPLY[1],
        settings: &["conf.work_mem=8MB", SETTINGS[0], "env.WORD=it's \\"],
    },
    Subject {
        tree: apply_mariadb::tree,
        service: apply_mariadb::APPLY[1],
        settings: &["conf.sql_mode=a\\b", SETTINGS[0], "conf.max-connections=99"],
    },
    Subject {
        tree: apply_postfix::tree,
        service: apply_postfix::ALL[1],
        settings: &[
            SETTINGS[0],
            "conf.maximal_queue_lifetime=1h",
            "env.WORD=a, $b",
        ],
    },
    Subject {
        tree: apply_postfix::tree,
        service: apply_postfix::ONE[1],
        settings: &["env.WORD=it's $b", SETTINGS[0], "sync=off"],
    },
    Subject {
        tree: apply_rsyslog::tree,
        service: apply_rsyslog::APPLY[1],
        settings: &["conf.sync=on", SETTINGS[0], "conf.queue=direct"],
    },
    Subject {
        tree: apply_sysctl::tree,
        service: apply_sysctl::APPLY[1],
        settings: &[
            apply_sysctl::APPLY[2],
            apply_sysctl::APPLY[3],
            "conf.vm.laptop_mode=1",
        ],
    },
    Subject {
        tree: apply_wrapper::tree,
        service: apply_wrapper::IN_PLACE[1],
        settings: &["env.WORD=it's $b", SETTINGS[0], "env.OTHER=1"],
    },
];

/// For settings that risk data.
const RISK: [&str; 2] = ["--accept=loses-on-crash", "--no-evidence"];

fn applied(env: &TestEnv, root: &str, service: &str, settings: &[&str]) {
    let how = [&["--yes", RISK[0], RISK[1], service], settings].concat();
    let output = env.refit(&words("apply", root, &how));
    expect_printed(&output, 0, "applied in the tree");
    let status = env.refit(&words("status", root, &["--exit-code", service]));
    expect_code(&status, 0);
}

/// Whatever is added to whatever: bytes, modes and owners of all files. Then the added settings go, then the first ones.
fn it_is_what_one_apply_of_all_settings_makes(env: &TestEnv) -> Outcome {
    let mut splits = 0;
    for (n, subject) in SUBJECTS.iter().enumerate() {
        let (service, all) = (subject.service, subject.settings);
        for at in 1..all.len() {
            let tree = |name: &str| (subject.tree)(env, &format!("{name}{n}.{at}"));
            let (first, second) = all.split_at(at);
            let at_once = tree("at-once");
            let before = listing(&at_once);
            applied(env, &at_once, service, all);
            let root = tree("one-by-one");
            applied(env, &root, service, first);
            let of_first = listing(&root);
            applied(env, &root, service, second);
            let of_both = listing(&root);
            assert_eq!(
                of_both,
                listing(&at_once),
                "{service}: {first:?} and {second:?}"
            );
            assert!(of_both != of_first && of_first != before, "{service}");
            let again = [&["--yes", service], all].concat();
            let again = env.refit(&words("apply", &root, &again));
            expect_printed(&again, 0, "nothing to do");

            let revert = [&[service], second].concat();
            let reverted = env.refit(&words("revert", &root, &revert));
            expect_printed(
                &reverted,
                0,
                &format!("it has {}", first.join(" ").replace('\t', "\\t")),
            );
            assert_eq!(listing(&root), of_first, "{service}: without {second:?}");
            expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
            applied(env, &root, service, second);
            assert_eq!(listing(&root), of_both, "{service}: with {second:?} again");
            expect_code(&env.refit(&words("revert", &root, &[service])), 0);
            assert_eq!(listing(&root), before, "{service}");
            splits += 1;
        }
    }
    println!("counted: {splits} changes that were made in two steps");
    assert!(splits >= 20, "{splits}");
    Outcome::Pass
}

fn a_setting_that_is_given_again_has_the_last_word(env: &TestEnv) -> Outcome {
    let root = apply::tree(env, "tree");
    let before = listing(&root);
    applied(env, &root, "a", &["env.WORD=1", "tz=UTC", SETTINGS[0]]);
    let planned = env.refit(&words("plan", &root, &["a", "env.WORD=2"]));
    expect_printed(
        &planned,
        0,
        "env.WORD=1 tz=UTC preload=/lib/one.so; this becomes one change",
    );
    applied(env, &root, "a", &["env.WORD=2"]);
    let text = fs::read_to_string(Path::new(&root).join(DROP_IN)).expect("the drop-in");
    assert!(
        text.contains("WORD=2") && !text.contains("WORD=1"),
        "{text}"
    );
    // By its name; the library goes with the last setting that has it.
    expect_code(&env.refit(&words("revert", &root, &["a", "preload"])), 0);
    assert!(!Path::new(&root).join("usr/lib/refit").exists());
    let unknown = env.refit(&words("revert", &root, &["a", "env.NONE"]));
    expect_message(&unknown, 2, "it has tz=UTC env.WORD=2");
    let all = env.refit(&words("revert", &root, &["a", "tz", "env.WORD"]));
    expect_printed(&all, 0, "reverted tz=UTC env.WORD=2");
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// With a dash rsyslog's own files are edited, and without it they are not.
fn a_file_that_the_new_form_does_not_edit_goes_back(env: &TestEnv) -> Outcome {
    let root = apply_rsyslog::tree(env, "tree");
    let before = listing(&root);
    applied(env, &root, "rsyslog", &["conf.sync=dash"]);
    let config =
        |now: &std::collections::BTreeMap<String, _>| now.get(apply_rsyslog::CONFIG).cloned();
    assert_ne!(config(&listing(&root)), config(&before));
    applied(env, &root, "rsyslog", &["conf.sync=off"]);
    assert_eq!(config(&listing(&root)), config(&before));
    expect_code(&env.refit(&words("revert", &root, &["rsyslog"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn one_that_is_not_confirmed_goes_back_to_the_first(env: &TestEnv) -> Outcome {
    let root = apply::tree(env, "tree");
    let before = listing(&root);
    applied(env, &root, "a", &["tz=UTC"]);
    let first = listing(&root);
    expect_code(&env.refit(&words("apply", &root, &UNTIL_CONFIRMED)), 0);
    let waits = env.refit(&words("apply", &root, &["--yes", "a", "env.MORE=1"]));
    expect_message(&waits, 2, "refit confirm a.service");
    let back = env.refit(&words("revert", &root, &["--unconfirmed", "a"]));
    expect_printed(&back, 0, "it has tz=UTC, as before");
    assert_eq!(listing(&root), first);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);

    expect_code(&env.refit(&words("apply", &root, &UNTIL_CONFIRMED)), 0);
    expect_code(&env.refit(&words("confirm", &root, &["a"])), 0);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    let confirmed = listing(&root);
    let at_once = apply::tree(env, "at-once");
    applied(env, &at_once, "a", &["tz=UTC", SETTINGS[0], SETTINGS[1]]);
    assert_eq!(confirmed, listing(&at_once));
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    assert_eq!(listing(&root), before);

    // Whole, while it waits.
    applied(env, &root, "a", &["tz=UTC"]);
    expect_code(&env.refit(&words("apply", &root, &UNTIL_CONFIRMED)), 0);
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    assert_eq!(listing(&root), before);
    expect_printed(
        &env.refit(&words("status", &root, &[])),
        0,
        "nothing is applied",
    );
    Outcome::Pass
}

/// A reboot takes the second one back, and not the first.
fn a_trial_goes_back_to_the_first(env: &TestEnv) -> Outcome {
    let root = apply::tree(env, "tree");
    let before = listing(&root);
    applied(env, &root, "a", &["tz=UTC"]);
    let first = listing(&root);
    let trial = words("apply", &root, &["--yes", "--trial", "a", "env.A=1"]);
    expect_code(&env.refit(&trial), 0);
    expect_printed(&env.refit(&trial), 0, "nothing to do");
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 0, "a.service: applied, until a reboot\n");
    let exported = env.refit(&words("status", &root, &["--export"]));
    expect_printed(&exported, 0, " --trial a.service tz=UTC env.A=1\n");
    let at_boot = words("revert", &root, &["--unconfirmed", "--at-boot", "a"]);
    expect_code(&env.refit(&at_boot), 0);
    assert_eq!(listing(&root), first);

    expect_code(&env.refit(&trial), 0);
    expect_code(&env.refit(&words("confirm", &root, &["a"])), 0);
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 0, "a.service: applied\n");
    expect_printed(&env.refit(&at_boot), 0, "nothing to do");
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn what_cannot_be_added_leaves_the_first(env: &TestEnv) -> Outcome {
    let root = apply::tree(env, "tree");
    applied(env, &root, "a", &["tz=UTC", SETTINGS[0]]);
    let first = listing(&root);
    let record = Path::new(&root).join("var/lib/refit/changes/a.service.json");
    let recorded = fs::read(&record).expect("applied");
    for (more, message) in [
        (&["--trial", "a", "tz=UTC"][..], "and not only for a time"),
        (&["a", "preload=/lib/none.so"], "/lib/none.so"),
        (&["a", "sync=off"], "--accept loses-on-crash"),
    ] {
        let refused = env.refit(&words("apply", &root, &[&["--yes"], more].concat()));
        expect_message(&refused, 2, message);
        assert_eq!(listing(&root), first, "{more:?}");
        assert_eq!(fs::read(&record).expect("likewise"), recorded, "{more:?}");
    }
    // Nothing is added to a change that is not there as it was made.
    let place = Path::new(&root).join(DROP_IN);
    let whole = fs::read(&place).expect("applied");
    fs::write(&place, "[Service]\n").expect("the tree is ours");
    let drifted = env.refit(&words("apply", &root, &["--yes", "a", "env.A=1"]));
    expect_code(&drifted, 3);
    fs::write(&place, whole).expect("likewise");
    assert_eq!(listing(&root), first);
    Outcome::Pass
}

fn a_risk_is_accepted_of_what_is_added(env: &TestEnv) -> Outcome {
    let root = apply::tree(env, "tree");
    applied(env, &root, "a", &["sync=off"]);
    // What is there was accepted.
    let more = env.refit(&words("apply", &root, &["--yes", "a", "tz=UTC"]));
    expect_code(&more, 0);
    let status = || env.refit(&words("status", &root, &["a"]));
    expect_printed(&status(), 0, "loses-on-crash");
    expect_code(&env.refit(&words("revert", &root, &["a", "sync"])), 0);
    let now = status();
    expect_printed(&now, 0, "tz=UTC");
    let text = String::from_utf8_lossy(&now.stdout);
    assert!(!text.contains("loses-on-crash"), "{text}");
    Outcome::Pass
}
