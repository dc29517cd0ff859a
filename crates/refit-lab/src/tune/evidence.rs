//! What one run of the baseline shows: where it waits, and whether its heap is worth a look.

use std::time::{Duration, Instant};

use refit_run::{Calls, OPENING, Run, Testimony};
use serde::{Deserialize, Serialize};

use crate::comparison::of_subject::runner;
use crate::comparison::runner::Made;
use crate::error::LabError;
use crate::request::Request;
use crate::variants::Variants;

/// What of a process's memory is the heap: the terms of its identity (docs/memory.md).
const HEAP: [&str; 5] = ["live", "rounding", "headers", "fragments", "retained"];
/// What a block of the heap costs from malloc to free, as a typical number of nanoseconds: what decides is how much of
/// the processor's time that could be.
const NS_PER_BLOCK: f64 = 50.0;

/// What one run showed. The kernel's witness and the counting of the heap were in it, so that it is no measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The whole run in seconds, with what comes before and after it.
    pub took_s: f64,
    /// What was observed of it, in seconds: the measured window of a service, or the program.
    pub window_s: f64,
    /// Calls that wait for durability; `None`: some processes were not reached.
    pub syncs: Option<u64>,
    /// How long these waited, as a share of the window; above 1 where several processes waited at once.
    pub wait_share: Option<f64>,
    /// Durable calls that reached a filesystem, by the kernel's account; `None` without root.
    pub witnessed: Option<u64>,
    /// Files that were opened with O_DIRECT.
    pub direct_opens: u64,
    /// Blocks that malloc gave out; `None` where no heap could be counted.
    pub blocks: Option<u64>,
    /// What these take of the processor's time, about.
    pub blocks_share: Option<f64>,
    /// The heap's share of memory, at its most.
    pub heap_share: Option<f64>,
    /// Threads of the process with the most of them, at that time.
    pub threads: Option<u64>,
}

impl Evidence {
    /// Observes one run of the baseline.
    ///
    /// # Errors
    /// [`LabError::Baseline`] and its kin.
    pub fn observe(request: &Request) -> Result<Evidence, LabError> {
        let request = Request {
            heap: true,
            candidates: Vec::new(),
            ..request.clone()
        };
        let Variants { records, settings } = Variants::tried(&request);
        let mut runner = runner(&request, &settings, &records)?;
        runner.call_witness();
        let began = Instant::now();
        let made = runner.run(0)?;
        let took = began.elapsed();
        runner.end()?;
        match &made.failure {
            Some(reason) => Err(LabError::baseline(reason, &request)),
            None => Ok(Evidence::of(&made, took)),
        }
    }

    fn of(made: &Made, took: Duration) -> Evidence {
        let run = &made.run;
        let service = made.load.as_ref().and_then(|load| load.service.as_ref());
        let window_ns = match &made.load {
            Some(load) => load.window_ns,
            None => run.metrics.wall_ns,
        };
        let sum = |field: fn(&Calls) -> u64| match service {
            Some(service) => service.syncs(field),
            None => run.syncs(field),
        };
        let is_known = !run.are_syncs_unknown();
        let (memory, heap) = (run.memory.as_ref(), counted_heap(run));
        let of_heap = memory.map(|memory| {
            let terms = memory.terms.iter();
            let heap = terms.filter(|term| HEAP.contains(&&*term.term));
            let bytes: u64 = heap.map(|term| term.tree_pss_bytes).sum();
            share(bytes as f64, memory.tree_pss_bytes as f64)
        });
        let processor_ns = run.metrics.usage.processor_ns() as f64;
        Evidence {
            took_s: took.as_secs_f64(),
            window_s: window_ns as f64 / 1e9,
            syncs: is_known.then(|| sum(|calls| calls.seen)),
            wait_share: is_known
                .then(|| share(sum(|calls| calls.waited_ns) as f64, window_ns as f64)),
            witnessed: match &run.witness {
                Some(Testimony::Seen(seen)) => Some(seen.calls),
                _ => None,
            },
            direct_opens: direct_opens(run),
            blocks: heap,
            blocks_share: heap.map(|blocks| share(blocks as f64 * NS_PER_BLOCK, processor_ns)),
            heap_share: of_heap,
            threads: memory.map(|memory| memory.threads.max(1)),
        }
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Blocks of all heaps; `None` where none was counted.
fn counted_heap(run: &Run) -> Option<u64> {
    let heap = run.heap.as_ref()?;
    (heap.processes() > 0).then(|| heap.allocations())
}

fn direct_opens(run: &Run) -> u64 {
    let opens = run.totals.iter();
    let direct =
        opens.filter(|(name, _)| OPENING.contains(&name.as_str()) && name.contains("O_DIRECT"));
    direct.map(|(_, calls)| calls.seen).sum()
}
