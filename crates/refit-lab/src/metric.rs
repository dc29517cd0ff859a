//! The metrics of an experiment: those of refit's table, and those that a load reports.

use std::borrow::Cow;

use refit_recipe::{Direction, LoadUnit, RecipeRecord};
use refit_run::metric::{
    BuiltIn, MeasureRecord, OF_COMMANDS, OF_LOADS, Precision, Source, Unit, built_in,
};
use refit_stats::Measure;

use crate::experiment::{Experiment, LoadMetricRecord, RunRecord};

/// One metric of a run.
#[derive(Clone)]
pub struct Metric {
    /// Name in gates, tables and JSON.
    pub name: Cow<'static, str>,
    /// How its verdict is worded, and which side is the better one.
    pub measure: Measure,
    /// How its values are printed.
    pub unit: Unit,
    /// What it is, for people.
    pub about: Cow<'static, str>,
    /// Its line in refit's table; `None`: it is read from what the load printed.
    pub built_in: Option<&'static BuiltIn>,
}

/// The unit in which a load's values are stored and printed.
fn unit_of_load(unit: LoadUnit) -> Unit {
    match unit {
        LoadUnit::Nanoseconds
        | LoadUnit::Microseconds
        | LoadUnit::Milliseconds
        | LoadUnit::Seconds => Unit::Nanoseconds,
        LoadUnit::Bytes | LoadUnit::Kibibytes | LoadUnit::Mebibytes | LoadUnit::Gibibytes => {
            Unit::Bytes
        }
        LoadUnit::Count => Unit::Count,
        LoadUnit::PerSecond => Unit::PerSecond,
        LoadUnit::Percent => Unit::Percent,
    }
}

/// What the statistics call it.
#[must_use]
pub fn measure(record: MeasureRecord) -> Measure {
    match record {
        MeasureRecord::Duration => Measure::Duration,
        MeasureRecord::Rate => Measure::Rate,
        MeasureRecord::Amount => Measure::Amount,
    }
}

/// What a result calls it.
pub fn measure_record(measure: Measure) -> MeasureRecord {
    match measure {
        Measure::Duration => MeasureRecord::Duration,
        Measure::Rate => MeasureRecord::Rate,
        Measure::Amount => MeasureRecord::Amount,
    }
}

impl Metric {
    fn of_table(built_in: &'static BuiltIn) -> Metric {
        Metric {
            name: Cow::Borrowed(built_in.name),
            measure: measure(built_in.measure),
            unit: built_in.unit,
            about: Cow::Borrowed(built_in.about),
            built_in: Some(built_in),
        }
    }

    /// What a recipe reads from its load.
    fn of_load(record: &LoadMetricRecord) -> Metric {
        let unit = unit_of_load(record.unit);
        let measure = match (unit, record.better) {
            (_, Direction::More) => Measure::Rate,
            (Unit::Nanoseconds, _) => Measure::Duration,
            _ => Measure::Amount,
        };
        Metric {
            name: Cow::Owned(record.name.clone()),
            measure,
            unit,
            about: Cow::Owned(record.about.clone()),
            built_in: None,
        }
    }

    /// What the runs of a recipe have, or those of a command, in the order in which tables list it.
    #[must_use]
    pub fn all(recipe: Option<&RecipeRecord>) -> Vec<Metric> {
        let Some(recipe) = recipe else {
            return OF_COMMANDS.iter().map(Metric::of_table).collect();
        };
        let printed = recipe.metrics.iter().map(Metric::of_load);
        if recipe.replicas.is_some() {
            return printed.collect();
        }
        let own = built_in(recipe.is_service).iter().map(Metric::of_table);
        let loads = OF_LOADS.iter().map(Metric::of_table);
        loads.chain(printed).chain(own).collect()
    }

    /// Whether refit counts it in the program: without refit it is unknown, and not 0.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.built_in
            .is_some_and(|metric| metric.precision == Precision::Counted)
    }

    /// Its value for a ratio: a value that is accounted in steps, and smaller than
    /// the unit's least, counts as the least.
    #[must_use]
    pub fn for_ratio(&self, run: &RunRecord) -> Option<f64> {
        let precision = self.built_in.map_or(Precision::Exact, |one| one.precision);
        let least = match precision {
            Precision::Stepped | Precision::Counted => self.unit.least(),
            // 0 has no ratio.
            Precision::Exact => f64::MIN_POSITIVE,
            Precision::Difference => return None,
        };
        self.of(run).map(|value| value.max(least))
    }

    /// Its value in a run; `None` where this machine or this run does not have it.
    #[must_use]
    pub fn of(&self, run: &RunRecord) -> Option<f64> {
        match self.built_in.map(|metric| metric.source) {
            Some(Source::Run(value)) => value(&run.run),
            Some(Source::Service(value)) => value(run.load.as_ref()?.service.as_ref()?),
            Some(Source::Load) => {
                let load = run.load.as_ref()?;
                Some(load.operations as f64 * 1e9 / load.window_ns.max(1) as f64)
            }
            None => run.load.as_ref()?.values.get(&*self.name).copied(),
        }
    }
}

impl Experiment {
    /// What its runs have, in the order in which tables list it.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        Metric::all(self.recipe.as_ref())
    }

    /// By name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<Metric> {
        self.metrics()
            .into_iter()
            .find(|metric| metric.name == name)
    }

    /// What the comparison is about.
    #[must_use]
    pub fn main_metric(&self) -> Metric {
        self.metric(&self.main)
            .unwrap_or_else(|| Metric::of_table(&OF_COMMANDS[0]))
    }
}
