//! What is shown of a comparison that is still running: never a verdict.

use std::time::Duration;

use refit_lab::Comparison;
use refit_run::printable;

use crate::format;

/// `sync=off −58.5 % [−59.9 %, −57.2 %]`, for each candidate that has an estimate.
#[must_use]
pub fn estimates(comparison: &Comparison) -> String {
    let parts = comparison
        .experiment
        .candidates()
        .filter_map(|(index, variant)| {
            let effect = comparison.effects.get(index, &comparison.experiment.main)?;
            let interval = match effect.interval {
                None => "(no interval yet)".to_owned(),
                ends => format::interval(ends),
            };
            let name = printable(&variant.name);
            Some(format!(
                "{name} {} {interval}",
                format::percent(effect.change)
            ))
        });
    parts.collect::<Vec<_>>().join("   ")
}

/// The time that something may take, in whole seconds: `45 s`, `3 min 0 s`.
#[must_use]
pub fn at_most(time: Duration) -> String {
    let seconds = time.as_nanos().div_ceil(1_000_000_000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{} min {seconds} s", format::grouped(minutes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_hyphen_in_a_name_is_not_a_minus() {
        let mut comparison = sample::experiment();
        comparison.experiment.variants[1].name = "conf.sync-mode=off".to_owned();
        let text = estimates(&comparison);
        assert!(
            text.contains("conf.sync-mode=off −58.5 % [−59.9 %, −57.2 %]"),
            "{text}"
        );
    }

    #[test]
    fn a_limit_is_rounded_up() {
        let limits = [0.2, 45.0, 60.0, 179.5].map(|s| at_most(Duration::from_secs_f64(s)));
        assert_eq!(limits, ["1 s", "45 s", "1 min 0 s", "3 min 0 s"]);
    }
}
