//! Samples of a program's time on the processors, read by a process of their own: the stacks, and the files with their
//! functions, are what the program says, and may have no end.

use std::time::Duration;

use refit_launch::{Asked, Worker};
use refit_meter::{CpuProfile, CpuReader};
use rustix::thread::gettid;

/// How often what the kernel has written is taken.
const TICK: Duration = Duration::from_millis(10);
/// How long the last samples are unwound, and functions named.
const LIMIT: Duration = Duration::from_secs(20);

/// A program is sampled.
pub struct CpuSampling {
    worker: Worker,
}

impl CpuSampling {
    /// Samples the program that this thread starts next.
    ///
    /// # Errors
    /// Why there can be no samples here, for people.
    pub fn of_started() -> Result<CpuSampling, String> {
        let thread = gettid().as_raw_nonzero().get().cast_unsigned();
        CpuSampling::begin(|| CpuReader::of_started_by(thread))
    }

    /// Samples processes that run, and what they start.
    ///
    /// # Errors
    /// As [`CpuSampling::of_started`].
    pub fn of_processes(pids: &[u32]) -> Result<CpuSampling, String> {
        CpuSampling::begin(|| CpuReader::of_processes(pids))
    }

    fn begin(sample: impl FnOnce() -> Result<CpuReader, String>) -> Result<CpuSampling, String> {
        let read = |mut reader: CpuReader, asked: &Asked| {
            while !asked.within(TICK) {
                reader.tick();
            }
            serde_json::to_vec(&reader.finish()).unwrap_or_default()
        };
        let worker = Worker::begin(LIMIT, sample, read);
        Ok(CpuSampling {
            worker: worker.map_err(|error| error.to_string())?,
        })
    }

    /// Where the program was until now.
    ///
    /// # Errors
    /// Why it is not known, for people.
    pub fn finish(self) -> Result<CpuProfile, String> {
        match self.worker.answer(LIMIT) {
            Ok(Some(answer)) => serde_json::from_slice(&answer).map_err(|error| error.to_string()),
            Ok(None) => Err(format!(
                "the stacks were not unwound within {} s",
                LIMIT.as_secs()
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}
