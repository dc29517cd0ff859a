//! `refit recipes`: list, show and copy, of shipped recipes and of folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::compared::{messages, printed};
use crate::recipe_folder::finish;
use crate::recipes::{SHIPPED, check, folder, recipe, require, text};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_refused};

pub const TESTS: &[Test] = &[
    test!(a_list_names_each_and_what_is_missing),
    test!(what_is_shown_is_all_that_runs),
    test!(question_and_answer_are_in_the_language_of_the_locale),
    test!(a_folder_is_shown_like_a_shipped_recipe),
    test!(an_unknown_name_names_those_there_are),
    test!(a_copy_is_the_folder),
    test!(a_copy_runs_unasked_until_it_is_changed),
];

fn a_list_names_each_and_what_is_missing(env: &TestEnv) -> Outcome {
    let output = env.refit(&["recipes"]);
    expect_code(&output, 0);
    assert_eq!(printed(&output), printed(&env.refit(&["recipes", "list"])));
    for name in SHIPPED {
        let question = text(&recipe(name)["question"]["en"]).to_owned();
        let mut lines = printed(&output)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter();
        let line = lines.find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| line.ends_with(&question)), "{name}");
        let remedy = lines.next().filter(|line| line.starts_with(' '));
        if recipe(name)["needs"]["root"] == true && !env.as_root() {
            let remedy = remedy.expect("nobody is not root");
            assert!(remedy.contains("cannot run here; "), "{remedy}");
        }
    }
    // No compiler on this PATH.
    let mut poor = env.refit_command(&["recipes"]);
    let output = finish(poor.env("PATH", env.subdir("empty")));
    expect_code(&output, 0);
    let shown = printed(&output);
    let mut lines = shown
        .lines()
        .skip_while(|line| !line.starts_with("fsync-loop "));
    assert_eq!(
        lines.nth(1).map(str::trim),
        Some(
            "cannot run here; install it: apt install gcc libc6-dev (not looked up: apt-cache does not run here)"
        )
    );
    let mut poor = env.refit_command(&["recipes", "check", "fsync-loop"]);
    let output = finish(poor.env("PATH", env.path("empty")));
    expect_message(&output, 2, "the recipe fsync-loop needs gcc\n");
    Outcome::Pass
}

/// Every command of a recipe.toml, wherever it stands.
fn commands(recipe: &Value) -> Vec<String> {
    const PLACES: [&str; 9] = [
        "/service/setup",
        "/service/start",
        "/service/ready/command",
        "/service/stop",
        "/load/warmup",
        "/load/command",
        "/load/drain",
        "/check/command",
        "/table/command",
    ];
    let mut all: Vec<&Value> = PLACES
        .iter()
        .filter_map(|place| recipe.pointer(place))
        .collect();
    let knobs = recipe["conf"].as_object().into_iter().flatten();
    for value in knobs.filter_map(|(_, knob)| knob.as_object()).flatten() {
        all.extend(
            ["command", "inverse"]
                .iter()
                .filter_map(|key| value.1.get(key)),
        );
    }
    all.into_iter()
        .map(|command| text(command).to_owned())
        .collect()
}

#[track_caller]
fn expect_shown(output: &Output, recipe: &Value) {
    expect_code(output, 0);
    let shown = printed(output);
    let (head, tail) = shown
        .split_once("\ncommands\n")
        .expect("they have a heading");
    // A line of a script is not a command.
    let tail = tail.split("\nfile ").next().unwrap_or_default();
    let lines: Vec<&str> = tail.lines().map(str::trim).collect();
    for command in commands(recipe) {
        for line in command.lines().map(str::trim) {
            assert!(lines.contains(&line), "`{line}` is missing in {shown}");
        }
    }
    assert!(head.contains(text(&recipe["question"]["en"])), "{shown}");
    // A recipe of three minutes needs not say so.
    let budget = match recipe["budget"]
        .as_str()
        .unwrap_or("3m")
        .split_at_checked(1)
    {
        Some((minutes, "m")) => format!("budget of a comparison: {minutes} min 0 s"),
        _ => "budget of a comparison: ".to_owned(),
    };
    assert!(head.contains(&budget), "{budget}: {shown}");
    for variant in recipe["variant"].as_array().into_iter().flatten() {
        for key in ["settings", "why"] {
            assert!(head.contains(text(&variant[key])), "{variant}: {shown}");
        }
    }
}

fn question_and_answer_are_in_the_language_of_the_locale(env: &TestEnv) -> Outcome {
    let (question, answer) = (
        &recipe("sqlite-insert")["question"],
        &recipe("sqlite-insert")["answer"],
    );
    for (locale, language) in [
        (&[("LANG", "ja_JP.UTF-8")][..], "ja"),
        (&[("LANG", "ja_JP.UTF-8"), ("LC_ALL", "")], "ja"),
        (&[("LANG", "C"), ("LC_MESSAGES", "ja_JP.UTF-8")], "ja"),
        (&[("LANG", "ja_JP.UTF-8"), ("LC_ALL", "C.UTF-8")], "en"),
        (&[("LANG", "de_DE.UTF-8")], "en"),
        (&[], "en"),
    ] {
        for (words, text) in [
            (&["recipes"][..], question),
            (&["recipes", "show", "sqlite-insert"], question),
            (&["recipes", "show", "sqlite-insert"], answer),
        ] {
            let mut command = env.refit_command(words);
            for name in ["LC_ALL", "LC_MESSAGES", "LANG"] {
                command.env_remove(name);
            }
            let output = finish(command.envs(locale.iter().copied()));
            expect_code(&output, 0);
            let expected = text[language].as_str().expect("both languages");
            assert!(printed(&output).contains(expected), "{locale:?} {words:?}");
        }
    }
    Outcome::Pass
}

fn what_is_shown_is_all_that_runs(env: &TestEnv) -> Outcome {
    for name in SHIPPED {
        let output = env.refit(&["recipes", "show", name]);
        expect_shown(&output, &recipe(name));
        let shown = printed(&output);
        for entry in fs::read_dir(folder(name)).expect("shipped") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|ending| ending == "sh") {
                let script = fs::read_to_string(&path).expect("text");
                let line = script
                    .lines()
                    .next_back()
                    .expect("a line")
                    .replace('\t', "    ");
                assert!(
                    shown.contains(&line),
                    "{line} of {}: {shown}",
                    path.display()
                );
            }
        }
    }
    Outcome::Pass
}

fn a_folder_is_shown_like_a_shipped_recipe(env: &TestEnv) -> Outcome {
    env.subdir("mine");
    let file = r#"
name = "mine"
question.en = "a line\nand \u001b[31mcolour"
variant = [{ settings = "conf.a.b=c", why = "none such" }, { settings = "conf.a=b", why = "the first" }]
[service]
setup = "first\n  second"
[load]
command = "go \u001b[2J"
operations = 1
unit = "go"
[check]
command = "look"
[conf.a.b]
class = "bounded-loss"
bound = "600ms"
command = "there"
inverse = "and back"
"#;
    env.file("mine/recipe.toml", file);
    let output = env.refit(&["recipes", "show", "./mine"]);
    expect_code(&output, 0);
    let shown = printed(&output);
    // Somebody's text moves no cursor.
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    for line in [
        "first",
        "second",
        "look",
        "there",
        "and back",
        "conf.a=b   (bounded-loss: 600ms)",
    ] {
        assert!(
            shown.lines().any(|shown| shown.trim() == line),
            "{line}: {shown}"
        );
    }
    assert!(shown.contains("not available here: "), "{shown}");
    env.file("mine/script.sh", "echo \u{1b}[2J\n");
    let shown = printed(&env.refit(&["recipes", "show", "./mine"]));
    assert!(
        shown.contains("file script.sh\n  echo \\u{1b}[2J\n"),
        "{shown}"
    );
    for (from, to, words) in [
        ("bounded-loss", "safe", "`bound` is for the class"),
        ("bound = \"600ms\"\n", "", "declares its `bound`"),
    ] {
        env.file("mine/recipe.toml", &file.replace(from, to));
        expect_refused(env, &["recipes", "show", "./mine"], &["conf.a.b", words]);
    }
    let missing = env.refit(&["recipes", "show", "./none"]);
    expect_message(&missing, 2, "./none");
    env.subdir("empty");
    let empty = env.refit(&["recipes", "show", "./empty"]);
    expect_message(&empty, 2, "./empty holds no recipe.toml\n");
    Outcome::Pass
}

fn an_unknown_name_names_those_there_are(env: &TestEnv) -> Outcome {
    env.subdir("mine");
    env.file("mine/recipe.toml", "");
    for args in [
        &["recipes", "show", "none"][..],
        &["recipes", "copy", "none"],
        &["recipes", "check", "none"],
        &["compare", "none"],
    ] {
        let output = env.refit(args);
        expect_code(&output, 2);
        let messages = messages(&output);
        assert!(
            messages.contains("there is no recipe `none`\n"),
            "{messages}"
        );
        assert!(messages.contains(&SHIPPED.join(", ")), "{messages}");
    }
    assert!(!Path::new(&env.path("none")).exists());
    let near = messages(&env.refit(&["recipes", "show", "mine"]));
    assert!(near.contains("did you mean the folder `./mine`?"), "{near}");
    Outcome::Pass
}

/// All files below a directory: path, content, and whether it is executable.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>, bool)> {
    use std::os::unix::fs::PermissionsExt;
    let mut all = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let mode = fs::metadata(&path)
                .expect("it is there")
                .permissions()
                .mode();
            let content = fs::read(&path).expect("it can be read");
            let below = path.strip_prefix(dir).expect("it is below").to_owned();
            all.push((below, content, mode & 0o111 != 0));
        }
    }
    all.sort();
    all
}

fn a_copy_is_the_folder(env: &TestEnv) -> Outcome {
    for name in SHIPPED {
        let output = env.refit(&["recipes", "copy", name]);
        expect_code(&output, 0);
        assert!(
            printed(&output).contains(&format!("refit compare ./{name}\n")),
            "{}",
            described(&output)
        );
        let mut original = files(&folder(name));
        original.retain(|(path, ..)| !path.ends_with("picture.svg"));
        let copy = files(Path::new(&env.path(name)));
        let names = |files: &[(PathBuf, Vec<u8>, bool)]| -> Vec<PathBuf> {
            files.iter().map(|(path, ..)| path.clone()).collect()
        };
        assert_eq!(names(&copy), names(&original));
        assert!(copy == original, "{name}: other bytes, or modes");
    }
    let elsewhere = env.path("own-copy");
    expect_code(
        &env.refit(&["recipes", "copy", "fsync-loop", &elsewhere]),
        0,
    );
    let before = files(Path::new(&elsewhere));
    env.file("file", "mine");
    for there in ["own-copy", "file"] {
        let output = env.refit(&["recipes", "copy", "sqlite-insert", there]);
        expect_code(&output, 2);
        let messages = messages(&output);
        assert!(
            messages.contains(&format!("{there} is there already")),
            "{messages}"
        );
    }
    assert!(files(Path::new(&elsewhere)) == before);
    let output = env.refit(&["recipes", "copy", "./own-copy"]);
    expect_message(&output, 2, "cp -r");
    Outcome::Pass
}

fn a_copy_runs_unasked_until_it_is_changed(env: &TestEnv) -> Outcome {
    expect_code(&env.refit(&["recipes", "copy", "fsync-loop", "copy"]), 0);
    let output = check(env, "./copy", &[]);
    require(env, "fsync-loop", &output);
    expect_code(&output, 0);
    assert!(messages(&output).is_empty(), "{}", described(&output));
    // What a command runs is as much as the command.
    let script = env.path("copy/setup.sh");
    let before = fs::read_to_string(&script).expect("it was copied");
    env.file(
        "copy/setup.sh",
        &format!("touch {}\n{before}", env.path("ran")),
    );
    let output = check(env, "./copy", &[]);
    expect_code(&output, 2);
    for command in commands(&recipe("fsync-loop")) {
        assert!(
            messages(&output).contains(&command),
            "{}",
            described(&output)
        );
    }
    assert!(
        messages(&output).contains("--yes"),
        "{}",
        described(&output)
    );
    assert!(!Path::new(&env.path("ran")).exists());
    expect_code(&check(env, "./copy", &["--yes"]), 0);
    assert!(Path::new(&env.path("ran")).exists());
    // Agreed to once, it runs until the next change.
    let output = check(env, "./copy", &[]);
    expect_code(&output, 0);
    assert!(messages(&output).is_empty(), "{}", described(&output));
    fs::write(&script, before + "\n").expect("the test's directory is ours");
    expect_code(&check(env, "./copy", &[]), 2);
    Outcome::Pass
}
