//! recipe.toml: the schema and refit agree on what one is.

use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::locations::source_dir;
use crate::recipes::SHIPPED;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(every_shipped_recipe_is_valid),
    test!(what_both_accept),
    test!(what_both_refuse),
    test!(what_only_the_code_refuses),
];

/// A recipe with places for more: `# top`, `# load`, `# end`.
const SMALL: &str = r#"
name = "small"
question.en = "?"
# top
[load]
command = "true"
operations = 1
unit = "run"
# load
[check]
command = "true"
# end
"#;

/// What replaces what in [`SMALL`].
type Edit = (&'static str, &'static str);

const ACCEPTED: &[Edit] = &[
    ("# end", ""),
    (
        "# top",
        "question.ja = '？'\nanswer.en = '!'\npackages = ['a']\nmain = 'wall'",
    ),
    ("# top", "budget = '90s'"),
    ("# top", "budget = '1.5 h'"),
    ("# top", "budget = ' 500ms '"),
    ("# top", "budget = '2min'"),
    ("# top", "budget = '30'"),
    ("# top", "budget = '.5m'"),
    ("# top", "budget = '+3.e2s'"),
    ("# top", "[note]\ntitle = 't'\nthen = 'x'"),
    (
        "# top",
        "[needs]\nroot = true\ncommands = ['a']\nfiles = ['/etc/*']",
    ),
    (
        "# load",
        "brief = 1\nwarmup = 'true'\ndrain = 'true'\ntimeout = '1s'",
    ),
    ("operations = 1", "operations = { regex = '(.)' }"),
    ("# load", "[load.metrics.p99]\nregex = '(.)'\nunit = 'ms'"),
    (
        "# load",
        "[load.metrics.a]\npointer = '/a/0'\nunit = 'KiB'\nbetter = 'more'\nabout = 'x'",
    ),
    (
        "# end",
        "[service]\nsetup = 'true'\nuser = 'nobody'\nports = ['a_1']",
    ),
    (
        "# end",
        "[service]\nports = ['a']\nstart = 'x'\nready = { tcp = 'a' }\nstop = 'y'",
    ),
    ("# end", "[table]\ncommand = 'true'\nonly = true"),
    (
        "# end",
        "[service]\nkeep = true\nstart = 'x'\nready = { unix = 's' }\n[conf.a.b]\nclass = 'safe'\ncommand = 'a'\ninverse = 'b'",
    ),
    (
        "# end",
        "[service]\nstart = 'x'\nready = { unix = 's' }\nready-timeout = '1s'\nstop-timeout = '1s'",
    ),
    (
        "# end",
        "[service]\nstart = 'x'\nready = { log = '.', file = 'f' }",
    ),
    ("# end", "[service]\nstart = 'x'\nready = { log = '.' }"),
    (
        "# end",
        "[service]\nstart = 'x'\nready = { command = 'true' }",
    ),
    (
        "# end",
        "[conf.a]\nabout = 'x'\n[conf.a.b]\nclass = 'safe'\nfile = 'd/..f'\nto = \"x\\ny\"",
    ),
    (
        "# end",
        "[conf.a.b]\nclass = 'bounded-loss'\nbound = '600ms'\nfile = 'f'\nfrom = 'x'\nto = 'y'",
    ),
    (
        "# end",
        "[conf.a.b]\nclass = 'changes-behaviour'\ncommand = 'x'\ninverse = 'y'",
    ),
    (
        "# end",
        "[[variant]]\nsettings = 'knob-of-a-later-refit=1'\nwhy = 'x'",
    ),
];

const REFUSED: &[Edit] = &[
    (
        "# end",
        "[conf.a.b]\nclass = 'bounded-loss'\nfile = 'f'\nfrom = 'x'\nto = 'y'",
    ),
    (
        "# end",
        "[conf.a.b]\nclass = 'safe'\nbound = '1s'\nfile = 'f'\nfrom = 'x'\nto = 'y'",
    ),
    ("# end", "[table]"),
    ("# end", "[table]\ncommand = 'true'\nonly = 'yes'"),
    ("# end", "[service]\nkeep = true"),
    (
        "# end",
        "[service]\nkeep = 'yes'\nstart = 'x'\nready = { unix = 's' }",
    ),
    // What has to be there.
    ("name = \"small\"", ""),
    ("question.en = \"?\"", ""),
    ("question.en", "question.ja"),
    ("command = \"true\"\noperations", "operations"),
    ("operations = 1", ""),
    ("unit = \"run\"", ""),
    ("[check]\ncommand = \"true\"", ""),
    ("[check]\ncommand = \"true\"", "[check]"),
    ("# top", "[note]\ntitle = 't'"),
    ("# end", "[[variant]]\nsettings = 'sync=off'"),
    ("# load", "[load.metrics.a]\nregex = '(.)'"),
    ("# end", "[conf.a.b]\nfile = 'f'\nto = 'x'"),
    // What nobody knows.
    ("# top", "nmae = 'x'"),
    ("# top", "question.de = '?'"),
    ("# top", "answer = { en = 'x', de = 'x' }"),
    ("# top", "[note]\ntitle = 't'\nthen = 'x'\nnow = 'x'"),
    ("# top", "[needs]\ncomands = []"),
    ("# load", "opertions = 2"),
    (
        "operations = 1",
        "operations = { regex = '(.)', rgex = 'x' }",
    ),
    (
        "# load",
        "[load.metrics.a]\nregex = '(.)'\nunit = 's'\nx = 1",
    ),
    ("# end", "expect = 'x'"),
    ("# end", "[service]\nready_timeout = '1s'"),
    ("# end", "[service]\nstart = 'x'\nready = { udp = 'a' }"),
    ("# end", "[conf.a.b]\nclass = 'safe'\nfiel = 'f'\nto = 'x'"),
    (
        "# end",
        "[[variant]]\nsettings = 'sync=off'\nwhy = 'x'\nwho = 'x'",
    ),
    // What is of another type, or has another form.
    ("question.en = \"?\"", "question = \"?\""),
    ("name = \"small\"", "name = \"Small\""),
    ("name = \"small\"", "name = \"\""),
    ("# top", "packages = 'a'"),
    ("# top", "[needs]\nroot = 'yes'"),
    ("# top", "[needs]\nfiles = ['etc/x']"),
    ("# top", "budget = 'soon'"),
    ("# top", "budget = '0s'"),
    ("# top", "budget = '0.00e5h'"),
    ("# top", "budget = '-1s'"),
    ("# top", "budget = 's'"),
    ("# top", "budget = 90"),
    ("operations = 1", "operations = 0"),
    ("operations = 1", "operations = -1"),
    ("operations = 1", "operations = 1.5"),
    ("operations = 1", "operations = '1'"),
    ("operations = 1", "operations = {}"),
    ("# load", "brief = 0"),
    ("# load", "timeout = 'long'"),
    ("# load", "[load.metrics.a]\nregex = '(.)'\nunit = 'mm'"),
    (
        "# load",
        "[load.metrics.a]\nregex = '(.)'\nunit = 's'\nbetter = 'lower'",
    ),
    ("# load", "[load.metrics.a]\npointer = 'a'\nunit = 's'"),
    ("# load", "[load.metrics.pss]\nregex = '(.)'\nunit = 'KiB'"),
    ("# end", "[service]\nports = ['A']"),
    ("# end", "[service]\nports = ['']"),
    (
        "# end",
        "[service]\nstart = 'x'\nready = { unix = 's' }\nready-timeout = 'soon'",
    ),
    (
        "# end",
        "[conf.a.b]\nclass = 'harmless'\nfile = 'f'\nto = 'x'",
    ),
    ("# end", "[conf.a.b]\nclass = 'safe'\nfile = '/f'\nto = 'x'"),
    (
        "# end",
        "[conf.a.b]\nclass = 'safe'\nfile = 'd/../../f'\nto = 'x'",
    ),
    ("# end", "[conf.a.b]\nclass = 'safe'\nfile = 'f'\nto = ''"),
    (
        "# end",
        "[conf.a.b]\nclass = 'safe'\nfile = 'f'\nfrom = ''\nto = 'x'",
    ),
    ("# end", "[conf.a]\nb = 'x'"),
    ("# end", "[conf]\na = 'x'"),
    // What contradicts something else.
    (
        "operations = 1",
        "operations = { regex = '(.)' }\nbrief = 1",
    ),
    ("# load", "[load.metrics.a]\nunit = 's'"),
    (
        "# load",
        "[load.metrics.a]\nregex = '(.)'\npointer = '/a'\nunit = 's'",
    ),
    ("# end", "[service]\nstart = 'x'"),
    ("# end", "[service]\nready = { unix = 's' }"),
    ("# end", "[service]\nstop = 'x'"),
    ("# end", "[service]\nready-timeout = '1s'"),
    ("# end", "[service]\nstop-timeout = '1s'"),
    ("# end", "[service]\nstart = 'x'\nready = {}"),
    ("# end", "[service]\nstart = 'x'\nready = { file = 'f' }"),
    (
        "# end",
        "[service]\nstart = 'x'\nready = { unix = 's', log = '.' }",
    ),
    (
        "# end",
        "[service]\nstart = 'x'\nready = { unix = 's', file = 'f' }",
    ),
    ("# end", "[conf.a]\nabout = 'x'"),
    ("# end", "[conf.a]"),
    ("# end", "[conf.a.b]\nclass = 'safe'"),
    (
        "# end",
        "[conf.a.b]\nclass = 'safe'\nfile = 'f'\nfrom = 'x'",
    ),
    ("# end", "[conf.a.b]\nclass = 'safe'\ncommand = 'x'"),
    (
        "# end",
        "[conf.a.b]\nclass = 'safe'\ncommand = 'x'\ninverse = 'y'\nfile = 'f'\nto = 'x'",
    ),
    (
        "# end",
        "[conf.a.b]\nclass = 'safe'\ncommand = 'x'\ninverse = 'y'\nfrom = 'x'",
    ),
];

/// What a schema cannot say.
const CODE_ONLY: &[Edit] = &[
    ("# end", "[table]\ncommand = 'true'\nthen = 'none.tsv'"),
    (
        "# end",
        "[note]\ntitle = 't'\nthen = 'x'\n[table]\ncommand = 'true'\nthen = 'none.tsv'",
    ),
    // It has a column too few.
    (
        "# end",
        "[note]\ntitle = 't'\nthen = 'x'\n[table]\ncommand = 'true'\nthen = 'recipe.toml'",
    ),
    (
        "# top",
        "main = 'wall'\n[table]\ncommand = 'true'\nonly = true",
    ),
    (
        "# end",
        "[service]\nkeep = true\nstart = 'x'\nready = { unix = 's' }\n[conf.a.b]\nclass = 'safe'\nfile = 'f'\nto = 'x'",
    ),
    ("# top", "main = 'speed'"),
    ("# top", "main = 'pss'"),
    ("# end", "[service]\nstart = 'x'\nready = { tcp = 'http' }"),
    ("operations = 1", "operations = { regex = '.' }"),
    ("# load", "[load.metrics.a]\nregex = '.'\nunit = 's'"),
    ("# load", "[load.metrics.a]\nregex = '(.'\nunit = 's'"),
    ("# end", "[service]\nstart = 'x'\nready = { log = '[' }"),
    // To a schema this is an integer.
    ("operations = 1", "operations = 1.0"),
    // Nothing after rounding, and more than a clock has.
    ("# top", "budget = '1e-30s'"),
    ("# top", "budget = '1e30h'"),
];

/// The shipped schema, and a place to compile it into.
fn schema() -> (Schemas, SchemaIndex) {
    let file = source_dir().join("docs/recipe.schema.json");
    let mut schemas = Schemas::new();
    let index = Compiler::new()
        .compile(&file.display().to_string(), &mut schemas)
        .expect("the schema is a schema");
    (schemas, index)
}

fn every_shipped_recipe_is_valid(_: &TestEnv) -> Outcome {
    let (schemas, index) = schema();
    for name in SHIPPED {
        let path = source_dir().join("recipes").join(name).join("recipe.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let file: Value = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Err(error) = schemas.validate(&file, index) {
            panic!("{name}: {error:#}");
        }
    }
    Outcome::Pass
}

/// Every edit is checked by the schema, and by `refit recipes show`.
#[track_caller]
fn expect_both(env: &TestEnv, edits: &[Edit], by_schema: bool, by_refit: bool) {
    let (schemas, index) = schema();
    let file = env.subdir("small") + "/recipe.toml";
    let mut wrong = Vec::new();
    for (old, new) in edits {
        assert_eq!(SMALL.matches(old).count(), 1, "{old}");
        let text = SMALL.replace(old, new);
        fs::write(&file, &text).expect("the test's directory is ours");
        let value: Value = toml::from_str(&text).unwrap_or_else(|error| panic!("{new}: {error}"));
        let checked = schemas.validate(&value, index);
        if checked.is_ok() != by_schema {
            wrong.push(format!("the schema, {old} → {new}: {checked:?}"));
        }
        let output = env.refit(&["recipes", "show", "./small"]);
        let named = String::from_utf8_lossy(&output.stderr).contains("./small/recipe.toml: ");
        let expected = if by_refit {
            (Some(0), false)
        } else {
            (Some(2), true)
        };
        if (output.status.code(), named) != expected {
            wrong.push(format!("refit, {old} → {new}: {}", described(&output)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn what_both_accept(env: &TestEnv) -> Outcome {
    expect_both(env, ACCEPTED, true, true);
    Outcome::Pass
}

fn what_both_refuse(env: &TestEnv) -> Outcome {
    expect_both(env, REFUSED, false, false);
    Outcome::Pass
}

fn what_only_the_code_refuses(env: &TestEnv) -> Outcome {
    expect_both(env, CODE_ONLY, true, false);
    env.file("small/recipe.toml", "no TOML");
    expect_code(&env.refit(&["recipes", "show", "./small"]), 2);
    Outcome::Pass
}
