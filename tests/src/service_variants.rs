//! Recipes that work: declared knobs, variants that cannot be tried, whom commands run as, loads without a server.

use std::fs;

use crate::compared::{effect, list, messages, number, printed, runs_of, variant};
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(a_declared_knob_acts_on_its_variant_alone_and_shows_its_class),
    test!(a_check_takes_each_edit_back),
    test!(what_this_refit_cannot_try_is_listed_and_the_rest_is_tried),
    test!(a_value_that_this_machine_lacks_is_skipped_with_its_reason),
    test!(as_root_every_command_runs_as_the_recipes_user),
    test!(a_recipe_without_a_server_measures_its_load),
];

fn a_declared_knob_acts_on_its_variant_alone_and_shows_its_class(env: &TestEnv) -> Outcome {
    let seen = env.path("seen");
    let folder = RecipeFolder::command(env, "conf")
        .text("service.setup", "echo \"dir = $REFIT_DIR/here\" >conf; echo last >>conf")
        .text(
            "load.command",
            &format!("seq 10 >numbers; echo $(sed s,$REFIT_DIR,D, conf) $(ls made) >>{seen}"),
        )
        .set(
            "conf.where.there",
            "{ class = 'bounded-loss', bound = '1s', file = 'conf', from = 'dir = $REFIT_DIR/here', to = 'dir = there' }",
        )
        .set(
            "conf.index.on",
            "{ class = 'safe', command = 'touch made', inverse = 'rm made' }",
        )
        .variants(&["conf.where=there", "conf.index=on"]);
    let (output, result) = folder.compare(&["--rounds", "14"]);
    expect_code(&output, 0);
    let text = fs::read_to_string(&seen).expect("each run wrote there");
    for run in list(&result["runs"]).iter().zip(text.lines()) {
        let (run, line) = run;
        let name = &result["variants"][number(&run["variant"]) as usize]["name"];
        let expected = match name.as_str() {
            Some("conf.where=there") => "dir = there last",
            Some("conf.index=on") => "dir = D/here last made",
            _ => "dir = D/here last",
        };
        assert_eq!(line, expected, "{name}");
    }
    let shown = printed(&output);
    for (name, class) in [
        ("conf.where=there", "bounded-loss"),
        ("conf.index=on", "safe"),
    ] {
        let (_, record) = variant(&result, name);
        assert_eq!(record["class"], class);
        // Below the table, or in it where that is broad enough.
        let is_shown = shown.contains(&format!("{class}: {name}"))
            || (shown.lines()).any(|line| line.starts_with(name) && line.ends_with(class));
        assert!(is_shown, "{shown}");
    }
    Outcome::Pass
}

fn a_check_takes_each_edit_back(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let folder = RecipeFolder::command(env, "back")
        .text("service.setup", "printf 'a\\nb' >conf")
        .set(
            "conf.a.c",
            "{ class = 'safe', file = 'conf', from = 'a', to = 'c' }",
        )
        .set(
            "conf.made.yes",
            &format!("{{ class = 'safe', command = 'echo made >>{log}', inverse = 'echo back >>{log}; exit $(cat {log}.code)' }}"),
        )
        .variants(&["conf.a=c", "conf.made=yes"]);
    env.file("log.code", "0");
    expect_code(&folder.check(), 0);
    assert_eq!(
        fs::read_to_string(&log).expect("it is there"),
        "made\nback\nmade\n"
    );
    // An inverse that fails is a failure.
    env.file("log.code", "7");
    let output = folder.check();
    expect_code(&output, 1);
    let failed = "FAILED  back: conf.made=yes: the inverse of conf.made=yes failed, exit status: 7";
    assert!(printed(&output).contains(failed), "{}", described(&output));
    Outcome::Pass
}

fn a_value_that_this_machine_lacks_is_skipped_with_its_reason(env: &TestEnv) -> Outcome {
    let asked = env.path("asked");
    let folder = RecipeFolder::command(env, "lacks")
        .text("service.setup", "echo a >conf")
        .set(
            "conf.a.c",
            &format!("{{ class = 'safe', needs = 'echo >>{asked}; echo \"3.3 has no c\" >&2; exit 1', file = 'conf', from = 'a', to = 'c' }}"),
        )
        .set(
            "conf.a.d",
            "{ class = 'safe', needs = 'true', file = 'conf', from = 'a', to = 'd' }",
        )
        .variants(&["conf.a=c", "conf.a=d"]);
    // Nobody agreed to its commands, which are shown.
    let word = folder.write();
    let shown = printed(&env.refit(&["recipes", "show", &word]));
    assert!(shown.contains("conf.a.c.needs"), "{shown}");
    assert!(fs::metadata(&asked).is_err(), "{shown}");
    let output = folder.check();
    expect_code(&output, 0);
    let text = printed(&output);
    let skipped = "skipped lacks: conf.a=c: 3.3 has no c";
    assert!(
        text.contains(skipped) && text.contains("ok      lacks: conf.a=d: "),
        "{}",
        described(&output)
    );
    assert!(fs::metadata(&asked).is_ok());
    Outcome::Pass
}

fn what_this_refit_cannot_try_is_listed_and_the_rest_is_tried(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::command(env, "later").variants(&[
        "future=8ms",
        "env.A=1",
        "malloc=/nowhere/lib.so",
    ]);
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    let settings: Vec<_> = list(&result["unavailable"])
        .iter()
        .map(|u| &u["settings"])
        .collect();
    assert_eq!(settings, ["future=8ms", "malloc=/nowhere/lib.so"]);
    let text = printed(&output);
    assert!(
        text.contains("unavailable: future=8ms: this refit has no setting `future`"),
        "{text}"
    );
    assert!(
        text.contains("unavailable: malloc=/nowhere/lib.so"),
        "{text}"
    );
    assert!(!effect(&result, "env.A=1", "rate")["verdict"].is_null());
    let output = folder.check();
    expect_code(&output, 0);
    let text = printed(&output);
    assert!(
        text.contains("skipped later: future=8ms: this refit has no setting"),
        "{text}"
    );
    // With nothing left to try there is nothing to compare; typed, it is a mistake.
    let text = folder.clone().variants(&["future=8ms"]).refused(&[]);
    assert!(
        text.contains("none of the recipe's variants can be tried here: future=8ms"),
        "{text}"
    );
    let dir = base(env);
    let args = ["compare", "--yes", "--dir", &dir, "./later", "future=8ms"];
    let output = finish(&mut refit(env, &args));
    expect_message(&output, 2, "future");
    Outcome::Pass
}

fn as_root_every_command_runs_as_the_recipes_user(env: &TestEnv) -> Outcome {
    let note = format!(
        "echo $(id -un) $(id -gn) $(stat -c %U . $REFIT_TMPFS) >>{}",
        env.file("who", "")
    );
    expect_code(&env.run(&["chmod", "666", "who"]), 0);
    let program = crate::places::public(env, &env.program("line_service"));
    let folder = RecipeFolder::service(env, "user")
        .text("service.user", "nobody")
        .text("service.setup", &note)
        .text(
            "service.start",
            &format!("{note}; exec {program} serve $REFIT_PORT_LINE lines"),
        )
        .text("load.warmup", &note)
        .text(
            "load.command",
            &format!("{note}; {program} load $REFIT_PORT_LINE 10"),
        )
        .text("load.drain", &note)
        .text("check.command", &format!("{note}; wc -l <lines"))
        .variants(&["sync=off"]);
    let output = folder.check();
    expect_code(&output, 0);
    folder.nothing_left();
    let who = fs::read_to_string(env.path("who")).expect("it is there");
    assert_eq!(who, "nobody nogroup nobody nobody\n".repeat(12));
    Outcome::Pass
}

fn a_recipe_without_a_server_measures_its_load(env: &TestEnv) -> Outcome {
    let program = env.program("write_fsync");
    let folder = RecipeFolder::command(env, "load")
        .text("load.command", &format!("{program} $REFIT_OPERATIONS file"))
        .text("load.warmup", &format!("{program} 5 other"))
        .text("check.command", "test -s file")
        .text("main", "syncs")
        .variants(&["sync=off"]);
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    for run in runs_of(&result, "baseline") {
        assert_eq!(run["totals"]["fsync"]["real"], 10, "{run}");
        assert_eq!(run["load"]["operations"], 10);
    }
    assert_eq!(result["main"], "syncs");
    assert_eq!(effect(&result, "sync=off", "syncs")["verdict"], "less");
    assert!(
        messages(&output).contains("runs these commands"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}
