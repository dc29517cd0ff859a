//! The class of the step from the baseline to a variant, by what its runs show: a value that is declared safe is not
//! safe where fewer durable calls are made for the same work.

use std::collections::BTreeMap;

use refit_run::{Calls, OPEN_SYNC, OPENING};

use crate::experiment::{Class, Experiment, FewerDurable, Role, RunRecord};

/// Durable calls of one unit of work: syncs, and opens of files whose every write is one.
type Durable = [f64; 2];

/// Sets what the runs so far show of each candidate.
pub fn record_step_classes(experiment: &mut Experiment) {
    let hidden = |one: &usize| experiment.variants[*one].role == Role::Hidden;
    let baselines = (0..experiment.variants.len()).filter(|one| *one == 0 || hidden(one));
    let baselines: Option<Vec<Vec<Durable>>> = baselines
        .map(|baseline| counted(experiment, baseline))
        .collect();
    let Some(baseline) = baselines.map(|all| all.concat()) else {
        return;
    };
    let found: Vec<Option<FewerDurable>> = (0..experiment.variants.len())
        .map(
            |variant| match experiment.variants[variant].is_candidate() {
                true => fewer(&baseline, &counted(experiment, variant)?),
                false => None,
            },
        )
        .collect();
    for (variant, fewer) in experiment.variants.iter_mut().zip(found) {
        variant.fewer_durable = fewer;
        variant.class = variant.classes().into_iter().max().unwrap_or(Class::Safe);
    }
}

/// Of each run that counts; `None` where one of them could not be counted.
fn counted(experiment: &Experiment, variant: usize) -> Option<Vec<Durable>> {
    let runs = experiment.runs.counted(variant);
    runs.map(of_run).collect()
}

fn of_run(run: &RunRecord) -> Option<Durable> {
    let real = |calls: &BTreeMap<String, Calls>| {
        let mut durable = [0.0; 2];
        for (name, calls) in calls {
            match name.as_str() {
                OPEN_SYNC => durable[1] += calls.real as f64,
                name if OPENING.contains(&name) => {}
                _ => durable[0] += calls.real as f64,
            }
        }
        durable
    };
    let operations = run.load.as_ref().map_or(1, |load| load.operations.max(1));
    let service = run.load.as_ref().and_then(|load| load.service.as_ref());
    let durable = match service {
        Some(service) => service
            .calls
            .values()
            .map(real)
            .fold([0.0; 2], |sum, calls| {
                [sum[0] + calls[0], sum[1] + calls[1]]
            }),
        None if run.run.are_syncs_unknown() => return None,
        None => real(&run.run.totals),
    };
    Some(durable.map(|calls| calls / operations as f64))
}

/// Whether every run of the variant made fewer than every run of the baseline. Where it makes fewer of one kind and more
/// of the other, as a server does that opens its files with O_DSYNC in place of calling fsync, the counts do not tell.
fn fewer(baseline: &[Durable], variant: &[Durable]) -> Option<FewerDurable> {
    let least = |runs: &[Durable], kind: usize| runs.iter().map(|run| run[kind]).reduce(f64::min);
    let most = |runs: &[Durable], kind: usize| runs.iter().map(|run| run[kind]).reduce(f64::max);
    let mut found = None;
    for kind in 0..2 {
        if least(variant, kind)? > most(baseline, kind)? {
            return None;
        }
        let (base, most) = (least(baseline, kind)?, most(variant, kind)?);
        if most < base {
            found = found.or(Some(FewerDurable {
                baseline: base,
                variant: most,
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_in_every_run_is_fewer() {
        let runs = |syncs: &[f64]| -> Vec<Durable> { syncs.iter().map(|n| [*n, 0.0]).collect() };
        let found = |baseline: &[f64], variant: &[f64]| fewer(&runs(baseline), &runs(variant));
        let one = FewerDurable {
            baseline: 11.0,
            variant: 9.0,
        };
        assert_eq!(found(&[12.0, 11.0], &[8.0, 9.0]), Some(one));
        assert_eq!(found(&[12.0, 9.0], &[8.0, 9.0]), None);
        assert_eq!(found(&[12.0], &[12.0]), None);
        assert_eq!(found(&[0.0], &[0.0]), None);
        assert_eq!(found(&[12.0], &[]), None);
    }

    #[test]
    fn other_kinds_of_durable_calls_do_not_tell() {
        assert_eq!(fewer(&[[100.0, 0.0]], &[[2.0, 3.0]]), None);
        assert_eq!(fewer(&[[2.0, 3.0]], &[[100.0, 0.0]]), None);
        assert!(fewer(&[[2.0, 3.0]], &[[2.0, 0.0]]).is_some());
    }
}
