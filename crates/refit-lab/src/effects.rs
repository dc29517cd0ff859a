//! From runs to effects: which round pairs count, what they say of each metric.

use refit_stats::{Effect, PairSample, Remedy, estimate, slot_effect, verdict};

use crate::comparison::MOST_PAIRS;
use crate::experiment::{EffectRecord, Experiment, Role, RunRecord};
use crate::metric::Metric;
use crate::verdict::Verdict;

/// Both runs of a variant in a round pair, if both count.
fn both<'a>(runs: &[&'a RunRecord], variant: usize) -> Option<[&'a RunRecord; 2]> {
    let of = |round: usize| {
        runs.iter()
            .copied()
            .find(|run| run.variant == variant && run.round == round)
    };
    let pair = [of(0)?, of(1)?];
    pair.iter().all(|run| run.failure.is_none()).then_some(pair)
}

/// What each complete round pair says of a variant against the baseline.
fn samples(experiment: &Experiment, variant: usize, metric: &Metric) -> Vec<PairSample> {
    let mut samples = Vec::new();
    for runs in experiment.runs.chunk_by(|a, b| a.pair == b.pair) {
        let runs: Vec<&RunRecord> = runs.iter().filter(|run| !run.warmup).collect();
        let (Some(base), Some(other)) = (both(&runs, 0), both(&runs, variant)) else {
            continue;
        };
        let value = |run: &RunRecord| metric.for_ratio(run);
        let values = |of: [&RunRecord; 2]| Some([value(of[0])?, value(of[1])?]);
        let (Some(y0), Some(yv)) = (values(base), values(other)) else {
            continue;
        };
        let baseline_first = base[0].slot < other[0].slot;
        samples.extend(PairSample::new(y0, yv, baseline_first));
    }
    samples
}

fn record(
    experiment: &Experiment,
    variant: usize,
    metric: &Metric,
    samples: &[PairSample],
    effect: &Effect,
) -> EffectRecord {
    let is_candidate = experiment.variants[variant].role == Role::Candidate;
    let verdict = verdict(effect, experiment.delta);
    EffectRecord {
        variant,
        metric: metric.name.clone().into_owned(),
        change: effect.change(),
        interval: effect.interval.map(|interval| {
            let (low, high) = interval.changes();
            [low, high]
        }),
        verdict: is_candidate.then(|| Verdict::new(verdict, metric.measure)),
        gain: is_candidate && verdict.is_gain(metric.measure),
        pairs_needed: match verdict {
            refit_stats::Verdict::Inconclusive(
                Remedy::RoundPairs(pairs) | Remedy::LessNoise { pairs, .. },
            ) if is_candidate && pairs <= MOST_PAIRS => Some(pairs),
            _ => None,
        },
        slot_effect: slot_effect(samples, experiment.plan.alpha).map(|effect| effect.change()),
        pairs: effect.pairs,
    }
}

/// The effects on the metrics that are asked for, from the runs that are there.
pub fn effects(experiment: &Experiment, wanted: impl Fn(&str) -> bool) -> Vec<EffectRecord> {
    let mut records = Vec::new();
    let metrics = experiment.metrics();
    for variant in 1..experiment.variants.len() {
        let counts = experiment.variants[variant].role != Role::Bare;
        for metric in metrics.iter().filter(|metric| wanted(&metric.name)) {
            // Without refit nobody counts.
            if !counts && ["syncs", "sync-wait"].contains(&&*metric.name) {
                continue;
            }
            let samples = samples(experiment, variant, metric);
            if let Some(effect) = estimate(&samples, experiment.plan.alpha) {
                records.push(record(experiment, variant, metric, &samples, &effect));
            }
        }
    }
    records
}

/// Today's noise: the farthest end of the hidden baseline's interval.
impl Experiment {
    /// The largest relative change that was seen between two equal variants;
    /// `None` when there were too few round pairs to say.
    #[must_use]
    pub fn noise_floor(&self) -> Option<f64> {
        let hidden = self
            .variants
            .iter()
            .position(|variant| variant.role == Role::Hidden)?;
        let [low, high] = self.effect(hidden, &self.main)?.interval?;
        Some(low.abs().max(high.abs()))
    }
}
