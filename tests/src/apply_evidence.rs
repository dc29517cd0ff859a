//! `refit plan --from RESULT` and `apply --from RESULT`: what was measured is what is applied.

use std::fs;

use serde_json::{Value, json};

use crate::apply::{listing, tree, words};
use crate::crash::require_lab;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};
use crate::{apply_postfix, apply_postgresql};

pub const TESTS: &[Test] = &[
    test!(the_winner_is_applied_to_what_its_recipe_stands_for).limit_seconds(120),
    test!(a_result_without_a_winner_changes_nothing).limit_seconds(120),
    test!(a_risk_is_accepted_by_gain_and_loss).limit_seconds(600),
];

/// A recipe whose load prints a cost, the same on a busy machine, which is half with HALF; its folder.
pub fn costs(env: &TestEnv) -> String {
    let folder = env.subdir("costs");
    let recipe = r#"
name = "costs"
question.en = "What does it cost?"
applies-to = "a"
main = "cost"
[needs]
commands = ["sh"]
[load]
command = 'test -n "$HALF" && echo cost=1 || echo cost=2'
operations = 1
unit = "start"
[load.metrics.cost]
regex = "cost=([0-9])"
unit = "ms"
[check]
command = "true"
[[variant]]
settings = "env.HALF=1"
why = "half of it"
[[variant]]
settings = "env.OTHER=1"
why = "nothing"
"#;
    fs::write(format!("{folder}/recipe.toml"), recipe).expect("the folder is ours");
    folder
}

fn measured(env: &TestEnv) -> Value {
    let folder = costs(env);
    let words = ["compare", &folder, "env.HALF=1", "env.OTHER=1", "--yes"];
    let more = [
        "--rounds",
        "12",
        "--remeasure",
        "--json",
        "r.json",
        "--quiet",
    ];
    expect_code(&env.refit(&[&words[..], &more].concat()), 0);
    let text = fs::read_to_string(env.path("r.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

/// A copy of a result in which something differs; its path.
fn edited(env: &TestEnv, result: &Value, name: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut result = result.clone();
    edit(&mut result);
    fs::write(env.path(name), result.to_string()).expect("the directory is ours");
    env.path(name)
}

fn the_winner_is_applied_to_what_its_recipe_stands_for(env: &TestEnv) -> Outcome {
    env.require_command("dpkg-query");
    let root = tree(env, "tree");
    let result = measured(env);
    let mut asks = env.command("dpkg-query");
    let shell = asks.args(["-W", "-f", "${Version}", "dash"]).output();
    let version = String::from_utf8(shell.expect("it runs").stdout).expect("text");
    assert_eq!(result["recipe"]["packages"], json!({ "dash": version }));
    let planned = env.refit(&words("plan", &root, &["--from", "r.json"]));
    assert!(!String::from_utf8_lossy(&planned.stdout).contains("not as then"));
    expect_printed(&planned, 0, "+Environment=\"HALF=1\"\n");
    for text in [
        "a.service (systemd unit)",
        "when measured again (noise floor",
    ] {
        expect_printed(&planned, 0, text);
    }
    let apply = words("apply", &root, &["--from", "r.json", "--yes"]);
    expect_code(&env.refit(&apply), 0);
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 0, &env.path("r.json"));
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    // Measured with another refit on another kernel, or on one that is not known.
    let other = edited(env, &result, "other.json", |result| {
        result["refit"] = json!("0.0.0-x");
        result["environment"]["fixed"]["kernel"] = json!("1.2.3-x");
        let fixed = &mut result["environment"]["fixed"];
        fixed.as_object_mut().expect("some").remove("cpu");
    });
    let apply = words("apply", &root, &["--from", &other, "--yes"]);
    expect_code(&env.refit(&apply), 0);
    let status = words("status", &root, &[]);
    let status = String::from_utf8_lossy(&env.refit(&status).stdout).into_owned();
    for text in ["1.2.3-x", "0.0.0-x"] {
        assert!(status.contains(text), "{status}");
    }
    assert!(!status.contains("cpu:"), "{status}");
    let json = env.refit(&words("status", &root, &["--json", "-"]));
    expect_printed(&json, 0, "refit: measured with 0.0.0-x, here is ");
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);

    // Its runs show fewer syncs than the baseline's: nobody declared that.
    let syncs = |result: &mut Value| {
        let variants = result["variants"].as_array().expect("a list").clone();
        for run in result["runs"].as_array_mut().expect("a list") {
            let index = run["variant"].as_u64().expect("a number") as usize;
            let real = if variants[index]["name"] == "env.HALF=1" {
                1
            } else {
                3
            };
            run["totals"]["fsync"] =
                json!({ "seen": real, "suppressed": 0, "real": real, "waited_ns": 1 });
        }
    };
    let fewer = edited(env, &result, "fewer.json", |result| {
        syncs(result);
        syncs(&mut result["confirmation"]);
    });
    let planned = env.refit(&words("plan", &root, &["--from", &fewer]));
    expect_printed(&planned, 2, "fewer durable calls than at the baseline");
    let apply = words("apply", &root, &["--from", &fewer, "--yes"]);
    expect_message(&env.refit(&apply), 2, "loses-on-crash");
    let reported = env.refit(&["report", &fewer]);
    expect_printed(
        &reported,
        0,
        "Only if losing data at a power cut is acceptable: ",
    );

    // A setting that the service names otherwise.
    let other = edited(env, &result, "applied.json", |result| {
        result["recipe"]["applied"] = json!({"env.HALF=1": "env.DOUBLE=2"});
    });
    let other = env.refit(&words("plan", &root, &["--from", &other]));
    expect_printed(&other, 0, "+Environment=\"DOUBLE=2\"\n");
    // Another service by name.
    let other = env.refit(&words("plan", &root, &["--from", "r.json", "b"]));
    expect_printed(&other, 0, "b.service (systemd unit)");
    // What is measured of one daemon is a change of that daemon.
    let mail = apply_postfix::tree(env, "mail");
    let of_daemon = edited(env, &result, "daemon.json", |result| {
        result["recipe"]["applies_to"] = json!("postfix");
        result["recipe"]["applied"] = json!({"env.HALF=1": "sync@exe:cleanup=off"});
    });
    let planned = env.refit(&words("plan", &mail, &["--from", &of_daemon]));
    for text in [
        "postfix/cleanup (Postfix daemon)",
        "sync=off (loses-on-crash)",
        "when measured again",
    ] {
        expect_printed(&planned, 2, text);
    }
    expect_message(
        &planned,
        2,
        "refit apply --from RESULT --accept loses-on-crash",
    );
    Outcome::Pass
}

fn a_result_without_a_winner_changes_nothing(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let result = measured(env);
    let of_nothing = edited(env, &result, "nothing.json", |result| {
        result["recipe"]["applies_to"] = Value::Null;
    });
    let of_command = edited(env, &result, "command.json", |result| {
        result["recipe"] = Value::Null;
    });
    let refuted = edited(env, &result, "refuted.json", |result| {
        for effect in result["confirmation"]["effects"]
            .as_array_mut()
            .expect("some")
        {
            effect["gain"] = json!(false);
            effect["verdict"] = json!("inconclusive");
        }
    });
    let nobody = edited(env, &result, "nobody.json", |result| {
        for effect in result["effects"].as_array_mut().expect("some") {
            effect["gain"] = json!(false);
        }
    });
    let watch = ["watch", "--json", "watch.json", "--", "sleep", "1"];
    expect_code(&env.refit(&watch), 0);
    for (file, named) in [
        (&*of_nothing, "the recipe costs, which names no service"),
        (&of_command, "plan --from"),
        (&refuted, "measured again it is inconclusive"),
        (&nobody, "no variant in"),
        ("watch.json", "is not a comparison"),
        ("none.json", "cannot read none.json"),
    ] {
        for verb in ["plan", "apply"] {
            expect_message(&env.refit(&words(verb, &root, &["--from", file])), 2, named);
        }
    }
    let both = words("plan", &root, &["--from", "r.json", "a", "tz=UTC"]);
    expect_message(&env.refit(&both), 2, "cannot be used with");
    expect_code(&env.refit(&words("plan", &root, &[])), 2);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// A log whose syncs a setting takes away, measured, measured again and cut. What is measured is a number that it prints:
/// the same on a busy machine.
fn proven(env: &TestEnv) -> Value {
    let folder = env.path("append");
    expect_code(&env.refit(&["recipes", "copy", "append-log", &folder]), 0);
    let replace = |file: &str, pairs: &[(&str, &str)]| {
        let file = format!("{folder}/{file}");
        let mut text = fs::read_to_string(&file).expect("copied");
        for (old, new) in pairs {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        fs::write(&file, text).expect("writable");
    };
    let sync = (
        "    os.fsync(log)",
        "    os.path.exists('unsynced') or os.fsync(log)",
    );
    let cost = (
        "        time.sleep(0.002)",
        "        time.sleep(0.002)\nif count:\n    print('cost=1' if os.path.exists('unsynced') else 'cost=2')",
    );
    replace("append.py", &[sync, cost]);
    let conf = "[conf.fsync]\nabout = \"whether it syncs\"\n[conf.fsync.off]\nclass = \"loses-on-crash\"\n\
                command = \"touch unsynced\"\ninverse = \"rm unsynced\"\n\n[[variant]]";
    replace(
        "recipe.toml",
        &[
            (
                "name = \"append-log\"",
                "name = \"append\"\napplies-to = \"postgresql\"",
            ),
            ("operations = 2000", "operations = 400"),
            ("budget = \"3m\"", "budget = \"3m\"\nmain = \"cost\""),
            (
                "[check]",
                "[load.metrics.cost]\nregex = \"cost=([0-9])\"\nunit = \"ms\"\n\n[check]",
            ),
            ("length = \"8s\"", "length = \"1s\""),
            ("[[variant]]", conf),
            ("settings = \"sync=off\"", "settings = \"conf.fsync=off\""),
        ],
    );
    let words = [
        "compare",
        &folder,
        "conf.fsync=off",
        "--yes",
        "--prove",
        "--cuts",
        "12",
    ];
    let more = [
        "--rounds",
        "12",
        "--remeasure",
        "--json",
        "p.json",
        "--quiet",
    ];
    expect_code(&env.refit(&[&words[..], &more].concat()), 0);
    let text = fs::read_to_string(env.path("p.json")).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

fn a_risk_is_accepted_by_gain_and_loss(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    let root = apply_postgresql::tree(env, "tree");
    // The server's package here.
    let dpkg = format!("{root}/var/lib/dpkg");
    fs::create_dir_all(format!("{dpkg}/info")).expect("the tree is ours");
    let list = "/usr/lib/postgresql/15/bin/postgres\n";
    fs::write(format!("{dpkg}/info/postgresql-15.list"), list).expect("the tree is ours");
    let entry = "Package: postgresql-15\nStatus: install ok installed\nVersion: 15.2-1\n\n";
    fs::write(format!("{dpkg}/status"), entry).expect("the tree is ours");
    let before = listing(&root);
    let mut result = proven(env);
    result["recipe"]["packages"] = json!({ "postgresql-15": "15.2-1", "python3": "3" });
    fs::write(env.path("p.json"), result.to_string()).expect("the directory is ours");
    let accept = "--accept=loses-on-crash";
    let apply = words("apply", &root, &["--yes", "--from", "p.json"]);
    expect_message(&env.refit(&apply), 2, "`conf.fsync=off` is loses-on-crash");
    let uncut = edited(env, &result, "uncut.json", |result| {
        result["proof"] = Value::Null;
    });
    let not_again = edited(env, &result, "once.json", |result| {
        result["confirmation"] = Value::Null;
    });
    let invalid = edited(env, &result, "invalid.json", |result| {
        result["proof"]["cut"]["invalid"] = json!("the control lost nothing");
    });
    let lossless = edited(env, &result, "lossless.json", |result| {
        for state in result["proof"]["cut"]["modes"][2]["states"]
            .as_array_mut()
            .expect("some")
        {
            state["loss"]["lost"] = json!(0);
            state["loss"]["damaged"] = json!(0);
            state["loss"]["is_hole"] = json!(false);
            state["broken"] = Value::Null;
        }
    });
    let elsewhere = edited(env, &result, "elsewhere.json", |result| {
        result["environment"]["fixed"]["kernel"] = json!("1.2.3-x");
    });
    let older = edited(env, &result, "older.json", |result| {
        result["refit"] = json!("0.0.0-x");
    });
    let other = edited(env, &result, "other.json", |result| {
        result["recipe"]["packages"]["postgresql-15"] = json!("15.1-1");
    });
    let major = edited(env, &result, "major.json", |result| {
        let packages = result["recipe"]["packages"].as_object_mut();
        let packages = packages.expect("some");
        packages.remove("postgresql-15");
        packages.insert("postgresql-14".to_owned(), json!("14.9-1"));
    });
    let noisy = edited(env, &result, "noisy.json", |result| {
        let effects = result["confirmation"]["effects"].as_array_mut();
        let unjudged = effects.expect("some").iter_mut();
        for effect in unjudged.filter(|effect| effect["verdict"].is_null()) {
            effect["interval"] = json!([-0.9, 99.0]);
            effect["early"] = json!(false);
        }
    });
    for (file, named) in [
        (&uncut, "no power was cut (--prove)"),
        (&not_again, "the gain was not measured again (--remeasure)"),
        (&invalid, "the control lost nothing"),
        (&lossless, "no cut took anything"),
        (
            &elsewhere,
            "measured elsewhere: kernel: measured with 1.2.3-x, here is ",
        ),
        (&older, "refit: measured with 0.0.0-x, here is "),
        (
            &other,
            "another version: postgresql-15: measured with 15.1-1, here is 15.2-1",
        ),
        (
            &major,
            "another version: postgresql-15: measured with postgresql-14 14.9-1, here is 15.2-1",
        ),
        (&noisy, "does not clear the noise floor"),
    ] {
        let apply = words("apply", &root, &["--yes", "--from", file, accept]);
        expect_message(&env.refit(&apply), 2, named);
        assert_eq!(listing(&root), before, "{named}");
    }
    let apply = [&apply[..], &[accept]].concat();
    expect_code(&env.refit(&apply), 0);
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    for text in [
        "accepted       loses-on-crash\n",
        "loss           l",
        "gain           ",
    ] {
        expect_printed(&status, 0, text);
    }
    expect_code(&env.refit(&words("revert", &root, &["postgresql"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}
