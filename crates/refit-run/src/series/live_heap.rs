//! What is live in the heaps of a command that is watched.

use std::path::Path;

use refit_session::Collector;

use super::record::LiveHeap;
use crate::tree::PROC;

impl LiveHeap {
    /// What the counting library tells of the processes that live; `None` where it counts none.
    #[must_use]
    pub fn read(collector: &mut Collector) -> Option<LiveHeap> {
        collector.fold_dead();
        let mut heap = LiveHeap::default();
        let images = collector.heap_images();
        let counted = images.iter().filter(|image| image.is_counted());
        for process in counted.flat_map(|image| &image.processes) {
            if !Path::new(PROC).join(process.pid.to_string()).exists() {
                continue;
            }
            heap.processes += 1;
            for (sum, more) in [
                (&mut heap.requested_bytes, process.live.requested_bytes),
                (&mut heap.usable_bytes, process.live.usable_bytes),
                (&mut heap.blocks, process.live.blocks),
            ] {
                *sum = sum.saturating_add(more);
            }
        }
        (heap.processes > 0).then_some(heap)
    }
}
