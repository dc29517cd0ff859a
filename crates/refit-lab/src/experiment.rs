//! What was run: the variants, the plan, the machine, and every run. Nothing here
//! is concluded from the runs; that is [`crate::Effects`] and what follows from them.

mod disqualified;
mod planned;
mod samples;
mod variant;

use std::collections::BTreeMap;

use refit_stats::Levels;
use serde::{Deserialize, Serialize};

pub use self::disqualified::Disqualified;
pub use self::samples::{INCOMPLETE, LatencyRecord, LoadRecord, OF_ANOTHER, RunRecord, Samples};
pub use self::variant::{FewerDurable, Role, SettingRecord, VariantRecord};
pub use refit_knobs::{Class, Setting};
pub use refit_recipe::{
    AnswerRecord, DdlRecord, Direction, LoadMetricRecord, LoadUnit, RecipeRecord, ReplicasRecord,
    SeriesRecord, UnavailableRecord,
};
pub use refit_run::{Outcome, SCHEMA, ServiceRecord};

/// One experiment: what was to be compared, how, where, and what was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// Version of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// Always `compare`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "compare")))]
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// Seconds since 1970 when it began.
    pub started_unix: u64,
    /// The command's words; of a recipe its name.
    pub command: Vec<String>,
    /// Its other options, as they were typed; `None`: they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
    /// What each run of the command read as standard input; `None` for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The metric that the comparison is about.
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
    /// How long it was planned to be, and how long it was.
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
    pub runs: Samples,
    /// It was interrupted before the end of its plan.
    pub interrupted: bool,
    /// What failed and ended it before the end of its plan: of the baseline, or of refit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

fn wall() -> String {
    "wall".to_owned()
}

/// How many round pairs were planned and made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanRecord {
    /// Numbers of completed round pairs after which a verdict was possible.
    pub looks: Vec<usize>,
    /// Two-sided error of each interval, so that all verdicts together hold at
    /// 95 %.
    pub alpha: f64,
    /// The same of an interval of fewer round pairs than signed ranks need: Student's.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub early_alpha: f64,
    /// Round pairs that were completed, without the warm-up.
    pub pairs: usize,
    /// Which look ended it, from 1; 0 before the first.
    pub look: usize,
    /// The budget in seconds.
    pub budget_s: f64,
    /// What it took in seconds.
    pub took_s: f64,
}

/// The machine, as far as it can explain a difference.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// What does not change during a comparison.
    pub fixed: BTreeMap<String, String>,
    /// At the start.
    pub before: BTreeMap<String, String>,
    /// At the end.
    pub after: BTreeMap<String, String>,
}

impl PlanRecord {
    /// The errors of its intervals.
    #[must_use]
    pub fn levels(&self) -> Levels {
        Levels {
            ranks: self.alpha,
            early: self.early_alpha,
        }
    }
}

impl Experiment {
    /// Whether its whole result is a table of exact answers.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.recipe.as_ref().is_some_and(|recipe| recipe.is_exact)
    }

    /// Whether it measured replicas on other machines, and nothing of this one.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        let recipe = self.recipe.as_ref();
        recipe.is_some_and(|recipe| recipe.replicas.is_some())
    }

    /// Candidates that were not disqualified, by index.
    pub fn candidates(&self) -> impl Iterator<Item = (usize, &VariantRecord)> {
        let variants = self.variants.iter().enumerate();
        variants.filter(|(_, variant)| variant.is_candidate())
    }
}
