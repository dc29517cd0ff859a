//! `[table]`: exact answers beside a comparison, and instead of one.

use std::fs;

use serde_json::json;

use crate::compared::{list, printed, runs_of, variant};
use crate::recipe_folder::RecipeFolder;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(answers_stand_beside_a_comparison),
    test!(answers_alone_are_two_runs_of_each),
    test!(what_the_note_had_otherwise_is_marked),
    test!(what_is_not_exact_is_out),
    test!(what_is_not_a_table_is_reported),
    test!(nothing_steers_statistics_that_there_are_not),
];

fn asking<'a>(env: &'a TestEnv, name: &str) -> RecipeFolder<'a> {
    // What is asked is the program's own: A is swapped beneath it.
    RecipeFolder::command(env, name)
        .text(
            "load.command",
            "seq $REFIT_OPERATIONS >numbers; printf 'A\\t%s\\nalways\\t<1>\\n' \"${A-none}\" >answers",
        )
        .text("table.command", "cat answers")
        .variants(&["env.A=1", "env.A=2"])
}

fn answers_stand_beside_a_comparison(env: &TestEnv) -> Outcome {
    let (output, result) = asking(env, "asking").compare(&["--rounds", "14"]);
    expect_code(&output, 0);
    let (_, one) = variant(&result, "env.A=1");
    assert_eq!(
        one["answers"],
        json!([{"question": "A", "answer": "1"}, {"question": "always", "answer": "<1>"}])
    );
    let shown = printed(&output);
    for line in [
        "A\n",
        "  none  baseline\n",
        "  1     env.A=1\n",
        "  <1>  all\n",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(
        shown.contains("vs baseline") && shown.contains("noise floor"),
        "{shown}"
    );
    assert!(!list(&result["effects"]).is_empty());
    Outcome::Pass
}

fn answers_alone_are_two_runs_of_each(env: &TestEnv) -> Outcome {
    let folder = asking(env, "asking").set("table.only", "true");
    let (output, result) = folder.compare(&["--html", "page.html", "--md", "table.md"]);
    expect_code(&output, 0);
    assert_eq!(list(&result["runs"]).len(), 6);
    assert_eq!(runs_of(&result, "env.A=2").len(), 2);
    assert!(list(&result["effects"]).is_empty());
    assert!(
        list(&result["variants"])
            .iter()
            .all(|v| v["role"] != "hidden")
    );
    let shown = printed(&output);
    assert!(shown.contains("each variant was run twice"), "{shown}");
    for word in ["vs baseline", "noise", "inconclusive"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    let page = fs::read_to_string(env.path("page.html")).expect("it was written");
    assert!(
        page.contains("Exact answers") && page.contains("<code>&lt;1&gt;</code>"),
        "{page}"
    );
    let table = fs::read_to_string(env.path("table.md")).expect("it was written");
    for line in [
        "| question | answer | given by |\n|:--|:--|:--|\n",
        "| A | `none` | baseline |\n|  | `1` | env.A=1 |\n",
        "| always | `<1>` | all |\n",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    // Drawn again from what was stored.
    let again = env.refit(&["report", "result.json"]);
    expect_code(&again, 0);
    assert_eq!(printed(&again), shown);
    Outcome::Pass
}

fn what_the_note_had_otherwise_is_marked(env: &TestEnv) -> Outcome {
    let folder = asking(env, "asking")
        .set("table.only", "true")
        .text("table.then", "then.tsv")
        .text("note.title", "a note (1999)")
        .text("note.then", "1");
    folder.write();
    env.file(
        "asking/then.tsv",
        "baseline\tA\tnone\nenv.A=1\tA\t7\nenv.A=1\tnever asked\t0\n",
    );
    let (output, result) = folder.compare(&["--md", "table.md"]);
    expect_code(&output, 0);
    assert_eq!(result["recipe"]["note"], "a note (1999)");
    assert_eq!(result["recipe"]["then"]["env.A=1"][0]["answer"], "7");
    let shown = printed(&output);
    for line in [
        "none  baseline  = then: none\n",
        "1     env.A=1   ≠ then: 7\n",
        "2     env.A=2\n",
        "then: a note (1999); 1 of 2 answers",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let table = fs::read_to_string(env.path("table.md")).expect("it was written");
    // Nothing is measured of exact answers.
    assert!(!shown.contains("too few runs") && !table.contains("too few runs"));
    for line in [
        "| `none` | baseline | **=** | `none` |",
        "| `1` | env.A=1 | **≠** | `7` |",
        "| `2` | env.A=2 |  |  |",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    Outcome::Pass
}

fn what_is_not_exact_is_out(env: &TestEnv) -> Outcome {
    let seen = env.path("seen");
    let random = format!(
        "cat answers; [ \"$(cut -f 2 answers | head -n 1)\" = 2 ] || exit 0; echo >>{seen}; printf 'time\\t%s\\n' $(wc -l <{seen})"
    );
    let folder = asking(env, "asking")
        .set("table.only", "true")
        .text("table.command", &random);
    let (output, result) = folder.compare(&[]);
    expect_code(&output, 0);
    let (_, out) = variant(&result, "env.A=2");
    let reason = out["disqualified"]["failed"].as_str().expect("it is out");
    assert_eq!(reason, "`time` was answered `2`, and `1` in an earlier run");
    assert!(
        printed(&output).contains("disqualified: env.A=2"),
        "{}",
        described(&output)
    );
    // A baseline that is not exact ends it.
    let messages = folder
        .text("table.command", "printf 'time\\t%s\\n' $(date +%N)")
        .refused(&[]);
    assert!(
        messages.contains("the baseline failed: `time` was answered `"),
        "{messages}"
    );
    Outcome::Pass
}

fn what_is_not_a_table_is_reported(env: &TestEnv) -> Outcome {
    for (command, problem) in [
        (
            "echo words",
            "table.command: `words` is not QUESTION<TAB>ANSWER",
        ),
        ("true", "table.command: it answered nothing"),
        (
            "printf 'a\\t1\\na\\t2\\n'",
            "table.command: `a` is answered twice",
        ),
        (
            "echo why >&2; exit 3",
            "table.command failed, exit status: 3: why",
        ),
    ] {
        let folder = asking(env, "asking").text("table.command", command);
        let output = folder.check();
        expect_code(&output, 1);
        let shown = printed(&output);
        assert!(shown.contains(&format!("baseline: {problem}")), "{shown}");
    }
    Outcome::Pass
}

fn nothing_steers_statistics_that_there_are_not(env: &TestEnv) -> Outcome {
    let folder = asking(env, "asking").set("table.only", "true");
    for options in [
        &["--gate", "wall<+2%"][..],
        &["--rounds", "20"],
        &["--remeasure"],
        &["--budget", "1m"],
    ] {
        let messages = folder.refused(options);
        assert!(
            messages.contains(&format!(
                "{}: the recipe asking gives exact answers",
                options[0]
            )),
            "{messages}"
        );
    }
    Outcome::Pass
}
