//! How fast a group's memory grows: Theil and Sen's line, the median of the slopes of
//! all pairs, which a few odd samples do not move, and its interval by the variance of
//! Kendall's statistic (Sen, J. Am. Stat. Assoc. 63, 1968, 1379–1389).

use super::record::Series;

/// Fewer samples earn no rate.
pub const LEAST: usize = 8;
/// More are thinned out: the slopes of all pairs are sorted.
const MOST: usize = 400;
/// Of the normal distribution, for 95 %.
const QUANTILE: f64 = 1.959_963_984_540_054;

/// A rate, in bytes per hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The estimate.
    pub bytes_per_hour: f64,
    /// The ends of its 95 % interval, as if the samples' deviations from the line were
    /// independent of each other.
    pub interval: [f64; 2],
}

impl Growth {
    /// Whether the interval excludes that nothing grows or shrinks.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.interval[0] > 0.0 || self.interval[1] < 0.0
    }
}

/// Growth of a group's PSS over the samples for which any of its memory was read, and all
/// that may be read had been; `None` with fewer than eight. The others would repeat old
/// readings.
#[must_use]
pub fn growth(series: &Series, group: usize) -> Option<Growth> {
    let points: Vec<(f64, f64)> = series
        .samples
        .iter()
        .filter_map(|sample| {
            let one = sample.groups.iter().find(|one| one.group == group)?;
            let memory = one.memory.filter(|_| one.unread == 0 && one.fresh > 0)?;
            let at = sample.at_ms.saturating_sub(one.memory_age_ms);
            Some((at as f64, memory.pss_bytes as f64))
        })
        .collect();
    line(&points)
}

/// What grows of the memory of a command whose heap is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeapGrowth {
    /// The requested bytes of all live blocks, which are counted in each sample; `None` with fewer
    /// than eight.
    pub live: Option<Growth>,
    /// The rest of the group's memory (PSS without the usable bytes of live blocks): free parts of
    /// the heap, and memory that is not malloc's. `None` with fewer than eight samples for which
    /// memory was read, as for [`growth`].
    pub rest: Option<Growth>,
    /// How many these were.
    pub read: usize,
}

/// Growth of a group whose heap is counted; `None` where no sample has that.
#[must_use]
pub fn heap_growth(series: &Series, group: usize) -> Option<HeapGrowth> {
    let counted = series.samples.iter().filter_map(|sample| {
        let one = sample.groups.iter().find(|one| one.group == group)?;
        Some((sample.at_ms as f64, sample.heap?, one))
    });
    let counted: Vec<_> = counted.collect();
    let live = counted
        .iter()
        .map(|(at_ms, heap, _)| (*at_ms, heap.requested_bytes as f64));
    let live: Vec<(f64, f64)> = live.collect();
    let rest = counted.iter().filter_map(|(at_ms, heap, one)| {
        let memory = one.memory.filter(|_| one.unread == 0 && one.fresh > 0)?;
        Some((*at_ms, memory.pss_bytes as f64 - heap.usable_bytes as f64))
    });
    let rest: Vec<(f64, f64)> = rest.collect();
    (!counted.is_empty()).then(|| HeapGrowth {
        live: line(&live),
        rest: line(&rest),
        read: rest.len(),
    })
}

const MS_PER_HOUR: f64 = 3_600_000.0;

/// `points`: milliseconds and bytes.
fn line(points: &[(f64, f64)]) -> Option<Growth> {
    let step = points.len().div_ceil(MOST).max(1);
    let points: Vec<(f64, f64)> = points.iter().step_by(step).copied().collect();
    if points.len() < LEAST {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (i, (at, value)) in points.iter().enumerate() {
        for (later, other) in &points[i + 1..] {
            if later > at {
                slopes.push((other - value) / (later - at) * MS_PER_HOUR);
            }
        }
    }
    if slopes.len() < LEAST {
        return None;
    }
    let n = points.len() as f64;
    let spread = QUANTILE * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let count = slopes.len() as f64;
    let middle = slopes.len() / 2;
    let upper = nth(&mut slopes, middle as f64);
    let bytes_per_hour = if slopes.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(nth(&mut slopes, middle as f64 - 1.0), upper)
    };
    Some(Growth {
        bytes_per_hour,
        interval: [
            nth(&mut slopes, ((count - spread) / 2.0).floor() - 1.0),
            nth(&mut slopes, ((count + spread) / 2.0).ceil()),
        ],
    })
}

/// The value of a rank, or of the nearest that there is. To sort all 80,000 slopes for four of them takes several times as long.
fn nth(values: &mut [f64], rank: f64) -> f64 {
    let rank = (rank.max(0.0) as usize).min(values.len() - 1);
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(n: usize, slope: f64, mut seed: u64) -> Vec<(f64, f64)> {
        let mut random = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
        };
        (0..n)
            .map(|i| {
                (
                    i as f64 * 1000.0,
                    1e8 + slope * i as f64 / 3600.0 + 1e5 * random(),
                )
            })
            .collect()
    }

    #[test]
    fn a_straight_line_has_its_slope_and_a_few_odd_samples_do_not_move_it() {
        let mut points: Vec<(f64, f64)> = (0..50)
            .map(|i| (f64::from(i) * 1000.0, f64::from(i) * 10.0))
            .collect();
        let expected = 36_000.0;
        let Growth {
            bytes_per_hour,
            interval,
        } = line(&points).unwrap();
        assert!((bytes_per_hour - expected).abs() < 1e-6);
        assert!((interval[0] - expected).abs() < 1e-6 && (interval[1] - expected).abs() < 1e-6);
        points[7].1 = 1e9;
        points[30].1 = 0.0;
        let odd = line(&points).unwrap();
        assert!((odd.bytes_per_hour - expected).abs() < 1.0 && odd.is_certain());
        assert_eq!(line(&points[..7]), None);
        let at_once = [(5.0, 1.0); 20];
        assert_eq!(line(&at_once), None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_promises() {
        for slope in [0.0, 5e5] {
            let runs = (1..=400_u64).filter_map(|seed| line(&noisy(40, slope, seed)));
            let right = runs.filter(|one| one.interval[0] <= slope && slope <= one.interval[1]);
            let right = right.count();
            assert!((370..=396).contains(&right), "{right} of 400 at {slope}");
        }
        // Thinned out, it is still the same line.
        let many = line(&noisy(5000, 5e5, 3)).unwrap();
        assert!((many.bytes_per_hour / 5e5 - 1.0).abs() < 0.05, "{many:?}");
    }
}
