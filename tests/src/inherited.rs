//! Whatever refit was started with — signals ignored or blocked, closed descriptors, an odd umask, a priority, limits,
//! a locale — its verbs work as without, and the programs that it runs get the same.

use std::collections::BTreeMap;
use std::fs;

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, expect_code, refit_path};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(programs_get_what_they_would_have_without),
    test!(every_verb_works),
];

/// What the words before a command make of its start.
const STATES: &[(&str, &[&str])] = &[
    ("usual", &[]),
    ("SIGCHLD ignored", &["env", "--ignore-signal=CHLD"]),
    ("all ignored", &["env", "--ignore-signal"]),
    ("all blocked", &["env", "--block-signal"]),
    ("0 closed", &["sh", "-c", "exec \"$@\" <&-", "sh"]),
    ("1 closed", &["sh", "-c", "exec \"$@\" >&-", "sh"]),
    ("2 closed", &["sh", "-c", "exec \"$@\" 2>&-", "sh"]),
    (
        "all closed",
        &["sh", "-c", "exec \"$@\" <&- >&- 2>&-", "sh"],
    ),
    ("umask 077", &["sh", "-c", "umask 077; exec \"$@\"", "sh"]),
    ("umask 777", &["sh", "-c", "umask 777; exec \"$@\"", "sh"]),
    ("nice", &["nice", "-n", "15"]),
    ("batch", &["chrt", "--batch", "0"]),
    (
        "few files",
        &["sh", "-c", "ulimit -n 40; exec \"$@\"", "sh"],
    ),
    ("no core", &["sh", "-c", "ulimit -c 0; exec \"$@\"", "sh"]),
    (
        "unknown locale",
        &["env", "LC_ALL=xx_XX.UTF-8", "LANGUAGE=xx"],
    ),
    ("no home", &["env", "-u", "HOME", "-u", "XDG_CACHE_HOME"]),
];

fn require(env: &TestEnv) {
    if !env.run(&["env", "--block-signal", "true"]).status.success() {
        env.skip("env has no --block-signal");
    }
    env.require_command("chrt");
}

/// What a process inherits, of the copy of its own /proc.
fn inherited(dir: &str) -> BTreeMap<String, String> {
    let read = |name: &str| {
        let path = format!("{dir}/{name}");
        // Under a umask of 777 the copy is nobody's to read.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).expect("it is ours");
        let text = fs::read_to_string(&path).expect("it was copied");
        fs::remove_file(&path).expect("it is ours");
        text
    };
    let status = read("status");
    let wanted = ["SigBlk", "SigIgn", "SigCgt", "Umask", "Cpus_allowed"];
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let mut all: BTreeMap<String, String> = lines
        .filter(|(name, _)| wanted.contains(name))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    assert_eq!(all.len(), wanted.len(), "{status}");
    let stat = read("stat");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let fields: Vec<&str> = fields.split(' ').collect();
    // proc_pid_stat(5): fields 19 and 41, after the first two.
    all.insert("nice".to_owned(), fields[16].to_owned());
    all.insert("policy".to_owned(), fields[38].to_owned());
    all.insert("limits".to_owned(), read("limits"));
    all.insert("cgroup".to_owned(), read("cgroup"));
    all
}

fn programs_get_what_they_would_have_without(env: &TestEnv) -> Outcome {
    require(env);
    let (refit, json) = (refit_path(), env.path("report.json"));
    let into = env.subdir("seen");
    let files = ["status", "stat", "limits", "cgroup"].map(|name| format!("/proc/self/{name}"));
    let mut copy = vec!["cp", "--remove-destination"];
    copy.extend(files.iter().map(String::as_str));
    copy.push(&into);
    let verbs: [&[&str]; 3] = [
        &[&refit, "run", "--quiet", "--"],
        &[&refit, "run", "--quiet", "--json", &json, "sync=off", "--"],
        &[
            &refit, "compare", "--quiet", "--rounds", "2", "env.A=1", "--",
        ],
    ];
    let mut usual = None;
    for (name, state) in STATES {
        expect_code(&env.run(&[state, &copy[..]].concat()), 0);
        let without = inherited(&into);
        for verb in verbs {
            expect_code(&env.run(&[state, verb, &copy].concat()), 0);
            assert_eq!(inherited(&into), without, "{name}: {verb:?}");
        }
        // The state is one: else nothing is tried.
        let usual = usual.get_or_insert_with(|| without.clone());
        let is_seen = !["usual", "no home", "unknown locale"].contains(name);
        if is_seen && !name.ends_with("closed") {
            assert_ne!(without, *usual, "{name}");
        }
    }
    Outcome::Pass
}

fn every_verb_works(env: &TestEnv) -> Outcome {
    require(env);
    env.require_command("sqlite3");
    let (refit, base) = (refit_path(), env.path("t.db"));
    expect_code(&env.run(&["sqlite3", &base, "CREATE TABLE t(a)"]), 0);
    let data = env.subdir("data");
    fs::write(format!("{data}/file"), "x").expect("it is ours");
    let table = format!("sqlite:{base}/t");
    let pid = std::process::id().to_string();
    let verbs: [(&[&str], &str); 4] = [
        (
            &[
                "compare",
                "--rounds",
                "2",
                "--fresh-copy",
                &data,
                "--prepare",
                "true",
                "env.A=1",
                "--",
                "true",
            ],
            "1 round pair",
        ),
        (&["plan", &table, "conf.index.i=a"], "CREATE INDEX"),
        (
            &["watch", "--for", "100ms", "--per", "echo 7", &pid],
            "7 operations",
        ),
        (&["doctor"], "a dynamic program loads it"),
    ];
    for (name, state) in STATES {
        for (verb, answer) in verbs {
            if verb[0] == "plan" && sys::euid() != 0 {
                continue;
            }
            let output = env.run(&[state, &[refit.as_str()][..], verb].concat());
            expect_code(&output, 0);
            let text = String::from_utf8_lossy(&output.stdout);
            let is_closed = name.starts_with('1') || name.starts_with("all closed");
            assert!(
                is_closed || text.contains(answer),
                "{name}: {verb:?}: {output:?}"
            );
        }
    }
    Outcome::Pass
}
