//! Pools of simulated machines, seeded: how often the interval covers the mean of all machines, that of the next
//! machine covers its effect, and equal machines are called different.

#![allow(clippy::print_stdout)] // with --nocapture, for docs/how-it-measures.md

use refit_stats::{Block, FEWEST_PAIRS, PairSample, Rng, pool};

const POOLS: usize = 4000;

fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

/// How much machines differ, and how unequal the noise of their round pairs is: as a factor.
#[derive(Clone, Copy, Debug)]
struct Fleet {
    machines: usize,
    spread: f64,
    noise_range: f64,
}

impl Fleet {
    /// A machine's own effect, and what it measured of it in 3 to 20 round pairs.
    fn machine(&self, rng: &mut Rng) -> (f64, Block) {
        let truth = self.spread * normal(rng);
        let noise = 0.05 * self.noise_range.powf(rng.unit() - 0.5);
        let pairs = FEWEST_PAIRS + rng.below(18) as usize;
        let mut logs = Vec::new();
        let samples: Vec<PairSample> = (0..pairs)
            .map(|_| {
                let rounds = [0.0; 2].map(|_| truth + 2.0_f64.sqrt() * noise * normal(rng));
                logs.push(0.5 * (rounds[0] + rounds[1]));
                PairSample::new([1.0; 2], rounds.map(f64::exp), true).expect("positive")
            })
            .collect();
        let estimate = logs.iter().sum::<f64>() / pairs as f64;
        let block = Block::of_samples(&samples, estimate).expect("enough round pairs");
        (truth, block)
    }
}

/// In per cent: the pooled interval covers 0, the next machine's effect is where it should be, machines are told apart.
fn simulated(fleet: Fleet) -> [f64; 3] {
    let mut rng = Rng::new(0x5eed);
    let mut counts = [0; 3];
    let pools = if fleet.machines > 10 {
        POOLS / 4
    } else {
        POOLS
    };
    for _ in 0..pools {
        let blocks: Vec<Block> = (0..fleet.machines)
            .map(|_| fleet.machine(&mut rng).1)
            .collect();
        let pooled = pool(&blocks).expect("two and more");
        let (next, _) = fleet.machine(&mut rng);
        let covers = |[low, high]: [f64; 2], value: f64| low <= value && value <= high;
        counts[0] += usize::from(covers(pooled.interval, 0.0));
        counts[1] += usize::from(covers(pooled.next, next));
        counts[2] += usize::from(pooled.p_equal < 0.05);
    }
    counts.map(|count| 100.0 * count as f64 / pools as f64)
}

/// The standard deviation of these shares is 0.3 %, and 0.7 % of 50 machines.
#[test]
fn the_interval_covers_what_it_should_whether_machines_differ_or_not() {
    for machines in [2, 3, 5, 10, 50] {
        for spread in [0.0, 0.05, 0.5] {
            for noise_range in [1.0, 10.0] {
                let fleet = Fleet {
                    machines,
                    spread,
                    noise_range,
                };
                let [covered, next, _] = simulated(fleet);
                println!("{fleet:?}: {covered:.1} % covered, the next in {next:.1} %");
                assert!((93.5..=98.0).contains(&covered), "{fleet:?}: {covered}");
                assert!(next >= 93.5, "{fleet:?}: {next}");
            }
        }
    }
}

#[test]
fn equal_machines_are_seldom_called_different_and_unequal_ones_often() {
    for machines in [2, 3, 5, 10, 50] {
        for noise_range in [1.0, 10.0] {
            let told = |spread| {
                let fleet = Fleet {
                    machines,
                    spread,
                    noise_range,
                };
                let [.., told] = simulated(fleet);
                println!("{fleet:?}: told apart in {told:.1} %");
                told
            };
            assert!(told(0.0) <= 6.0, "{machines}");
            assert!(told(0.5) >= 80.0, "{machines}");
        }
    }
}
