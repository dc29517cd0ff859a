//! The variants that nothing beats: more gain only for more risk.

use refit_lab::experiment::Class;
use refit_stats::Measure;

use super::row::{Row, effect};
use crate::crash::sentence::Manner;
use crate::gain;

/// A variant's place between gain and loss.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// How many times as good as the baseline.
    pub factor: f64,
    /// From where to where its interval reaches.
    pub interval: Option<[f64; 2]>,
    /// The manner of its worst loss, and the age of the oldest in nanoseconds.
    pub loss: (Manner, u64),
    /// It is proven better than the baseline.
    pub gains: bool,
    /// Its loss is the baseline's, by its class alone: it was not cut.
    pub by_class: bool,
}

/// Where each row lies; `None` where its gain or its loss is not known.
pub fn places(rows: &[Row], measure: Measure) -> Vec<Option<Place>> {
    let baseline = rows.first().and_then(loss);
    let place = |(index, row): (usize, &Row)| {
        let (factor, interval, gains) = if index == 0 {
            (1.0, None, false)
        } else {
            let (effect, _) = effect(row)?;
            let factor = |change| gain::factor(measure, change);
            let ends = effect.interval.map(|ends| {
                let [a, b] = ends.map(factor);
                [a.min(b), a.max(b)]
            });
            (factor(effect.change), ends, effect.gain)
        };
        let is_safe = row.gain.variant.class == Class::Safe;
        let by_class = row.loss.is_none() && is_safe;
        let loss = loss(row).or(baseline.filter(|_| by_class))?;
        (factor.is_finite() && factor > 0.0).then_some(Place {
            factor,
            interval,
            gains,
            loss,
            by_class,
        })
    };
    rows.iter().enumerate().map(place).collect()
}

fn loss(row: &Row) -> Option<(Manner, u64)> {
    Some((row.manner?, row.oldest_ns()))
}

/// Indices of the rows that nothing beats, the least risky first: the baseline, what is proven
/// to gain, and what loses less than the baseline. A riskier variant stands only where its gain
/// lies beyond the interval of the safer one.
pub fn unbeaten(places: &[Option<Place>]) -> Vec<usize> {
    let known = |index: usize| places.get(index).copied().flatten();
    let mut order: Vec<usize> = (0..places.len()).filter(|i| known(*i).is_some()).collect();
    let rank = |index: &usize| known(*index).map(|place| (place.loss, -place.factor));
    order.sort_by(|a, b| {
        rank(a)
            .partial_cmp(&rank(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut front: Vec<usize> = Vec::new();
    for index in order {
        let Some(place) = known(index) else { continue };
        let beats = |other: &usize| {
            known(*other).is_some_and(|other| {
                let reach = other.interval.map_or(other.factor, |[_, high]| high);
                let is_safer = other.loss < place.loss;
                place.factor <= if is_safer { reach } else { other.factor }
            })
        };
        let is_safer = known(0).is_some_and(|baseline| place.loss < baseline.loss);
        if (index == 0 || place.gains || is_safer) && !front.iter().any(beats) {
            front.push(index);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_riskier_variant_stands_only_beyond_the_interval_of_a_safer_one() {
        let place = |factor: f64, low: f64, high: f64, loss| {
            Some(Place {
                factor,
                interval: Some([low, high]),
                gains: low > 1.0,
                loss,
                by_class: false,
            })
        };
        let baseline = Some(Place {
            factor: 1.0,
            interval: None,
            gains: false,
            loss: (Manner::Nothing, 0),
            by_class: false,
        });
        let safer = place(2.0, 1.9, 2.1, (Manner::Newest, 7));
        let with = |riskier| unbeaten(&[baseline, riskier, safer, None]);
        assert_eq!(with(place(2.05, 2.0, 2.2, (Manner::Everything, 9))), [0, 2]);
        assert_eq!(
            with(place(2.15, 2.0, 2.2, (Manner::Everything, 9))),
            [0, 2, 1]
        );
        assert_eq!(with(place(2.15, 2.0, 2.2, (Manner::Newest, 6))), [0, 1]);
        // What is not proven to gain anything beats nobody.
        assert_eq!(with(place(9.0, 0.9, 99.0, (Manner::Nothing, 0))), [0, 2]);
        // What loses less than a baseline that loses something is not beaten, however slow it is.
        let lossy = baseline.map(|place| Place {
            loss: (Manner::Everything, 9),
            ..place
        });
        let slow = place(0.5, 0.4, 0.6, (Manner::Newest, 7));
        let slowest = place(0.1, 0.05, 0.2, (Manner::Nothing, 0));
        assert_eq!(unbeaten(&[lossy, slow, slowest]), [2, 1, 0]);
    }
}
