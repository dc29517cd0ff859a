//! The disk of the results, of the instances, of a record: it is full while refit works.

use std::collections::BTreeSet;

use serde_json::Value;

use super::recipe;
use super::taken::own_pid;
use crate::crash::require_lab;
use crate::places::in_own_mounts;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_message, refit_path};

pub const TESTS: &[Test] = &[
    test!(a_full_disk_ends_each_verb_with_a_message).limit_seconds(300),
    test!(wherever_power_cuts_meet_a_full_disk_it_is_named).limit_seconds(300),
    test!(a_tuning_whose_log_cannot_be_written_is_gone_on_with).limit_seconds(120),
];

/// A verb that writes below `d`.
struct Verb {
    name: &'static str,
    words: String,
    /// Holds when it works.
    at_work: &'static str,
    /// What asks for its end, where it does not come by itself.
    then: &'static str,
    code: i32,
    /// One of the two is told.
    told: [&'static str; 2],
    /// And all of these: the file, and what to type next.
    next: &'static [&'static str],
}

const FULL: &str = "No space left on device";
const WORKS: &str = "test $(cat log | wc -l) -ge 3";

fn verbs(env: &TestEnv) -> Vec<Verb> {
    let pid = own_pid();
    let folder = recipe(env)
        .variants(&["env.A=1", "env.A=2", "env.A=3"])
        .write();
    let watch = format!("watch --batch --interval 200ms {pid}");
    let of_watch = |name, more: &str, then, told| Verb {
        name,
        words: format!("{watch} {more}"),
        at_work: "test -s out",
        then,
        code: 2,
        told,
        next: &[],
    };
    let of_lab = |name, words: String, code, told| Verb {
        name,
        words,
        at_work: WORKS,
        then: "",
        code,
        told,
        next: &[],
    };
    let command = "sh -c 'echo >>log; sleep 0.05'";
    let written = format!(
        "echo >>log; {} 30 file; sleep 0.1",
        env.program("write_fsync")
    );
    vec![
        of_watch("watch --json", "--json d/w.json", "kill -TERM $pid", [FULL; 2]),
        of_watch("watch --openmetrics", "--openmetrics d/w.prom", "lines() { cat out | wc -l; }; then=$(($(lines) + 3)); until test $(lines) -ge $then; do sleep 0.05; done; kill -TERM $pid", [FULL; 2]),
        Verb {
            at_work: "test -s d/out",
            ..of_watch("watch >FILE", ">d/out", "", ["cannot write to stdout", FULL])
        },
        of_lab(
            "compare --json",
            format!("compare --json d/r.json --rounds 12 --precision 0.0001% env.A=1 -- {command}"),
            2,
            [FULL; 2],
        ),
        of_lab(
            "compare RECIPE --dir",
            format!("compare --yes --dir $d --rounds 12 {folder}"),
            2,
            [FULL, "MiB are free in"],
        ),
        of_lab("recipes check --dir", format!("recipes check --yes --dir $d {folder}"), 1, [FULL, "FAILED  recipe"]),
        of_lab(
            "run --json",
            "run --json d/x.json -- sh -c 'echo >log; echo >>log; echo >>log; until test -e full; do sleep 0.05; done; exit 7'"
                .to_owned(),
            7,
            [FULL; 2],
        ),
        // It would go on for an hour.
        Verb {
            next: &["cannot write d/steps/", "refit tune --resume d/steps"],
            ..of_lab(
                "tune --log",
                format!("tune --with disk=2ms --log d/steps --budget 1h --accept loses-on-crash -- sh -c '{written}'"),
                2,
                [FULL; 2],
            )
        },
        Verb {
            name: "crash --record",
            words: format!(
                "crash --quiet --record $d/records --check log:a.log --ack fd:1 --size 64M --for 60s -- \
                 sh -c '{} $REFIT_MOUNT/a.log 1000000 300'",
                env.program("append_log")
            ),
            at_work: "test -s d/records/baseline/acknowledged",
            then: "",
            code: 2,
            told: [FULL; 2],
            next: &["/d/records/baseline/record", "--record DIR"],
        },
    ]
}

fn a_full_disk_ends_each_verb_with_a_message(env: &TestEnv) -> Outcome {
    require_lab(env);
    for name in ["d", "state"] {
        env.subdir(name);
    }
    for verb in verbs(env) {
        let script = format!(
            "cd {}; d=$PWD/d; rm -f log full out err
            mkdir -p /var/lib/refit; mount --bind state /var/lib/refit
            mount -t tmpfs -o size=8m tmpfs d
            {} >out 2>err {} & pid=$!
            until {}; do kill -0 $pid; sleep 0.02; done 2>/dev/null
            cat /dev/zero >d/fill 2>/dev/null || :
            touch full
            {}
            code=0; wait $pid || code=$?
            rm d/fill
            echo code $code
            find d -type f -o -name 'refit*' | sort
            for file in $(find d -name '*.json'); do printf 'json %s\\n' \"$(tr -d '\\n' <$file)\"; done",
            env.dir().display(),
            refit_path(),
            verb.words,
            verb.at_work,
            verb.then,
        );
        let output = in_own_mounts(env, &script)
            .output()
            .expect("unshare is there");
        let name = verb.name;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let [out, err] = ["out", "err"].map(|file| {
            let bytes = std::fs::read(env.path(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let all = format!(
            "{name}: {}\n--- out\n{out}--- err\n{err}",
            described(&output)
        );
        println!("{all}");
        // Otherwise it ended before the disk was full.
        assert!(output.status.success(), "{all}");
        assert!(lines.starts_with(&format!("code {}\n", verb.code)), "{all}");
        let told = verb
            .told
            .iter()
            .any(|text| (out.clone() + &err).contains(text));
        assert!(told, "{all}");
        for text in verb.next {
            assert!(err.contains(text), "{text:?} is not told: {all}");
        }
        for line in lines.lines() {
            match line.strip_prefix("json ") {
                Some(json) => assert!(serde_json::from_str::<Value>(json).is_ok(), "{all}"),
                None => assert!(!line.contains("/refit"), "an instance is left: {all}"),
            }
        }
        println!("counted: {name}: ended with {}", verb.code);
    }
    Outcome::Pass
}

/// With each number of inodes, until one is enough.
fn wherever_power_cuts_meet_a_full_disk_it_is_named(env: &TestEnv) -> Outcome {
    require_lab(env);
    env.subdir("d");
    let mut named = BTreeSet::new();
    for inodes in 1.. {
        let script = format!(
            "cd {}; mount -t tmpfs -o nr_inodes={inodes} tmpfs d
            code=0; {} crash --quiet --record d/records --check log:a.log --ack fd:1 --size 64M --for 30s --cuts 2 -- \
                sh -c '{} $REFIT_MOUNT/a.log 300 300' || code=$?
            [ -z \"$(ls d)\" ] || [ $code != 2 ]
            exit $code",
            env.dir().display(),
            refit_path(),
            env.program("append_log")
        );
        let output = in_own_mounts(env, &script).output();
        let output = output.expect("unshare is there");
        if output.status.success() {
            break;
        }
        expect_message(&output, 2, FULL);
        expect_message(&output, 2, "--record DIR");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let file = told
            .split_once("cannot write ")
            .and_then(|(_, rest)| rest.split_once(": "));
        let (file, _) = file.unwrap_or_else(|| panic!("{inodes}: {told}"));
        let (_, file) = file
            .rsplit_once("d/records")
            .unwrap_or_else(|| panic!("{inodes}: {told}"));
        named.insert(file.to_owned());
        assert!(inodes < 60, "{told}");
    }
    println!("counted: named: {named:?}");
    assert!(named.len() > 3, "{named:?}");
    Outcome::Pass
}

/// A log on a file system that is mounted read-only meanwhile; when it can be written again, the tuning goes on.
fn a_tuning_whose_log_cannot_be_written_is_gone_on_with(env: &TestEnv) -> Outcome {
    env.subdir("d");
    let written = format!(
        "echo >>log; {} 30 file; sleep 0.1",
        env.program("write_fsync")
    );
    let script = format!(
        "cd {}; refit={}; mount -t tmpfs tmpfs d
        $refit tune --with disk=2ms --log d/steps --budget 1h --accept loses-on-crash -- sh -c '{written}' >out 2>err & pid=$!
        until {WORKS}; do kill -0 $pid; sleep 0.02; done 2>/dev/null
        mount -o remount,ro d
        code=0; wait $pid || code=$?
        $refit tune --resume d/steps >out2 2>err2 && exit 1
        mount -o remount,rw d
        timeout -s INT 3 $refit tune --resume d/steps >out3 2>err3 || :
        $refit report d/steps/tune.json >shown
        cat err err2 err3 >&2
        exit $code",
        env.dir().display(),
        refit_path()
    );
    let output = in_own_mounts(env, &script).output();
    let output = output.expect("unshare is there");
    let read = |name: &str| std::fs::read_to_string(env.path(name)).unwrap_or_default();
    for text in [
        "cannot write d/steps/",
        "Read-only file system",
        "refit tune --resume d/steps",
    ] {
        expect_message(&output, 2, text);
    }
    // What was measured is told all the same, and nothing more is measured in vain.
    assert!(
        read("out").contains("refit tune --resume d/steps"),
        "{}",
        read("out")
    );
    assert!(
        read("err2").contains("cannot write d/steps/tune.json"),
        "{}",
        read("err2")
    );
    assert!(!read("err2").contains("observing"), "{}", read("err2"));
    assert!(!read("err3").contains("cannot write"), "{}", read("err3"));
    assert!(read("shown").contains("write_fsync"), "{}", read("shown"));
    Outcome::Pass
}
