//! Waiting for writeback between runs, so that what one run left dirty is not
//! written back during the next.

use std::fs::{self, File};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_run::interruptions;

/// How long all the waits of a comparison that end without a quiet machine may take
/// together, or a twentieth of its budget where that is less. While another program writes without a pause, every run would wait, and
/// nothing would be gained.
const LONGEST_IN_VAIN: Duration = Duration::from_secs(10);
/// Dirty bytes above the level at the start that do not matter.
const SLACK_BYTES: u64 = 4 << 20;

/// The amount of dirty memory to come back to, and the file system to write back.
pub struct Writeback {
    filesystem: Option<File>,
    level_bytes: u64,
    /// What is left of [`LONGEST_IN_VAIN`].
    left: Duration,
}

impl Writeback {
    /// Writes back what is dirty now, and takes what stays as the level.
    /// A twentieth of the budget may be waited in vain.
    pub fn new(directory: &Path, budget: Duration) -> Writeback {
        let mut writeback = Writeback {
            filesystem: File::open(directory).ok(),
            level_bytes: 0,
            left: LONGEST_IN_VAIN.min(budget / 20),
        };
        writeback.write_back();
        writeback.level_bytes = dirty_bytes();
        writeback
    }

    /// Waits until the file system is written back and no more is dirty than at the
    /// start; `false` where it gave up waiting.
    pub fn wait(&mut self) -> bool {
        self.write_back();
        self.wait_until_quiet(dirty_bytes)
    }

    fn wait_until_quiet(&mut self, dirty_bytes: impl Fn() -> u64) -> bool {
        let began = Instant::now();
        while dirty_bytes() > self.level_bytes + SLACK_BYTES {
            let waited = began.elapsed();
            if waited >= self.left || interruptions() > 1 {
                self.left = self.left.saturating_sub(waited);
                return false;
            }
            sleep(Duration::from_millis(5));
        }
        true
    }

    fn write_back(&self) {
        if let Some(file) = &self.filesystem {
            // The kernel reports an error to the program that wrote, too.
            let _ = rustix::fs::syncfs(file);
        }
    }
}

/// Dirty + Writeback of /proc/meminfo; 0 where it cannot be read.
fn dirty_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with("Dirty:") || line.starts_with("Writeback:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .sum()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn writeback(left: Duration) -> Writeback {
        Writeback {
            filesystem: None,
            level_bytes: 0,
            left,
        }
    }

    #[test]
    fn a_machine_that_never_gets_quiet_costs_a_comparison_one_wait() {
        let left = Duration::from_millis(60);
        let mut writeback = writeback(left);
        let began = Instant::now();
        assert!(!writeback.wait_until_quiet(|| u64::MAX));
        assert!(began.elapsed() >= left);
        assert_eq!(writeback.left, Duration::ZERO);
        // From now on each wait looks once.
        let looks = Cell::new(0);
        let never = || {
            looks.set(looks.get() + 1);
            u64::MAX
        };
        assert!(!writeback.wait_until_quiet(never));
        assert_eq!(looks.get(), 1);
        assert!(writeback.wait_until_quiet(|| SLACK_BYTES));
    }

    #[test]
    fn a_wait_that_ends_quiet_takes_nothing_from_later_ones() {
        let left = Duration::from_secs(600);
        let mut writeback = writeback(left);
        let looks = Cell::new(0);
        let quiet_later = || {
            looks.set(looks.get() + 1);
            if looks.get() < 4 { u64::MAX } else { 0 }
        };
        assert!(writeback.wait_until_quiet(quiet_later));
        assert_eq!((looks.get(), writeback.left), (4, left));
    }
}
