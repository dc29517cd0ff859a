//! A comparison in the worlds: each variant's syncs are what the kernel saw of one more run, or what is printed names the
//! gap, and no setting is said to be in effect that the kernel did not see.

use crate::compared::list;
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, described};
use crate::witness::seen;

use super::{Judged, drawn, in_world, real_calls, succeeds};

pub const TESTS: &[Test] = &[test!(each_variant_is_what_the_kernel_saw_of_it).limit_seconds(600)];

fn each_variant_is_what_the_kernel_saw_of_it(env: &TestEnv) -> Outcome {
    env.require_root();
    let mut judged = Judged::default();
    let [mut effective, mut idle] = [0, 0];
    for (program, world) in drawn() {
        // A comparison needs a program that succeeds.
        if !succeeds(env, world, program) {
            continue;
        }
        // The file is there already: each run does the same.
        let verb = ["compare", "--rounds", "2", "sync=off"];
        let (output, result) = in_world(env, world, &verb, program);
        expect_valid(&result);
        let said = described(&output);
        let what = format!("{program:?} {}", world.name);
        let mut reached = Vec::new();
        for (at, variant) in list(&result["variants"]).iter().enumerate().take(2) {
            let runs = list(&result["runs"]).iter();
            let run = runs.rev().find(|run| run["variant"] == at);
            let run = run.unwrap_or_else(|| panic!("{what}: no run of variant {at}"));
            let calls = number(&seen(env, variant)["calls"]);
            let name = variant["name"].as_str().expect("a name");
            let row = said
                .lines()
                .find(|line| line.trim_start().starts_with(name));
            // The column of the syncs says so of what was not reached.
            let is_unknown = row.is_some_and(|row| row.split(' ').any(|cell| cell == "unknown"));
            let gap = if is_unknown { "unknown:" } else { "" };
            let said = format!("{said}{gap}");
            judged.judge(real_calls(run), calls, &said, &format!("{what}: {name}"));
            reached.push(calls);
        }
        let effect = &result["variants"][1]["settings"][0]["in_effect"];
        let is_nowhere = !effect["nowhere"].is_null();
        assert!(
            effect != "everywhere" || reached[1] == 0 || world.name == "as another user",
            "{what}: in effect everywhere, {reached:?} reached the disk\n{said}"
        );
        assert!(
            !is_nowhere || reached[1] == reached[0],
            "{what}: in effect nowhere, {reached:?} reached the disk\n{said}"
        );
        effective += usize::from(effect == "everywhere" && reached[0] > 0);
        idle += usize::from(is_nowhere);
    }
    judged.expect([4, 4]);
    println!("counted: in effect {effective}, nowhere {idle}");
    assert!(effective >= 4 && idle >= 1, "{effective} {idle}");
    Outcome::Pass
}
