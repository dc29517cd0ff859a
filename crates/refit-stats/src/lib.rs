//! The statistics of a comparison: in which order variants run, how large an effect is, and which of four
//! words it has earned. Pure functions: no input or output, no clock, no dependencies, no global state.
//!
//! Promises: the same seed and samples give the same answer; an interval holds at the level that it states,
//! whatever the noise, as long as that noise is symmetric once mirrored (and about normal, where there are too
//! few round pairs for ranks); a verdict is wrong in at most one
//! comparison of twenty, the looks taken on the way and all candidates included.
//!
//! Refuses: an interval that the number of round pairs cannot carry (`None`, never a guess), dropping
//! outliers, and "no significant difference": `same` has to be earned as `faster` has.
//!
//! The order of use: [`plan_looks`] says after how many round pairs to look; [`Schedule`] gives the order of
//! the runs; at each look [`estimate`] and [`verdict`] say whether it is settled. `examples/calibration.rs`
//! simulates whole comparisons and prints how often all this is wrong.

mod both_baselines;
mod boundary;
mod effect;
mod fisher;
mod growth;
mod looks;
mod memory_growth;
mod percentile;
mod pooling;
mod rng;
mod schedule;
mod screening;
mod signed_rank;
mod slot;
mod standing;
mod student;
mod verdict;

pub use both_baselines::estimate_from_both;
pub use effect::{
    Effect, FEWEST_PAIRS, Interval, LEAST_SPREAD, Levels, Method, NotPositive, PairSample,
    estimate, noise_floor, p_value,
};
pub use growth::{BLOCKS, FEWEST_SAMPLES, Growth, GrowthError, Observation, Trend, growth};
pub use looks::{
    DEFAULT_LOOKS, LookPlan, MAX_LOOKS, MAX_PAIRS, OVERALL_ALPHA, TooFewPairs, fewest_for_ranks,
    plan_looks,
};
pub use memory_growth::{
    GrowingPart, MemoryGrowth, MemoryPoint, MemoryVerdict, Part, memory_growth,
};
pub use percentile::{Percentile, PercentileError, percentile, samples_needed};
pub use pooling::{Block, POOLED_ALPHA, Pooled, p_equal, pool};
pub use rng::Rng;
pub use schedule::{RoundPair, Schedule};
pub use screening::{STAGES, Standing, is_behind, screen, stage_levels};
pub use signed_rank::pairs_needed;
pub use slot::slot_effect;
pub use standing::standing;
pub use verdict::{ADVISABLE_TIMES, DEFAULT_DELTA, Measure, Remedy, Verdict, verdict};
