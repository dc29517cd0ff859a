//! Runs whose service works, and that do not count: the wrong outcome, no number, no room, nothing installed.

use std::fs;

use crate::compared::{messages, printed};
use crate::places::in_own_mounts;
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_printed, refit_path,
};

pub const TESTS: &[Test] = &[
    test!(what_is_not_installed_is_looked_up_in_the_package_lists),
    test!(a_user_that_is_missing_or_not_root_is_reported_before_anything_runs),
    test!(a_failing_check_disqualifies_its_variant_alone),
    test!(another_outcome_disqualifies_its_variant_alone),
    test!(a_number_that_is_not_found_names_its_pattern_and_the_output),
    test!(instances_that_would_not_fit_are_refused),
    test!(a_full_disk_is_reported_and_left_empty),
];

fn what_is_not_installed_is_looked_up_in_the_package_lists(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::command(env, "needs")
        .set(
            "packages",
            "['no-such-server', 'ruby-dev', 'no-such-client']",
        )
        .set("needs.commands", "['sh', 'no-such-serverd']")
        .set("needs.files", "['/etc/pass*', '/no/such/*.so']")
        .text("service.setup", &format!("touch {}", env.path("ran")));
    let apt =
        "apt install ruby-dev (apt's package lists do not have: no-such-server, no-such-client)\n";
    let all = format!(
        "refit: the recipe needs needs no-such-serverd, /no/such/*.so\n  install it: {apt}"
    );
    let text = folder.refused(&[]);
    assert!(text.ends_with(&all), "{text}");
    let output = folder.check();
    expect_message(&output, 2, &all);
    let show = finish(&mut refit(env, &["recipes", "show", "./needs"]));
    expect_printed(&show, 0, apt);
    assert!(!fs::exists(env.path("ran")).expect("it is ours"));
    Outcome::Pass
}

fn a_user_that_is_missing_or_not_root_is_reported_before_anything_runs(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::command(env, "user").set("packages", "['sed']");
    if env.as_root() {
        let text = folder.text("service.user", "no-such-user").refused(&[]);
        let all = "runs as the user no-such-user, whom its package creates\n  install it: apt install sed\n";
        assert!(text.ends_with(all), "{text}");
    } else {
        let text = folder.set("needs.root", "true").refused(&[]);
        assert!(text.contains("the recipe user needs root"), "{text}");
        assert!(text.ends_with("sudo refit compare ./user\n"), "{text}");
    }
    Outcome::Pass
}

fn a_failing_check_disqualifies_its_variant_alone(env: &TestEnv) -> Outcome {
    let check = "wc -l <lines; test ! -e broken || { echo two lines were lost >&2; exit 9; }";
    let folder = RecipeFolder::service(env, "check")
        .with_broken()
        .text("check.command", check);
    folder.expect_broken_is_out("check.command failed, exit status: 9: two lines were lost");
    let text = folder.text("check.command", "false").refused(&[]);
    let all = "the baseline failed: check.command failed, exit status: 1";
    assert!(text.contains(all), "{text}");
    Outcome::Pass
}

fn another_outcome_disqualifies_its_variant_alone(env: &TestEnv) -> Outcome {
    let check = "test ! -e broken || echo one more >>lines; wc -l <lines";
    let folder = RecipeFolder::service(env, "outcome")
        .with_broken()
        .text("check.command", check);
    let reason = "another outcome than the baseline's: `14`, not `13`";
    folder.expect_broken_is_out(reason);
    folder.expect_broken_fails(reason);
    // A baseline that differs from itself judges nobody.
    let random = folder.text("check.command", "cat /proc/sys/kernel/random/uuid");
    let text = random.refused(&[]);
    let all = "the baseline failed: another outcome than the baseline's";
    assert!(text.contains(all), "{text}");
    Outcome::Pass
}

fn a_number_that_is_not_found_names_its_pattern_and_the_output(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::service(env, "number");
    let p99 = "load.metrics.p99";
    for (key, value, problem) in [
        (
            p99,
            "{ regex = '^p99 ([0-9]+)', unit = 'ms' }",
            "load.metrics.p99: `^p99 ([0-9]+)` finds no number",
        ),
        (
            p99,
            "{ regex = '^10 (done)', unit = 'ms' }",
            "load.metrics.p99: `^10 (done)` finds no number",
        ),
        (
            p99,
            "{ pointer = '/p99', unit = 'ms' }",
            "load.metrics.p99: the output of load.command is not JSON",
        ),
        (
            "load.operations",
            "{ regex = '([0-9]+) mails' }",
            "load.operations: `([0-9]+) mails` finds no number",
        ),
    ] {
        let folder = folder.clone().set(key, value).text(
            "load.command",
            &format!("{} load $REFIT_PORT_LINE 10", env.program("line_service")),
        );
        let text = folder.refused(&[]);
        assert!(
            text.contains(problem) && text.contains(": 10 done in "),
            "{text}"
        );
        let output = folder.check();
        expect_code(&output, 1);
        let failed = format!("FAILED  number: baseline: {problem}");
        assert!(printed(&output).contains(&failed), "{}", described(&output));
    }
    Outcome::Pass
}

/// Room is asked for before it is needed, as soon as the first instance shows how much that is. What its round pair
/// took is printed all the same.
fn instances_that_would_not_fit_are_refused(env: &TestEnv) -> Outcome {
    let sparse = "truncate -s 20T big 2>/dev/null || truncate -s 1T big";
    let large = RecipeFolder::command(env, "large").text("service.setup", sparse);
    let (output, result) = large.compare(&["--rounds", "12"]);
    expect_printed(&output, 2, "too few runs:");
    let failed = result["failed"].as_str().unwrap_or_default();
    assert!(
        failed.starts_with("the instances of all runs need about"),
        "{failed}"
    );
    large.nothing_left();
    let text = messages(&output);
    assert!(
        text.contains("the instances of all runs need about"),
        "{text}"
    );
    assert!(
        text.contains("fewer rounds (--rounds N) or another disk (--dir DIR)"),
        "{text}"
    );
    Outcome::Pass
}

fn a_full_disk_is_reported_and_left_empty(env: &TestEnv) -> Outcome {
    let fills = "dd if=/dev/zero of=big bs=64k count=100";
    let folder = RecipeFolder::command(env, "full").text("service.setup", fills);
    let folder = folder.write();
    let own = "refit: cannot make a directory in /mnt/base: No space left on device";
    let full = "service.setup failed, exit status: 1: no space is left in /mnt/base";
    // Where the candidate comes first it fails, and the room is reckoned next.
    let room = "0 MiB are free in /mnt/base";
    for (mount, words) in [
        ("size=1m", [full, room]),
        // Not even for what refit itself makes first.
        ("nr_inodes=2", [own, own]),
        ("nr_inodes=3", [own, own]),
    ] {
        let script = format!(
            "mkdir -p state base /var/lib/refit; mount --bind state /var/lib/refit
            mount -t tmpfs -o {mount} tmpfs base
            {} compare --yes --dir base {folder} 2>messages && code=0 || code=$?
            ls -A base >left; exit $code",
            refit_path()
        );
        let output = finish(&mut in_own_mounts(env, &script));
        expect_code(&output, 2);
        let [messages, left] = ["messages", "left"]
            .map(|name| fs::read_to_string(env.path(name)).expect("the script wrote it"));
        assert!(
            words.iter().any(|words| messages.contains(words)),
            "{mount}: {messages}"
        );
        assert_eq!(left, "", "{mount}");
    }
    Outcome::Pass
}
