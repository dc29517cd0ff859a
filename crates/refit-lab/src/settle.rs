//! Between runs: what one run left dirty is not written back during the next.

use std::fs::{self, File};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_launch::interruptions;

/// The longest that one run is waited for, equal for all.
const LONGEST: Duration = Duration::from_secs(10);
/// Dirty bytes above the level at the start that do not matter.
const SLACK_BYTES: u64 = 4 << 20;

/// The level to come back to, and the file system that is written back.
pub struct Settle {
    filesystem: Option<File>,
    level_bytes: u64,
}

impl Settle {
    /// Writes back what is dirty now, and takes what stays as the level.
    pub fn new(directory: &Path) -> Settle {
        let mut settle = Settle {
            filesystem: File::open(directory).ok(),
            level_bytes: 0,
        };
        settle.write_back();
        settle.level_bytes = dirty_bytes();
        settle
    }

    /// Whether the file system is written back and the machine quiet again;
    /// `false` when the cap came first.
    pub fn wait(&self) -> bool {
        self.write_back();
        let began = Instant::now();
        while dirty_bytes() > self.level_bytes + SLACK_BYTES {
            if began.elapsed() > LONGEST || interruptions() > 1 {
                return false;
            }
            sleep(Duration::from_millis(5));
        }
        true
    }

    fn write_back(&self) {
        if let Some(file) = &self.filesystem {
            // An error belongs to the program that wrote, and it is told.
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
