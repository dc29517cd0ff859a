//! Names, recipes and files of others: what they hold is shown, and steers nothing; what they
//! point at is not written.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::Output;

use crate::compare_files::forms;
use crate::compared::{messages, printed};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(an_executable_s_name_steers_no_terminal),
    test!(a_typed_word_forges_no_line),
    test!(a_recipe_hides_none_of_its_commands),
    test!(a_recipe_s_words_forge_no_remedy),
    test!(what_a_check_prints_forges_no_result),
    test!(a_stored_name_is_shown_in_every_format),
    test!(a_text_of_any_length_is_cut_and_that_is_told),
    test!(a_watched_command_of_any_length_is_cut_and_that_is_told),
    test!(a_stored_kind_forges_no_remedy),
    test!(a_link_of_another_user_is_not_followed),
    test!(a_link_of_ones_own_is_followed_and_a_mode_is_kept),
];

/// Clears the screen, turns the direction, adds a line.
const NAME: &str = "a\u{1b}[2J\u{202e}\u{9b}1mb\nrefit: forged";
const SHOWN: &str = r"a\u{1b}[2J\u{202e}\u{9b}1mb\nrefit: forged";

/// A line as refit's that name what to type next.
const REMEDY: &str = "a\u{1b}[2J\u{202e}\n  forged remedy";

fn expect_harmless(output: &Output) {
    for text in [printed(output), messages(output)] {
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}' || c == '\u{200b}';
        assert!(!text.contains(hidden), "{text:?}");
        let forged = text.lines().find(|line| {
            ["refit: forged", "ok      forged", "  forged remedy"]
                .iter()
                .any(|begin| line.starts_with(begin))
        });
        assert_eq!(forged, None, "{text:?}");
    }
}

/// A program of that name that syncs its argument.
fn evil(env: &TestEnv) -> String {
    let path = env.dir().join(NAME);
    fs::copy("/bin/sync", &path).expect("/bin/sync can be copied");
    path.to_str().expect("a path in UTF-8").to_owned()
}

fn an_executable_s_name_steers_no_terminal(env: &TestEnv) -> Outcome {
    let (evil, file) = (evil(env), env.file("file", "x"));
    let script = "\"$1\" \"$2\"; sync \"$2\"";
    let words = ["--", "sh", "-c", script, "sh", &evil, &file];
    for settings in [&[][..], &["sync=off"], &["malloc=glibc"]] {
        let output = env.refit(&[&["run"], settings, &words].concat());
        expect_harmless(&output);
        assert!(messages(&output).contains(SHOWN), "{}", messages(&output));
        // The kernel's name for it and refit's are the same.
        assert!(
            !messages(&output).contains("did not count"),
            "{}",
            messages(&output)
        );
    }
    let output = env.refit(&["doctor", &evil]);
    expect_harmless(&output);
    assert!(printed(&output).contains(SHOWN), "{}", printed(&output));
    Outcome::Pass
}

fn a_typed_word_forges_no_line(env: &TestEnv) -> Outcome {
    typed(env, NAME);
    typed(env, REMEDY);
    Outcome::Pass
}

fn typed(env: &TestEnv, word: &str) {
    let setting = |name: &str| format!("{name}={word}");
    let (option, recipe, sync) = (format!("--{word}"), format!("./{word}"), setting("sync"));
    let two = format!("{sync}+malloc=jemalloc");
    let [malloc, zone, program, preload, disk, conf] =
        ["malloc", "tz", "program", "preload", "disk", "conf.a"].map(setting);
    let file = format!("{}/{word}/x.json", env.dir().display());
    for words in [
        &["run", word, "--", "true"][..],
        &["run", &sync, "--", "true"],
        &["run", &two, "--", "true"],
        &["run", &malloc, "--", "true"],
        &["run", &zone, "--", "true"],
        &["run", &program, "--", "true"],
        &["run", &preload, "--", "true"],
        &["run", &disk, "--", "true"],
        &["run", &conf, "--", "true"],
        &["run", "--input", &file, "--", "true"],
        &["run", &option, "--", "true"],
        &["run", "--json", &file, "--", "true"],
        &["run", "--", &file],
        &["compare", word],
        &["compare", "sync=off", "--gate", word, "--", "true"],
        &["compare", &conf, "--", "true"],
        &["compare", &program, "--", "true"],
        &["compare", "--fresh-copy", &file, "env.A=1", "--", "true"],
        &["compare", "env.A=1", "--", &file],
        &["compare", &recipe],
        &["compare", "append-log", &conf],
        &["crash", &recipe],
        &["crash", "append-log", "--record", &file],
        &["crash", "open", &file],
        &["recipes", "show", word],
        &["recipes", "check", word],
        &["recipes", "copy", word],
        &["report", &file],
        &["report", "--history", &file],
        &["doctor", word],
        &["doctor", "--probe-disk", word],
        &["demo", word],
    ] {
        let output = env.refit(words);
        // Who is not root is told that first.
        if words.contains(&"--record") && !env.as_root() {
            expect_code(&output, 2);
            continue;
        }
        assert!(!output.status.success(), "{words:?}");
        expect_harmless(&output);
        assert!(
            messages(&output).contains(r"a\u{1b}[2J\u{202e}"),
            "{words:?}: {}",
            messages(&output)
        );
    }
}

const RECIPE: &str = r#"
name = "mine"
question.en = "harmless\nrefit: forged"
variant = [{ settings = "env.A=1", why = "\u001b[8mwhy\u001b[0m\nrefit: forged" }]
[load]
command = "true # \u202e\u001b[2K\r echo nothing to see \u200b"
operations = 1
unit = "go\u001b[2J"
[check]
command = "printf 'look\\033[2J\\nok      forged: yes\\n'; exit 1"
"#;

/// The recipe in `./mine`, of this test alone: nobody agreed to it before.
fn recipe(env: &TestEnv) {
    env.subdir("mine");
    env.file(
        "mine/recipe.toml",
        &RECIPE.replace("harmless", &env.path("")),
    );
}

fn a_recipe_hides_none_of_its_commands(env: &TestEnv) -> Outcome {
    recipe(env);
    let command = r"true # \u{202e}\u{1b}[2K\r echo nothing to see \u{200b}";
    let output = env.refit(&["recipes", "show", "./mine"]);
    expect_code(&output, 0);
    expect_harmless(&output);
    assert!(printed(&output).contains(command), "{}", printed(&output));
    // The same before a person is asked; nobody is there.
    let output = env.refit(&["compare", "./mine"]);
    expect_code(&output, 2);
    expect_harmless(&output);
    assert!(messages(&output).contains(command), "{}", messages(&output));
    Outcome::Pass
}

/// In each place of the file in turn that a message may repeat.
fn a_recipe_s_words_forge_no_remedy(env: &TestEnv) -> Outcome {
    env.subdir("mine");
    let whole =
        "name = \"mine\"\nquestion.en = \"why\"\n[load]\ncommand = \"true\"\noperations = 1\n";
    let text = toml_text(REMEDY);
    let parts = [
        format!("name = {text}"),
        format!("packages = [{text}]\n[needs]\ncommands = [\"no-such-command\"]"),
        format!("[needs]\ncommands = [{text}]"),
        format!("[needs]\nfiles = [{text}]"),
        format!("main = {text}"),
        format!("budget = {text}"),
        format!("[conf.{text}]\nfile = \"a\"\nline = \"b\""),
        format!("[service]\nstart = \"true\"\nuser = {text}\nready = {{ log = \"x\" }}"),
        format!("[service]\nstart = \"true\"\nready = {{ tcp = {text} }}"),
        format!(
            "[service]\nstart = \"true\"\nready = {{ log = {} }}",
            toml_text(&format!("({REMEDY}"))
        ),
        format!("[service]\nstart = \"true\"\nports = [{text}]"),
        format!("[load.metrics.{text}]\nregex = \"(\""),
        format!("[[variant]]\nsettings = {text}"),
        format!("{text} = 1"),
    ];
    let mut repeated = 0;
    for part in parts {
        let key = part.split(' ').next().expect("a part has a word");
        let rest: String = whole
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} =")))
            .map(|line| format!("{line}\n"))
            .collect();
        // Keys of the top come before the first table.
        let file = if part.starts_with('[') {
            format!("{rest}{part}\n")
        } else {
            format!("{part}\n{rest}")
        };
        let file = env.file("mine/recipe.toml", &file);
        for words in [
            &["recipes", "show", "./mine"][..],
            &["compare", "./mine", "conf.b=1", "--yes"],
            &["compare", "./mine", "env.A=1", "--yes"],
            &["crash", "./mine", "--yes"],
        ] {
            let output = env.refit(words);
            expect_harmless(&output);
            repeated += usize::from(messages(&output).contains("forged remedy"));
        }
        fs::remove_file(file).expect("it is there");
    }
    assert!(repeated >= 8, "{repeated} messages repeat it");
    Outcome::Pass
}

/// A basic string (TOML 1.0).
fn toml_text(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    format!("\"{escaped}\"")
}

fn what_a_check_prints_forges_no_result(env: &TestEnv) -> Outcome {
    recipe(env);
    let output = env.refit(&["recipes", "check", "./mine", "--yes"]);
    expect_code(&output, 1);
    expect_harmless(&output);
    assert!(
        printed(&output).contains("FAILED  mine"),
        "{}",
        printed(&output)
    );
    assert!(
        printed(&output).contains(r"look\u{1b}[2J"),
        "{}",
        printed(&output)
    );
    Outcome::Pass
}

fn a_stored_name_is_shown_in_every_format(env: &TestEnv) -> Outcome {
    let stored = env.path("stored.json");
    let words = [
        "compare", "env.A=1", "--rounds", "6", "--json", &stored, "--quiet", "--", "true",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    let text = fs::read_to_string(&stored).expect("the result is stored");
    let forged = serde_json::to_string(&format!("=cmd{NAME}")).expect("a string");
    fs::write(
        &stored,
        text.replace("\"name\":\"env.A=1\"", &format!("\"name\":{forged}")),
    )
    .expect("it can be changed");
    expect_harmless(&env.refit(&["report", &stored]));
    for format in ["--csv", "--md", "--html", "--svg"] {
        let drawn = env.path("drawn");
        expect_code(&env.refit(&["report", &stored, format, &drawn]), 0);
        let drawn = fs::read_to_string(drawn).expect("it was drawn");
        assert!(drawn.contains("[2J"), "{format}: {drawn}");
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!drawn.contains(hidden), "{format}");
        assert!(
            !drawn.lines().any(|line| line.starts_with(['='])),
            "{format}"
        );
    }
    Outcome::Pass
}

/// Ten million characters in each place made a table of 60 MB, and a page that took more than a minute.
fn a_text_of_any_length_is_cut_and_that_is_told(env: &TestEnv) -> Outcome {
    let stored = env.path("stored.json");
    let words = [
        "compare", "env.A=1", "--rounds", "6", "--json", &stored, "--quiet", "--", "true",
    ];
    expect_code(&env.refit(&words), 0);
    let text = fs::read_to_string(&stored).expect("the result is stored");
    let mut result: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let long = "<\u{1b}[2J\u{202e}\0 a ".repeat(2_000);
    let endless = "x".repeat(10_000_000);
    let variants = result["variants"].as_array_mut().expect("a list");
    let candidate = variants.iter_mut().find(|one| one["name"] == "env.A=1");
    candidate.expect("it was compared")["name"] = long.clone().into();
    result["command"] = vec!["true".to_owned(), long.clone()].into();
    result["environment"]["fixed"]["cpu"] = long.clone().into();
    result["environment"]["fixed"][&long] = "1".into();
    result["warnings"] = serde_json::json!([{ "text": endless, "action": long }]);
    fs::write(&stored, result.to_string()).expect("it can be changed");
    let expect_short = |form: &str, drawn: &str| {
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!drawn.contains(hidden), "{form}");
        assert!(drawn.len() < 2_000_000, "{form}: {} bytes", drawn.len());
        let told = drawn.replace("<wbr/>", "").contains("characters left out");
        // A picture and a row of numbers have room for a name only.
        assert!(told || drawn.contains('…'), "{form}");
    };
    let output = env.refit(&["report", &stored]);
    expect_code(&output, 0);
    expect_short("terminal", &printed(&output));
    let output = env.refit(&["report", "--history", "."]);
    expect_code(&output, 0);
    expect_short("history", &printed(&output));
    // JSON keeps a text whole.
    for form in forms(env).iter().filter(|form| *form != "--json") {
        let output = env.refit(&["report", &stored, form, "-"]);
        expect_code(&output, 0);
        expect_short(form, &printed(&output));
    }
    Outcome::Pass
}

/// In what a watch draws itself, and in its metrics.
fn a_watched_command_of_any_length_is_cut_and_that_is_told(env: &TestEnv) -> Outcome {
    let names = ["page.html", "chart.svg", "series.json", "metrics.prom"];
    let files = names.map(|name| env.path(name));
    let [page, chart, stored, metrics] = &files;
    let word = "<\u{1b}[2J\u{202e} a ".repeat(7_000);
    let mut words = vec![
        "watch",
        "--interval",
        "100ms",
        "--html",
        page,
        "--svg",
        chart,
    ];
    words.extend(["--json", stored, "--openmetrics", metrics]);
    words.extend(["--", "sh", "-c", "sleep 1", &word]);
    words.extend([word.as_str(); 8]);
    let output = env.refit(&words);
    expect_code(&output, 0);
    expect_harmless(&output);
    assert!(
        messages(&output).len() < 100_000,
        "{}",
        messages(&output).len()
    );
    let [page, chart, stored, metrics] =
        files.map(|file| fs::read_to_string(file).expect("it was written"));
    let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for (form, drawn) in [("page", &page), ("chart", &chart), ("metrics", &metrics)] {
        assert!(!drawn.contains(hidden), "{form}");
        assert!(drawn.len() < 1_000_000, "{form}: {} bytes", drawn.len());
    }
    assert!(page.replace("<wbr/>", "").contains("characters left out"));
    assert!(metrics.ends_with("# EOF\n"));
    // What is stored is whole.
    assert!(stored.len() > 9 * word.len(), "{} bytes", stored.len());
    Outcome::Pass
}

fn a_stored_kind_forges_no_remedy(env: &TestEnv) -> Outcome {
    let kind = serde_json::to_string(REMEDY).expect("a string");
    for stored in [
        format!("{{\"schema\":1,\"kind\":{kind}}}"),
        format!("{{\"schema\":1,\"kind\":\"compare\",{kind}:{kind}}}"),
        format!("{{\"schema\":1,\"kind\":\"crash\",\"modes\":{kind}}}"),
    ] {
        let output = env.refit(&["report", &env.file("stored.json", &stored)]);
        expect_code(&output, 2);
        expect_harmless(&output);
    }
    Outcome::Pass
}

fn a_link_of_another_user_is_not_followed(env: &TestEnv) -> Outcome {
    env.require_root();
    let shared = env.subdir("shared");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("a mode can be set");
    let victim = env.file("victim", "kept");
    let planted = env.path("shared/out");
    symlink(&victim, &planted).expect("a link can be made");
    lchown(&planted, Some(65534), Some(65534)).expect("root may give it away");
    for words in [
        &["run", "--json", &planted, "--", "true"][..],
        &["run", "--trace-sync", &planted, "--", "true"],
        &[
            "compare", "env.A=1", "--rounds", "6", "--html", &planted, "--", "true",
        ],
        &[
            "compare", "env.A=1", "--rounds", "6", "--json", &planted, "--", "true",
        ],
    ] {
        let output = env.refit(words);
        expect_code(&output, if words[0] == "run" { 125 } else { 2 });
        assert!(
            messages(&output).contains("belongs to another user"),
            "{}",
            messages(&output)
        );
        assert_eq!(fs::read_to_string(&victim).expect("it is there"), "kept");
    }
    // A file of theirs is not written into either.
    fs::remove_file(&planted).expect("it is there");
    fs::write(&planted, "theirs").expect("a file can be made");
    lchown(&planted, Some(65534), Some(65534)).expect("root may give it away");
    let output = env.refit(&["run", "--trace-sync", &planted, "--", "true"]);
    expect_code(&output, 125);
    assert_eq!(fs::read_to_string(&planted).expect("it is there"), "theirs");
    Outcome::Pass
}

fn a_link_of_ones_own_is_followed_and_a_mode_is_kept(env: &TestEnv) -> Outcome {
    let file = env.file("file", "old");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode can be set");
    let link = env.path("link");
    symlink(&file, &link).expect("a link can be made");
    expect_code(&env.refit(&["run", "--json", &link, "--", "true"]), 0);
    assert!(Path::new(&link).is_symlink());
    expect_code(&env.refit(&["run", "--json", &file, "--", "true"]), 0);
    let mode = fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let names = fs::read_dir(env.dir()).expect("a directory").flatten();
    let left = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(".refit-"));
    assert_eq!(left.count(), 0);
    Outcome::Pass
}
