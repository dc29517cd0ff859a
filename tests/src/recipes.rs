//! The recipes that refit carries: each works here, would notice lost work, and is written up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::compared::{list, messages, printed};
use crate::intruder;
use crate::locations::source_dir;
use crate::recipe_folder::{finish, refit};
use crate::remains::{base, nothing_left};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(the_table_is_the_directory),
    test!(each_is_written_up),
    test!(setup_installs_what_they_need),
];

/// One test for each name: tests are a table that is fixed when they are compiled.
macro_rules! shipped {
    ($($name:literal)*) => {
        pub const SHIPPED: &[&str] = &[$($name),*];
        pub const EACH: &[Test] = &[$(
            Test::new(concat!(module_path!(), "::", $name, "_works"), |env| works(env, $name)).limit_seconds(300),
            Test::new(
                concat!(module_path!(), "::", $name, "_misses_lost_operations"),
                |env| misses_lost_operations(env, $name),
            ).limit_seconds(120),
        )*];
    };
}

shipped! {
    "append-log"
    "dpkg-unpack"
    "fsync-loop"
    "index-loop"
    "index-loop-postgres"
    "index-loop-sqlite"
    "leap-second"
    "lmdb-commits"
    "mariadb-commits"
    "mruby-fragments"
    "mruby-handler"
    "mruby-leak"
    "postfix-cleanup"
    "postfix-tables"
    "postgres-pgbench"
    "puma-threads"
    "redis-aof"
    "redis-defrag"
    "rsyslog-lease"
    "rsyslog-sync"
    "ruby-forks"
    "ruby-mjit"
    "ruby-threads"
    "scattered-code"
    "sqlite-insert"
    "store-and-forward"
}

pub fn folder(name: &str) -> PathBuf {
    source_dir().join("recipes").join(name)
}

/// recipe.toml of a shipped recipe.
pub fn recipe(name: &str) -> Value {
    let path = folder(name).join("recipe.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is not text"))
}

pub fn check(env: &TestEnv, name: &str, more: &[&str]) -> Output {
    let base = base(env);
    let args = [&["recipes", "check", "--dir", &base, name], more].concat();
    finish(&mut refit(env, &args))
}

/// Skips the test where the recipe cannot run: something is not installed, or it needs root.
pub fn require(env: &TestEnv, name: &str, output: &Output) {
    let messages = messages(output);
    let lacks = ["apt install", "none can be made here: "];
    let names = |line: &&str| lacks.iter().any(|words| line.contains(words));
    if let Some(remedy) = messages.lines().find(names) {
        env.skip(&format!("{name}: {}", remedy.trim()));
    }
}

/// Why a shipped variant may be skipped: a later refit has it, or another version of a program or library.
const NOT_HERE: [&str; 3] = [
    "this refit has no setting `",
    "the installed mimalloc has no option `",
    "Ruby ",
];

/// Those whose servers listen on a socket in the instance's directory.
const WITH_SOCKETS: [&str; 7] = [
    "index-loop",
    "index-loop-postgres",
    "mariadb-commits",
    "postgres-pgbench",
    "redis-aof",
    "redis-defrag",
    "rsyslog-sync",
];

fn works(env: &TestEnv, name: &str) -> Outcome {
    let recipe = recipe(name);
    let output = match env.as_root() {
        false => check(env, name, &[]),
        true => {
            let work = || check(env, name, &[]);
            let (output, found) = intruder::beside(Path::new(&base(env)), work);
            let is_open =
                |way: &&String| recipe["needs"]["network"] == true && way.starts_with("port ");
            let entered: Vec<_> = found.entered.iter().filter(|way| !is_open(way)).collect();
            assert!(entered.is_empty(), "another user entered {entered:?}");
            let sockets = found
                .tried
                .iter()
                .filter(|path| path.ends_with("socket") || path.contains(".s.PGSQL"));
            println!(
                "counted: {} sockets and {} ways in all were closed to another user",
                sockets.clone().count(),
                found.tried.len()
            );
            let has_socket = WITH_SOCKETS.contains(&name) && output.status.success();
            assert!(
                !has_socket || sockets.count() > 0,
                "no socket was seen: {:?}",
                found.tried
            );
            let ports = recipe["service"]["ports"].as_array();
            let ports = ports.filter(|_| output.status.success());
            for port in ports.into_iter().flatten() {
                let tried = found.tried.iter().filter(|way| way.starts_with("port "));
                assert!(tried.count() > 0, "{port} was not tried: {:?}", found.tried);
            }
            output
        }
    };
    require(env, name, &output);
    if recipe["needs"]["root"] == true && !env.as_root() {
        expect_message(&output, 2, "needs root");
        return Outcome::Pass;
    }
    let brief = brief(&recipe);
    let shown = printed(&output);
    let lines: Vec<&str> = shown.lines().collect();
    let none = Vec::new();
    let variants = recipe["variant"].as_array().unwrap_or(&none).iter();
    let variants: Vec<&str> = variants.map(|variant| text(&variant["settings"])).collect();
    assert!(!variants.is_empty(), "{name} has nothing to try");
    assert_eq!(lines.len(), 1 + variants.len(), "{}", described(&output));
    let mut worked = 0;
    for variant in ["baseline"].iter().chain(&variants) {
        let skipped = format!("skipped {name}: {variant}: ");
        if let Some(reason) = lines.iter().find_map(|line| line.strip_prefix(&skipped)) {
            // Something is not installed.
            if reason.contains(": no lib") || reason.starts_with("MJIT needs ") {
                env.skip(reason);
            }
            assert!(
                NOT_HERE.iter().any(|start| reason.starts_with(start)),
                "{variant}: {reason}"
            );
            continue;
        }
        let ok = format!("ok      {name}: {variant}: ");
        let outcome = lines.iter().find_map(|line| line.strip_prefix(&ok));
        let outcome = outcome.unwrap_or_else(|| panic!("{variant}: {}", described(&output)));
        assert!(
            promises(outcome, brief),
            "{variant}: {outcome}, not {brief}"
        );
        worked += 1;
    }
    assert!(worked > 1, "only the baseline: {}", described(&output));
    expect_code(&output, 0);
    nothing_left(env, name);
    Outcome::Pass
}

/// How many operations a check makes.
#[track_caller]
fn brief(recipe: &Value) -> u64 {
    let load = &recipe["load"];
    let brief = load["brief"].as_u64().or(load["operations"].as_u64());
    let brief = brief.expect("each shipped recipe says how much it does");
    assert!(brief > 1);
    brief
}

/// The outcome, without the seconds after it, has the number as a word.
fn promises(outcome: &str, number: u64) -> bool {
    let (outcome, _) = outcome.rsplit_once(" (").expect("it ends with the seconds");
    let words = outcome.split(|c: char| !c.is_ascii_alphanumeric());
    words.into_iter().any(|word| word == number.to_string())
}

/// Fewer operations are made than the check expects.
fn misses_lost_operations(env: &TestEnv, name: &str) -> Outcome {
    let original = recipe(name);
    if original["needs"]["root"] == true {
        env.require_root();
    }
    // As many as there are clients, who share the others evenly.
    let lost = 4.min(brief(&original) / 2);
    let fewer =
        format!("REFIT_OPERATIONS=$((REFIT_OPERATIONS - {lost})); export REFIT_OPERATIONS; ");
    let mut changed = original.clone();
    changed.as_object_mut().expect("a table").remove("variant");
    for key in ["/service/setup", "/service/start", "/load/command"] {
        if let Some(command) = changed.pointer_mut(key) {
            *command = Value::from(fewer.clone() + text(command));
        }
    }
    expect_code(&env.refit(&["recipes", "copy", name, "fewer"]), 0);
    let file = toml::to_string(&changed).expect("it was TOML");
    fs::write(env.path("fewer/recipe.toml"), file).expect("the test's directory is ours");
    let output = check(env, "./fewer", &["--yes"]);
    require(env, name, &output);
    let shown = printed(&output);
    let prefix = format!("ok      {name}: baseline: ");
    match shown.trim_end().strip_prefix(&prefix) {
        Some(outcome) => assert!(!promises(outcome, brief(&original)), "{outcome}"),
        None => {
            expect_code(&output, 1);
            assert!(
                shown.contains(": check.command failed"),
                "{}",
                described(&output)
            );
        }
    }
    Outcome::Pass
}

fn the_table_is_the_directory(env: &TestEnv) -> Outcome {
    let entries = fs::read_dir(source_dir().join("recipes")).expect("recipes/ is there");
    let mut there: Vec<String> = entries
        .map(|entry| entry.expect("it can be read"))
        .filter(|entry| entry.path().join("recipe.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    there.sort();
    assert_eq!(there, SHIPPED);
    let listed = printed(&env.refit(&["recipes", "list"]));
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let names = listed.filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, SHIPPED, "this binary carries others");
    Outcome::Pass
}

fn is_japanese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3041}'..='\u{30ff}'))
}

fn each_is_written_up(_: &TestEnv) -> Outcome {
    let mut wrong = Vec::new();
    for name in SHIPPED {
        let recipe = recipe(name);
        let readme = fs::read_to_string(folder(name).join("README.md"));
        let readme = readme.unwrap_or_else(|error| {
            wrong.push(format!("{name}: README.md: {error}"));
            String::new()
        });
        let mut expect = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{name}: {what}"));
            }
        };
        let [question, answer] = ["question", "answer"].map(|key| &recipe[key]);
        let asked = readme
            .split("\n\n")
            .find(|part| part.starts_with("**Question.** "));
        expect(
            asked.is_some_and(|part| part.contains('?')),
            "README.md asks no question",
        );
        expect(
            is_japanese(question["ja"].as_str().unwrap_or_default()),
            "question.ja",
        );
        expect(
            answer["en"].as_str().is_some_and(|text| text.len() > 20),
            "answer.en",
        );
        expect(
            is_japanese(answer["ja"].as_str().unwrap_or_default()),
            "answer.ja",
        );
        let all = recipe.to_string() + &readme;
        for mark in ["TO BE MEASURED", "TBD", "TODO"] {
            expect(!all.contains(mark), mark);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Outcome::Pass
}

/// The words in the tables of scripts/setup: each on a line of its own, after it what is as good.
fn setup_installs_what_they_need(_: &TestEnv) -> Outcome {
    let path = source_dir().join("scripts/setup");
    let script = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut known = Vec::new();
    let mut in_table = false;
    for line in script.lines() {
        match line.trim() {
            "cat <<'END'" => in_table = true,
            "END" => in_table = false,
            row if in_table => known.extend(row.split(' ').next()),
            _ => (),
        }
    }
    assert!(known.contains(&"postfix"), "{known:?}");
    let mut missing = Vec::new();
    for name in SHIPPED {
        let recipe = recipe(name);
        let packages = list(&recipe["packages"]).iter().map(text);
        let unknown = packages.filter(|package| !known.contains(package));
        missing.extend(unknown.map(|package| format!("{package} ({name})")));
    }
    assert!(
        missing.is_empty(),
        "scripts/setup lacks {}",
        missing.join(", ")
    );
    Outcome::Pass
}
