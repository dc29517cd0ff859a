//! Trees and records that another user could have written: what they say is not done, and they hold nobody up.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use serde_json::Value;

use crate::apply::{SETTINGS, listing, words};
use crate::apply_redis::{self, CONFIG};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(a_tree_of_another_user_is_refused),
    test!(a_store_of_another_user_is_refused),
    test!(a_record_that_gives_rights_is_refused),
    test!(an_unreadable_record_stops_its_own_service_alone),
    test!(a_lock_that_is_no_file_makes_and_waits_for_nothing),
];

const SERVICE: &str = "redis-server@one";
const STORE: &str = "var/lib/refit/changes";
const NOBODY: u32 = 65534;

/// What each verb answers, which changes no file.
fn expect_refused(env: &TestEnv, root: &str, part: &str) {
    let before = listing(root);
    let apply = words("apply", root, &apply_redis::APPLY);
    let one = [SERVICE];
    let [plan, status, revert, confirm] =
        ["plan", "status", "revert", "confirm"].map(|verb| words(verb, root, &one));
    let plan = [&plan[..], &[SETTINGS[0]]].concat();
    for words in [apply, plan, status, revert, confirm] {
        expect_message(&env.refit(&words), 2, part);
    }
    assert_eq!(listing(root), before);
}

fn a_tree_of_another_user_is_refused(env: &TestEnv) -> Outcome {
    env.require_root();
    let root = apply_redis::tree(env, "tree");
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    chown(&root, Some(NOBODY), None).expect("root may");
    expect_refused(env, &root, "belongs to the user 65534");
    chown(&root, Some(0), None).expect("root may");
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    Outcome::Pass
}

fn a_store_of_another_user_is_refused(env: &TestEnv) -> Outcome {
    env.require_root();
    let root = apply_redis::tree(env, "tree");
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    let at = |path: &str| Path::new(&root).join(path);
    let record = at(&format!("{STORE}/{SERVICE}.service.json"));
    assert!(record.exists(), "{}", record.display());
    for path in [at("var/lib/refit"), at(STORE), record.clone()] {
        let shown = path.display().to_string();
        let mode = fs::metadata(&path).expect("there").permissions();
        chown(&path, Some(NOBODY), None).expect("root may");
        expect_message(&env.refit(&words("revert", &root, &[SERVICE])), 2, &shown);
        chown(&path, Some(0), None).expect("root may");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("root may");
        expect_message(
            &env.refit(&words("revert", &root, &[SERVICE])),
            2,
            "mode 0777",
        );
        fs::set_permissions(&path, mode).expect("root may");
    }
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    Outcome::Pass
}

fn a_record_that_gives_rights_is_refused(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    let record = Path::new(&root).join(format!("{STORE}/{SERVICE}.service.json"));
    let text = fs::read_to_string(&record).expect("there");
    // Whose record it is: refit's, and of the user who runs it.
    let forged = |change: &dyn Fn(&mut Value)| {
        let mut record: Value = serde_json::from_str(&text).expect("it is JSON");
        let files = record["change"]["files"].as_array_mut().expect("files");
        for edit in files.iter_mut().filter(|edit| edit["before"].is_object()) {
            change(edit);
        }
        record.to_string()
    };
    for forged in [
        forged(&|edit| edit["before"]["mode"] = 0o4755.into()),
        forged(&|edit| {
            edit["before"]["mode"] = 0o2755.into();
            edit["after"]["mode"] = 0o2755.into();
        }),
        forged(&|edit| edit["before"]["uid"] = 4321.into()),
        forged(&|edit| {
            edit["before"]["xattrs"] = serde_json::json!({"security.capability": "0100000200"});
        }),
    ] {
        fs::write(&record, forged).expect("ours");
        expect_refused(
            env,
            &root,
            "gives /etc/redis/redis-one.conf another owner or mode",
        );
    }
    fs::write(&record, &text).expect("ours");
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    Outcome::Pass
}

fn an_unreadable_record_stops_its_own_service_alone(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    let unit = words("apply", &root, &["--yes", "a", SETTINGS[0]]);
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    expect_code(&env.refit(&unit), 0);
    let record = Path::new(&root).join(format!("{STORE}/{SERVICE}.service.json"));
    let text = fs::read_to_string(&record).expect("there");
    let shown = record.display().to_string();
    for damaged in [
        "",
        "{",
        &text[..text.len() / 2],
        &text.replacen("\"version\": 1", "\"version\": 9", 1),
    ] {
        fs::write(&record, damaged).expect("ours");
        let status = env.refit(&words("status", &root, &[]));
        expect_printed(&status, 2, "a.service");
        expect_message(&status, 2, &shown);
        expect_code(
            &env.refit(&words("status", &root, &["--exit-code", "a"])),
            0,
        );
        expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
        // The record may name the same library.
        let libraries = fs::read_dir(Path::new(&root).join("usr/lib/refit")).expect("it is kept");
        assert!(libraries.count() > 0);
        expect_code(&env.refit(&unit), 0);
        for verb in ["revert", "confirm", "status"] {
            expect_message(&env.refit(&words(verb, &root, &[SERVICE])), 2, &shown);
        }
    }
    fs::write(&record, &text).expect("ours");
    for service in ["a", SERVICE] {
        expect_code(&env.refit(&words("revert", &root, &[service])), 0);
    }
    assert!(
        !Path::new(&root).join("usr/lib/refit").exists(),
        "the last one takes it away"
    );
    Outcome::Pass
}

fn a_lock_that_is_no_file_makes_and_waits_for_nothing(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    let lock = Path::new(&root).join(STORE).join("lock");
    fs::create_dir_all(lock.parent().expect("it has one")).expect("ours");
    let target = env.path("made");
    symlink(&target, &lock).expect("ours");
    expect_refused(env, &root, "lock is not a regular file");
    assert!(
        !fs::exists(&target).expect("readable"),
        "a file was made elsewhere"
    );
    fs::remove_file(&lock).expect("ours");
    expect_code(&env.run(&["mkfifo", lock.to_str().expect("text")]), 0);
    expect_refused(env, &root, "lock is not a regular file");
    assert!(Path::new(&root).join(CONFIG).exists());
    Outcome::Pass
}
