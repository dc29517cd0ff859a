//! The durability check of a run, by a process of its own: the stacks, and the files with their functions, are what the
//! program says, and may have no end.

use std::time::Duration;

use refit_durability::{DurabilityReport, Ignored, Reader};
use refit_launch::{Asked, Worker};
use refit_session::file_events::FileRing;

/// How long it waits for events when there were none.
const TICK: Duration = Duration::from_millis(2);
/// How long the last stacks are unwound, and functions named.
const LIMIT: Duration = Duration::from_secs(30);

/// A program is followed.
pub struct DurabilityCheck {
    worker: Worker,
}

impl DurabilityCheck {
    /// Follows the processes that write to this ring.
    ///
    /// # Errors
    /// Why they cannot be followed, for people.
    pub fn begin(ring: FileRing, ignored: Ignored) -> Result<DurabilityCheck, String> {
        let follow = |mut reader: Reader, asked: &Asked| {
            loop {
                let pause = match reader.tick() {
                    true => Duration::ZERO,
                    false => TICK,
                };
                if asked.within(pause) {
                    break;
                }
            }
            serde_json::to_vec(&reader.finish()).unwrap_or_default()
        };
        let worker = Worker::begin(LIMIT, || Ok(Reader::new(ring, ignored)), follow);
        Ok(DurabilityCheck {
            worker: worker.map_err(|error| error.to_string())?,
        })
    }

    /// What was found. `is_success`: the command ended with 0, which acknowledges what it did.
    ///
    /// # Errors
    /// Why it is not known, for people.
    pub fn finish(self, is_success: bool) -> Result<DurabilityReport, String> {
        let mut report: DurabilityReport = match self.worker.answer(LIMIT) {
            Ok(Some(answer)) => {
                serde_json::from_slice(&answer).map_err(|error| error.to_string())?
            }
            Ok(None) => {
                return Err(format!(
                    "the stacks were not unwound within {} s",
                    LIMIT.as_secs()
                ));
            }
            Err(error) => return Err(error.to_string()),
        };
        if !is_success {
            report.leave_out_exit();
        }
        Ok(report)
    }
}
