//! `refit compare RECIPE --prove`: what is gained and what is lost, in one table.

use std::process::Stdio;
use std::time::Duration;

use crate::crash::require_lab;
use crate::crash_remains::processes_of;
use crate::runner::{Outcome, Test};
use crate::terminal::{CTRL_C, Terminal};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_refused, wait_until};

pub const TESTS: &[Test] = &[
    test!(one_table_holds_gain_and_loss).limit_seconds(240),
    test!(ctrl_c_ends_the_power_cuts_and_prints_what_was_measured).limit_seconds(240),
    test!(killed_it_ends_the_cuts_too).limit_seconds(120),
    test!(a_recorded_service_can_be_asked_to_end).limit_seconds(120),
    test!(a_safe_variant_is_not_cut).limit_seconds(120),
    test!(without_root_the_measured_table_is_printed).limit_seconds(120),
    test!(what_cannot_be_proven_is_refused_before_anything_runs),
];

/// Little of the load, so that the rounds are many.
pub fn quick(env: &TestEnv) -> String {
    let folder = env.path("append");
    expect_code(&env.refit(&["recipes", "copy", "append-log", &folder]), 0);
    edit(&folder, |text| {
        text.replace("name = \"append-log\"", "name = \"append\"")
            .replace("operations = 2000", "operations = 40")
            .replace("length = \"8s\"", "length = \"1s\"")
    });
    folder
}

fn edit(folder: &str, edited: impl FnOnce(String) -> String) {
    let file = format!("{folder}/recipe.toml");
    let text = std::fs::read_to_string(&file).expect("copied");
    std::fs::write(&file, edited(text)).expect("writable");
}

fn one_table_holds_gain_and_loss(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    let folder = quick(env);
    let words = [
        "compare",
        &folder,
        "sync=off",
        "malloc=glibc",
        "--yes",
        "--prove",
        "--cuts",
        "24",
        "--rounds",
        "12",
        "--quiet",
    ];
    let files = ["--json", "a.json", "--html", "a.html", "--md", "a.md"];
    let output = env.refit(&[&words[..], &files].concat());
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answer = text.lines().next().unwrap_or_default();
    // Not everything where another process of the machine called sync(2), which flushes this disk too.
    assert!(
        answer.contains("`sync=off`") && answer.contains("lost "),
        "{answer}"
    );
    assert_eq!(text.matches("lossy images").count(), 1, "{text}");
    let json = std::fs::read_to_string(env.path("a.json")).expect("written");
    let stored: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(stored["kind"], "compare");
    let modes = stored["proof"]["cut"]["modes"].as_array().expect("modes");
    let names: Vec<&str> = modes
        .iter()
        .filter_map(|mode| mode["name"].as_str())
        .collect();
    assert_eq!(names, ["control", "baseline", "sync=off"]);
    // The same again, from the file.
    let again = env.refit(&["report", "a.json"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), text);
    let page = std::fs::read_to_string(env.path("a.html")).expect("written");
    assert!(page.contains("Gain and loss") && page.contains("class=\"answer\""));
    let first = std::fs::read_to_string(env.path("a.md")).expect("written");
    let says = [
        "Yes: ",
        "Only if losing data at a power cut is acceptable: ",
        "No",
        "Not yet: ",
    ];
    assert!(says.iter().any(|lead| first.starts_with(lead)), "{first}");
    Outcome::Pass
}

fn ctrl_c_ends_the_power_cuts_and_prints_what_was_measured(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    let folder = quick(env);
    let words = [
        "compare", &folder, "sync=off", "--yes", "--prove", "--cuts", "4000", "--rounds", "2",
    ];
    let mut terminal = Terminal::start(env.refit_command(&words));
    // The comparison comes first.
    terminal.wait_within("control: ", Duration::from_secs(120));
    terminal.type_in(CTRL_C);
    let (status, shown) = terminal.finish();
    assert_eq!(status.code(), Some(130), "{shown}");
    for text in [
        "interrupted: the power cuts end now; what was measured is printed",
        "interrupted during the power cuts",
        "line/s",
    ] {
        assert!(shown.contains(text), "{text:?} is not in {shown}");
    }
    assert!(!shown.contains("round pair is finished"), "{shown}");
    Outcome::Pass
}

/// SIGKILL leaves no time to end anything: the kernel has to.
fn killed_it_ends_the_cuts_too(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("python3");
    let folder = quick(env);
    let words = [
        "compare", &folder, "sync=off", "--yes", "--prove", "--cuts", "5000", "--rounds", "2",
        "--quiet",
    ];
    let mut refit = env
        .refit_command(&words)
        .stdout(Stdio::null())
        .spawn()
        .expect("refit starts");
    // The comparison's own command names the folder too.
    let is_cutting = || {
        let of_folder = processes_of(&folder);
        of_folder.iter().any(|one| one.contains("\0crash\0"))
    };
    wait_until("the power is cut", is_cutting);
    refit.kill().expect("it runs");
    refit.wait().expect("it ended");
    wait_until("nothing is cut any more", || {
        processes_of(&folder).is_empty()
    });
    Outcome::Pass
}

/// A refit that measures services blocks all signals. The server's mask is read from outside: dash(1) clears its own.
fn a_recorded_service_can_be_asked_to_end(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.require_command("redis-server");
    let folder = env.path("redis");
    expect_code(&env.refit(&["recipes", "copy", "redis-aof", &folder]), 0);
    // The load is another user's.
    let masks = env.file("masks", "");
    expect_code(&env.run(&["chmod", "666", &masks]), 0);
    let server = "$(redis-cli -s socket info server | tr -d '\\r' | sed -n s/process_id://p)";
    let note = format!("load = \"grep SigBlk /proc/{server}/status >>{masks}; exec");
    edit(&folder, |text| {
        let text = text
            .replace("name = \"redis-aof\"", "name = \"redis\"")
            .replace("operations = 10000", "operations = 500")
            .replace("length = \"8s\"", "length = \"1s\"");
        let (measured, cut) = text.split_once("[promise]").expect("a promise");
        format!("{measured}[promise]{}", cut.replace("load = \"exec", &note))
    });
    let words = [
        "compare", &folder, "sync=off", "--yes", "--prove", "--cuts", "12", "--rounds", "2",
        "--json", "r.json",
    ];
    expect_code(&env.refit(&words), 0);
    // The runs had mounts of their own, and the current directory is that of before.
    assert!(std::fs::metadata(env.path("r.json")).is_ok_and(|meta| meta.len() > 0));
    let masks = std::fs::read_to_string(masks).expect("the load ran");
    let masks: Vec<&str> = masks.lines().collect();
    assert_eq!(masks, ["SigBlk:\t0000000000000000"; 2]);
    Outcome::Pass
}

fn a_safe_variant_is_not_cut(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let folder = quick(env);
    let words = [
        "compare",
        &folder,
        "malloc=glibc",
        "--yes",
        "--prove",
        "--rounds",
        "2",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("no variant that is left risks data"),
        "{text}"
    );
    assert!(!text.contains("no loss found"), "{text}");
    Outcome::Pass
}

fn without_root_the_measured_table_is_printed(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let folder = quick(env);
    let words = [
        "compare", &folder, "sync=off", "--yes", "--prove", "--rounds", "2",
    ];
    let mut command = env.refit_command(&words);
    if env.as_root() {
        // A machine without the crash lab's programs, for root.
        std::fs::create_dir(env.path("bin")).expect("new");
        for program in [
            "sh", "env", "python3", "cat", "grep", "cmp", "seq", "wc", "sort", "mkdir", "rm",
        ] {
            let found = ["/usr/bin", "/bin"].map(|dir| format!("{dir}/{program}"));
            if let Some(found) = found
                .iter()
                .find(|path| std::path::Path::new(path).exists())
            {
                std::os::unix::fs::symlink(found, env.path(&format!("bin/{program}")))
                    .expect("new");
            }
        }
        command.env("PATH", env.path("bin"));
    }
    let output = command.output().expect("refit runs");
    expect_code(&output, 2);
    let shown = described(&output);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("line/s"), "{shown}");
    assert!(
        text.contains("what a power cut takes was not tested"),
        "{shown}"
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("simulated power cuts cannot be made here"),
        "{shown}"
    );
    assert!(errors.contains("measured all the same"), "{shown}");
    Outcome::Pass
}

fn what_cannot_be_proven_is_refused_before_anything_runs(env: &TestEnv) -> Outcome {
    let cases: [(&[&str], &[&str]); 4] = [
        (
            &["--prove", "sync=off", "--", "true"],
            &["--prove needs a recipe", "refit compare append-log --prove"],
        ),
        (
            &["fsync-loop", "--prove"],
            &["fsync-loop has no [promise]", "append-log"],
        ),
        (&["append-log", "--cuts", "5"], &["--cuts is for --prove"]),
        (
            &["append-log", "--prove", "--cuts", "0"],
            &["--cuts 0", "at least 1"],
        ),
    ];
    for (words, texts) in cases {
        expect_refused(env, &[&["compare"], words].concat(), texts);
    }
    Outcome::Pass
}
