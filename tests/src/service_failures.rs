//! Services that do not start, stay or end: what is reported of them, which variant is disqualified, and that nothing of
//! them keeps running.

use std::net::TcpListener;
use std::process::{Child, Stdio};

use crate::compared::{messages, printed};
use crate::recipe_folder::RecipeFolder;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_server_that_never_gets_ready_is_out_with_its_last_words),
    test!(each_way_to_be_ready_names_what_was_missing),
    test!(a_server_that_dies_under_load_is_named),
    test!(what_outlives_a_run_is_killed_and_named),
    test!(a_server_that_ignores_its_end_is_killed_and_named),
    test!(a_port_that_is_taken_is_in_the_servers_words),
];

fn a_server_that_never_gets_ready_is_out_with_its_last_words(env: &TestEnv) -> Outcome {
    let hangs = "test ! -e broken || { echo waiting for a miracle; exec sleep 600; }";
    // The limit is the working variant's as well.
    let folder = RecipeFolder::service(env, "late")
        .set("service.ready-timeout", "'5s'")
        .with_broken()
        .starting_with(hangs);
    folder.expect_broken_is_out(
        "the service was not ready within 5 s (nobody listens on port line): waiting for a miracle",
    );
    Outcome::Pass
}

fn each_way_to_be_ready_names_what_was_missing(env: &TestEnv) -> Outcome {
    // Long enough for a shell to start and print a line.
    let late = RecipeFolder::service(env, "late").set("service.ready-timeout", "'3s'");
    let ways = [
        ("{ tcp = 'line' }", "nobody listens on port line"),
        ("{ unix = 'run/socket' }", "nobody listens on run/socket"),
        ("{ log = '^up$' }", "no line of its output matches `^up$`"),
        (
            "{ log = 'up', file = 'log' }",
            "no line of log matches `up`",
        ),
        ("{ command = 'test -e up' }", "`test -e up` fails"),
        // Its own timeout is not reached.
        ("{ command = 'exec sleep 60' }", "`exec sleep 60` fails"),
    ];
    // All at once: each of them does nothing but wait.
    let waiting: Vec<(String, &str, Child)> = ways
        .iter()
        .enumerate()
        .map(|(number, (ready, wanted))| {
            let name = format!("late-{number}");
            let mut refit = RecipeFolder::service(env, &name)
                .set("service.ready-timeout", "'3s'")
                .starting_with("echo not yet; exec sleep 600")
                .set("service.ready", ready)
                .comparison(&[]);
            refit.stdout(Stdio::piped()).stderr(Stdio::piped());
            (name, *wanted, refit.spawn().expect("refit starts"))
        })
        .collect();
    let names: Vec<String> = waiting.iter().map(|(name, ..)| name.clone()).collect();
    for (name, wanted, refit) in waiting {
        let output = refit.wait_with_output().expect("it is our child");
        expect_code(&output, 2);
        assert!(output.stdout.is_empty(), "{}", described(&output));
        let messages = messages(&output);
        let all = format!(
            "the baseline failed: the service was not ready within 3 s ({wanted}): not yet"
        );
        assert!(messages.contains(&all), "{messages}");
        let next = format!("refit recipes check ./{name}");
        assert!(messages.contains(&next), "{messages}");
    }
    for name in names {
        RecipeFolder::service(env, &name).nothing_left();
    }
    // Or it ends by itself.
    let gone = late
        .set("service.ready-timeout", "'1h'")
        .text("service.start", "echo no license >&2; exit 4");
    let messages = gone.refused(&[]);
    let all = "the service ended with exit code 4 before it was ready: no license";
    assert!(messages.contains(all), "{messages}");
    Outcome::Pass
}

fn a_server_that_dies_under_load_is_named(env: &TestEnv) -> Outcome {
    let program = env.program("line_service");
    let serve = format!("exec {program} serve $REFIT_PORT_LINE lines");
    let folder = RecipeFolder::service(env, "dying").with_broken();
    let dying = format!("{serve} $(test ! -e broken || echo 9)");
    folder.clone().text("service.start", &dying).expect_broken_is_out(
        "the service ended during load.command, exit code 3: listening on PORT no strength left for line 9",
    );
    // A load that sees nothing of it does not prove anything.
    let load = format!("{program} load $REFIT_PORT_LINE");
    let careless = format!(
        "{load} 10; test ! -e broken || {{ kill -9 $(cat pid); while {load} 0; do :; done; }}; true"
    );
    folder
        .text("service.start", &format!("echo $$ >pid; {serve}"))
        .text("load.command", &careless)
        .expect_broken_fails("the service ended during load.command, signal 9: listening on PORT");
    Outcome::Pass
}

fn what_outlives_a_run_is_killed_and_named(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::service(env, "parents")
        .set("service.stop-timeout", "'3s'")
        .with_broken();
    // Before its exec it is called setsid.
    let asleep = "setsid sleep 600 & until grep -qx sleep /proc/$!/comm; do :; done";
    let daemon = format!("test ! -e broken || {{ {asleep}; }}");
    folder.clone().starting_with(&daemon).expect_broken_fails(
        "the service left processes behind within 3 s of service.stop, and was killed: sleep (pid PID): listening on PORT",
    );
    // Whoever started it, it is told: with a cgroup as what it is, else as the service's.
    for (key, command) in [("load.drain", daemon.as_str()), ("service.setup", asleep)] {
        let output = folder.clone().text(key, command).check();
        expect_code(&output, 1);
        let text = printed(&output);
        let failed: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("FAILED"))
            .collect();
        let all = failed
            .iter()
            .all(|line| line.contains("killed: sleep (pid "));
        let expected = if key == "load.drain" { 1 } else { 3 };
        assert!(all && failed.len() == expected, "{}", described(&output));
        folder.nothing_left();
    }
    Outcome::Pass
}

fn a_server_that_ignores_its_end_is_killed_and_named(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::service(env, "deaf")
        .set("service.stop-timeout", "'3s'")
        .with_broken();
    folder
        .clone()
        .starting_with("test ! -e broken || trap '' TERM")
        .expect_broken_fails(
            "the service did not end within 3 s of service.stop, and was killed: line_service (pid PID): listening on PORT",
        );
    for (stop, reason) in [
        ("exit 5", "service.stop failed, exit status: 5"),
        ("exec sleep 600", "service.stop did not end within 3 s"),
    ] {
        let stop = format!("test ! -e broken || {stop}; kill $(cat pid)");
        folder
            .clone()
            .starting_with("echo $$ >pid")
            .text("service.stop", &stop)
            .expect_broken_fails(reason);
    }
    Outcome::Pass
}

fn a_port_that_is_taken_is_in_the_servers_words(env: &TestEnv) -> Outcome {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let start = format!("exec {} serve {port} lines", env.program("line_service"));
    let folder = RecipeFolder::service(env, "taken")
        .set("needs.network", "true")
        .text("service.start", &start)
        .set("service.ready", "{ log = 'listening' }");
    let messages = folder.refused(&[]);
    let all = format!(
        "the service ended with exit code 1 before it was ready: {port}: Address already in use"
    );
    assert!(messages.contains(&all), "{messages}");
    Outcome::Pass
}
