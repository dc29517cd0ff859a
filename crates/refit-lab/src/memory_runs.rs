//! One more run of each variant with its heap counted: why its memory is what it is. What counting costs is in no run
//! that is measured.

use refit_run::interruptions;

use crate::comparison::runner::Runs;
use crate::experiment::{Experiment, Role};
use crate::memory_reason::MemoryAnswer;

/// Makes these runs, and keeps what they show with the variants. Nothing that fails here takes away what was measured
/// before. `starts` is called before each run.
pub fn explain(
    experiment: &mut Experiment,
    runner: &mut dyn Runs,
    starts: &mut dyn FnMut(&Experiment, usize),
) {
    if experiment.interrupted || experiment.failed.is_some() {
        return;
    }
    runner.explain_memory();
    for variant in 0..experiment.variants.len() {
        let of = &experiment.variants[variant];
        let is_one = of.role == Role::Baseline || of.is_candidate();
        if !is_one {
            continue;
        }
        if interruptions() > 0 {
            return;
        }
        starts(experiment, variant);
        experiment.variants[variant].memory = Some(answer(variant, runner));
    }
}

fn answer(variant: usize, runner: &mut dyn Runs) -> MemoryAnswer {
    let unknown = |reason: String| MemoryAnswer::Unknown(format!("its run failed: {reason}"));
    match runner.run(variant) {
        Err(error) => unknown(error.to_string()),
        Ok(made) => match (made.failure, made.memory) {
            (Some(reason), _) => unknown(reason),
            (None, Some(reason)) => MemoryAnswer::Known(reason),
            (None, None) => MemoryAnswer::Unknown(
                "the heap of none of its processes could be counted".to_owned(),
            ),
        },
    }
}
