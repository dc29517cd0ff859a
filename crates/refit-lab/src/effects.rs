//! What the runs prove: for each candidate and metric a ratio to the baseline, with
//! its interval and its verdict. A pure function of the [`Experiment`].

use refit_stats::{
    Effect, Levels, MAX_PAIRS, Method, PairSample, Remedy, estimate, estimate_from_both, p_value,
    pairs_needed, slot_effect, standing, verdict,
};
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Role, RunRecord};
use crate::metric::Metric;
use crate::verdict::Verdict;

/// The effects of the candidates, of `bare`, and of the hidden second baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Effects(Vec<EffectRecord>);

/// A variant's metric against the baseline's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectRecord {
    /// Index into `variants`.
    pub variant: usize,
    /// Name of the metric.
    pub metric: String,
    /// Relative change that was estimated: −0.02 is 2 % less.
    pub change: f64,
    /// Lower and upper end of the interval, as relative changes; `null` where
    /// there were too few round pairs.
    pub interval: Option<[f64; 2]>,
    /// The interval is Student's, of fewer round pairs than signed ranks need.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early: bool,
    /// The interval is of the ratios to both baselines, the hidden one too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub both_baselines: bool,
    /// `null` for the hidden baseline and for `bare`.
    pub verdict: Option<Verdict>,
    /// The candidate is proven better; on the main metric by more than the noise floor.
    pub gain: bool,
    /// For `inconclusive`: round pairs that would probably suffice for a verdict.
    pub pairs_needed: Option<usize>,
    /// What running later in a round adds, where that is certain.
    pub slot_effect: Option<f64>,
    /// Round pairs that it rests on.
    pub pairs: usize,
    /// How likely such a difference or a larger one is by chance alone; only of a
    /// candidate's metrics beside the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Whether that difference stands when it is taken into account how many metrics
    /// there are (Holm's correction, over all candidates): the others are not printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands: Option<bool>,
}

impl EffectRecord {
    /// Whether a difference is proven that may be printed: of the main metric, or one
    /// that stands.
    #[must_use]
    pub fn is_difference(&self) -> bool {
        self.verdict.is_some_and(Verdict::is_difference) && self.stands != Some(false)
    }

    /// Whether the interval says about how large a proven difference is: its near end is at least half of it. A
    /// difference of which little but the direction is certain is worth more runs.
    #[must_use]
    pub fn is_sized(&self) -> bool {
        self.interval.is_some_and(|ends| {
            let size = |change: f64| change.ln_1p().abs();
            let near = ends.map(size).into_iter().fold(f64::INFINITY, f64::min);
            near >= size(self.change) / 2.0
        })
    }
}

impl Effects {
    /// The effects on every metric.
    #[must_use]
    pub fn of(experiment: &Experiment) -> Effects {
        Effects::of_metrics(experiment, |_| true)
    }

    /// The effects on the metrics that are wanted.
    #[must_use]
    pub fn of_metrics(experiment: &Experiment, wanted: impl Fn(&str) -> bool) -> Effects {
        let mut records = Vec::new();
        if experiment.is_exact() {
            return Effects(records);
        }
        let metrics = experiment.metrics();
        let hidden = hidden(experiment);
        let is_main = |metric: &Metric| *metric.name == *experiment.main;
        for variant in 1..experiment.variants.len() {
            // Without refit nothing counts the calls.
            let is_counted = experiment.variants[variant].role != Role::Bare;
            for metric in metrics.iter().filter(|metric| wanted(&metric.name)) {
                if !is_counted && metric.is_counted() {
                    continue;
                }
                let samples = |baseline| samples(experiment, [baseline, variant], metric);
                let first = samples(0);
                let levels = experiment.plan.levels();
                let effect = match hidden {
                    Some(hidden)
                        if is_main(metric) && experiment.variants[variant].is_candidate() =>
                    {
                        estimate_from_both(&first, &samples(hidden), levels)
                    }
                    _ => estimate(&first, levels),
                };
                if let Some(effect) = effect {
                    records.push(record(experiment, variant, metric, &first, &effect));
                }
            }
        }
        correct(experiment, &mut records);
        let mut effects = Effects(records);
        effects.leave_out_noise(experiment);
        effects
    }

    /// What two equal variants may differ by today is no gain.
    fn leave_out_noise(&mut self, experiment: &Experiment) {
        let floor = self.noise(experiment);
        for effect in &mut self.0 {
            effect.gain &= !(effect.metric == experiment.main && is_noise(effect, floor));
        }
    }

    /// Every effect: by variant, then by metric.
    pub fn iter(&self) -> std::slice::Iter<'_, EffectRecord> {
        self.0.iter()
    }

    /// Every effect, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, EffectRecord> {
        self.0.iter_mut()
    }

    /// The effect of a variant on a metric.
    #[must_use]
    pub fn get(&self, variant: usize, metric: &str) -> Option<&EffectRecord> {
        let of = |effect: &&EffectRecord| effect.variant == variant && effect.metric == metric;
        self.iter().find(of)
    }

    /// Whether a difference is proven that is smaller than the noise floor: that of a candidate on the main metric.
    #[must_use]
    pub fn is_within_noise(&self, experiment: &Experiment, effect: &EffectRecord) -> bool {
        is_noise(effect, self.noise(experiment))
    }

    /// The noise floor: the largest relative change between two equal variants that
    /// the hidden second baseline leaves possible; `None` with too few round pairs.
    #[must_use]
    pub fn noise_floor(&self, experiment: &Experiment) -> Option<f64> {
        let [low, high] = self.noise(experiment)?;
        Some(low.abs().max(high.abs()))
    }

    /// The interval of the hidden second baseline.
    fn noise(&self, experiment: &Experiment) -> Option<[f64; 2]> {
        let effect = self.get(hidden(experiment)?, &experiment.main)?;
        // That one is wide for its few round pairs, and not for the noise.
        effect.interval.filter(|_| !effect.early)
    }
}

impl FromIterator<EffectRecord> for Effects {
    fn from_iter<I: IntoIterator<Item = EffectRecord>>(records: I) -> Effects {
        Effects(records.into_iter().collect())
    }
}

/// As ratios: a quarter of a time is farther from the whole than twice of it, although it changes by less.
fn is_noise(effect: &EffectRecord, noise: Option<[f64; 2]>) -> bool {
    let differs = effect.verdict.is_some_and(Verdict::is_difference);
    let size = |change: f64| change.ln_1p().abs();
    differs
        && noise.is_some_and(|ends| {
            size(effect.change) < ends.map(size).into_iter().fold(0.0, f64::max)
        })
}

/// The hidden second baseline.
fn hidden(experiment: &Experiment) -> Option<usize> {
    let mut variants = experiment.variants.iter();
    variants.position(|variant| variant.role == Role::Hidden)
}

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

/// The ratio of a variant to a baseline in each complete round pair.
fn samples(
    experiment: &Experiment,
    [baseline, variant]: [usize; 2],
    metric: &Metric,
) -> Vec<PairSample> {
    let mut samples = Vec::new();
    for runs in experiment.runs.as_slice().chunk_by(|a, b| a.pair == b.pair) {
        let runs: Vec<&RunRecord> = runs.iter().filter(|run| !run.warmup).collect();
        let (Some(base), Some(other)) = (both(&runs, baseline), both(&runs, variant)) else {
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

/// The ratio of a variant's main metric to the baseline's in each complete round pair.
pub(crate) fn samples_of_main(experiment: &Experiment, variant: usize) -> Vec<PairSample> {
    samples(experiment, [0, variant], &experiment.main_metric())
}

/// The ratio of a variant's main metric to that of another at these errors; `None` where one of them has none.
pub fn ratio(experiment: &Experiment, [to, variant]: [usize; 2], levels: Levels) -> Option<Effect> {
    let samples = samples(experiment, [to, variant], &experiment.main_metric());
    estimate(&samples, levels)
}

fn record(
    experiment: &Experiment,
    variant: usize,
    metric: &Metric,
    samples: &[PairSample],
    effect: &Effect,
) -> EffectRecord {
    let is_candidate = experiment.variants[variant].is_candidate();
    let verdict = verdict(effect, experiment.delta);
    let is_made_by = |method| effect.interval.is_some_and(|made| made.method == method);
    EffectRecord {
        variant,
        metric: metric.name.clone().into_owned(),
        change: effect.change(),
        interval: effect.interval.map(|interval| {
            let (low, high) = interval.changes();
            [low, high]
        }),
        early: is_made_by(Method::Student),
        both_baselines: is_made_by(Method::SignedRanksOfBoth),
        verdict: is_candidate.then(|| Verdict::new(verdict, metric.measure)),
        gain: is_candidate && verdict.is_gain(metric.measure),
        pairs_needed: match verdict {
            refit_stats::Verdict::Inconclusive(
                Remedy::RoundPairs(pairs) | Remedy::LessNoise { pairs, .. },
            ) if is_candidate && pairs <= MAX_PAIRS => Some(pairs),
            _ => None,
        },
        slot_effect: slot_effect(samples, experiment.plan.alpha).map(|effect| effect.change()),
        pairs: effect.pairs,
        p_value: (is_candidate && *metric.name != *experiment.main).then(|| p_value(samples)),
        stands: None,
    }
}

/// Thirteen metrics at 5 % each would differ by chance alone in every other comparison:
/// marks what stands. The looks that were taken are paid for as in the intervals.
fn correct(experiment: &Experiment, records: &mut [EffectRecord]) {
    let plan = &experiment.plan;
    let each = if plan.pairs >= pairs_needed(plan.alpha) {
        plan.alpha
    } else {
        plan.early_alpha
    };
    let variants = experiment.variants.iter();
    let candidates = variants.filter(|variant| variant.role == Role::Candidate);
    let level = each * candidates.count() as f64;
    let p_values: Vec<f64> = records.iter().filter_map(|record| record.p_value).collect();
    let stand = standing(&p_values, level);
    let compared = records.iter_mut().filter(|record| record.p_value.is_some());
    for (record, stands) in compared.zip(stand) {
        record.stands = Some(stands);
    }
}
