//! Requests at their times, in place of the load's command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use refit_load::{Generated, LoadError, Plan, generate};
use refit_recipe::{Instance, OpenLoop, Service};
use refit_run::{doze, interruptions};

use super::phase::{Phase, failed, void};
use crate::experiment::{LatencyRecord, LoadRecord};

/// How often the service is looked at.
const TICK: Duration = Duration::from_millis(10);
/// A generator that was late by no more than this is not looked at any further, in nanoseconds.
const LATE: u64 = 1_000_000;
/// A generator that was late by more than this part of the latency is measured in place of the service.
const NEGLIGIBLE: f64 = 0.1;

/// Sends all requests while the service lives. `tick` is called about a hundred times a second.
pub fn send(
    instance: &Instance,
    service: &mut Service,
    plan: &Plan,
    mut tick: impl FnMut(),
) -> Result<Generated, LoadError> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let generator = scope.spawn(|| generate(plan, &stop));
        while !generator.is_finished() {
            tick();
            if interruptions() > 1 || !service.is_alive(instance) {
                stop.store(true, Ordering::Relaxed);
            }
            doze(TICK);
        }
        generator.join().expect("the generator does not panic")
    })
}

/// What is kept of it, unless it says nothing of the service.
pub fn record(open: &OpenLoop, plan: &Plan, seed: u64, made: &Generated) -> Phase<LoadRecord> {
    let requests = plan.due.len();
    if made.unanswered > 0 {
        let patience = plan.patience.as_secs_f64();
        return failed(format!(
            "{} of {requests} requests had no answer {patience} s after the last one was due",
            made.unanswered
        ));
    }
    let [late, latency] = [&made.lateness, &made.latencies].map(|times| times.quantile(0.99));
    if is_late(late, latency) {
        return void(format!(
            "refit sent its requests late: of 1 % of them by {:.1} ms or more, where 99 % were answered within {:.1} ms; \
             wait for a quieter machine, or set a lower load.rate",
            late as f64 / 1e6,
            latency as f64 / 1e6
        ));
    }
    let values = open.quantiles();
    let values = values.map(|(name, part)| (name.to_owned(), made.latencies.quantile(part) as f64));
    Ok(LoadRecord {
        operations: requests as u64,
        window_ns: u64::try_from(made.took.as_nanos()).unwrap_or(u64::MAX),
        values: values.collect(),
        outcome: String::new(),
        answers: Vec::new(),
        latencies: Some(LatencyRecord {
            counts: made.latencies.counts(),
            late_p99_ns: late,
            late_max_ns: made.lateness.quantile(1.0),
            held: made.held,
            connections: made.connections,
            schedule_seed: seed,
            ran_first: made.ran_first,
        }),
        service: None,
    })
}

/// Whether the generator's own lateness is a part of the latency that cannot be neglected.
fn is_late(late: u64, latency: u64) -> bool {
    late > LATE && late as f64 > NEGLIGIBLE * latency as f64
}

#[cfg(test)]
mod tests {
    use refit_load::{Arrivals, Latencies, Protocol, Target};

    use super::super::phase::RunError;
    use super::*;
    use crate::comparison::runner::Blame;

    #[test]
    fn lateness_is_negligible_below_a_millisecond_or_a_tenth() {
        const MS: u64 = 1_000_000;
        for (late, latency, is) in [
            (MS, MS, false),
            (2 * MS, 10 * MS, true),
            (2 * MS, 30 * MS, false),
            (0, 0, false),
        ] {
            assert_eq!(is_late(late, latency), is, "{late} of {latency}");
        }
    }

    fn made(late_ms: u64, unanswered: u64) -> Phase<LoadRecord> {
        let (mut latencies, mut lateness) = (Latencies::default(), Latencies::default());
        for _ in 0..1000 {
            latencies.record(5_000_000);
            lateness.record(late_ms * 1_000_000);
        }
        let open = OpenLoop {
            rate: 100,
            arrivals: Arrivals::Constant,
            requests: 1000,
        };
        let plan = Plan {
            target: Target::Tcp(1),
            protocol: Protocol::Lines,
            request: Vec::new(),
            due: vec![0; 1000],
            connections: 1,
            patience: Duration::from_secs(60),
        };
        let made = Generated {
            latencies,
            lateness,
            unanswered,
            ..Generated::default()
        };
        record(&open, &plan, 7, &made)
    }

    #[test]
    fn a_run_with_a_late_generator_or_without_answers_does_not_count() {
        let Ok(record) = made(0, 0) else {
            panic!("it counts");
        };
        assert!((record.values["p99"] / 5e6 - 1.0).abs() < 0.001);
        assert_eq!(record.latencies.unwrap().schedule_seed, 7);
        let blame = |made: Phase<LoadRecord>| match made {
            Err(RunError::Failed(failure)) => failure.blame,
            _ => panic!("it does not count"),
        };
        assert_eq!(blame(made(2, 0)), Blame::Nobody);
        assert_eq!(blame(made(0, 1)), Blame::Variant);
    }
}
