//! The processor time of this thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What it has used so far.
pub fn of_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    whole + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
