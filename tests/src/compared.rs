//! The result of a comparison, as tests look into it.

use std::process::Output;

use serde_json::Value;

use crate::schema::expect_valid;
use crate::test_env::TestEnv;

/// A comparison that succeeds at least in writing its result, which has to be as documented.
pub fn compare(env: &TestEnv, args: &[&str]) -> (Output, Value) {
    let (output, result) = env.refit_json(&[&["compare"], args].concat());
    expect_valid(&result);
    assert_eq!(result["kind"], "compare");
    (output, result)
}

/// The same of a shell's command; words are parted by spaces.
pub fn compare_shell(env: &TestEnv, words: &str, command: &str) -> (Output, Value) {
    let words: Vec<&str> = words.split_whitespace().collect();
    compare(env, &[&words[..], &["--", "sh", "-c", command]].concat())
}

/// What a comparison printed.
pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What it printed on stderr, apart from its result.
pub fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A script whose candidate `env.A=1` takes half as long as the others, then twice as long, by turns of a round pair:
/// whatever else the machine does, it earns no verdict. All do the same beside their sleep, which takes long on a busy
/// machine.
pub fn undecided(env: &TestEnv, milliseconds: u32) -> String {
    let (log, seconds) = (env.path("turns"), f64::from(milliseconds) / 1000.0);
    let [half, twice] = [seconds / 2.0, seconds * 2.0];
    format!(
        "echo >>{log}$A
        case $A$((($(wc -l <{log}$A) - 1) / 2 % 2)) in
            10) exec sleep {half};; 11) exec sleep {twice};; *) exec sleep {seconds};; esac"
    )
}

/// The variant's record, and its number.
#[track_caller]
pub fn variant<'a>(result: &'a Value, name: &str) -> (usize, &'a Value) {
    let mut variants = list(&result["variants"]).iter().enumerate();
    let found = variants.find(|(_, variant)| variant["name"] == name);
    found.unwrap_or_else(|| panic!("no variant {name} in {}", result["variants"]))
}

/// What was concluded of a variant.
#[track_caller]
pub fn effect<'a>(result: &'a Value, name: &str, metric: &str) -> &'a Value {
    let (index, _) = variant(result, name);
    let mut effects = list(&result["effects"]).iter();
    let found = effects.find(|effect| effect["variant"] == index && effect["metric"] == metric);
    found.unwrap_or_else(|| panic!("no effect on {metric} of {name} in {}", result["effects"]))
}

/// The runs of a variant in their order, the warm-up included.
pub fn runs_of<'a>(result: &'a Value, name: &str) -> Vec<&'a Value> {
    let (index, _) = variant(result, name);
    let runs = list(&result["runs"]).iter();
    runs.filter(|run| run["variant"] == index).collect()
}

#[track_caller]
pub fn list(value: &Value) -> &Vec<Value> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("{value} is not a list"))
}

#[track_caller]
pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

/// The runs of each round pair, in their order.
pub fn pairs(result: &Value) -> Vec<&[Value]> {
    let pairs = list(&result["runs"]).chunk_by(|a, b| a["pair"] == b["pair"]);
    pairs.collect()
}

/// The least and the largest ratio of a variant's run to a run of one of both baselines in the same round pair. Estimate
/// and interval of its effect are made of these.
pub fn ratios(result: &Value, index: usize, value: impl Fn(&Value) -> f64) -> [f64; 2] {
    let is_baseline = |run: &&Value| {
        let role = &result["variants"][number(&run["variant"]) as usize]["role"];
        role == "baseline" || role == "hidden"
    };
    let (mut least, mut most) = (f64::MAX, f64::MIN);
    // The first ones are the warm-up.
    for pair in &pairs(result)[1..] {
        let baselines: Vec<&Value> = pair.iter().filter(is_baseline).collect();
        let of_variant = pair.iter().filter(|run| run["variant"] == index);
        let of_variant: Vec<&Value> = of_variant.collect();
        assert_eq!((baselines.len(), of_variant.len()), (4, 2), "{pair:?}");
        for baseline in baselines {
            for run in &of_variant {
                let ratio = value(run) / value(baseline);
                (least, most) = (least.min(ratio), most.max(ratio));
            }
        }
    }
    [least, most]
}

/// How many runs were made at the end for the witness alone.
pub fn witnessed(result: &Value) -> usize {
    let variants = list(&result["variants"]).iter();
    variants
        .filter(|variant| variant["witness"].get("seen").is_some())
        .count()
}
