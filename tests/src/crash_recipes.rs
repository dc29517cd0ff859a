//! `refit crash RECIPE`: the folder that `refit compare` measures, cut.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::crash::{bad, crash, mode, number, require_lab, states};
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, expect_refused, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(a_log_keeps_its_promise_and_without_syncs_not).limit_seconds(120),
    test!(postfix_keeps_its_mail_unless_cleanup_does_not_sync).limit_seconds(240),
    test!(each_conf_value_is_set_up_on_a_disk_of_its_own).limit_seconds(240),
    test!(redis_loses_within_the_bound_that_its_recipe_declares).limit_seconds(240),
    test!(lmdb_loses_no_more_than_its_last_commit).limit_seconds(120),
    test!(a_bound_is_kept_or_found_to_be_wrong).limit_seconds(240),
    test!(its_accounts_are_none_of_the_machine).limit_seconds(120),
    test!(what_cannot_be_cut_is_named_with_what_to_type),
    test!(the_commands_of_an_own_folder_are_agreed_to),
    test!(what_needs_root_says_what_to_type),
];

fn a_log_keeps_its_promise_and_without_syncs_not(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    // Without a variant: those of the recipe.
    let report = crash(env, 0, &["append-log", "--for", "2s", "--cuts", "60"]);
    assert_eq!(report["recipe"], "append-log");
    assert_eq!(report["check"], "log:log");
    let baseline = mode(&report, "baseline");
    assert_eq!((states(baseline).len(), bad(baseline)), (60, 0));
    let off = mode(&report, "sync=off");
    // Before its first line there is nothing to lose.
    assert!(bad(off) > 20, "{} of 60 lose", bad(off));
    let again = env.refit(&["report", "crash.json"]);
    let text = String::from_utf8_lossy(&again.stdout);
    let answer = "the program itself lost nothing in ";
    assert!(text.starts_with(answer), "{text}");
    assert!(text.contains("\nappend-log\n"), "{text}");
    Outcome::Pass
}

/// The load is refit's own, to a port that each instance chooses; a scope reaches cleanup alone.
fn postfix_keeps_its_mail_unless_cleanup_does_not_sync(env: &TestEnv) -> Outcome {
    require_lab(env);
    for command in ["postfix", "smtp-source", "smtp-sink"] {
        env.require_command(command);
    }
    let words = [
        "postfix-cleanup",
        "sync@exe:cleanup=off",
        "conf.queue=tmpfs",
    ];
    let options = ["--for", "3s", "--cuts", "16"];
    let report = crash(env, 0, &[&words[..], &options].concat());
    assert_eq!(bad(mode(&report, "baseline")), 0);
    for lossy in &words[1..] {
        let mode = mode(&report, lossy);
        assert_eq!(mode["class"], "loses-on-crash");
        assert!(bad(mode) > 0, "{lossy}");
    }
    Outcome::Pass
}

/// SQLite's documentation says which of its settings lose the last row.
fn each_conf_value_is_set_up_on_a_disk_of_its_own(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    env.require_command("sqlite3");
    let words = [
        "sqlite-insert",
        "conf.synchronous=extra",
        "conf.journal=wal",
    ];
    let options = ["--for", "3s", "--cuts", "60"];
    let report = crash(env, 1, &[&words[..], &options].concat());
    assert!(
        bad(mode(&report, "baseline")) > 0,
        "FULL loses its last row"
    );
    for safe in &words[1..] {
        let mode = mode(&report, safe);
        assert_eq!((&*mode["class"].to_string(), bad(mode)), ("\"safe\"", 0));
    }
    Outcome::Pass
}

fn redis_loses_within_the_bound_that_its_recipe_declares(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("redis-server");
    let everysec = "conf.appendfsync=everysec";
    let words = ["redis-aof", everysec, "--for", "4s", "--cuts", "40"];
    let report = crash(env, 0, &words);
    assert_eq!(bad(mode(&report, "baseline")), 0);
    assert!(bad(mode(&report, everysec)) > 0, "it loses something");
    let again = env.refit(&["report", "crash.json"]);
    let text = String::from_utf8_lossy(&again.stdout).replace("\n  ", " ");
    assert!(text.contains(", within its bound (2s)"), "{text}");
    assert!(
        text.contains("bound: 2s of conf.appendfsync=everysec: kept in "),
        "{text}"
    );
    Outcome::Pass
}

fn lmdb_loses_no_more_than_its_last_commit(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("gcc");
    if !std::path::Path::new("/usr/include/lmdb.h").exists() {
        env.skip("liblmdb-dev is not installed: apt install liblmdb-dev");
    }
    let data = "conf.sync=data";
    let words = ["lmdb-commits", data, "--for", "3s", "--cuts", "40"];
    let report = crash(env, 0, &words);
    assert_eq!(bad(mode(&report, "baseline")), 0);
    let lost = mode(&report, data);
    assert!(bad(lost) > 0, "it loses something");
    for state in states(lost) {
        assert!(number(&state["loss"]["lost"]) <= 1, "{state}");
        assert_eq!(state["broken"], serde_json::Value::Null, "{state}");
    }
    Outcome::Pass
}

/// A log that acknowledges each line at once and syncs it within 150 ms; one of its two bounds
/// is wrong. The pause after each line keeps the recorded disk small; nothing waits for it.
fn a_bound_is_kept_or_found_to_be_wrong(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    let folder = env.subdir("late");
    let log = "import os, sys, time\n\
        late = os.path.exists('late')\n\
        log = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n\
        os.fsync(os.open('.', os.O_RDONLY))\n\
        synced = time.monotonic()\n\
        for n in range(10**9):\n\
        \x20   os.write(log, b'%d\\n' % n)\n\
        \x20   if not late or time.monotonic() > synced + 0.15:\n\
        \x20       os.fsync(log)\n\
        \x20       synced = time.monotonic()\n\
        \x20   os.write(1, b'%d\\n' % n)\n\
        \x20   time.sleep(0.002)\n";
    env.file("late/log.py", log);
    let conf = |name: &str, bound: &str| {
        format!(
            "[conf.late.{name}]\nclass = \"bounded-loss\"\nbound = \"{bound}\"\n\
             command = \"touch late\"\ninverse = \"rm late\"\n"
        )
    };
    let recipe = format!(
        "name = \"late\"\nquestion.en = \"?\"\n\
         [load]\ncommand = \"true\"\noperations = 1\nunit = \"line\"\n\
         [check]\ncommand = \"true\"\n\
         [promise]\nabout = \"a\"\nacknowledged = \"b\"\n\
         load = \"exec python3 $REFIT_RECIPE/log.py\"\n\
         ack = \"fd:1\"\ncheck = \"log:log\"\nlength = \"2s\"\n\
         [conf.late]\nabout = \"when it syncs\"\n{}{}{}",
        conf("ordered", "newest-only"),
        conf("wide", "60s"),
        conf("wrong", "10ms"),
    );
    env.file("late/recipe.toml", &recipe);
    let names = ["conf.late=ordered", "conf.late=wide", "conf.late=wrong"];
    let words = [&[&*folder, "--yes", "--cuts", "40"], &names[..]].concat();
    let report = crash(env, 1, &words);
    for name in names {
        assert!(bad(mode(&report, name)) > 0, "{name} loses something");
    }
    let again = env.refit(&["report", "crash.json"]);
    let text = String::from_utf8_lossy(&again.stdout).replace("\n  ", " ");
    for (name, bound) in [("ordered", "newest-only"), ("wide", "60s")] {
        let kept = format!("bound: {bound} of conf.late={name}: kept in ");
        assert!(text.contains(&kept), "{kept:?} is not in {text}");
    }
    assert!(
        text.contains("bound: 10ms of conf.late=wrong: broken in "),
        "{text}"
    );
    assert_eq!(text.matches("BREAKS ITS BOUND").count(), 1, "{text}");
    Outcome::Pass
}

/// The recorded files belong to a number that the machine does not know, and the check sees the account's name for it.
fn its_accounts_are_none_of_the_machine(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    let real = env.run(&["id", "-u", "nobody"]);
    let real = String::from_utf8_lossy(&real.stdout).trim().to_owned();
    let folder = env.subdir("account");
    let log = "import os\n\
        log = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)\n\
        for n in range(10**9):\n\
        \x20   os.write(log, b'%d\\n' % n)\n\
        \x20   os.fsync(log)\n\
        \x20   os.write(1, b'%d\\n' % n)\n";
    env.file("account/log.py", log);
    let checked = env.path("checked");
    let recipe = format!(
        "name = \"account\"\nquestion.en = \"?\"\nservice.user = \"nobody\"\n\
         [load]\ncommand = \"true\"\noperations = 1\nunit = \"line\"\n\
         [check]\ncommand = \"true\"\n\
         [promise]\nabout = \"a\"\nacknowledged = \"b\"\n\
         load = \"exec python3 $REFIT_RECIPE/log.py\"\n\
         ack = \"fd:1\"\ncheck = \"test ! -e log || {{ stat -c '%u %U' log >>{checked}; cat log; }}\"\nlength = \"1s\"\n"
    );
    env.file("account/recipe.toml", &recipe);
    crash(env, 0, &[&folder, "--yes", "--cuts", "12"]);
    let text = fs::read_to_string(&checked).expect("it was written");
    let owners: BTreeSet<&str> = text.lines().collect();
    let [owner] = owners.iter().collect::<Vec<_>>()[..] else {
        panic!("{owners:?}");
    };
    let own = owner.strip_suffix(" nobody").expect("the account's name");
    assert!(
        own != real && (61_184..=65_519).contains(&own.parse::<u32>().expect("a number")),
        "{own}"
    );
    let after = env.run(&["id", "-u", "nobody"]);
    assert_eq!(String::from_utf8_lossy(&after.stdout).trim(), real);
    Outcome::Pass
}

fn what_cannot_be_cut_is_named_with_what_to_type(env: &TestEnv) -> Outcome {
    let cases: [(&[&str], &[&str]); 10] = [
        (&[], &["nothing to cut", "refit crash append-log"]),
        (
            &["fsync-loop"],
            &[
                "fsync-loop has no [promise]",
                "append-log",
                "docs/recipes.md",
            ],
        ),
        (
            &["no-such"],
            &["there is no recipe `no-such`", "append-log"],
        ),
        (&["append-log", "sync=of"], &["sync=of", "off"]),
        (
            &["append-log", "sync=off", "sync=off"],
            &["sync=off", "twice"],
        ),
        (
            &["sqlite-insert", "conf.journal=disk"],
            &["conf.journal=disk", "conf.journal=wal"],
        ),
        (
            &["--with", "conf.a=b", "append-log"],
            &["conf.a=b", "none at all"],
        ),
        (
            &["--check", "log:log", "append-log"],
            &["--check is for commands", "refit recipes copy append-log"],
        ),
        (
            &["append-log", "--", "true"],
            &["has its own program", "leave out `-- true`"],
        ),
        (
            &[
                "--check", "log:a", "--ack", "fd:1", "conf.a=b", "--", "true",
            ],
            &[
                "only recipes have such settings",
                "refit crash NAME conf.a=b",
            ],
        ),
    ];
    for (words, texts) in cases {
        expect_refused(env, &[&["crash"], words].concat(), texts);
    }
    Outcome::Pass
}

/// A recipe with a promise, in the test's directory.
const MINE: &str = "name = \"mine\"\nquestion.en = \"?\"\n\
    [load]\ncommand = \"true\"\noperations = 1\nunit = \"run\"\n\
    [check]\ncommand = \"true\"\n\
    [promise]\nabout = \"a\"\nacknowledged = \"b\"\nload = \"touch ran; echo 1\"\n\
    ack = \"fd:1\"\ncheck = \"log:l\"\nlength = \"1s\"\n";

/// Each command names itself where it says what to type as root.
fn what_needs_root_says_what_to_type(env: &TestEnv) -> Outcome {
    let file = format!("{}/recipe.toml", env.subdir("mine"));
    fs::write(file, format!("{MINE}[needs]\nroot = true\n")).expect("the directory is ours");
    let state = env.subdir("state");
    fs::set_permissions(&state, Permissions::from_mode(0o777)).expect("the directory is ours");
    let state = format!("XDG_STATE_HOME={state}");
    let refit = places::public(env, &refit_path());
    let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    let nobody = nobody.split(' ').filter(|_| env.as_root());
    let nobody: Vec<&str> = nobody.collect();
    for verb in ["crash", "compare", "recipes check"] {
        let verbs: Vec<&str> = verb.split(' ').collect();
        let words = [
            &nobody[..],
            &["env", &state, &refit],
            &verbs,
            &["./mine", "--yes"],
        ]
        .concat();
        let output = env.run(&words);
        expect_code(&output, 2);
        let typed = format!("sudo refit {verb} ./mine\n");
        let text = described(&output);
        assert!(text.contains(&typed), "{typed:?} is not in {text}");
    }
    Outcome::Pass
}

fn the_commands_of_an_own_folder_are_agreed_to(env: &TestEnv) -> Outcome {
    let folder = env.subdir("mine");
    fs::write(format!("{folder}/recipe.toml"), MINE).expect("the directory is ours");
    let texts = ["promise.load", "touch ran; echo 1", "--yes"];
    expect_refused(env, &["crash", "./mine"], &texts);
    Outcome::Pass
}
