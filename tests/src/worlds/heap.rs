//! The heap in the worlds: what is counted is what the program says that it did, or what is printed names the gap.

use serde_json::Value;

use crate::heap::{Counts, counted, printed};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

use super::{WORLDS, World, in_world};

pub const TESTS: &[Test] = &[test!(what_is_counted_is_what_the_program_did).limit_seconds(300)];

/// Each prints what is to be counted; what comes last is how much it does.
const TRUTHFUL: &[&[&str]] = &[
    &["heap_sequence", "3000"],
    &["heap_environment", "500"],
    &["heap_operators", "400"],
    &["musl_heap_sequence", "3000"],
];
/// Nobody can count what these allocate, or not all of it.
const HIDDEN: &[&[&str]] = &[
    &["own_malloc", "F"],
    &["deepbind", "F"],
    &["static_true"],
    &["static_fsync", "F"],
];
/// Words by which a report says so.
const GAPS: [&str; 5] = [
    "not reached",
    "has a malloc of its own",
    "not exact",
    "no process was counted",
    "not counted",
];

fn what_is_counted_is_what_the_program_did(env: &TestEnv) -> Outcome {
    env.require_root();
    let [mut exact, mut named] = [0; 2];
    for world in WORLDS {
        for settings in [&[][..], &["malloc=jemalloc"], &["sync=off"]] {
            for program in TRUTHFUL {
                // musl's programs have no other allocator.
                if program[0].starts_with("musl_") && settings == ["malloc=jemalloc"] {
                    continue;
                }
                let [truth, counts] = added(env, world, settings, program);
                let what = format!("{program:?} {} {settings:?}", world.name);
                assert!(truth.iter().all(|count| *count > 0), "{what}: {truth:?}");
                assert_eq!(truth, counts, "{what}");
                exact += 1;
            }
        }
        for program in HIDDEN {
            // A library's own fsync fails, and so does the program.
            let (output, _) = in_world(env, world, &["run", "--heap"], program);
            let said = described(&output);
            let what = format!("{program:?} {}", world.name);
            assert!(GAPS.iter().any(|gap| said.contains(gap)), "{what}\n{said}");
            named += 1;
        }
    }
    println!("counted: {exact} exact, {named} with a gap that is named");
    Outcome::Pass
}

/// What the steps of a program add to what it prints, and to what is counted.
fn added(env: &TestEnv, world: World, settings: &[&str], program: &[&str]) -> [Counts; 2] {
    let [more, none] = [program[1], "0"].map(|steps| {
        let verb = [&["run", "--heap"], settings].concat();
        let (output, report): (_, Value) = in_world(env, world, &verb, &[program[0], steps]);
        expect_code(&output, 0);
        let printed = printed(&output);
        [printed[printed.len() - 1], counted(&report, program[0])]
    });
    [0, 1].map(|which| std::array::from_fn(|i| more[which][i].wrapping_sub(none[which][i])))
}
