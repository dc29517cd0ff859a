//! docs/coming-from.md: what it says of each option of another tool is what the command line says of it.

use std::fs;

use crate::compared::messages;
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[test!(
    each_option_of_another_tool_gets_the_answer_of_the_page
)];

/// A row of one of its tables: the tool and the verb of refit are in the title.
struct Row {
    tool: String,
    verb: String,
    spellings: Vec<String>,
    answer: String,
}

fn rows(page: &str) -> Vec<Row> {
    let lines: Vec<&str> = page.lines().collect();
    let mut title = [String::new(), String::new()];
    let mut rows = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(cells) = line
            .strip_prefix("| ")
            .and_then(|line| line.strip_suffix(" |"))
        else {
            continue;
        };
        let (first, second) = cells.split_once(" | ").expect("a table of two columns");
        let cells = [first, second].map(|cell| cell.replace('`', ""));
        if lines
            .get(i + 1)
            .is_some_and(|next| next.starts_with("|:--"))
        {
            title = cells;
            continue;
        }
        let ([tool, verb], [spellings, answer]) = (title.clone(), cells);
        let spellings = spellings.split(", ").map(str::to_owned).collect();
        rows.push(Row {
            tool,
            verb,
            spellings,
            answer,
        });
    }
    rows
}

fn each_option_of_another_tool_gets_the_answer_of_the_page(env: &TestEnv) -> Outcome {
    let page = fs::read_to_string(source_dir().join("docs/coming-from.md"))
        .expect("it is a part of the source");
    let mut asked = 0;
    for row in rows(&page) {
        for typed in &row.spellings {
            let words: Vec<&str> = row.verb.split(' ').skip(1).chain([&**typed, "3"]).collect();
            let output = env.refit(&words);
            expect_code(&output, if row.verb == "refit run" { 125 } else { 2 });
            let expected = format!("tip: {}'s {typed}: {}\n", row.tool, row.answer);
            assert!(
                messages(&output).contains(&expected),
                "{words:?}: {expected}is not in\n{}",
                messages(&output)
            );
            asked += 1;
        }
    }
    println!("{asked} options");
    assert!(asked > 70, "{asked}");
    // What no tool has either gets no such answer.
    let output = env.refit(&["compare", "--no-such-option", "--", "true"]);
    expect_code(&output, 2);
    assert!(
        !messages(&output).contains("'s --no"),
        "{}",
        messages(&output)
    );
    Outcome::Pass
}
