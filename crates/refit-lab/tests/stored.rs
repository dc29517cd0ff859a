//! Comparisons that were stored by earlier versions: they open, nothing of them is lost, and
//! their effects follow from their runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use refit_lab::{Comparison, EffectRecord, Effects};
use serde_json::Value;

/// Stored fractions have seven digits.
const CLOSE: f64 = 1e-6;

fn gallery() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/gallery");
    let entries = directory.read_dir().expect("the gallery is there");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    files.retain(|path| path.to_string_lossy().ends_with(".packed"));
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    files
}

fn unpacked(path: &Path) -> Value {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/packed.py");
    let output = Command::new("python3").arg(reader).arg(path).output();
    let output = output.expect("python3 is installed (apt install python3)");
    assert!(output.status.success(), "{}", path.display());
    let mut result: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    // scripts/gallery adds this; it is not part of a result.
    let fields = result.as_object_mut().expect("it is an object");
    fields.remove("source_commit");
    result
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= CLOSE * a.abs().max(1.0)
}

/// The same, numbers within [`CLOSE`].
fn same(a: &Value, b: &Value) -> Result<(), String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()) {
                let (Some(a), Some(b)) = (a.get(key), b.get(key)) else {
                    return Err(format!("{key} is in one of them only"));
                };
                same(a, b).map_err(|error| format!("{key}: {error}"))?;
            }
            Ok(())
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).try_for_each(|(a, b)| same(a, b))
        }
        _ if a == b => Ok(()),
        _ => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) if is_close(a, b) => Ok(()),
            _ => Err(format!("{a} and {b}")),
        },
    }
}

fn agrees(a: &EffectRecord, b: &EffectRecord) -> bool {
    let numbers = |effect: &EffectRecord| {
        let [low, high] = effect.interval.unwrap_or([9.0; 2]);
        [effect.change, low, high, effect.slot_effect.unwrap_or(9.0)]
    };
    let rest = |effect: &EffectRecord| {
        let EffectRecord {
            variant,
            verdict,
            gain,
            pairs_needed,
            pairs,
            ..
        } = *effect;
        (variant, verdict, gain, pairs_needed, pairs)
    };
    a.metric == b.metric
        && rest(a) == rest(b)
        && (numbers(a).iter().zip(numbers(b))).all(|(a, b)| is_close(*a, b))
}

/// Earlier versions took the ratios to the first baseline alone.
fn overlaps(now: &EffectRecord, then: &EffectRecord) -> bool {
    let ([low, high], [low_then, high_then]) = match (now.interval, then.interval) {
        (Some(now), Some(then)) => (now, then),
        _ => return false,
    };
    now.pairs == then.pairs && low <= high_then && low_then <= high
}

#[test]
fn a_stored_comparison_opens_and_its_effects_follow_from_its_runs() {
    let mut followed = 0;
    for path in gallery() {
        let name = path.display();
        let stored = unpacked(&path);
        let comparison: Comparison = serde_json::from_value(stored.clone()).unwrap();
        let again = serde_json::to_value(&comparison).unwrap();
        same(&stored, &again).unwrap_or_else(|error| panic!("{name}: {error}"));

        let effects = Effects::of(&comparison.experiment);
        let has_now = |then: &EffectRecord| effects.get(then.variant, &then.metric).is_some();
        // Early versions compared a difference of either sign, which has no ratio, and the halves
        // of the processor time of runs that were too short for them; not their sum.
        let (stored, gone): (Vec<_>, Vec<_>) = comparison.effects.iter().partition(|e| has_now(e));
        let may_go = ["memory-used", "user", "system"];
        assert!(
            gone.iter()
                .all(|then| may_go.contains(&then.metric.as_str())),
            "{name}: {gone:?}"
        );
        let had_then =
            |now: &&EffectRecord| comparison.effects.get(now.variant, &now.metric).is_some();
        let new = effects.iter().filter(|now| !had_then(now));
        assert!(new.clone().all(|now| now.metric == "cpu"), "{name}");
        followed += stored.len();
        for then in stored {
            let now = effects.get(then.variant, &then.metric);
            let follows = |now: &EffectRecord| match now.both_baselines == then.both_baselines {
                true => agrees(now, then),
                false => overlaps(now, then),
            };
            assert!(
                now.is_some_and(follows),
                "{name}: {now:?}, and stored {then:?}"
            );
        }
    }
    assert!(followed > 0);
}
