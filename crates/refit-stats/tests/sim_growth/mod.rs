//! Memory of simulated programs: what `examples/growth_calibration.rs` prints and `tests/growth_calibration.rs` holds.

use refit_stats::{Growth, Observation, Rng, Trend, growth};

/// Samples of one program.
pub const SAMPLES: usize = 240;

/// How memory moves that does not grow with the work. Sizes are in units of the noise; what is not fixed is drawn anew
/// for each program.
#[derive(Debug, Clone, Copy)]
pub enum Noise {
    /// Independent normal noise.
    White,
    /// AR(1) with this correlation from sample to sample.
    Correlated(f64),
    /// A random walk without drift.
    Walk,
    /// Student's t with 2 degrees of freedom.
    Heavy,
    /// A collector's sawtooth, of a drawn period, with white noise.
    Sawtooth,
    /// So many steps up, at drawn moments.
    Steps(usize),
    /// It fills up, with this part of the window as its time constant.
    Filling(f64),
    /// Whole pages that rarely change.
    Pages,
    /// Noise that becomes four times as large meanwhile.
    Widening,
}

/// Every kind, and what it is called.
pub const KINDS: &[(&str, Noise)] = &[
    ("white noise", Noise::White),
    ("correlated, 0.9", Noise::Correlated(0.9)),
    ("correlated, 0.98", Noise::Correlated(0.98)),
    ("random walk", Noise::Walk),
    ("heavy tails", Noise::Heavy),
    ("sawtooth", Noise::Sawtooth),
    ("one step up", Noise::Steps(1)),
    ("two steps up", Noise::Steps(2)),
    ("fills up, 1/20", Noise::Filling(0.05)),
    ("fills up, 1/10", Noise::Filling(0.1)),
    ("fills up, 1/6", Noise::Filling(1.0 / 6.0)),
    ("fills up, 1/4", Noise::Filling(0.25)),
    ("whole pages", Noise::Pages),
    ("widening", Noise::Widening),
];

fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

/// One program whose memory rises by `rise` over all samples, beside its noise, and what is found.
pub fn program(noise: Noise, rise: f64, seed: u64) -> Growth {
    let mut rng = Rng::new(seed);
    let period = 5.0 + 80.0 * rng.unit();
    let phase = rng.unit();
    let height = 3.0 + 30.0 * rng.unit();
    let steps: Vec<f64> = (0..2).map(|_| rng.unit() * SAMPLES as f64).collect();
    let mut wander = normal(&mut rng);
    let (mut operations, mut pages) = (0.0, 0.0);
    let mut samples = Vec::with_capacity(SAMPLES);
    for at in 0..SAMPLES {
        // Load comes in bursts.
        operations += 1.0 + 9.0 * rng.unit() * rng.unit();
        let part = at as f64 / SAMPLES as f64;
        let white = normal(&mut rng);
        let value = match noise {
            Noise::White => white,
            Noise::Correlated(by) => {
                wander = by * wander + (1.0 - by * by).sqrt() * white;
                wander
            }
            Noise::Walk => {
                wander += white;
                wander
            }
            Noise::Heavy => white / (-2.0 * (1.0 - rng.unit()).ln() / 2.0).sqrt(),
            Noise::Sawtooth => height * ((at as f64 / period + phase) % 1.0) + white,
            Noise::Steps(count) => {
                height
                    * steps[..count]
                        .iter()
                        .filter(|step| at as f64 > **step)
                        .count() as f64
                    + white
            }
            Noise::Filling(constant) => 100.0 * height * (1.0 - (-part / constant).exp()) + white,
            Noise::Pages => {
                if rng.unit() < 0.03 {
                    pages += if rng.unit() < 0.5 { 1.0 } else { -1.0 };
                }
                pages
            }
            Noise::Widening => white * (1.0 + 3.0 * part),
        };
        samples.push((operations, value));
    }
    let slope = rise / operations;
    let samples: Vec<Observation> = samples
        .into_iter()
        .map(|(operations, value)| Observation {
            operations,
            value: value + slope * operations,
        })
        .collect();
    let mut found = growth(&samples, 0.05, 0.0).expect("enough samples");
    // In units of the true slope's, so that coverage can be counted.
    found.slope -= slope;
    found.low -= slope;
    found.high -= slope;
    found
}

/// Of so many programs: which part is called growing, and in which part the interval covers the true slope.
pub fn rates(noise: Noise, rise: f64, programs: u64, seed: u64) -> (f64, f64) {
    let found =
        (0..programs).map(|at| program(noise, rise, seed.wrapping_mul(1_000_003).wrapping_add(at)));
    let (mut grows, mut covers) = (0_u64, 0_u64);
    for one in found {
        grows += u64::from(one.trend == Trend::Grows);
        covers += u64::from(one.low <= 0.0 && one.high >= 0.0);
    }
    (
        grows as f64 / programs as f64,
        covers as f64 / programs as f64,
    )
}
