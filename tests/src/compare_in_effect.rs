//! `refit compare`: equal ground beneath all variants, and no verdict for a swap that did not take.

use serde_json::{Value, json};

use crate::compared::{compare, effect, list, printed, variant};
use crate::locations::system_library;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(the_same_filter_lies_beneath_all_variants),
    test!(without_syncs_no_setting_of_syncs_is_judged),
    test!(a_swap_that_took_in_a_part_is_told),
    test!(an_allocator_that_did_not_take_is_disqualified),
    test!(debians_redis_keeps_the_allocator_that_it_links),
    test!(what_cannot_be_seen_disqualifies_nothing),
];

/// A scope that matches nothing, of each knob that has one, and the knobs themselves: in the result, and as it is printed.
fn idle() -> [(&'static str, Value, &'static str); 6] {
    let unmatched = |scope: &str| json!({ "nothing_matched": scope });
    [
        ("sync=off", json!("no_sync_call"), "no sync call was seen"),
        (
            "sync@exe:nosuch=off",
            unmatched("sync@exe:nosuch"),
            "nothing matched sync@exe:nosuch",
        ),
        (
            "sync@/no/where/=off",
            unmatched("sync@/no/where/"),
            "nothing matched sync@/no/where/",
        ),
        (
            "odirect=off",
            json!("no_direct_open"),
            "nothing was opened with O_DIRECT",
        ),
        ("disk=8ms", json!("no_sync_call"), "no sync call was seen"),
        (
            "disk@exe:nosuch=8ms",
            unmatched("disk@exe:nosuch"),
            "nothing matched disk@exe:nosuch",
        ),
    ]
}

/// Why a variant is out; null for one that is not.
fn disqualified<'a>(result: &'a Value, name: &str) -> &'a Value {
    &variant(result, name).1["disqualified"]
}

fn the_same_filter_lies_beneath_all_variants(env: &TestEnv) -> Outcome {
    env.require_root();
    // The preload reaches the one, and only a filter the other.
    for program in [
        "grep Seccomp /proc/self/status",
        &env.program("static_seccomp"),
    ] {
        let words: Vec<&str> = program.split(' ').collect();
        for settings in [
            &["sync=off"][..],
            &["sync=off", "disk=1us"],
            &["sync@exe:nosuch=off"],
        ] {
            let args = [
                &["--rounds", "16", "--same-output"],
                settings,
                &["--"],
                &words,
            ];
            let (_, result) = compare(env, &args.concat());
            for name in settings {
                let why = disqualified(&result, name).to_string();
                assert!(!why.contains("--same-output"), "{program}: {name}: {why}");
            }
        }
    }
    // A filter lies beneath the static one, and bare is without.
    let bare = [
        "--rounds",
        "16",
        "--same-output",
        "--bare",
        "sync@exe:nosuch=off",
        "--",
    ];
    let (_, result) = compare(
        env,
        &[&bare[..], &[&*env.program("static_seccomp")]].concat(),
    );
    let why = disqualified(&result, "bare")["failed"].to_string();
    assert!(why.contains("--same-output"), "{result:#}");
    Outcome::Pass
}

fn without_syncs_no_setting_of_syncs_is_judged(env: &TestEnv) -> Outcome {
    let commands: [&[&str]; 10] = [
        &["true"],
        &["sh", "-c", ":"],
        &["ls", "/"],
        &["cat", "/etc/passwd"],
        &["grep", "-c", "root", "/etc/passwd"],
        &["sed", "s/a/b/", "/etc/passwd"],
        &["awk", "BEGIN { print 1 }"],
        &["sort", "/etc/passwd"],
        &["head", "-c", "100000", "/dev/zero"],
        &["sh", "-c", "true; true; true"],
    ];
    let idle = idle();
    let settings: Vec<&str> = idle.iter().map(|(setting, ..)| *setting).collect();
    for command in commands {
        let args = [&["--rounds", "16"], &settings[..], &["--"], command].concat();
        let (output, result) = compare(env, &args);
        // No candidate is left.
        expect_code(&output, 2);
        for effect in list(&result["effects"]) {
            assert_eq!(effect["verdict"], Value::Null, "{command:?}: {effect}");
        }
        for (setting, why, words) in &idle {
            let expected = json!({ "not_in_effect": [why] });
            assert_eq!(disqualified(&result, setting), &expected, "{command:?}");
            let settings = &variant(&result, setting).1["settings"];
            assert_eq!(settings[0]["in_effect"], json!({ "nowhere": [why] }));
            let line = format!("disqualified: {setting}: not in effect: {words}");
            assert!(printed(&output).contains(&line), "{}", printed(&output));
        }
    }
    Outcome::Pass
}

fn a_swap_that_took_in_a_part_is_told(env: &TestEnv) -> Outcome {
    let own = env.program("own_malloc");
    let script = format!("{own} {}", env.path("file"));
    let args = ["--rounds", "16", "malloc=jemalloc", "--", "sh", "-c"];
    let (output, result) = compare(env, &[&args[..], &[&*format!("{script}; true")]].concat());
    expect_code(&output, 0);
    let why = "own_malloc has a malloc of its own, which no library can replace";
    let (_, candidate) = variant(&result, "malloc=jemalloc");
    let server = &candidate["settings"][0]["in_effect"]["partly"][0]["other_malloc"];
    assert_eq!(server["executable"].as_str(), Some(&*own));
    assert_eq!(server["object"], server["executable"]);
    assert!(effect(&result, "malloc=jemalloc", "wall")["verdict"].is_string());
    let line = format!("in effect in part: malloc=jemalloc: {why}");
    let printed = printed(&output).replace("\n  ", " ");
    assert!(printed.contains(&line), "{printed}");
    Outcome::Pass
}

fn an_allocator_that_did_not_take_is_disqualified(env: &TestEnv) -> Outcome {
    let (linked, file) = (env.program("linked_jemalloc"), env.path("file"));
    let args = [
        "--rounds",
        "16",
        "malloc=glibc",
        "malloc=mimalloc",
        "--",
        &linked,
        &file,
    ];
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    let printed = printed(&output).replace("\n  ", " ");
    let links =
        "not in effect: malloc is served by libjemalloc.so.2, which linked_jemalloc links; ";
    let (_, advised) = printed.split_once(links).expect(&printed);
    assert_eq!(disqualified(&result, "malloc=mimalloc"), &Value::Null);
    // What it advises helps.
    let setting = advised.split(' ').next().expect("it names a setting");
    let (output, report) = env.refit_json(&["run", setting, "--", &linked, &file]);
    expect_code(&output, 0);
    let object = report["executables"][0]["malloc_object"].to_string();
    assert!(object.contains("libc.so.6"), "{setting}: {object}");
    assert_eq!(report["settings"][0]["in_effect"], "everywhere");
    Outcome::Pass
}

fn debians_redis_keeps_the_allocator_that_it_links(env: &TestEnv) -> Outcome {
    env.require_command("redis-server");
    let libc = &format!("malloc={}", system_library("libc.so.6"));
    let args = [
        "--rounds",
        "16",
        "malloc=glibc",
        libc,
        "--",
        "redis-server",
        "--version",
    ];
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    let why = &disqualified(&result, "malloc=glibc")["not_in_effect"][0]["other_malloc"];
    let object = why["object"].as_str().unwrap_or_default();
    assert!(object.ends_with("/libjemalloc.so.2"), "{result:#}");
    let wanted = why["libc"].as_str().map(|libc| format!("malloc={libc}"));
    assert_eq!(wanted.as_deref(), Some(libc.as_str()), "{result:#}");
    let (_, advised) = variant(&result, libc);
    assert_eq!(advised["settings"][0]["in_effect"], "everywhere");
    Outcome::Pass
}

fn what_cannot_be_seen_disqualifies_nothing(env: &TestEnv) -> Outcome {
    // Syncs by its own instructions, which nothing reaches but a filter.
    let (program, file) = (env.program("inline_asm_fsync"), env.path("file"));
    let args = [
        "--backend",
        "preload",
        "--rounds",
        "16",
        "sync=off",
        "env.A=1",
        "--",
    ];
    let (output, result) = compare(env, &[&args[..], &[&*program, &*file]].concat());
    expect_code(&output, 0);
    let of = |name: &str| &variant(&result, name).1["settings"][0]["in_effect"];
    assert_eq!(disqualified(&result, "env.A=1"), &Value::Null);
    assert_eq!(of("env.A=1"), "unknown");
    // Where the kernel is asked, it has seen them.
    let witness = &variant(&result, "sync=off").1["witness"]["seen"];
    match witness["calls"].as_u64() {
        Some(1) => {
            let why = &disqualified(&result, "sync=off")["not_in_effect"][0]["uncounted"];
            assert_eq!(why["calls"], 1, "{result:#}");
        }
        _ => {
            assert_eq!(disqualified(&result, "sync=off"), &Value::Null);
            assert_eq!(of("sync=off"), "unknown");
        }
    }
    Outcome::Pass
}
