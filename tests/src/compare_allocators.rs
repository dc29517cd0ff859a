//! `refit compare --memory`: the allocators of this machine, and options of theirs, by the memory they take.

use crate::compared::{list, printed};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] =
    &[test!(without_variants_the_allocators_of_the_machine_are_compared).limit_seconds(600)];

/// Many threads, each with freed blocks that a last one keeps from going back: an arena for each with glibc's defaults.
const KEPT: &str = "
import threading
def work(gate):
    blocks = [bytearray(1000) for _ in range(3000)]
    gate.wait()
gate = threading.Barrier(8)
threads = [threading.Thread(target=work, args=(gate,)) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
";

fn without_variants_the_allocators_of_the_machine_are_compared(env: &TestEnv) -> Outcome {
    let json = env.path("result.json");
    let words = [
        "compare", "--memory", "--rounds", "2", "--budget", "10m", "--json", &json,
    ];
    let output = env.refit(&[&words[..], &["--", "python3", "-c", KEPT]].concat());
    expect_code(&output, 0);
    let text = std::fs::read_to_string(&json).expect("it was written");
    let result = serde_json::from_str(&text).expect("it is JSON");
    expect_valid(&result);
    let name = |entry: &serde_json::Value, key: &str| entry[key].as_str().map(str::to_owned);
    let tried = list(&result["variants"])
        .iter()
        .filter(|one| one["role"] == "candidate");
    let tried: Vec<String> = tried.filter_map(|one| name(one, "name")).collect();
    // Absent where all are installed.
    let missing = result["unavailable"].as_array().into_iter().flatten();
    let missing: Vec<String> = missing.filter_map(|one| name(one, "settings")).collect();
    assert_eq!(tried.len() + missing.len(), 9, "{tried:?} {missing:?}");
    for option in [
        "malloc=glibc:arena_max=2",
        "malloc=glibc:trim_threshold=131072",
    ] {
        assert!(tried.iter().any(|one| one == option), "{tried:?}");
    }
    let table = printed(&output);
    assert!(table.contains("memory: "), "{}", described(&output));
    Outcome::Pass
}
