//! Programs with a seccomp filter of their own, which kills for every system call that the program does not make:
//! refit must not make one either.

use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(no_intercepted_function_makes_a_call_of_its_own).limit_seconds(120),
    test!(an_inherited_filter_is_noticed_before_anything_else),
    test!(a_filter_that_the_kernel_refused_changes_nothing),
];

/// Exported, and in no library of this machine under a name that the program could be linked to; the last one is for
/// refit's other library.
const IN_NO_LIBRARY: [&str; 3] = [
    "openat2",
    "io_uring_queue_init_mem",
    "refit_sync_has_own_seccomp",
];

/// Each way in which a program can install a filter through its C library.
const HOW: [&str; 3] = ["prctl", "seccomp", "prctl-by-number"];

fn lines(output: &Output) -> Vec<String> {
    expect_code(output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

fn no_intercepted_function_makes_a_call_of_its_own(env: &TestEnv) -> Outcome {
    let dir = env.subdir("files");
    let (file, exit_only) = (format!("{dir}/own"), env.program("exit_only"));
    let trace = env.path("trace");
    let scopes = [format!("sync@{dir}/=off"), format!("odirect@{dir}/=off")];
    let settings: [&[&str]; 7] = [
        &[],
        &["sync=off"],
        &["odirect=off"],
        &["disk=1ms"],
        &["sync@exe:another=off"],
        &[&scopes[0], &scopes[1]],
        &["--trace-sync", &trace, "sync=off"],
    ];
    for name in ["own_filter", "musl_own_filter"] {
        let program = env.program(name);
        for how in HOW {
            let words = [&*program, &*file, &*exit_only, how];
            let bare = lines(&env.run(&words));
            // 31 is SIGSYS, in a child's status too.
            let killed = |line: &&String| line.contains("killed") || line.contains(" 31 ");
            let killed: Vec<&String> = bare.iter().filter(killed).collect();
            assert!(killed.is_empty(), "{name} without refit: {killed:#?}");
            if name == "own_filter" {
                every_export_is_among(&bare);
            }
            for backend in ["auto", "preload"] {
                for settings in settings {
                    let under = ["run", "--quiet", "--backend", backend];
                    let args = [&under[..], settings, &["--"], &words].concat();
                    let counted = env.refit_json(&args).0;
                    // Where nothing is counted, filters are looked for later.
                    let is_first = how == HOW[0] && backend == "auto";
                    let quiet = is_first.then(|| env.refit(&args));
                    for output in [Some(counted), quiet].into_iter().flatten() {
                        let with = lines(&output);
                        let differs = with.iter().zip(&bare).filter(|(with, bare)| with != bare);
                        let differs: Vec<_> = differs.collect();
                        assert!(
                            differs.is_empty() && with.len() == bare.len(),
                            "{name} {how} --backend {backend} {settings:?}: {differs:#?}"
                        );
                    }
                }
            }
        }
    }
    Outcome::Pass
}

/// The program calls each function that the preload exports.
fn every_export_is_among(lines: &[String]) {
    let called: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.split([' ', ':']).next())
        .collect();
    let map = source_dir().join("crates/refit-preload/sync/exports.map");
    let map = fs::read_to_string(map).expect("the map is part of the source");
    let (_, exported) = map.split_once("global:").expect("it has a global part");
    let (exported, _) = exported.split_once("local:").expect("and a local one");
    let missing: Vec<&str> = exported
        .split(';')
        .map(str::trim)
        .filter(|name| !name.is_empty() && !called.contains(name))
        .filter(|name| !IN_NO_LIBRARY.contains(name))
        .collect();
    assert!(missing.is_empty(), "own_filter.c never calls {missing:?}");
}

fn an_inherited_filter_is_noticed_before_anything_else(env: &TestEnv) -> Outcome {
    let launcher = env.program("static_filtered_start");
    for name in ["fsync_once", "musl_fsync"] {
        let (program, file) = (env.program(name), env.path("file"));
        let words = [&*launcher, &*program, &*file];
        let bare = env.run(&words);
        expect_code(&bare, 0);
        for backend in ["auto", "preload"] {
            for setting in ["sync=on", "sync=off", "disk=1ms"] {
                let under = ["run", "--quiet", "--backend", backend, setting, "--"];
                let args = [&under[..], &words].concat();
                // Where nothing is counted it is looked for later.
                for with in [env.refit_json(&args).0, env.refit(&args)] {
                    assert_eq!(
                        (with.status, &with.stdout),
                        (bare.status, &bare.stdout),
                        "{name} --backend {backend} {setting}: {}",
                        described(&with)
                    );
                }
            }
        }
        // A filter that refit itself put there, or found there, is none of the program's.
        let json = env.path("report.json");
        let args = ["run", "--quiet", "--json", &json, "sync=off", "--"];
        let (inner, program) = (refit_path(), [&*program, &*file]);
        let outer = ["run", "--quiet", "sync=off", "--", &inner];
        for words in [args.to_vec(), [&outer[..], &args].concat()] {
            expect_code(&env.refit(&[&words[..], &program].concat()), 0);
            let text = fs::read_to_string(&json).expect("refit wrote it");
            let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(
                report["totals"]["fsync"]["suppressed"], 1,
                "{words:?}: {report:#}"
            );
        }
    }
    Outcome::Pass
}

fn a_filter_that_the_kernel_refused_changes_nothing(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("refused_filter"), env.path("file"));
    let bare = env.run(&[&program, &file]);
    expect_code(&bare, 0);
    let with = ["run", "--quiet", "sync=off", "--", &program, &file];
    let (output, report) = env.refit_json(&with);
    assert_eq!(output.stdout, bare.stdout);
    assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    Outcome::Pass
}
