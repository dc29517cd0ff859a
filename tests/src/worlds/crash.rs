//! Power cuts in the worlds: a program that syncs loses nothing, and without its syncs it does, or what is printed says
//! that the setting did not reach it.

use std::fs;

use serde_json::Value;

use crate::crash::{bad, mode, require_lab, states};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;
use crate::test_env::{described, finish, refit_path};

use super::{FAILING, GAPS, World, drawn, words_of};

pub const TESTS: &[Test] = &[test!(cuts_take_what_was_not_synced).limit_seconds(600)];

/// Each file is there before its program syncs it, and its name is the acknowledgement.
const ITEMS: &str = "for item in f1 f2 f3 f4 f5 f6; do
    : >$REFIT_MOUNT/$item && chmod 666 $REFIT_MOUNT/$item && PROGRAM >/dev/null && echo $item || exit 1
done";
const CHECK: &str = "cd $REFIT_MOUNT && ls | grep '^f' || true";

fn cuts_take_what_was_not_synced(env: &TestEnv) -> Outcome {
    require_lab(env);
    let [mut worlds, mut lost, mut unreached] = [0; 3];
    for (program, world) in drawn() {
        // The one syncs nothing; where every fsync fails, no file system is made.
        if program[0] == "static_true" || world.name == FAILING {
            continue;
        }
        worlds += 1;
        let what = format!("{program:?} {}", world.name);
        let (said, report) = cut(env, world, program);
        let baseline = mode(&report, "baseline");
        assert!(!states(baseline).is_empty(), "{what}\n{said}");
        assert_eq!(bad(baseline), 0, "{what}: the program syncs\n{said}");
        let off = mode(&report, "sync=off");
        let is_lost = bad(off) > 0;
        let is_named = GAPS.iter().any(|gap| said.contains(gap));
        assert!(is_lost || is_named, "{what}: nothing was lost\n{said}");
        lost += usize::from(is_lost);
        unreached += usize::from(!is_lost);
    }
    println!(
        "counted: {worlds} worlds: {lost} lost without their syncs, {unreached} named why not"
    );
    assert!(lost >= 10, "{lost}");
    Outcome::Pass
}

/// What was printed of the cuts of a program in a world, and the report.
fn cut(env: &TestEnv, world: World, program: &[&str]) -> (String, Value) {
    let [json, record] = [env.path("crash.json"), env.path("record")];
    let _ = fs::remove_dir_all(&record);
    let file = "$REFIT_MOUNT/$item";
    let mut command = words_of(env, world.inner, file);
    command.push(env.program(program[0]));
    command.extend(words_of(env, &program[1..], file));
    let script = ITEMS.replace("PROGRAM", &command.join(" "));
    let mut words = words_of(env, world.outer, file);
    words.push(refit_path());
    let rest = [
        "crash",
        "--json",
        &json,
        "--record",
        &record,
        "--check",
        CHECK,
        "--ack",
        "fd:1",
        "--size",
        "64M",
        "--cuts",
        "20",
        "--for",
        "1h",
        "--prepare",
        "chmod 777 $REFIT_MOUNT",
        "sync=off",
        "--",
        "sh",
        "-c",
        &script,
    ];
    words.extend(rest.map(str::to_owned));
    let output = finish(env.command(&words[0]).args(&words[1..]));
    let said = described(&output);
    let report = fs::read(&json).unwrap_or_else(|error| panic!("{words:?}: {error}\n{said}"));
    (said, serde_json::from_slice(&report).expect("it is JSON"))
}
