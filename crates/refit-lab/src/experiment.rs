//! A comparison as it is stored: everything that was measured, and what was
//! concluded from it. Every other format is drawn from this.

use std::collections::BTreeMap;

use refit_run::{Calls, MemorySample, Pressure, Run, Testimony};
use serde::{Deserialize, Serialize};

use crate::gate::{Gate, GateAnswer};
use crate::verdict::Verdict;

pub use refit_knobs::{Class, Setting};
pub use refit_recipe::{
    AnswerRecord, Direction, LoadMetricRecord, LoadUnit, RecipeRecord, SeriesRecord,
    UnavailableRecord,
};
pub use refit_run::{Outcome, SCHEMA};

/// A whole comparison.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `compare`.
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// Seconds since 1970 when it began.
    pub started_unix: u64,
    /// The command's words; of a recipe its name.
    pub command: Vec<String>,
    /// The metric that it is about.
    #[serde(default = "wall")]
    pub main: String,
    /// The service and its load, where a recipe describes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<RecipeRecord>,
    /// Settings under every variant (`--with`).
    pub with: Vec<SettingRecord>,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Two variants within ± this relative change are the same.
    pub delta: f64,
    /// How long it was to be.
    pub plan: PlanRecord,
    /// The machine, before and after.
    pub environment: Environment,
    /// The baseline first; then the candidates in the order in which they were
    /// typed; then `bare`, and last the hidden second baseline.
    pub variants: Vec<VariantRecord>,
    /// Variants of the recipe that cannot be tried here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<UnavailableRecord>,
    /// Every run in the order in which they were made.
    pub runs: Vec<RunRecord>,
    /// Candidate by metric; the hidden baseline and `bare` as well.
    pub effects: Vec<EffectRecord>,
    /// Gates as they were asked for, each with its answer.
    pub gates: Vec<GateRecord>,
    /// What a reader has to know, each with one action.
    pub warnings: Vec<Warning>,
    /// It was ended before its plan.
    pub interrupted: bool,
    /// The winner against the baseline once more, with a fresh seed.
    pub confirmation: Option<Box<Experiment>>,
    /// For hyperfine's scripts: one entry for each variant that is shown.
    pub results: Vec<TimesRecord>,
}

fn wall() -> String {
    "wall".to_owned()
}

/// What a recipe's load did in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadRecord {
    /// How many operations.
    pub operations: u64,
    /// The measured window in nanoseconds.
    pub window_ns: u64,
    /// What was read from its output, by metric: nanoseconds, bytes, counts, or per second.
    pub values: BTreeMap<String, f64>,
    /// What the check printed.
    pub outcome: String,
    /// Exact answers; stored once, with the variant.
    #[serde(skip)]
    pub answers: Vec<AnswerRecord>,
    /// The service under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceRecord>,
}

/// What a service took over the measured window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// From its start until it was ready, in nanoseconds; 0 where it was kept from another run.
    pub ready_ns: u64,
    /// Processor time in programs, in nanoseconds.
    pub user_ns: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Where both come from: `cgroup v2` or `processes`.
    pub cpu_source: String,
    /// Bytes written towards a disk; `None` where a process could not be read.
    pub written_bytes: Option<u64>,
    /// Waiting of the whole machine.
    pub pressure: Option<Pressure>,
    /// Calls of the window by executable and kind.
    pub calls: BTreeMap<String, BTreeMap<String, Calls>>,
    /// Memory over the window.
    pub memory: Vec<MemorySample>,
    /// Memory at its end.
    pub end: MemorySample,
    /// By how much less memory was available on the machine at the window's end
    /// than before the start; may be negative, as others use memory too.
    pub memory_used_bytes: Option<i64>,
}

/// How many round pairs were planned and made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Round pairs after which it was to be looked.
    pub looks: Vec<usize>,
    /// Two-sided error of each interval, so that all verdicts together hold at
    /// 95 %.
    pub alpha: f64,
    /// Round pairs that were completed, without the warm-up.
    pub pairs: usize,
    /// Which look ended it, from 1; 0 before the first.
    pub look: usize,
    /// The budget in seconds.
    pub budget_s: f64,
    /// What it took in seconds.
    pub took_s: f64,
}

/// What a variant is in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program with everything `on`.
    Baseline,
    /// Something to try.
    Candidate,
    /// The program without refit: its effect is refit's own weight.
    Bare,
    /// A second baseline: its effect is today's noise.
    Hidden,
}

/// A setting as it was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Its canonical text.
    pub setting: Setting,
    /// What it risks; a recipe declares this for its own settings.
    pub class: Class,
}

impl SettingRecord {
    /// Whether it swaps sync calls.
    #[must_use]
    pub fn is_about_syncs(&self) -> bool {
        self.setting.knob().name == "sync"
    }
}

/// One variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VariantRecord {
    /// As it was typed, in canonical text; `baseline`, `bare`.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Each setting with its class, without those of `--with`.
    pub settings: Vec<SettingRecord>,
    /// The riskiest class of them.
    pub class: Class,
    /// Why it takes no part any more.
    pub disqualified: Option<String>,
    /// What each of its runs answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerRecord>,
    /// What the kernel saw of one more run at the end, which was not measured;
    /// `None` where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Testimony>,
}

/// One run of one variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Index into `variants`.
    pub variant: usize,
    /// Round pair, from 0; the first is the warm-up.
    pub pair: usize,
    /// 0, or 1 in the mirror image.
    pub round: usize,
    /// Position in the round, from 0.
    pub slot: usize,
    /// Run, recorded and not counted.
    pub warmup: bool,
    /// Seconds from the start of the comparison to the start of the run.
    pub at_s: f64,
    /// Why the run does not count, and its round pair with it.
    pub failure: Option<String>,
    /// What a recipe's load did; `None` for commands, and where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// The record that `refit run` would have written.
    #[serde(flatten)]
    pub run: Run,
}

/// A variant's metric against the baseline's.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// `null` for the hidden baseline and for `bare`.
    pub verdict: Option<Verdict>,
    /// It is the better one.
    pub gain: bool,
    /// For `inconclusive`: round pairs that would probably settle it.
    pub pairs_needed: Option<usize>,
    /// What running later in a round adds, where that is certain.
    pub slot_effect: Option<f64>,
    /// Round pairs that it rests on.
    pub pairs: usize,
}

/// The answer to a gate, for one candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GateRecord {
    /// As it was typed.
    pub gate: Gate,
    /// Index into `variants`.
    pub variant: usize,
    /// For this candidate.
    pub answer: GateAnswer,
}

/// Something that a reader has to know.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Warning {
    /// What was seen.
    pub text: String,
    /// What to do about it.
    pub action: String,
}

/// The machine, as far as it can explain a difference.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Environment {
    /// What does not change during a comparison.
    pub fixed: BTreeMap<String, String>,
    /// At the start.
    pub before: BTreeMap<String, String>,
    /// At the end.
    pub after: BTreeMap<String, String>,
}

/// What hyperfine writes for a command; times in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TimesRecord {
    /// The variant.
    pub command: String,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation; `null` with fewer than two runs.
    pub stddev: Option<f64>,
    /// Median.
    pub median: f64,
    /// Mean processor time in programs.
    pub user: f64,
    /// Mean processor time in the kernel.
    pub system: f64,
    /// Fastest.
    pub min: f64,
    /// Slowest.
    pub max: f64,
    /// Each run that counts, in order.
    pub times: Vec<f64>,
    /// Their exit codes; `null` for a signal.
    pub exit_codes: Vec<Option<i32>>,
}

impl Experiment {
    /// Values of one metric for one variant, in run order, of the runs that
    /// count: those of complete round pairs behind the warm-up.
    pub fn counted(&self, variant: usize) -> impl Iterator<Item = &RunRecord> {
        self.runs
            .iter()
            .filter(move |run| run.variant == variant && !run.warmup && run.failure.is_none())
    }

    /// The effect of a variant on a metric.
    #[must_use]
    pub fn effect(&self, variant: usize, metric: &str) -> Option<&EffectRecord> {
        let of = |effect: &&EffectRecord| effect.variant == variant && effect.metric == metric;
        self.effects.iter().find(of)
    }
}
