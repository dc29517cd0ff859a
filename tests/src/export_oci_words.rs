//! `refit export oci`: the profile that it makes of another one, how its options are quoted, and what it refuses.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::compared::list;
use crate::containers::{DEFAULT, require_default};
use crate::export_oci::{CALLS, exported};
use crate::locations::system_library;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_message};

pub const TESTS: &[Test] = &[
    test!(every_other_rule_of_a_profile_is_kept),
    test!(a_shell_reads_the_options_as_they_are_meant),
    test!(what_a_container_cannot_have_is_refused),
    test!(what_risks_data_or_replaces_the_images_is_told),
];

/// What a profile decides about each call, by the conditions.
fn decisions(profile: &Value) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in list(&profile["syscalls"]) {
        let mut conditions = rule.clone();
        conditions
            .as_object_mut()
            .expect("an object")
            .remove("names");
        for name in list(&rule["names"]) {
            let name = name.as_str().expect("a name").to_owned();
            all.entry(name).or_default().push(conditions.to_string());
        }
    }
    all
}

fn every_other_rule_of_a_profile_is_kept(env: &TestEnv) -> Outcome {
    require_default(env);
    exported(
        env,
        &["sync=off", "--profile", DEFAULT, "--seccomp", "off.json"],
    );
    let read = |path: &str| -> Value {
        let text = fs::read_to_string(path).expect("it is there");
        serde_json::from_str(&text).expect("it is JSON")
    };
    let (mut given, mut made) = (read(DEFAULT), read(&env.path("off.json")));
    let (mut before, mut after) = (decisions(&given), decisions(&made));
    for call in CALLS {
        let allowed = before.remove(call).expect("it is allowed there");
        assert!(
            allowed.iter().all(|rule| rule.contains("SCMP_ACT_ALLOW")),
            "{call}"
        );
        let swapped = after.remove(call).expect("it is swapped here");
        assert_eq!(swapped.len(), allowed.len(), "{call}");
        for rule in swapped {
            let rule: Value = serde_json::from_str(&rule).expect("it is ours");
            assert_eq!(
                [&rule["action"], &rule["errnoRet"]],
                [&json!("SCMP_ACT_ERRNO"), &json!(0)]
            );
        }
    }
    assert!(before.len() > 300 && before == after);
    for profile in [&mut given, &mut made] {
        profile
            .as_object_mut()
            .expect("an object")
            .remove("syscalls");
    }
    assert_eq!(given, made);
    Outcome::Pass
}

fn a_shell_reads_the_options_as_they_are_meant(env: &TestEnv) -> Outcome {
    let library = env.file("library.so", "");
    let file = env.path("it's a $(profile).json");
    let preload = format!("preload={library}");
    let (options, _) = exported(
        env,
        &[
            "sync=off",
            &preload,
            "env.A=x\ny",
            "tz=UTC",
            "--seccomp",
            &file,
        ],
    );
    let expected = [
        "--security-opt".to_owned(),
        format!("seccomp={file}"),
        "-v".to_owned(),
        format!("{library}:/refit/1/library.so:ro"),
        "-e".to_owned(),
        "LD_PRELOAD=/refit/1/library.so".to_owned(),
        "-e".to_owned(),
        "A=x\ny".to_owned(),
        "-e".to_owned(),
        "TZ=UTC".to_owned(),
    ];
    assert_eq!(options, expected);
    let text = fs::read_to_string(file).expect("it was written");
    let profile: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut names: Vec<&Value> = list(&profile["syscalls"][0]["names"]).iter().collect();
    names.sort_by_key(|name| name.as_str());
    let mut calls = CALLS;
    calls.sort_unstable();
    assert_eq!(names, calls);
    Outcome::Pass
}

fn what_a_container_cannot_have_is_refused(env: &TestEnv) -> Outcome {
    let blocked = json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}]});
    let blocked = env.file("blocked.json", &blocked.to_string());
    let (text, array) = (
        env.file("text.json", "no JSON"),
        env.file("array.json", "[]"),
    );
    let colon = env.subdir("a:b");
    // Any shared object: only the path is refused.
    fs::copy(
        system_library("libc.so.6"),
        format!("{colon}/libjemalloc.so.2"),
    )
    .expect("the C library can be read");
    let none = format!("preload={}", env.path("none.so"));
    for (args, message) in [
        (
            &["disk=8ms"][..],
            "refit run disk=8ms -- COMMAND, in a build by --dockerfile",
        ),
        (&["disk=fail:EIO"], "options of a container cannot do this"),
        (&["sync@exe:a=off"], "options of a container cannot do this"),
        (&["odirect=off"], "options of a container cannot do this"),
        (&["thp=never"], "options of a container cannot do this"),
        (&["conf.a=b"], "options of a container cannot do this"),
        (
            &["program=/bin/true"],
            "options of a container cannot do this",
        ),
        (&["sync=off"], "name a new one: --seccomp FILE"),
        (
            &["tz=UTC", "--seccomp", "new.json"],
            "--seccomp is for sync=off",
        ),
        (
            &["sync=off", "--seccomp", "none/new.json"],
            "there is no directory",
        ),
        (
            &[
                "sync=off",
                "--seccomp",
                "new.json",
                "--profile",
                "none.json",
            ],
            "cannot read none.json",
        ),
        (
            &["sync=off", "--seccomp", "new.json", "--profile", &text],
            "is not JSON",
        ),
        (
            &["sync=off", "--seccomp", "new.json", "--profile", &array],
            "it is not a seccomp profile",
        ),
        (
            &["sync=off", "--seccomp", "new.json", "--profile", &blocked],
            "it blocks every sync call by itself",
        ),
        (&["sync=off", "--profile", &array], "--seccomp <FILE>"),
        (&["tz=UTC", "--", "true"], "leave out `-- true`"),
        (
            &["--dockerfile", "sync=off"],
            "no command for the instruction",
        ),
        (
            &["malloc=jemalloc", "--allocator-dir", &colon],
            "copy it to a path without colons",
        ),
        (&[&none], "there is no library"),
        (&["malloc=nothing"], "malloc"),
        (&[], "SETTINGS"),
    ] {
        let output = env.refit(&[&["export", "oci"], args].concat());
        expect_message(&output, 2, message);
        assert!(output.stdout.is_empty(), "{}", described(&output));
        assert!(fs::metadata(env.path("new.json")).is_err(), "{args:?}");
    }
    Outcome::Pass
}

fn what_risks_data_or_replaces_the_images_is_told(env: &TestEnv) -> Outcome {
    let drops = format!("preload={}", env.program("no_fsync"));
    let (_, told) = exported(env, &[&drops]);
    assert!(
        told.contains(&format!("{drops}: loses-on-crash; ")),
        "{told}"
    );
    assert!(
        told.contains("LD_PRELOAD of the image is replaced"),
        "{told}"
    );
    let harmless = format!("preload={}", system_library("libm.so.6"));
    let (_, told) = exported(env, &[&harmless, "malloc=glibc:arena_max=2"]);
    assert!(!told.contains("loses-on-crash"), "{told}");
    assert!(
        told.contains("GLIBC_TUNABLES of the image is replaced"),
        "{told}"
    );
    Outcome::Pass
}
