//! `run --durability`: what no sync covers, against programs that are known to do it right or wrong.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::locations::source_dir;
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, finish};

pub const TESTS: &[Test] = &[
    test!(each_case_breaks_the_rules_that_it_is_known_to_break),
    test!(python_and_shells_are_judged_alike),
    test!(a_finding_names_the_line),
    test!(a_gate_fails_on_the_rules_that_it_names),
    test!(what_is_known_is_left_out),
    test!(paths_can_be_left_out),
    test!(sarif_names_rule_file_and_line),
    test!(junit_has_a_test_case_for_each_rule),
    test!(sqlite_is_right_where_it_says_so),
    test!(syncs_of_files_that_do_not_outlive_the_run_are_counted),
    test!(a_program_that_fails_acknowledges_nothing_by_its_end),
    test!(many_processes_at_once_lose_no_event),
    test!(what_cannot_be_seen_is_named),
    test!(wrong_words_are_refused),
];

/// Rules that a case breaks, but for notes. What is not here breaks none.
const BROKEN: &[(&str, &[&str])] = &[
    ("replace_no_sync", &[REPLACED]),
    ("replace_no_directory", &[NAME]),
    ("replace_pwrite", &[REPLACED]),
    ("replace_writev", &[REPLACED]),
    ("replace_pwritev", &[REPLACED]),
    ("replace_sendfile", &[REPLACED]),
    ("replace_copy", &[REPLACED]),
    ("replace_splice", &[REPLACED]),
    ("replace_fallocate", &[REPLACED]),
    ("replace_ftruncate", &[REPLACED]),
    ("replace_child", &[REPLACED]),
    ("replace_renameat2", &[REPLACED]),
    ("replace_twice", &[REPLACED]),
    ("replace_stream", &[REPLACED]),
    ("replace_large_stream", &[REPLACED]),
    ("replace_stream_not_flushed", &[REPLACED, WRONG]),
    ("wrong_range", &[NAME, WRONG]),
    ("wrong_msync", &[NAME, WRONG]),
    ("wrong_only_directory", &[WRONG]),
    ("wrong_directory", &[WRONG]),
    ("overwrite_truncated", &[IN_PLACE]),
    ("overwrite_stream", &[IN_PLACE]),
    ("overwrite_ftruncate", &[IN_PLACE]),
    ("overwrite_truncate", &[IN_PLACE]),
    ("ack_before_sync", &[ACKNOWLEDGED]),
    ("ack_by_stream", &[ACKNOWLEDGED]),
    ("ack_before_directory", &[NAME]),
    ("ack_after_child", &[ACKNOWLEDGED]),
    ("ack_of_directories", &[NAME]),
    ("ack_of_unnamed_unsynced", &[ACKNOWLEDGED, NAME]),
    ("remove_before_copy", &[REMOVED]),
    ("remove_backup_early", &[REMOVED]),
    ("remove_and_rename", &[REMOVED]),
    ("error_ignored", &[ERROR]),
    ("error_retried", &[ERROR]),
    ("order_assumed", &[ORDER]),
];

pub const REPLACED: &str = "replaced-unsynced";
pub const NAME: &str = "name-unsynced";
const ACKNOWLEDGED: &str = "acknowledged-unsynced";
pub const IN_PLACE: &str = "overwritten-in-place";
pub const REMOVED: &str = "removed-too-early";
const ORDER: &str = "order-assumed";
const ERROR: &str = "error-ignored";
const WRONG: &str = "synced-the-wrong-thing";

/// The disk of the cases that need one that fails.
const FAILING: &[(&str, &str)] = &[
    ("error_ignored", "disk=fail:EIO"),
    ("error_fatal", "disk=fail:EIO"),
    ("error_retried", "disk=fail:EIO,every=2"),
    ("error_rewritten", "disk=fail:EIO,every=2"),
];

/// What `refit run --durability OPTIONS -- WORDS` says of a program that runs in a directory of its own, where a file
/// `old` lies.
pub fn judged(env: &TestEnv, name: &str, options: &[&str], words: &[&str]) -> (Output, Value) {
    let directory = env.subdir(name);
    fs::write(format!("{directory}/old"), "old content\n").expect("the directory is ours");
    let json = env.path(&format!("{name}.json"));
    let first = ["run", "--durability", "--json", &json];
    let all = [&first[..], options, &["--"], words].concat();
    let output = finish(env.refit_command(&all).current_dir(&directory));
    let report = fs::read(&json).unwrap_or_else(|error| panic!("{error}: {}", described(&output)));
    let mut report: Value = serde_json::from_slice(&report).expect("JSON");
    let durability = report["durability"].take();
    // The tests lie on a disk.
    assert_eq!(number(&durability["volatile"]), 0);
    (output, durability)
}

pub fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().expect("a list")
}

/// Rules that are broken, but for notes; of [`ORDER`] there are only notes.
fn broken(report: &Value) -> BTreeSet<&str> {
    let found = findings(report)
        .iter()
        .filter(|finding| finding["level"] != "note" || finding["rule"] == ORDER);
    found
        .map(|finding| finding["rule"].as_str().expect("a name"))
        .collect()
}

/// Rules that are broken, but for notes.
pub fn heavy(report: &Value) -> BTreeSet<&str> {
    let found = findings(report).iter();
    found
        .filter(|finding| finding["level"] != "note")
        .map(|finding| finding["rule"].as_str().expect("a name"))
        .collect()
}

fn each_case_breaks_the_rules_that_it_is_known_to_break(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    let cases = String::from_utf8(env.run(&[&program]).stdout).expect("names");
    let names: BTreeSet<&str> = cases.lines().collect();
    let known: BTreeSet<&str> = BROKEN.iter().map(|(name, _)| *name).collect();
    assert!(known.is_subset(&names), "{:?}", known.difference(&names));
    assert!(names.len() >= 60, "{}", names.len());
    let mut faults = Vec::new();
    for name in names {
        let disk = FAILING.iter().filter(|(case, _)| *case == name);
        let disk: Vec<&str> = disk.map(|(_, disk)| *disk).collect();
        let options = [&["--ack", "fd:1"], &disk[..]].concat();
        let (output, report) = judged(env, name, &options, &[&program, name]);
        expect_code(&output, if name == "error_fatal" { 2 } else { 0 });
        let expected = BROKEN.iter().find(|(case, _)| *case == name);
        let expected: BTreeSet<&str> = expected
            .map(|(_, rules)| rules.iter().copied().collect())
            .unwrap_or_default();
        let found = broken(&report);
        if found != expected {
            faults.push(format!("{name}: {found:?}, not {expected:?}"));
        }
        assert!(number(&report["events"]) > 0, "{name}: {report:#}");
        assert_eq!(number(&report["lost"]), 0, "{name}");
    }
    assert_eq!(faults, Vec::<String>::new());
    Outcome::Pass
}

fn python_and_shells_are_judged_alike(env: &TestEnv) -> Outcome {
    let python = |lines: &str| {
        format!(
            "import os\ndef sync(path):\n d = os.open(path, os.O_RDONLY); os.fsync(d); os.close(d)\n{lines}"
        )
    };
    let cases: [(&str, &str, String, &[&str]); 12] = [
        (
            "py_replace",
            "python3",
            python("f = open('new', 'w'); f.write('x'); f.close(); os.replace('new', 'old')"),
            &[REPLACED],
        ),
        (
            "py_not_flushed",
            "python3",
            python(
                "f = open('new', 'w'); f.write('x'); os.fsync(f.fileno()); f.close(); os.replace('new', 'old')",
            ),
            &[REPLACED],
        ),
        (
            "py_right",
            "python3",
            python(
                "f = open('new', 'w'); f.write('x'); f.flush(); os.fsync(f.fileno()); f.close(); os.replace('new', 'old'); sync('.')",
            ),
            &[],
        ),
        (
            "py_in_place",
            "python3",
            python("f = open('old', 'w'); f.write('x'); f.flush(); os.fsync(f.fileno())"),
            &[IN_PLACE],
        ),
        (
            "py_append",
            "python3",
            python(
                "f = open('old', 'a'); f.write('x'); f.flush(); os.fsync(f.fileno()); print('done', flush=True)",
            ),
            &[],
        ),
        (
            "py_ack",
            "python3",
            python("f = open('old', 'a'); f.write('x'); f.flush(); print('done', flush=True)"),
            &[ACKNOWLEDGED],
        ),
        (
            "sh_replace",
            "sh",
            "echo x > new; mv new old".to_owned(),
            &[REPLACED],
        ),
        (
            "sh_right",
            "sh",
            "echo x > new; sync new; mv new old; sync .".to_owned(),
            &[],
        ),
        (
            "sh_in_place",
            "sh",
            "echo x > old; sync old".to_owned(),
            &[IN_PLACE],
        ),
        (
            "sh_append",
            "sh",
            "echo x >> old; sync old; echo done".to_owned(),
            &[],
        ),
        (
            "sh_sed",
            "sh",
            "sed -i s/old/new/ old".to_owned(),
            &[REPLACED],
        ),
        ("sh_gzip", "sh", "gzip old".to_owned(), &[REMOVED]),
    ];
    for (name, program, script, expected) in cases {
        env.require_command(program);
        let (output, report) = judged(env, name, &["--ack", "fd:1"], &[program, "-c", &script]);
        expect_code(&output, 0);
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        assert_eq!(broken(&report), expected, "{name}: {report:#}");
    }
    Outcome::Pass
}

fn a_finding_names_the_line(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    let source = fs::read_to_string(source_dir().join("tests/programs/file_rules.c"));
    let source = source.expect("it was compiled");
    let line_of = |text: &str| {
        let at = source.lines().position(|line| line.trim() == text);
        at.expect("it has that line") as u64 + 1
    };
    let (output, report) = judged(env, "line", &[], &[&program, "replace_no_sync"]);
    let finding = findings(&report)
        .iter()
        .find(|finding| finding["rule"] == REPLACED)
        .expect("it is found");
    for (key, text) in [
        ("at", "CHECK(rename(\"new\", \"old\"));"),
        ("written_at", "CHECK(write(fd, text, SIZE));"),
    ] {
        let frames = finding[key].as_array().expect("a list").iter();
        let place = frames.rev().find(|frame| frame["line"].is_number());
        let place = place.unwrap_or_else(|| panic!("no line in {finding:#}"));
        let file = place["file"].as_str().expect("a path");
        assert!(file.ends_with("file_rules.c"), "{file}");
        // The same text stands in other cases too: the first one is that of `replace` and of `put`.
        assert_eq!(number(&place["line"]), line_of(text), "{finding:#}");
    }
    let told = described(&output);
    assert!(told.contains("error: replaced-unsynced: "), "{told}");
    assert!(told.contains("replace (file_rules.c:"), "{told}");
    Outcome::Pass
}

fn a_gate_fails_on_the_rules_that_it_names(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    let code = |name: &str, rules: &str, case: &str| {
        let (output, _) = judged(env, name, &["--fail-on", rules], &[&program, case]);
        output.status.code()
    };
    assert_eq!(code("broken", REPLACED, "replace_no_sync"), Some(1));
    let others = format!("{ERROR},{IN_PLACE}");
    assert_eq!(code("another", &others, "replace_no_sync"), Some(0));
    assert_eq!(code("right", REPLACED, "replace_fsync"), Some(0));
    // The program's own code goes before.
    assert_eq!(code("own", REPLACED, "no_such_case"), Some(1));
    let script = format!("{program} replace_no_sync; exit 7");
    let (output, _) = judged(
        env,
        "seven",
        &["--fail-on", REPLACED],
        &["sh", "-c", &script],
    );
    assert_eq!(output.status.code(), Some(7));
    Outcome::Pass
}

fn what_is_known_is_left_out(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    let (_, before) = judged(env, "before", &[], &[&program, "replace_no_sync"]);
    assert!(broken(&before).contains(REPLACED));
    let known = env.path("before.json");
    let options = ["--known", &known, "--fail-on", REPLACED];
    let (output, after) = judged(env, "after", &options, &[&program, "replace_no_sync"]);
    expect_code(&output, 0);
    assert!(findings(&after).iter().all(|one| one["is_known"] == true));
    let told = described(&output);
    assert!(told.contains("nothing found in"), "{told}");
    assert!(told.contains("known before"), "{told}");
    // Another place is new.
    let (output, _) = judged(env, "new", &options, &[&program, "replace_pwrite"]);
    expect_code(&output, 1);
    Outcome::Pass
}

fn paths_can_be_left_out(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    for (name, ignored) in [
        ("tree", env.path("tree/")),
        ("end", "*old".to_owned()),
        ("path", env.path("path/old")),
    ] {
        let options = ["--ignore", ignored.as_str()];
        let (_, report) = judged(env, name, &options, &[&program, "replace_no_sync"]);
        assert_eq!(broken(&report), BTreeSet::new(), "{ignored}");
        assert!(number(&report["ignored"]) > 0, "{report:#}");
    }
    Outcome::Pass
}

fn sarif_names_rule_file_and_line(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    let sarif = env.path("found.sarif");
    let options = ["--sarif", &sarif];
    let (_, report) = judged(env, "sarif", &options, &[&program, "replace_no_sync"]);
    let log: Value =
        serde_json::from_slice(&fs::read(&sarif).expect("it was written")).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("a list");
    assert_eq!(rules.len(), 8);
    let results = run["results"].as_array().expect("a list");
    assert_eq!(results.len(), findings(&report).len());
    let first = results
        .iter()
        .find(|result| result["ruleId"] == REPLACED)
        .expect("it is there");
    assert_eq!(first["level"], "error");
    let place = &first["locations"][0]["physicalLocation"];
    let file = place["artifactLocation"]["uri"].as_str().expect("a path");
    assert!(file.ends_with("tests/programs/file_rules.c"), "{file}");
    assert!(number(&place["region"]["startLine"]) > 1);
    Outcome::Pass
}

fn junit_has_a_test_case_for_each_rule(env: &TestEnv) -> Outcome {
    let program = env.program("file_rules");
    let junit = env.path("found.xml");
    let options = ["--junit", &junit];
    judged(env, "junit", &options, &[&program, "replace_no_sync"]);
    let text = fs::read_to_string(&junit).expect("it was written");
    assert_eq!(text.matches("<testcase ").count(), 8, "{text}");
    assert_eq!(text.matches("<failure ").count(), 1, "{text}");
    assert!(text.contains("tests=\"8\" failures=\"1\""), "{text}");
    let (_, failed) = text
        .split_once("name=\"replaced-unsynced\"")
        .expect("it is there");
    assert!(
        failed
            .trim_start_matches(" time=\"0\">")
            .trim_start()
            .starts_with("<failure "),
        "{text}"
    );
    assert!(failed.contains("file_rules.c:"), "{text}");
    Outcome::Pass
}

fn sqlite_is_right_where_it_says_so(env: &TestEnv) -> Outcome {
    env.require_command("sqlite3");
    let insert = "create table t(a); insert into t values(1); update t set a=2; delete from t; insert into t values(3);";
    for mode in ["delete", "truncate", "persist", "wal"] {
        let level = if mode == "wal" { "full" } else { "extra" };
        let sql = format!("pragma journal_mode={mode}; pragma synchronous={level}; {insert}");
        let words = ["sqlite3", "t.db", &sql];
        let (output, report) = judged(env, mode, &["--ack", "fd:1"], &words);
        expect_code(&output, 0);
        assert_eq!(broken(&report), BTreeSet::new(), "{mode}: {report:#}");
        assert!(number(&report["syncs"]) >= 10, "{report:#}");
    }
    Outcome::Pass
}

fn syncs_of_files_that_do_not_outlive_the_run_are_counted(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let program = r#"
import os
def write(fd, syncs):
    for _ in range(syncs):
        os.write(fd, b'x')
        os.fsync(fd)
    os.close(fd)
def named(name, syncs):
    write(os.open(name, os.O_CREAT | os.O_WRONLY), syncs)
    return name
os.mkdir('spool')
os.remove(named('spool/a', 3))
os.remove(named('spool/b', 4))
os.remove(named('removed', 2))
named('kept', 5)
# The last one of a name stays.
os.remove(named('again', 1))
named('again', 1)
os.rename(named('old-name', 1), 'kept')
write(os.open('.', os.O_TMPFILE | os.O_WRONLY), 7)
unlinked = os.open('unlinked', os.O_CREAT | os.O_WRONLY)
os.remove('unlinked')
write(unlinked, 8)
got = os.open('.', os.O_TMPFILE | os.O_WRONLY)
os.write(got, b'x')
os.fsync(got)
os.link(f'/proc/self/fd/{got}', 'got-a-name', src_dir_fd=got)
open('old').close()
os.remove('old')
"#;
    let (output, report) = judged(env, "short", &[], &["python3", "-c", program]);
    expect_code(&output, 0);
    assert_eq!(number(&report["syncs"]), 33, "{report:#}");
    assert_eq!(number(&report["unnamed_syncs"]), 15, "{report:#}");
    let below = |name: &str| format!("{}/{name}", env.path("short"));
    let removed = json!([
        {"directory": below("spool/"), "syncs": 7, "of": 7},
        {"directory": below(""), "syncs": 2, "of": 17},
    ]);
    assert_eq!(report["removed_syncs"], removed, "{report:#}");
    let told = described(&output);
    for text in [
        "15 of 33 syncs were of files without a name, of which nothing is left after a power cut",
        "9 of 33 syncs were of files that were removed again (most in ",
        &format!("refit compare 'sync@{}=off' -- COMMAND", below("spool/")),
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    Outcome::Pass
}

fn a_program_that_fails_acknowledges_nothing_by_its_end(env: &TestEnv) -> Outcome {
    let (output, report) = judged(env, "fails", &[], &["sh", "-c", "echo x >> old; exit 3"]);
    expect_code(&output, 3);
    assert_eq!(findings(&report), &[] as &[Value]);
    let (_, report) = judged(env, "succeeds", &[], &["sh", "-c", "echo x >> old"]);
    assert_eq!(findings(&report).len(), 1, "{report:#}");
    Outcome::Pass
}

/// 20 processes, each with 500 renames: more events than the ring has room for.
fn many_processes_at_once_lose_no_event(env: &TestEnv) -> Outcome {
    let script = "import os\n\
        for child in range(20): open(f'o{child}', 'w').write('old')\n\
        os.sync()\n\
        for child in range(20):\n \
         if os.fork() == 0:\n  \
          for i in range(500):\n   \
           f = os.open(f'n{child}', os.O_CREAT | os.O_WRONLY); os.write(f, b'x'); os.close(f)\n   \
           os.replace(f'n{child}', f'o{child}')\n  \
          os._exit(0)\n\
        for child in range(20): os.wait()\n";
    let (output, report) = judged(env, "many", &[], &["python3", "-c", script]);
    expect_code(&output, 0);
    assert_eq!(number(&report["lost"]), 0, "{}", described(&output));
    // An interpreter has several ways to one line.
    let replaced = findings(&report)
        .iter()
        .filter(|one| one["rule"] == REPLACED);
    let times: u64 = replaced.map(|one| number(&one["count"])).sum();
    assert_eq!(times, 20 * 500, "{report:#}");
    Outcome::Pass
}

/// A static program.
fn what_cannot_be_seen_is_named(env: &TestEnv) -> Outcome {
    let program = env.program("static_fsync");
    let file = env.path("f");
    let (output, report) = judged(env, "static", &[], &[&program, &file]);
    assert_eq!(number(&report["programs"]), 0);
    let told = described(&output);
    assert!(
        told.contains("nothing was seen of what was done to files"),
        "{told}"
    );
    // A gate does not pass by what it cannot see.
    let options = ["--fail-on", REPLACED];
    let (output, _) = judged(env, "gate", &options, &[&program, &file]);
    expect_message(&output, 1, "--fail-on: not all was seen");
    Outcome::Pass
}

fn wrong_words_are_refused(env: &TestEnv) -> Outcome {
    let run = |words: &[&'static str]| [&["run"], words, &["--", "true"]].concat();
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &["--durability", "--fail-on", "x"],
            &["\"x\" is not a rule", "replaced-unsynced"],
        ),
        (
            &["--durability", "--ack", "y"],
            &["unknown source of acknowledgements \"y\"", "fd:N", "socket"],
        ),
        (
            &["--durability", "--ack", "fd:77"],
            &["descriptor 77 is not open"],
        ),
        (
            &["--durability", "sync=off"],
            &["sync=off takes them away", "leave sync=off out"],
        ),
        (
            &["--durability", "--known", "/nonexistent"],
            &["--known /nonexistent"],
        ),
        (&["--sarif", "x"], &["--durability"]),
    ];
    for (words, texts) in cases {
        let output = env.refit(&run(words));
        texts
            .iter()
            .for_each(|text| expect_message(&output, 125, text));
    }
    Outcome::Pass
}
