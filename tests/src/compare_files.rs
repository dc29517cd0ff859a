//! Results of `refit compare` as files and pictures, and `refit report`, which draws them again.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::compared::{list, number, printed};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(every_format_is_written_and_drawn_again_the_same),
    test!(the_command_of_a_page_is_the_one_that_ran),
    test!(other_tools_find_the_times_of_each_variant),
    test!(a_score_log_lists_what_was_tried_and_kept),
    test!(every_stored_result_can_be_drawn)
        .limit_seconds(300)
        .once(),
];

/// Variants whose names need quotes wherever there are quotes.
const ODD: &str = "env.ODD=a, \"b\" <c> & d|e";

/// A comparison with one variant of each fate, stored as `result.json`; what it printed. The gate is about memory, which
/// is the same beside any load.
pub fn make(env: &TestEnv, options: &[&str]) -> Output {
    let script = "test \"$OUT\" != 1 || exit 3; test -n \"$SLOW\" || exit 0
        dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; exec sleep 0.2";
    let args = [
        "compare",
        "--json",
        "result.json",
        "--bare",
        "--rounds",
        "16",
        "--gate",
        "max-rss<+900%",
    ];
    let rest = ["env.OUT=1", ODD, "env.SLOW=1", "--", "sh", "-c", script];
    let mut refit = env.refit_command(&[&args[..], options, &rest].concat());
    let output = refit.env("COLUMNS", "100").output().expect("refit starts");
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        described(&output)
    );
    output
}

fn stored(env: &TestEnv) -> Value {
    let text = fs::read_to_string(env.path("result.json")).expect("there is a result");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Draws the stored result again.
pub fn report(env: &TestEnv, args: &[&str]) -> Output {
    let mut refit = env.refit_command(&[&["report"], args].concat());
    refit.env("COLUMNS", "100").output().expect("refit starts")
}

/// The options of every form of a comparison: those of `refit report` that take a file.
pub fn forms(env: &TestEnv) -> Vec<String> {
    let help = printed(&env.refit(&["report", "--help"]));
    let lines = help.lines().map(str::trim);
    let options = lines.filter_map(|line| line.strip_suffix(" <FILE>"));
    let forms: Vec<String> = options.map(str::to_owned).collect();
    assert!(
        forms.contains(&"--json".to_owned()) && forms.len() > 7,
        "{help}"
    );
    forms
}

fn every_format_is_written_and_drawn_again_the_same(env: &TestEnv) -> Outcome {
    const FORMATS: [&str; 4] = ["csv", "md", "html", "svg"];
    let options = FORMATS.map(|format| [format!("--{format}"), format!("first.{format}")]);
    let options: Vec<&str> = options.as_flattened().iter().map(String::as_str).collect();
    let first = make(env, &options);
    let again = report(env, &["result.json"]);
    expect_code(&again, 0);
    assert!(again.stderr.is_empty(), "{}", described(&again));
    assert_eq!(printed(&again), printed(&first));
    for format in FORMATS {
        let output = report(
            env,
            &[
                "result.json",
                &format!("--{format}"),
                &format!("again.{format}"),
            ],
        );
        expect_code(&output, 0);
        assert!(output.stdout.is_empty(), "{}", described(&output));
        let read =
            |name: &str| fs::read(env.path(&format!("{name}.{format}"))).expect("it was written");
        assert!(read("first") == read("again"), "{format} differs");
    }
    let result = stored(env);
    expect_valid(&result);
    let text = |name: &str| fs::read_to_string(env.path(name)).expect("it is text");
    expect_csv(&text("first.csv"), &result);
    expect_well_formed(&text("first.svg"));
    let md = text("first.md");
    let rows: Vec<&str> = md.lines().filter(|line| line.starts_with('|')).collect();
    // A head, a rule, and each variant that is shown.
    assert_eq!(rows.len(), 2 + 5, "{md}");
    let cells = |row: &str| row.replace("\\|", "").matches('|').count();
    assert!(rows.iter().all(|row| cells(row) == cells(rows[0])), "{md}");
    assert!(
        md.contains("disqualified") && md.contains("exit code 3"),
        "{md}"
    );
    Outcome::Pass
}

fn expect_csv(text: &str, result: &Value) {
    let mut lines = text.lines();
    let head = fields(lines.next().expect("a head"));
    let column = |name: &str| {
        head.iter()
            .position(|field| field == name)
            .expect("a column")
    };
    let runs = list(&result["runs"]);
    let rows: Vec<Vec<String>> = lines.map(fields).collect();
    assert_eq!(rows.len(), runs.len());
    for (row, run) in rows.iter().zip(runs) {
        assert_eq!(row.len(), head.len(), "{row:?}");
        let index = usize::try_from(number(&run["variant"]) as u64).expect("it is small");
        assert_eq!(row[column("variant")], result["variants"][index]["name"]);
        assert_eq!(
            row[column("wall_ns")],
            run["metrics"]["wall_ns"].to_string()
        );
        assert_eq!(row[column("exit")], run["exit"]["code"].to_string());
        assert_eq!(
            row[column("failure")],
            run["failure"].as_str().unwrap_or_default()
        );
    }
}

/// The fields of a line of CSV (RFC 4180).
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let last = fields.last_mut().expect("there is one from the start");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => last.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => last.push(c),
        }
    }
    assert!(!quoted, "{line}");
    fields
}

/// Elements open and close in order, attributes are quoted, and no bare `<` or `&` is left.
fn expect_well_formed(svg: &str) {
    let mut open = Vec::new();
    let mut pieces = svg.split('<');
    assert_eq!(pieces.next().map(str::trim), Some(""));
    for piece in pieces {
        let (tag, text) = piece
            .split_once('>')
            .unwrap_or_else(|| panic!("`<` in {piece}"));
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        for text in [tag, text] {
            for entity in text.split('&').skip(1) {
                let known = ["amp;", "lt;", "gt;", "quot;", "apos;", "#"];
                assert!(
                    known.iter().any(|known| entity.starts_with(known)),
                    "&{entity}"
                );
            }
        }
        let name = tag.split([' ', '\n', '/']).next().expect("a first piece");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{svg}");
        } else if !tag.ends_with('/') && !tag.starts_with('?') {
            assert!(!open.is_empty() || name == "svg", "{svg}");
            open.push(name);
        }
    }
    assert!(
        open.is_empty() && svg.matches("<svg").count() == 1,
        "{open:?}"
    );
}

/// As hyperfine's own scripts read them.
fn other_tools_find_the_times_of_each_variant(env: &TestEnv) -> Outcome {
    make(env, &[]);
    let result = stored(env);
    let mut seen = Vec::new();
    for entry in list(&result["results"]) {
        let times: Vec<f64> = list(&entry["times"]).iter().map(number).collect();
        let pairs = number(&result["plan"]["pairs"]);
        assert_eq!(times.len() as f64, 2.0 * pairs, "{entry}");
        assert!(
            times.iter().all(|time| *time > 0.0 && *time < 10.0),
            "{entry}"
        );
        let [min, mean, median, max] =
            ["min", "mean", "median", "max"].map(|name| number(&entry[name]));
        assert!(
            min <= median && median <= max && min <= mean && mean <= max,
            "{entry}"
        );
        let stddev = number(&entry["stddev"]);
        assert!(stddev > 0.0 && stddev < max - min, "{entry}");
        assert_eq!(list(&entry["exit_codes"]).len(), times.len());
        seen.push(entry["command"].as_str().expect("a name").to_owned());
    }
    seen.sort();
    seen.dedup();
    // All but the one that is out.
    assert_eq!(seen.len(), list(&result["variants"]).len() - 1, "{seen:?}");
    assert!(!seen.contains(&"env.OUT=1".to_owned()), "{seen:?}");
    Outcome::Pass
}

fn a_score_log_lists_what_was_tried_and_kept(env: &TestEnv) -> Outcome {
    let log = env.subdir("log");
    let output = env.refit(&["report", "--history", &log]);
    expect_code(&output, 2);
    assert!(
        described(&output).contains("refit compare --json"),
        "{}",
        described(&output)
    );
    let compare = |file: &str, args: &[&str]| {
        let file = format!("{log}/{file}.json");
        let command = ["--rounds", "14", "--", "true"];
        expect_code(
            &env.refit(&[&["compare", "--json", &file], args, &command].concat()),
            0,
        );
        // A later start, so that there is a before and an after.
        let text = fs::read_to_string(&file).expect("it was written");
        let mut result: Value = serde_json::from_str(&text).expect("it is JSON");
        let started = number(&result["started_unix"]) as u64;
        result["started_unix"] = (started + 86_400 * u64::from(file.contains("second"))).into();
        fs::write(&file, result.to_string()).expect("the directory is ours");
    };
    compare("first", &["env.A=1", "env.B=1"]);
    compare("second", &["--with", "env.A=1", "env.C=1"]);
    fs::write(format!("{log}/other.json"), "{\"schema\": 1").expect("the directory is ours");
    fs::write(format!("{log}/notes.txt"), "no result").expect("likewise");
    let output = env.refit(&["report", "--history", &log]);
    expect_code(&output, 0);
    let text = printed(&output);
    let line = |name: &str| {
        let mut lines = text.lines().enumerate();
        let found = lines.find(|(_, line)| line.contains(&format!(" {name} ")));
        found.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    };
    let [a, b, c] = ["env.A=1", "env.B=1", "env.C=1"].map(line);
    assert!(a.0 < b.0 && b.0 < c.0, "{text}");
    assert!(
        a.1.contains(" kept ") && a.1.contains("first.json"),
        "{text}"
    );
    assert!(
        b.1.contains(" not kept ") && c.1.contains(" open "),
        "{text}"
    );
    Outcome::Pass
}

/// Writes the results of FOLDER… as numbered files of JSON into the current directory.
const UNPACK: &str = "
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import packed
paths = [path for folder in sys.argv[2:] for path in sorted(pathlib.Path(sys.argv[1], folder).glob('*.packed'))]
for number, path in enumerate(paths):
    result = packed.read(path)
    pathlib.Path(f'{number}.json').write_text(json.dumps(result.get('report', result)))
print(len(paths))
";

/// bench/gallery, bench/crash and bench/proof are read with this refit, whatever refit wrote them.
fn every_stored_result_can_be_drawn(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let bench = source_dir().join("bench");
    let bench = bench.to_str().expect("the source has a text path");
    // It writes nothing beside the source.
    let words = [
        "python3", "-B", "-c", UNPACK, bench, "gallery", "crash", "proof",
    ];
    let output = env.run(&words);
    expect_code(&output, 0);
    let count: usize = printed(&output).trim().parse().expect("a number");
    let plain: Vec<String> = (0..count).map(|number| format!("{number}.json")).collect();
    assert!(plain.len() > 40, "{plain:?}");
    let output = report(env, &plain.iter().map(String::as_str).collect::<Vec<_>>());
    expect_code(&output, 0);
    Outcome::Pass
}

/// The text of the page's command, as a browser copies it.
fn command_of_page(page: &str) -> String {
    let (_, after) = page
        .split_once("To repeat it")
        .expect("it has that heading");
    let (_, after) = after.split_once("<code>").expect("and a command");
    let (code, _) = after.split_once("</code>").expect("that ends");
    let mut text = String::new();
    let mut rest = code;
    while let Some((before, tag)) = rest.split_once('<') {
        text += before;
        rest = tag.split_once('>').expect("a tag ends").1;
    }
    text += rest;
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("\u{a0}", " "),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ]
    .into_iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}

fn the_command_of_a_page_is_the_one_that_ran(env: &TestEnv) -> Outcome {
    env.file("rows", "one\n");
    env.subdir("data");
    let options = "--rounds 4 --precision 0.0001% --delta 1.25% --heap --backend preload --timeout 5s --input rows \
                   --same-output --machine this --fresh-copy data --budget 90s --bare --strict --remeasure --with tz=UTC --seed 7";
    let options: Vec<&str> = options.split(' ').collect();
    let hooks = [
        "--prepare",
        "echo 'a b' >made",
        "--conclude",
        "true",
        "--check",
        "test -e made",
        "--gate",
        "max-rss<+900%",
    ];
    let files = ["--json", "result.json", "--html", "result.html"];
    let variants = [ODD, "env.B=1", "--", "sh", "-c", "cat; exit 0"];
    let words = [&["compare"], &options[..], &hooks, &files, &variants].concat();
    let made = env.refit(&words);
    // Too few round pairs for a verdict, and --strict.
    expect_code(&made, 3);
    let first = stored(env);
    expect_valid(&first);
    let page = fs::read_to_string(env.path("result.html")).expect("it was written");
    let command = command_of_page(&page);
    for option in options
        .iter()
        .chain(&hooks)
        .filter(|word| word.starts_with("--"))
    {
        assert!(command.contains(option), "{option} in {command}");
    }
    for file in ["result.json", "result.html"] {
        fs::remove_file(env.path(file)).expect("it is ours");
    }
    let command = command.strip_prefix("refit").expect("it begins so");
    let again = env.run(&[
        "bash",
        "-c",
        &format!("{}{command}", crate::test_env::refit_path()),
    ]);
    expect_code(&again, 3);
    let second = stored(env);
    for key in ["command", "options", "input", "with", "seed", "delta"] {
        assert_eq!(first[key], second[key], "{key}");
    }
    let names = |result: &Value| -> Vec<Value> {
        let all = list(&result["variants"]).iter();
        all.map(|variant| variant["name"].clone()).collect()
    };
    assert_eq!(names(&first), names(&second));
    let page = fs::read_to_string(env.path("result.html")).expect("it was written");
    assert_eq!(command_of_page(&page), format!("refit{command}"));
    Outcome::Pass
}
