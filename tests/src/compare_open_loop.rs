//! Requests at their times: `load.rate`.

use std::fs;

use serde_json::Value;

use crate::compared::printed;
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(a_server_that_stands_still_is_seen_by_an_open_loop_alone).limit_seconds(300),
    test!(redis_is_asked_at_a_rate).limit_seconds(300),
    test!(each_round_has_its_own_times_and_both_variants_the_same).limit_seconds(300),
    test!(what_has_no_rate_is_refused),
    test!(a_server_that_does_not_keep_up_does_not_count),
];

/// tests/programs/stalling_server.c, which stands still for 100 ms of each second.
fn stalling<'a>(env: &'a TestEnv, name: &str) -> RecipeFolder<'a> {
    let program = env.program("stalling_server");
    RecipeFolder::command(env, name)
        .text("service.start", &format!("exec {program} serve socket"))
        .set("service.ready", "{ unix = 'socket' }")
        .text(
            "load.command",
            &format!("{program} load socket $REFIT_OPERATIONS"),
        )
        .set("load.operations", "2000")
        .set(
            "load.metrics.p99",
            "{ regex = 'p99 ([0-9.]+)', unit = 'ms' }",
        )
        .set(
            "load.metrics.slow",
            "{ regex = 'slow ([0-9]+)', unit = 'count' }",
        )
        .set(
            "load.open",
            "{ protocol = 'lines', unix = 'socket', request = 'ping', length = '2s' }",
        )
        .text("check.command", "echo it answered")
}

/// A machine may be busy with something else again and again.
const MOST_TRIES: usize = 30;

/// What was printed, and the result. On a machine that is busy with something else runs may not count.
fn measured(env: &TestEnv, words: &[&str]) -> (String, Value) {
    let (dir, json) = (base(env), env.path("result.json"));
    let common = [
        "compare", "--yes", "--dir", &dir, "--budget", "5m", "--json", &json,
    ];
    for _ in 0..MOST_TRIES {
        let output = finish(&mut refit(env, &[&common[..], words].concat()));
        expect_code(&output, 0);
        let result = fs::read_to_string(&json).expect("it was asked for");
        let result: Value = serde_json::from_str(&result).expect("JSON");
        expect_valid(&result);
        let text = printed(&output);
        if result["plan"]["pairs"] != 0 {
            return (text, result);
        }
        // No variant is blamed for it.
        assert!(text.contains("refit sent its requests late"), "{text}");
        assert!(!text.contains("disqualified"), "{text}");
    }
    panic!("in {MOST_TRIES} comparisons refit could not send its requests at their times");
}

fn compared(env: &TestEnv, folder: &RecipeFolder, words: &[&str]) -> (String, Value) {
    measured(env, &[words, &[&folder.write(), "env.A=1"]].concat())
}

/// What the loads did in the runs that count.
fn loads(result: &Value) -> Vec<&Value> {
    let runs = result["runs"].as_array().expect("a list");
    let counted = runs.iter().filter(|run| run["failure"].is_null());
    let loads: Vec<&Value> = counted.map(|run| &run["load"]).collect();
    assert!(!loads.is_empty());
    loads
}

fn counts(load: &Value) -> Vec<[u64; 2]> {
    let counts = load["latencies"]["counts"].clone();
    serde_json::from_value(counts).expect("pairs of numbers")
}

/// Of each second the server loses a tenth. Whoever is to be asked in the first half of it waits for more than 50 ms: 5 %
/// of the requests, by the schedule alone. A closed loop has one request on its way then.
fn a_server_that_stands_still_is_seen_by_an_open_loop_alone(env: &TestEnv) -> Outcome {
    let folder = stalling(env, "stalls");
    let at_a_rate = [
        "--rounds",
        "2",
        "--with",
        "load.rate=500/s+load.arrivals=constant",
    ];
    let (text, result) = compared(env, &folder, &at_a_rate);
    assert_eq!(result["main"], "p99", "{text}");
    for load in loads(&result) {
        let all = counts(load);
        assert_eq!(all.iter().map(|[_, many]| many).sum::<u64>(), 1000);
        let slow = all.iter().filter(|[ns, _]| *ns > 50_000_000);
        let share = slow.map(|[_, many]| *many as f64).sum::<f64>() / 1000.0;
        // A machine that is busy with something else only adds to it.
        assert!((0.045..0.5).contains(&share), "{share}");
        // 1 % wait for at least nine tenths of the 100 ms.
        let p99 = load["values"]["p99"].as_f64().expect("a number") / 1e6;
        assert!(p99 > 85.0, "{p99}");
    }
    for words in ["open loop:", "measured at rate=500/s, arrivals=constant"] {
        assert!(text.contains(words), "{text}");
    }
    let (_, result) = compared(env, &folder, &["--rounds", "2"]);
    for load in loads(&result) {
        // One request of each second, and what a busy machine adds: far fewer than of those that come at their times.
        let all = load["operations"].as_f64().expect("a number");
        let slow = load["values"]["slow"].as_f64().expect("a number");
        assert!(slow / all < 0.02, "{slow} of {all}");
        assert!(load["latencies"].is_null());
    }
    Outcome::Pass
}

/// Each request takes 50 ms by itself, so that what a busy machine adds hardly counts.
fn redis_is_asked_at_a_rate(env: &TestEnv) -> Outcome {
    for command in ["redis-server", "redis-cli"] {
        env.require_command(command);
    }
    let folder = RecipeFolder::command(env, "asked")
        .text(
            "service.start",
            "exec redis-server --port 0 --unixsocket socket --save '' --loglevel warning",
        )
        .set("service.ready", "{ unix = 'socket' }")
        .text("load.command", "redis-cli -s socket ping")
        .set(
            "load.open",
            "{ protocol = 'redis', unix = 'socket', request = 'BLPOP none 0.05', length = '2s' }",
        )
        .text(
            "check.command",
            "redis-cli -s socket info commandstats | grep -o 'blpop:calls=[0-9]*'",
        );
    let words = ["--rounds", "2", "--with", "load.rate=200/s"];
    let (_, result) = compared(env, &folder, &words);
    for load in loads(&result) {
        let operations = load["operations"].as_u64().expect("a number");
        assert!(operations > 0);
        // The server's own count.
        assert_eq!(load["outcome"], format!("blpop:calls={operations}"));
        let sum: u64 = counts(load).iter().map(|[_, many]| many).sum();
        assert_eq!(sum, operations);
        // Of fewer than 1,000 requests nobody knows one of a thousand.
        for name in ["p50", "p90", "p99", "max"] {
            assert!(load["values"][name].as_f64() > Some(49e6), "{name}: {load}");
        }
    }
    Outcome::Pass
}

fn each_round_has_its_own_times_and_both_variants_the_same(env: &TestEnv) -> Outcome {
    let folder = stalling(env, "times").set(
        "load.open",
        // Each run has a stall, beside which a busy machine's lateness hardly counts.
        "{ protocol = 'lines', unix = 'socket', request = 'ping', length = '1200ms' }",
    );
    let (_, result) = compared(env, &folder, &["--rounds", "4", "--with", "load.rate=100"]);
    let runs = result["runs"].as_array().expect("a list");
    let runs = runs.iter().filter(|run| run["load"].is_object());
    let mut seeds: Vec<Vec<u64>> = Vec::new();
    for run in runs {
        let pair = run["pair"].as_u64().expect("a number") as usize;
        seeds.resize(seeds.len().max(pair + 1), Vec::new());
        let seed = &run["load"]["latencies"]["schedule_seed"];
        seeds[pair].push(seed.as_u64().expect("a number"));
    }
    for of_pair in &mut seeds {
        of_pair.dedup();
        assert!(of_pair.len() <= 1);
    }
    seeds.retain(|of_pair| !of_pair.is_empty());
    assert!(seeds.len() >= 2 && seeds[0] != seeds[1], "{seeds:?}");
    Outcome::Pass
}

fn what_has_no_rate_is_refused(env: &TestEnv) -> Outcome {
    let dir = base(env);
    let named = stalling(env, "odd")
        .set("load.knobs.clients", "{ about = 'clients', default = '1' }")
        .write();
    let closed = RecipeFolder::service(env, "closed").write();
    let compare = ["compare", "--yes", "--dir", &dir, "--rounds", "2"];
    for (words, text) in [
        (
            &["--with", "load.rate=0/s", &named, "env.A=1"][..],
            "it is load.rate=NUMBER/s",
        ),
        (
            &["--with", "load.rate=fast", &named, "env.A=1"],
            "it is load.rate=NUMBER/s",
        ),
        (
            &["--with", "load.arrivals=poisson", &named, "env.A=1"],
            "add the rate, as in load.rate=200/s",
        ),
        (
            &[
                "--with",
                "load.rate=9+load.arrivals=even",
                &named,
                "env.A=1",
            ],
            "it is load.arrivals=constant|poisson",
        ),
        (
            &["--with", "load.rate=9+load.clients=2", &named, "env.A=1"],
            "load.clients=2 is of the closed loop",
        ),
        (
            &["--with", "load.rate=9", &closed, "env.A=1"],
            "has no such load",
        ),
        (
            &[&named, "load.rate=9"],
            "give all of them one: --with load.rate=200/s",
        ),
    ] {
        let output = finish(&mut refit(env, &[&compare, words].concat()));
        expect_message(&output, 2, text);
    }
    let crash = ["crash", "--yes", "--with", "load.rate=9", "redis-aof"];
    expect_message(
        &finish(&mut refit(env, &crash)),
        2,
        "load.rate=9 is of compare",
    );
    for (entry, text) in [
        (
            "{ protocol = 'smtp', unix = 'socket', request = 'x' }",
            "no such protocol `smtp`; write one of http, redis, lines",
        ),
        (
            "{ protocol = 'http', tcp = 'web', request = 'GET /' }",
            "`web` is not among `service.ports`",
        ),
        (
            "{ protocol = 'http', unix = 'socket', request = 'x' }",
            "write it as GET /path",
        ),
        (
            "{ protocol = 'lines', request = 'x' }",
            "write either `tcp` or `unix`",
        ),
    ] {
        let named = stalling(env, "wrong").set("load.open", entry).write();
        expect_message(
            &finish(&mut refit(env, &["recipes", "show", &named])),
            2,
            text,
        );
    }
    Outcome::Pass
}

/// It reads and never answers: nothing is measured of it, and that is said.
fn a_server_that_does_not_keep_up_does_not_count(env: &TestEnv) -> Outcome {
    let named = stalling(env, "deaf")
        .text("service.start", "exec sleep 1000")
        .set("service.ready", "{ command = 'true' }")
        .set("load.timeout", "'1s'")
        .write();
    let dir = base(env);
    let words = [
        "compare",
        "--yes",
        "--dir",
        &dir,
        "--rounds",
        "2",
        "--with",
        "load.rate=10",
        &named,
        "env.A=1",
    ];
    expect_message(&finish(&mut refit(env, &words)), 2, "cannot connect to ");
    Outcome::Pass
}
