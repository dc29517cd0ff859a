//! Replicas of a service on other machines: what starts, loads and removes them is the caller's.

use std::collections::BTreeMap;
use std::fmt::Debug;

use refit_knobs::Settings;
use refit_recipe::{Direction, LoadMetricRecord, LoadUnit, RecipeRecord, ReplicasRecord};

/// The metric of a comparison of replicas: from the load's start to its end.
pub const LOAD: &str = "load";
/// Proportional memory of the replica's processes after the load.
pub const PSS: &str = "pss";

/// Replicas of a service elsewhere.
pub trait Replicas: Debug + Send + Sync {
    /// What they are replicas of, as it is typed.
    fn name(&self) -> &str;

    /// What goes into a stored result.
    fn record(&self) -> ReplicasRecord;

    /// The machines that they run on.
    fn fixed(&self) -> BTreeMap<String, String>;

    /// A new round pair: all its replicas run on one machine.
    fn next_pair(&self);

    /// Starts a replica with these settings, loads it, removes it.
    ///
    /// # Errors
    /// Why the run does not count.
    fn run(&self, settings: &Settings) -> Result<Loaded, ReplicaError>;
}

/// Replicas as a stored result has them: a service whose load has two metrics.
pub fn recipe_record(replicas: &dyn Replicas) -> RecipeRecord {
    let metric = |name: &str, unit, about: &str| LoadMetricRecord {
        name: name.to_owned(),
        unit,
        better: Direction::Less,
        about: about.to_owned(),
    };
    RecipeRecord {
        name: replicas.name().to_owned(),
        unit: "load".to_owned(),
        replicas: Some(replicas.record()),
        is_service: true,
        metrics: vec![
            metric(
                LOAD,
                LoadUnit::Nanoseconds,
                "from the start of the load to its end",
            ),
            metric(
                PSS,
                LoadUnit::Bytes,
                "proportional memory of the replica's processes after the load (smaps_rollup)",
            ),
        ],
        ..RecipeRecord::default()
    }
}

/// What a load on a replica showed.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// From its start to its end.
    pub load_ns: u64,
    /// Memory of the replica's processes afterwards; `None` where it could not be read.
    pub pss_bytes: Option<u64>,
}

/// Why there is no run.
#[derive(Debug)]
pub enum ReplicaError {
    /// Of this variant; another run may succeed.
    Failed(String),
    /// Of this variant, and of any other run of it.
    Never(String),
    /// Nothing can be run any more.
    Ended(String),
}
