//! How long something may take before a test gives it up.
//!
//! A limit is there to end what hangs, and is made for a quiet machine of two processors. Where it is reached, the
//! machine's slowness is measured once, and what is only slow gets that many times as long. How much slower an
//! emulated processor is cannot be measured inside: REFIT_TEST_SLOWER tells it. Nothing that a test measures is judged
//! by any of it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::locations::work_root;
use crate::sys;

/// However slow the machine is, a limit grows no further than this.
const MOST: f64 = 10.0;
/// Processor time that is asked for to see how long it takes to get.
const WORK: Duration = Duration::from_millis(100);
/// A flush to a disk takes about this long at most on a quiet machine.
const FLUSH: Duration = Duration::from_millis(5);
const FLUSHES: usize = 5;

pub struct Deadline {
    began: Instant,
    limit: Duration,
    /// Known once the limit was reached.
    slowness: Option<f64>,
}

impl Deadline {
    pub fn after(limit: Duration) -> Self {
        Self {
            began: Instant::now(),
            limit: limit.mul_f64(emulated()),
            slowness: None,
        }
    }

    /// The time that is left; none when it is over.
    pub fn left(&mut self) -> Duration {
        if self.slowness.is_none() && self.began.elapsed() >= self.limit {
            self.slowness = Some(slowness());
        }
        self.allowed().saturating_sub(self.began.elapsed())
    }

    pub fn is_over(&mut self) -> bool {
        self.left().is_zero()
    }

    fn allowed(&self) -> Duration {
        self.limit.mul_f64(self.slowness.unwrap_or(1.0))
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} s", self.allowed().as_secs_f64())?;
        match self.slowness {
            Some(slowness) if slowness > 1.0 => write!(
                f,
                " ({} s on a quiet machine; this one is {slowness:.1} times slower)",
                self.limit.as_secs()
            ),
            _ => Ok(()),
        }
    }
}

/// How many times slower than a usual one an emulated processor is; 1: it is a real one.
pub fn emulated() -> f64 {
    static TIMES: OnceLock<f64> = OnceLock::new();
    *TIMES.get_or_init(|| {
        let slower = std::env::var("REFIT_TEST_SLOWER").ok();
        slower.map_or(1.0, |times| {
            let number = times
                .parse()
                .ok()
                .filter(|times| (1.0..=100.0).contains(times));
            number.unwrap_or_else(|| {
                panic!("REFIT_TEST_SLOWER={times} is not a number from 1 to 100")
            })
        })
    })
}

/// How many times slower than a quiet one the machine is at this moment: its processors or its disk, whichever is
/// slower.
fn slowness() -> f64 {
    let disk = flush_time().map_or(1.0, |time| time.as_secs_f64() / FLUSH.as_secs_f64());
    processor_wait().max(disk).clamp(1.0, MOST)
}

/// Elapsed time for each second of processor time that one thread uses.
fn processor_wait() -> f64 {
    let (began, used) = (Instant::now(), sys::thread_time());
    while sys::thread_time() - used < WORK {
        std::hint::spin_loop();
    }
    began.elapsed().as_secs_f64() / WORK.as_secs_f64()
}

/// The median time of a flush where tests work.
fn flush_time() -> io::Result<Duration> {
    let root = work_root().map_err(io::Error::other)?;
    let mut file: File = tempfile::tempfile_in(root)?;
    let mut times = Vec::new();
    for _ in 0..FLUSHES {
        file.write_all(&[0; 4096])?;
        let began = Instant::now();
        file.sync_all()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[FLUSHES / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_asked_once_and_only_when_a_limit_is_reached() {
        let mut far = Deadline::after(Duration::from_secs(600));
        assert!(!far.is_over() && far.slowness.is_none());
        assert_eq!(far.to_string(), format!("{:.0} s", 600.0 * emulated()));
        let mut near = Deadline::after(Duration::ZERO);
        assert!(near.is_over());
        assert!(
            near.slowness
                .is_some_and(|slowness| (1.0..=MOST).contains(&slowness))
        );
        near.slowness = Some(2.5);
        near.limit = Duration::from_secs(60);
        assert!(!near.is_over() && near.left() > Duration::from_secs(100));
        assert_eq!(
            near.to_string(),
            "150 s (60 s on a quiet machine; this one is 2.5 times slower)"
        );
    }
}
