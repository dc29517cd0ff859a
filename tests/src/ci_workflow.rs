//! docs/ci-workflow.yml: its shell steps as GitHub's runner starts them, in a repository of our own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::compare_junit;
use crate::compared::list;
use crate::deadline::emulated;
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(the_workflow_passes_a_faster_program_and_fails_a_slower_one).limit_seconds(300),
    test!(the_page_has_what_the_command_has),
];

/// Read as YAML, by a parser that is not ours.
fn workflow(env: &TestEnv) -> Value {
    env.require_command("python3");
    let reader =
        "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))['jobs']))";
    let file = source_dir().join("docs/ci-workflow.yml");
    let mut python = Command::new("python3");
    let output = python
        .args(["-c", reader])
        .arg(file)
        .output()
        .expect("python3 starts");
    if String::from_utf8_lossy(&output.stderr).contains("No module named 'yaml'") {
        env.skip("python3 has no yaml");
    }
    assert!(output.status.success(), "{}", described(&output));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// A repository whose main branch has a program that sleeps so long, and whose checkout has one that sleeps so long.
/// In seconds, and longer on an emulated processor, whose own noise would hide it.
fn repository(env: &TestEnv, name: &str, sleeps: [f64; 2]) -> String {
    let directory = env.subdir(name);
    let [base, proposed] = sleeps.map(|seconds| seconds * emulated());
    let script = format!(
        "set -e
        export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init --quiet --initial-branch=main origin && cd origin
        printf 'program: program.sh\\n\\tinstall -m 755 program.sh program\\n' >Makefile
        printf '#!/bin/sh\\ntest \"$*\" = \"--rows 1000\" && exec sleep {base}\\n' >program.sh
        git add . && git commit --quiet -m base && cd ..
        git clone --quiet origin workspace && cd workspace
        git checkout --quiet -b proposed
        printf '#!/bin/sh\\ntest \"$*\" = \"--rows 1000\" && exec sleep {proposed}\\n' >program.sh
        git commit --quiet -a -m proposed"
    );
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", &script])
        .current_dir(&directory)
        .output()
        .expect("sh starts");
    assert!(output.status.success(), "{}", described(&output));
    directory
}

/// Runs the shell steps of the job; the output of the last one that ran.
fn run_steps(env: &TestEnv, directory: &str) -> Output {
    let jobs = workflow(env);
    let job = &jobs["compare"];
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in job["env"].as_object().expect("variables") {
        let value = value.as_str().expect("a text").to_owned();
        variables.insert(name.clone(), value);
    }
    variables.insert("BUDGET".to_owned(), "20s".to_owned());
    let refit = Path::new(&refit_path())
        .parent()
        .expect("a directory")
        .display()
        .to_string();
    let path = std::env::var("PATH").expect("there is one");
    let (workspace, temporary) = (
        format!("{directory}/workspace"),
        format!("{directory}/temp"),
    );
    fs::create_dir_all(&temporary).expect("it is ours");
    let mut last = None;
    for (index, step) in list(&job["steps"]).iter().enumerate() {
        let Some(script) = step["run"].as_str() else {
            let uses = step["uses"].as_str().expect("a step has either");
            assert!(uses.starts_with("actions/"), "{uses}");
            continue;
        };
        assert!(
            !script.contains("${{"),
            "only GitHub can fill this in: {script}"
        );
        let file = format!("{temporary}/step-{index}.sh");
        fs::write(&file, script).expect("it is ours");
        let mut shell = Command::new("bash");
        shell
            .args(["-e", &file])
            .current_dir(&workspace)
            .envs(&variables);
        shell
            .env("PATH", format!("{refit}:{path}"))
            .env("RUNNER_TEMP", &temporary);
        shell
            .env("GITHUB_WORKSPACE", &workspace)
            .env("GITHUB_BASE_REF", "main");
        shell.env(
            "GITHUB_STEP_SUMMARY",
            format!("{temporary}/summary-{index}.md"),
        );
        let output = shell.output().expect("bash starts");
        let ended = output.status.success();
        last = Some(output);
        if !ended {
            break;
        }
    }
    last.expect("it has shell steps")
}

fn the_workflow_passes_a_faster_program_and_fails_a_slower_one(env: &TestEnv) -> Outcome {
    for command in ["git", "make", "bash"] {
        env.require_command(command);
    }
    for (name, sleeps, code, fate) in [
        ("faster", [0.06, 0.02], 0, "passed"),
        ("slower", [0.02, 0.06], 1, "failure"),
    ] {
        let directory = repository(env, name, sleeps);
        expect_code(&run_steps(env, &directory), code);
        let results = format!("{directory}/temp/refit");
        let mut there: Vec<String> = fs::read_dir(&results)
            .expect("the workflow made it")
            .map(|entry| {
                entry
                    .expect("it can be listed")
                    .file_name()
                    .display()
                    .to_string()
            })
            .collect();
        there.sort();
        assert_eq!(
            there,
            ["benchmark.json", "junit.xml", "result.html", "result.json"]
        );
        let read = compare_junit::read(env, &format!("{name}/temp/refit/junit.xml"));
        let last = list(&read["cases"]).last().expect("a test case");
        assert_eq!([&last[1], &last[2]], ["wall<+2%", fate], "{read:#}");
        let summaries = fs::read_dir(format!("{directory}/temp")).expect("it is ours");
        let summaries: Vec<String> = summaries
            .map(|entry| entry.expect("it can be listed").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
            .map(|path| fs::read_to_string(path).expect("it is text"))
            .collect();
        assert_eq!(summaries.len(), 1);
        assert!(summaries[0].contains("gate wall"), "{}", summaries[0]);
    }
    Outcome::Pass
}

/// Each option that docs/ci.md names is one of `refit compare` or of the tools that it names.
fn the_page_has_what_the_command_has(env: &TestEnv) -> Outcome {
    let page = fs::read_to_string(source_dir().join("docs/ci.md")).expect("it is there");
    let help = env.refit(&["compare", "--help"]);
    expect_code(&help, 0);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let of_bencher = ["--adapter", "--file"];
    let is_of_option = |c: char| c.is_ascii_lowercase() || c == '-';
    let mut seen = 0;
    for (start, _) in page.match_indices("--") {
        let rest = &page[start..];
        let option = &rest[..rest.find(|c| !is_of_option(c)).unwrap_or(rest.len())];
        if option.trim_matches('-').is_empty() || of_bencher.contains(&option) {
            continue;
        }
        seen += 1;
        assert!(
            help.contains(&format!("{option} ")) || help.contains(&format!("{option}\n")),
            "{option}"
        );
    }
    assert!(seen > 15, "{seen}");
    Outcome::Pass
}
