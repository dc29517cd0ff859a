//! Programs that have a preload of the user's own: each gets what it gets without refit, and refit takes nothing from it.

use std::fs;
use std::time::{Duration, Instant};

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_bent_clock_is_not_refits).limit_seconds(120),
];

fn a_bent_clock_is_not_refits(env: &TestEnv) -> Outcome {
    let (clock, program) = (env.program("bent_clock"), env.program("write_fsync"));
    let json = env.path("report.json");
    for backend in ["preload", "auto"] {
        let words = ["run", "--json", &json, "--backend", backend, "disk=20ms"];
        let began = Instant::now();
        let output = env
            .refit_command(&[&words[..], &["--", &program, "2", "file"]].concat())
            .env("LD_PRELOAD", &clock)
            .output()
            .expect("refit is there");
        expect_code(&output, 0);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(40), "{took:?}");
        let text = fs::read_to_string(&json).expect("refit wrote it");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let waited = report["totals"]["fsync"]["waited_ns"].as_u64();
        let waited = Duration::from_nanos(waited.expect("a number"));
        let expected = Duration::from_millis(40)..Duration::from_secs(20);
        assert!(
            backend == "auto" || expected.contains(&waited),
            "{waited:?}"
        );
    }
    Outcome::Pass
}
