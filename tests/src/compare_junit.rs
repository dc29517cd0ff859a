//! `--junit`: what a CI system reads of a comparison, as an XML parser that is not refit's finds it.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::compare_files::{make, report};
use crate::compared::{list, undecided};
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, expect_message, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(each_gate_and_candidate_is_a_test_case_of_its_fate),
    test!(a_stored_result_gives_the_same_test_cases),
    test!(names_stay_names),
    test!(what_is_undecided_is_skipped),
    test!(it_is_written_when_the_baseline_fails),
    test!(it_is_written_when_the_comparison_is_interrupted),
    test!(without_a_gate_each_candidate_has_a_test_case),
    test!(a_place_that_cannot_be_written_is_refused_before_anything_runs),
];

/// Reads the file as Python does, and asks of it what the documented form promises.
const READER: &str = r#"
import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "testsuites", root.tag
suite, = root
assert suite.tag == "testsuite", suite.tag
assert [part.tag for part in suite if part.tag != "testcase"] == ["properties", "system-out"]
cases = []
for case in suite.findall("testcase"):
    assert float(case.get("time")) >= 0
    fate = [(part.tag, part.get("message")) for part in case] or [("passed", "")]
    (kind, message), = fate
    assert message.isprintable(), message
    cases.append([case.get("classname"), case.get("name"), kind, message])
count = lambda kind: sum(1 for case in cases if case[2] == kind)
for of in root, suite:
    counts = [int(of.get(name)) for name in ("tests", "failures", "errors")]
    assert counts == [len(cases), count("failure"), count("error")], counts
    assert float(of.get("time")) >= 0
assert int(suite.get("skipped")) == count("skipped")
properties = {one.get("name"): one.get("value") for one in suite.find("properties")}
print(json.dumps({
    "name": suite.get("name"), "cases": cases, "properties": properties,
    "hostname": suite.get("hostname"), "timestamp": suite.get("timestamp"),
    "out": suite.find("system-out").text}))
"#;

pub fn read(env: &TestEnv, name: &str) -> Value {
    let mut reader = Command::new("python3");
    reader.args(["-c", READER, &env.path(name)]);
    let output = reader.output().expect("python3 starts");
    assert!(output.status.success(), "{}", described(&output));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// Variant, gate and fate of each test case.
fn fates<'a>(read: &'a Value) -> Vec<[&'a str; 3]> {
    let cases = list(&read["cases"]).iter();
    let of = |case: &'a Value| [0, 1, 2].map(|i| case[i].as_str().expect("a text"));
    cases.map(of).collect()
}

#[track_caller]
fn message<'a>(read: &'a Value, variant: &str) -> &'a str {
    let mut cases = list(&read["cases"]).iter();
    let case = cases.find(|case| case[0] == variant);
    case.and_then(|case| case[3].as_str()).expect("a test case")
}

fn each_gate_and_candidate_is_a_test_case_of_its_fate(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    make(env, &["--junit", "junit.xml"]);
    let read = read(env, "junit.xml");
    let odd = "env.ODD=a, \"b\" <c> & d|e";
    assert_eq!(
        fates(&read),
        [
            ["baseline", "runs", "passed"],
            ["env.OUT=1", "max-rss<+900%", "error"],
            [odd, "max-rss<+900%", "passed"],
            ["env.SLOW=1", "max-rss<+900%", "failure"],
        ]
    );
    assert_eq!(message(&read, "env.OUT=1"), "disqualified: exit code 3");
    let slow = message(&read, "env.SLOW=1");
    assert!(
        slow.starts_with("gate max-rss<+900% failed: max-rss +"),
        "{slow}"
    );
    let text = fs::read_to_string(env.path("result.json")).expect("there is a result");
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    let properties = &read["properties"];
    assert_eq!(properties["refit"], result["refit"]);
    let seed = properties["seed"]
        .as_str()
        .and_then(|seed| seed.strip_prefix("0x"));
    let seed = u64::from_str_radix(seed.expect("as it is typed"), 16).expect("a number");
    assert_eq!(result["seed"], json!(seed));
    let fixed = &result["environment"]["fixed"];
    assert_eq!(properties["machine.cpu"], fixed["cpu"]);
    assert_eq!(read["hostname"], fixed["machine"]);
    let printed = read["out"].as_str().expect("the table");
    assert!(printed.contains("round pairs, seed 0x"), "{printed}");
    Outcome::Pass
}

fn a_stored_result_gives_the_same_test_cases(env: &TestEnv) -> Outcome {
    make(env, &["--junit", "first.xml"]);
    expect_code(&report(env, &["result.json", "--junit", "again.xml"]), 0);
    let [first, again] = ["first.xml", "again.xml"].map(|name| fs::read(env.path(name)));
    assert_eq!(first.expect("it was written"), again.expect("likewise"));
    Outcome::Pass
}

/// Markup, the end of a section of text, and what a terminal obeys.
fn names_stay_names(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let hostile = "env.A=]]></testcase><!-- &amp; \u{1b}[2J\n'\"\u{fffe}";
    let args = [
        "compare",
        "--junit",
        "junit.xml",
        "--rounds",
        "4",
        "--gate",
        "wall<+900%",
    ];
    let output = env.refit(&[&args[..], &[hostile, "--", "sh", "-c", ":", "<a&b>\u{7}"]].concat());
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        described(&output)
    );
    let read = read(env, "junit.xml");
    let cases = fates(&read);
    assert_eq!(cases.len(), 2, "{cases:?}");
    let shown = "env.A=]]></testcase><!-- &amp; \\u{1b}[2J\\n'\"\u{fffd}";
    assert_eq!(cases[1][..2], [shown, "wall<+900%"]);
    let name = read["name"].as_str().expect("a name");
    assert!(name.contains("<a&b>") && !name.contains('\u{7}'), "{name}");
    Outcome::Pass
}

fn what_is_undecided_is_skipped(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let args = [
        "compare",
        "--junit",
        "junit.xml",
        "--rounds",
        "16",
        "--gate",
        "wall<+1%",
    ];
    let script = undecided(env, 40);
    let output = env.refit(&[&args[..], &["env.A=1", "--", "sh", "-c", &script]].concat());
    expect_code(&output, 0);
    let read = read(env, "junit.xml");
    assert_eq!(fates(&read)[1], ["env.A=1", "wall<+1%", "skipped"]);
    let message = message(&read, "env.A=1");
    assert!(
        message.starts_with("gate wall<+1% is undecided: wall "),
        "{message}"
    );
    Outcome::Pass
}

fn it_is_written_when_the_baseline_fails(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let args = [
        "compare",
        "--junit",
        "junit.xml",
        "--rounds",
        "8",
        "--gate",
        "wall<+1%",
    ];
    let output = env.refit(&[&args[..], &["env.A=1", "--", "sh", "-c", "exit 7"]].concat());
    expect_message(&output, 2, "the baseline failed");
    let read = read(env, "junit.xml");
    let cases = fates(&read);
    assert_eq!(cases.len(), 2, "{cases:?}");
    assert_eq!(cases[0], ["baseline", "runs", "error"]);
    let message = message(&read, "baseline");
    assert!(message.contains("exit code 7"), "{message}");
    assert!(
        cases[1..].iter().all(|[_, _, fate]| *fate != "passed"),
        "{cases:?}"
    );
    Outcome::Pass
}

fn it_is_written_when_the_comparison_is_interrupted(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let log = env.path("log");
    let script = format!("echo >>{log}; {}", undecided(env, 40));
    let args = [
        "compare",
        "--junit",
        "junit.xml",
        "--rounds",
        "400",
        "--gate",
        "wall<+1%",
    ];
    let mut refit =
        env.refit_command(&[&args[..], &["env.A=1", "--", "sh", "-c", &script]].concat());
    let child = refit
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("refit starts");
    let runs = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    wait_until("two round pairs", || runs() >= 12);
    sys::send_signal(
        i32::try_from(child.id()).expect("process ids are ints"),
        libc::SIGINT,
    );
    let output = child.wait_with_output().expect("it is our child");
    expect_code(&output, 3);
    let read = read(env, "junit.xml");
    assert_eq!(fates(&read)[1], ["env.A=1", "wall<+1%", "skipped"]);
    let message = message(&read, "env.A=1");
    assert!(
        message.ends_with("the comparison was interrupted"),
        "{message}"
    );
    Outcome::Pass
}

fn without_a_gate_each_candidate_has_a_test_case(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let args = [
        "compare",
        "--junit",
        "junit.xml",
        "--rounds",
        "16",
        "env.SLOW=1",
        "env.OUT=1",
    ];
    let script = "test -z \"$OUT\" || exit 3; test -z \"$SLOW\" || exec sleep 0.2";
    let output = env.refit(&[&args[..], &["--", "sh", "-c", script]].concat());
    expect_code(&output, 0);
    assert_eq!(
        fates(&read(env, "junit.xml"))[1..],
        [
            ["env.SLOW=1", "wall", "passed"],
            ["env.OUT=1", "wall", "error"]
        ]
    );
    Outcome::Pass
}

fn a_place_that_cannot_be_written_is_refused_before_anything_runs(env: &TestEnv) -> Outcome {
    let (mark, file) = (env.path("mark"), env.path("none/junit.xml"));
    let args = ["compare", "--junit", &file, "env.A=1", "--", "touch", &mark];
    expect_message(&env.refit(&args), 2, "there is no directory");
    assert!(!std::path::Path::new(&mark).exists());
    Outcome::Pass
}
