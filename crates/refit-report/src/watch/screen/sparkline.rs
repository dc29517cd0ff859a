//! The last values of a service as a row of small bars.

use refit_run::series::{GroupSample, Sample, Series};

/// Samples in a sparkline.
const SPARK: usize = 12;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last values of a group; 0 where it was not there.
pub fn history(series: &Series, group: usize, of: impl Fn(&GroupSample, u64) -> f64) -> Vec<f64> {
    let recent = &series.samples[series.samples.len().saturating_sub(SPARK)..];
    let value = |sample: &Sample| {
        let one = sample.groups.iter().find(|one| one.group == group);
        one.map_or(0.0, |one| of(one, sample.lasted_us))
    };
    recent.iter().map(value).collect()
}

/// A bar for each value; between its own least and most where no range is given.
pub fn sparkline(values: &[f64], range: Option<[f64; 2]>) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let [least, most] = range.unwrap_or([least, most]);
    let bar = |value: &f64| {
        let part = if most > least {
            (value - least) / (most - least)
        } else {
            0.0
        };
        BARS[((part.clamp(0.0, 1.0) * 7.0).round()) as usize]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_between_the_least_and_the_most() {
        assert_eq!(sparkline(&[], None), "");
        assert_eq!(sparkline(&[5.0, 5.0], None), "▁▁");
        assert_eq!(sparkline(&[0.0, 1.0, 2.0], None), "▁▅█");
    }
}
