//! Words and files that are wrong: each gets a sentence and 2, and nothing runs. What nobody agreed to does not run.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::compared::{messages, printed};
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::terminal::Terminal;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(an_unknown_key_is_named_with_its_line),
    test!(an_edit_whose_line_is_not_there_names_file_and_line),
    test!(a_load_is_set_and_named),
    test!(an_unknown_knob_names_those_there_are),
    test!(what_is_for_commands_is_refused_with_a_recipe),
    test!(what_nobody_agreed_to_is_shown_and_does_not_run),
    test!(a_person_at_a_terminal_is_asked),
];

fn an_unknown_key_is_named_with_its_line(env: &TestEnv) -> Outcome {
    for (key, value) in [
        ("service.strat", "'true'"),
        ("load.metrics.p99", "{ regx = '(a)', unit = 'ms' }"),
        ("speed", "1"),
        ("conf.a.b", "{ class = 'safe', comand = 'a' }"),
    ] {
        let folder = RecipeFolder::command(env, "keys").set(key, value);
        let mut lines = folder.toml();
        lines.truncate(lines.find(&format!("{key} = ")).expect("it is there"));
        let line = format!("line {},", lines.lines().count() + 1);
        let text = folder.refused(&[]);
        let wrong = ["strat", "regx", "speed", "comand"].into_iter();
        let wrong = wrong.filter(|word| format!("{key} {value}").contains(word));
        for part in wrong.chain([&*line, "./keys/recipe.toml", "unknown field"]) {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
    Outcome::Pass
}

fn an_edit_whose_line_is_not_there_names_file_and_line(env: &TestEnv) -> Outcome {
    let edit = "{ class = 'safe', file = 'etc/conf', from = 'dir = $REFIT_DIR', to = 'dir = /' }";
    let folder = RecipeFolder::command(env, "edit")
        .set("conf.dir.root", edit)
        .variants(&["conf.dir=root"]);
    for (setup, problem) in [
        ("mkdir etc; echo dir = >etc/conf", " 0 times"),
        (
            "mkdir etc; for i in 1 2; do echo dir = $REFIT_DIR; done >etc/conf",
            " 2 times",
        ),
        ("true", "No such file or directory"),
    ] {
        let folder = folder.clone().text("service.setup", setup);
        // On stderr, or below the table where the baseline was run first.
        let output = finish(&mut folder.comparison(&["--rounds", "12"]));
        expect_code(&output, 2);
        folder.nothing_left();
        let text = printed(&output) + &messages(&output);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [": conf.dir=root: ", "/etc/conf", problem] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        let line = format!("dir = {}/", base(env));
        assert!(text.contains(&line) == problem.contains("times"), "{text}");
        let output = folder.check();
        expect_message(&output, 2, problem);
        folder.nothing_left();
    }
    Outcome::Pass
}

/// Every command finds it, the answer and the result name it, and what the recipe does not have is refused.
fn a_load_is_set_and_named(env: &TestEnv) -> Outcome {
    let seen = env.path("seen");
    let note =
        |command: &str| format!("echo {command} $REFIT_LOAD_SESSIONS $REFIT_LOAD_MIX >>{seen}");
    let folder = RecipeFolder::command(env, "loaded")
        .set(
            "load.knobs.sessions",
            "{ about = 'clients at once', default = '3', unit = 'session' }",
        )
        .set(
            "load.knobs.mix",
            "{ about = 'what they ask for', default = 'reads', choices = ['reads', 'writes'] }",
        )
        .text(
            "load.command",
            &format!("{}; seq $REFIT_OPERATIONS >numbers", note("load")),
        )
        .text(
            "check.command",
            &format!("{}; wc -l <numbers", note("check")),
        );
    folder.write();
    let (dir, json) = (base(env), env.path("loaded.json"));
    let compare = [
        "compare", "--yes", "--dir", &dir, "--rounds", "2", "./loaded",
    ];
    for (words, values, told) in [
        (
            &["env.A=1"][..],
            "3 reads",
            "; measured at mix=reads, 3 sessions",
        ),
        (
            &["--with", "load.sessions=1+load.mix=writes", "env.A=1"],
            "1 writes",
            "; measured at mix=writes, 1 session",
        ),
    ] {
        let _ = fs::remove_file(&seen);
        let output = finish(&mut refit(
            env,
            &[&compare[..], &["--json", &json], words].concat(),
        ));
        expect_printed(&output, 0, told);
        let lines = fs::read_to_string(&seen).expect("the commands wrote it");
        for command in ["load", "check"] {
            let all = lines.lines().filter(|line| line.starts_with(command));
            let all: Vec<&str> = all.collect();
            let meant = format!("{command} {values}");
            assert!(
                !all.is_empty() && all.iter().all(|line| *line == meant),
                "{lines}"
            );
        }
        let result: Value =
            serde_json::from_str(&fs::read_to_string(&json).expect("it was asked for"))
                .expect("JSON");
        let load = result["recipe"]["load"].as_array().expect("a list");
        let found: Vec<_> = load.iter().map(|one| one["value"].as_str()).collect();
        let meant: Vec<_> = values.split(' ').rev().map(Some).collect();
        assert_eq!(found, meant);
    }
    // As a variant it is another load, and each run has its own.
    let _ = fs::remove_file(&seen);
    let output = finish(&mut refit(
        env,
        &[&compare[..], &["load.sessions=7"]].concat(),
    ));
    expect_printed(&output, 0, "changes-behaviour");
    let lines = fs::read_to_string(&seen).expect("the commands wrote it");
    for meant in ["load 3 reads\n", "load 7 reads\n"] {
        assert!(lines.contains(meant), "{lines}");
    }
    let known = "it has load.mix=reads|writes, load.sessions=NUMBER";
    for (word, text) in [
        ("load.sesions=1", known),
        (
            "load.sessions=0",
            "it is load.sessions=NUMBER, and 3 where nothing is set",
        ),
        (
            "load.mix=read",
            "it is load.mix=reads|writes, and reads where nothing is set",
        ),
        ("load.Sessions=1", "did you mean `load.sessions=1`?"),
    ] {
        for words in [&["--with", word, "env.A=1"][..], &[word]] {
            let output = finish(&mut refit(env, &[&compare[..], words].concat()));
            expect_message(&output, 2, text);
        }
    }
    let nobody = env.refit(&["run", "load.sessions=1", "--", "true"]);
    expect_message(&nobody, 125, "only a recipe has a load that can be set");
    folder.nothing_left();
    let wrong = RecipeFolder::command(env, "wrong-load").set(
        "load.knobs.sessions",
        "{ about = 'clients', default = 'many' }",
    );
    wrong.write();
    expect_message(&wrong.check(), 2, "load.knobs.sessions.default");
    Outcome::Pass
}

fn an_unknown_knob_names_those_there_are(env: &TestEnv) -> Outcome {
    let value = "{ class = 'safe', command = 'true', inverse = 'true' }";
    let folder = RecipeFolder::command(env, "knobs")
        .set("conf.queue.tmpfs", value)
        .set("conf.queue.disk", value)
        .set("conf.log.off", value);
    folder.write();
    let dir = base(env);
    for word in ["conf.quue=tmpfs", "conf.queue=ram", "sync=off+conf.log=on"] {
        for words in [&[word][..], &["--with", word, "env.A=1"]] {
            let args = ["compare", "--yes", "--dir", &dir, "./knobs"];
            let output = finish(&mut refit(env, &[&args, words].concat()));
            expect_code(&output, 2);
            let text = messages(&output);
            let all = "the recipe knobs declares no such setting\n  it has conf.log=off, conf.queue=disk|tmpfs";
            let named = text.contains(&format!("{}: {all}", word.trim_start_matches("sync=off+")));
            assert!(named, "{words:?}: {}", described(&output));
            folder.nothing_left();
        }
    }
    Outcome::Pass
}

fn what_is_for_commands_is_refused_with_a_recipe(env: &TestEnv) -> Outcome {
    let ran = env.path("ran");
    let folder = RecipeFolder::command(env, "mine").text("service.setup", &format!("touch {ran}"));
    folder.write();
    let refused = |words: &[&str], sentence: &str| {
        let output = finish(&mut refit(env, &[&["compare", "--yes"], words].concat()));
        expect_code(&output, 2);
        assert!(
            messages(&output).contains(sentence),
            "{words:?}: {}",
            described(&output)
        );
        assert!(!fs::exists(&ran).expect("the directory is ours"));
    };
    for option in [
        &["--prepare", "true"][..],
        &["--conclude", "true"],
        &["--fresh-copy", "mine"],
        &["--timeout", "3s"],
        &["--check", "true"],
        &["--same-output"],
        &["--shell"],
    ] {
        let sentence = format!(
            "refit: {} is for commands: a recipe defines this itself",
            option[0]
        );
        refused(&[option, &["./mine", "sync=off"]].concat(), &sentence);
    }
    let leave_out = "a recipe has its own load; leave out `-- true`";
    refused(&["./mine", "--", "true"], leave_out);
    refused(&["./mine", "sync=off", "--", "true"], leave_out);
    refused(&["./mine", "sync=off", "sync=off"], "name it once");
    refused(&["./mine", "--dir", "nowhere"], "--dir nowhere");
    refused(&["./mine", "--gate", "p99<+2%"], "p99");
    refused(&["sync=off", "./mine"], "./mine");
    // And the other way round.
    let command = ["--", "touch", &ran];
    let crash = ["crash", "--check", "log:a", "--ack", "fd:1"];
    for (verb, option) in [
        (&["compare", "env.A=1"][..], &["--yes"][..]),
        (&["compare", "env.A=1"], &["--dir", "."]),
        (&["tune"], &["--yes"]),
        (&["tune"], &["--dir", "."]),
        (&crash, &["--yes"]),
    ] {
        let output = finish(&mut refit(env, &[verb, option, &command].concat()));
        expect_code(&output, 2);
        let sentence = format!("refit: {} is for recipes, and this is a command", option[0]);
        assert!(
            messages(&output).contains(&sentence),
            "{}",
            described(&output)
        );
        assert!(!fs::exists(&ran).expect("the directory is ours"));
    }
    Outcome::Pass
}

fn what_nobody_agreed_to_is_shown_and_does_not_run(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let (dir, note) = (base(env), format!("echo >>{log}"));
    let folder = RecipeFolder::command(env, "mine").text("service.setup", &note);
    folder.write();
    let compare = |more: &[&str]| {
        let args = ["compare", "--rounds", "12", "--dir", &dir, "./mine"];
        finish(&mut refit(env, &[&args, more].concat()))
    };
    let runs = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let commands = ["seq $REFIT_OPERATIONS >numbers", "wc -l <numbers"];
    let mut expected = 0;
    for change in ["", "# a remark\n"] {
        let toml = format!("{change}{}", folder.toml());
        fs::write(env.path("mine/recipe.toml"), toml).expect("it is ours");
        let output = compare(&[]);
        expect_code(&output, 2);
        let text = messages(&output);
        for part in commands.iter().chain([&&*note, &"then agree: --yes\n"]) {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert_eq!(runs(), expected);
        // Agreed to, it is shown once more; then it is known.
        for (more, shown) in [(&["--yes"][..], true), (&[], false), (&["--yes"], false)] {
            let output = compare(more);
            expect_code(&output, 0);
            expected += 42;
            assert_eq!(
                (runs(), messages(&output).contains(&note)),
                (expected, shown)
            );
        }
    }
    folder.nothing_left();
    // What is different since is named: another text, another mode, a new file, a name that moves the cursor.
    env.file("mine/load.sh", "");
    env.file("mine/old", "");
    expect_code(&compare(&["--yes"]), 0);
    env.file("mine/load.sh", "\n");
    env.file("mine/a\u{1b}[2Kb", "");
    fs::remove_file(env.path("mine/old")).expect("it is ours");
    let recipe = fs::Permissions::from_mode(0o755);
    fs::set_permissions(env.path("mine/recipe.toml"), recipe).expect("it is ours");
    let output = compare(&[]);
    expect_code(&output, 2);
    let changes = "refit: changed since you agreed to it:\n  a\\x1b[2Kb (new)\n  load.sh (changed)\n  \
        old (removed)\n  recipe.toml (changed)\n";
    assert!(messages(&output).contains(changes), "{}", messages(&output));
    Outcome::Pass
}

fn a_person_at_a_terminal_is_asked(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::command(env, "asked");
    let (name, dir) = (folder.write(), base(env));
    let args = ["recipes", "check", &name, "--dir", &dir];
    for (answer, code, shown) in [
        ("\n", 2, "refit: not agreed; nothing was run"),
        ("no\n", 2, "refit: not agreed; nothing was run"),
        ("y\n", 0, "ok      asked: baseline: 10"),
    ] {
        let mut terminal = Terminal::start(refit(env, &args));
        terminal.wait_for("refit: run them? [y/N] ");
        terminal.type_in(answer);
        let (status, text) = terminal.finish();
        assert_eq!(status.code(), Some(code), "{text}");
        assert!(
            text.contains(shown) && text.contains("wc -l <numbers"),
            "{text}"
        );
        assert_eq!(text.contains("ok "), code == 0, "{text}");
    }
    let output = finish(&mut refit(env, &args));
    expect_code(&output, 0);
    assert_eq!(
        printed(&output).lines().count(),
        2,
        "{}",
        described(&output)
    );
    Outcome::Pass
}
