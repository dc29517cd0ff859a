//! A simulated machine, and whole comparisons on it: what `examples/calibration.rs` prints and
//! `tests/calibration.rs` holds.

use std::collections::BTreeMap;

use refit_stats::{
    DEFAULT_DELTA, Effect, LookPlan, Measure, PairSample, Remedy, Rng, RoundPair, STAGES, Schedule,
    Standing, Verdict, estimate, estimate_from_both, screen, stage_levels, verdict,
};

/// What disturbs the logarithm of a run's time. All 0 is a silent machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noise {
    /// Linear drift over 48 runs: 0.04 is 4 %.
    pub drift: f64,
    /// Standard deviation of an AR(1) process (φ = 0.95 from run to run): neighbours, frequency, heat.
    pub wander: f64,
    /// Standard deviation of independent normal noise.
    pub white: f64,
    /// Scale of Student's t with 2 degrees of freedom: no variance at all.
    pub heavy: f64,
    /// Mean of exponential noise on every run.
    pub skew: f64,
    /// Mean of exponential noise on the candidates' runs only, moved to have no effect.
    pub candidate_skew: f64,
    /// Share of runs that are disturbed by exponential noise of mean 10 %.
    pub outliers: f64,
    /// What a run at the machine's lower speed takes longer; every other run is one, by chance.
    pub two_speeds: f64,
    /// Standard deviation of what the memory layout of a round pair does to each variant in both rounds.
    pub layout: f64,
    /// What the first run of a round pays.
    pub first_slot: f64,
    /// The clock's step, relative to the command's time; 0 is none.
    pub tick: f64,
}

/// A shared virtual machine: 4 % of drift in 48 runs, AR(1), white noise, 5 % heavy outliers.
pub const SHARED_VM: Noise = Noise {
    drift: 0.04,
    wander: 0.01,
    white: 0.01,
    outliers: 0.05,
    heavy: 0.0,
    skew: 0.0,
    candidate_skew: 0.0,
    two_speeds: 0.0,
    layout: 0.0,
    first_slot: 0.0,
    tick: 0.0,
};

/// A machine on which runs follow each other.
pub struct Machine {
    noise: Noise,
    rng: Rng,
    wander: f64,
    runs: u32,
    /// Where candidate noise has its pseudomedian, so that it can be taken away.
    centre: f64,
}

impl Machine {
    pub fn new(noise: Noise, centre: f64, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let wander = noise.wander * normal(&mut rng);
        Self {
            noise,
            rng,
            wander,
            runs: 0,
            centre,
        }
    }

    /// What the layout of the next round pair does to a variant.
    pub fn layout(&mut self) -> f64 {
        if self.noise.layout > 0.0 {
            self.noise.layout * normal(&mut self.rng)
        } else {
            0.0
        }
    }

    /// The time of the next run, of a program that takes `e^log_time` on a silent machine.
    pub fn run(&mut self, log_time: f64, candidate: bool, first: bool) -> f64 {
        let (noise, rng) = (self.noise, &mut self.rng);
        const PHI: f64 = 0.95;
        self.wander = PHI * self.wander + (1.0 - PHI * PHI).sqrt() * noise.wander * normal(rng);
        self.runs += 1;
        let mut log = log_time + self.wander + noise.drift * f64::from(self.runs) / 48.0;
        log += noise.white * normal(rng);
        log += noise.skew * exponential(rng);
        if noise.heavy > 0.0 {
            log += noise.heavy * normal(rng) / exponential(rng).sqrt();
        }
        if noise.two_speeds > 0.0 && rng.unit() < 0.5 {
            log += noise.two_speeds;
        }
        if candidate {
            log += noise.candidate_skew * exponential(rng) - self.centre;
        }
        if rng.unit() < noise.outliers {
            log += 0.1 * exponential(rng);
        }
        if first {
            log += noise.first_slot;
        }
        let time = log.exp();
        if noise.tick > 0.0 {
            (time / noise.tick).round().max(1.0) * noise.tick
        } else {
            time
        }
    }
}

/// The pseudomedian that candidate noise gives to the ratio of two runs: the true effect of no effect.
pub fn centre(noise: Noise) -> f64 {
    if noise.candidate_skew == 0.0 {
        return 0.0;
    }
    let mut machine = Machine::new(noise, 0.0, 99);
    let mut ratio = || machine.run(0.0, true, false).ln() - machine.run(0.0, false, false).ln();
    let mut averages: Vec<f64> = (0..400_000).map(|_| 0.5 * (ratio() + ratio())).collect();
    averages.sort_by(f64::total_cmp);
    averages[averages.len() / 2]
}

/// How one candidate of a comparison came out.
pub struct Outcome {
    pub effect: Effect,
    pub verdict: Verdict,
    /// What the first inconclusive look advised.
    pub advice: Option<Remedy>,
}

/// The times of a round pair, by variant and round.
fn round_pair_times(
    machine: &mut Machine,
    round_pair: &RoundPair,
    variants: usize,
    log_time: impl Fn(usize) -> f64,
    candidate: impl Fn(usize) -> bool,
) -> Vec<[f64; 2]> {
    let mut times = vec![[0.0; 2]; variants];
    let layouts: Vec<f64> = times.iter().map(|_| machine.layout()).collect();
    for (round, order) in round_pair.rounds().iter().enumerate() {
        for (slot, &variant) in order.iter().enumerate() {
            let log_time = log_time(variant) + layouts[variant];
            times[variant][round] = machine.run(log_time, candidate(variant), slot == 0);
        }
    }
    times
}

/// One comparison: baseline, `candidates` with the same true effect, hidden baseline; ends at the first look
/// at which all are settled, or the last.
pub fn compare(
    machine: &mut Machine,
    plan: &LookPlan,
    candidates: usize,
    effect: f64,
    seed: u64,
) -> Vec<Outcome> {
    let variants = candidates + 2;
    let mut samples = vec![[Vec::new(), Vec::new()]; candidates];
    let mut advice = vec![None; candidates];
    for (pair, round_pair) in Schedule::new(seed, variants).enumerate() {
        let candidate = |variant: usize| (1..=candidates).contains(&variant);
        let log_time = |variant: usize| if candidate(variant) { effect } else { 0.0 };
        let times = round_pair_times(machine, &round_pair, variants, log_time, candidate);
        if pair == 0 {
            continue;
        }
        for candidate in 1..=candidates {
            for (samples, baseline) in samples[candidate - 1].iter_mut().zip([0, variants - 1]) {
                let first = round_pair.runs_before(baseline, candidate);
                let sample = PairSample::new(times[baseline], times[candidate], first);
                samples.push(sample.expect("times are positive"));
            }
        }
        if plan.look_after(pair).is_none() {
            continue;
        }
        let outcomes: Vec<Outcome> = (samples.iter().zip(&mut advice))
            .map(|([first, second], advice)| {
                let effect = estimate_from_both(first, second, plan.levels);
                let effect = effect.expect("a look has samples");
                let verdict = verdict(&effect, DEFAULT_DELTA);
                if let Verdict::Inconclusive(remedy) = verdict {
                    advice.get_or_insert(remedy);
                }
                Outcome {
                    effect,
                    verdict,
                    advice: *advice,
                }
            })
            .collect();
        let settled = outcomes.iter().all(|outcome| outcome.verdict.is_settled());
        if settled || plan.looks.last() == Some(&pair) {
            return outcomes;
        }
    }
    unreachable!("a schedule has no end")
}

/// How a tuning came out.
pub struct Tuned {
    /// What the screening chose; `None`: it dropped everything.
    pub best: Option<usize>,
    /// What was still there when it ended.
    pub left: Vec<usize>,
    /// What the screening's own runs say of the best.
    pub screened: Option<Verdict>,
    /// What new runs say of it.
    pub confirmed: Option<Verdict>,
    /// Runs of the screening.
    pub runs: usize,
}

/// One tuning: the stages of a screening, then the best of it once more with new runs. `effects`: the true effect of
/// each candidate, as ln of its ratio.
pub fn tune(machine: &mut Machine, plan: &LookPlan, effects: &[f64], seed: u64) -> Tuned {
    let mut left: Vec<usize> = (0..effects.len()).collect();
    let (mut best, mut screened, mut runs) = (None, None, 0);
    for (stage, pairs) in STAGES.into_iter().enumerate() {
        let times = stage_times(
            machine,
            &left,
            effects,
            pairs,
            seed.wrapping_add(stage as u64 + 1),
        );
        runs += 2 * (pairs + 1) * (left.len() + 2);
        let levels = stage_levels(left.len());
        let ratio = |to: usize, of: usize| estimate(&samples(&times, to, of), levels);
        let to_baseline: Vec<_> = (0..left.len()).map(|at| ratio(0, at + 1)).collect();
        let standings = screen(
            &to_baseline,
            |one, other| ratio(other + 1, one + 1),
            |_, _| true,
            Measure::Duration,
            DEFAULT_DELTA,
        );
        let stays: Vec<usize> = (0..left.len())
            .filter(|at| standings[*at] == Standing::Stays)
            .collect();
        let estimate =
            |at: &usize| to_baseline[*at].map_or(f64::INFINITY, |effect| effect.log_ratio);
        let first = stays
            .iter()
            .copied()
            .min_by(|a, b| estimate(a).total_cmp(&estimate(b)));
        best = first.map(|at| left[at]);
        // As if the stage had been a comparison of its own.
        let all = LookPlan::once(pairs, left.len()).levels;
        screened = first.and_then(|at| {
            Some(verdict(
                &self::estimate(&samples(&times, 0, at + 1), all)?,
                DEFAULT_DELTA,
            ))
        });
        left = stays.into_iter().map(|at| left[at]).collect();
        if left.len() < 2 {
            break;
        }
    }
    let confirmed = best.map(|best| compare(machine, plan, 1, effects[best], !seed)[0].verdict);
    Tuned {
        best,
        left,
        screened,
        confirmed,
        runs,
    }
}

/// Two runs of each variant in each round pair, and whether the schedule ran the first before the second.
type Times = Vec<(Vec<[f64; 2]>, RoundPair)>;

fn stage_times(
    machine: &mut Machine,
    left: &[usize],
    effects: &[f64],
    pairs: usize,
    seed: u64,
) -> Times {
    let variants = left.len() + 2;
    let schedule = Schedule::new(seed, variants).take(pairs + 1);
    let all = schedule.map(|round_pair| {
        let log_time = |variant: usize| match variant.checked_sub(1) {
            Some(at) if at < left.len() => effects[left[at]],
            _ => 0.0,
        };
        let candidate = |variant: usize| (1..=left.len()).contains(&variant);
        (
            round_pair_times(machine, &round_pair, variants, log_time, candidate),
            round_pair,
        )
    });
    // The first is the warm-up.
    all.skip(1).collect()
}

fn samples(times: &Times, to: usize, of: usize) -> Vec<PairSample> {
    let sample = |(times, round_pair): &(Vec<[f64; 2]>, RoundPair)| {
        PairSample::new(times[to], times[of], round_pair.runs_before(to, of))
            .expect("times are positive")
    };
    times.iter().map(sample).collect()
}

/// How often what came out.
#[derive(Debug, Default)]
pub struct Tally {
    pub comparisons: u32,
    /// Comparisons with a candidate proven on the wrong side, or on any when there is no effect.
    pub wrong: u32,
    /// Comparisons in which every candidate's interval covered the true effect.
    pub covered: u32,
    /// Candidates, by word.
    pub right: u32,
    pub same: u32,
    pub inconclusive: u32,
    /// Round pairs run, warm-up not counted.
    pub pairs: u32,
    /// Comparisons in which all candidates were settled, by the number of their round pairs.
    pub ended: BTreeMap<usize, u32>,
}

impl Tally {
    pub fn percent(&self, count: u32) -> f64 {
        100.0 * f64::from(count) / f64::from(self.comparisons)
    }

    /// Comparisons that were settled within so many round pairs.
    pub fn within(&self, pairs: usize) -> u32 {
        self.ended.range(..=pairs).map(|(_, count)| count).sum()
    }
}

pub fn tally(
    noise: Noise,
    plan: &LookPlan,
    candidates: usize,
    effect: f64,
    comparisons: u32,
) -> Tally {
    let centre = centre(noise);
    let mut tally = Tally {
        comparisons,
        ..Tally::default()
    };
    for seed in 0..u64::from(comparisons) {
        let mut machine = Machine::new(noise, centre, seed ^ 0xabcd_0000);
        let outcomes = compare(&mut machine, plan, candidates, effect, seed);
        let wrong = |o: &Outcome| match o.verdict {
            Verdict::Less => effect >= 0.0,
            Verdict::More => effect <= 0.0,
            _ => false,
        };
        let covers = |o: &Outcome| {
            o.effect
                .interval
                .is_some_and(|i| i.low <= effect && effect <= i.high)
        };
        tally.wrong += u32::from(outcomes.iter().any(wrong));
        tally.covered += u32::from(outcomes.iter().all(covers));
        tally.pairs += outcomes[0].effect.pairs as u32;
        if outcomes.iter().all(|o| o.verdict.is_settled()) {
            *tally.ended.entry(outcomes[0].effect.pairs).or_default() += 1;
        }
        for outcome in &outcomes {
            match outcome.verdict {
                Verdict::Same => tally.same += 1,
                Verdict::Inconclusive(_) => tally.inconclusive += 1,
                _ => tally.right += u32::from(!wrong(outcome)),
            }
        }
    }
    tally
}

/// Standard normal (Box and Muller).
pub fn normal(rng: &mut Rng) -> f64 {
    (2.0 * exponential(rng)).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Exponential with mean 1.
pub fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.unit()).ln()
}
