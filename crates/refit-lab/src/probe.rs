//! What a flush costs on a real disk, sampled into a profile that `disk=FILE` replays.
//!
//! What is timed is the call that the emulated disk stands in for: fsync(2) of a file to which a line was appended, as
//! mail queues and logs do it. It holds the file's blocks, the journal's commit and the device's own flush; the write
//! before it is not timed. Samples are raw and in order: whether a disk stalls shows only there.

mod device;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refit_run::{
    count_interruptions,
    disk::profile::{KIND, SCHEMA},
    fingerprint, interruptions, is_tmpfs,
};
use refit_stats::{Percentile, PercentileError, percentile};
use serde::Serialize;

/// A line of a mail log is about as long.
const LINE_BYTES: usize = 128;
/// A sample of this size is enough for p99, with its interval.
const ENOUGH: usize = 500;
/// In a shorter time a disk that stalls may not have stalled yet.
const SHORTEST: Duration = Duration::from_secs(3);
/// Sampling a slow disk ends after this time …
const LONGEST: Duration = Duration::from_secs(10);
/// … unless there are fewer samples than this.
const LEAST: usize = 50;
/// In memory, seconds would give millions of samples.
const MOST: usize = 20_000;
/// Shorter than any device needs to answer: nothing was waited for.
const NO_DISK_NS: f64 = 20_000.0;
/// A flush that takes so many times the median is a stall.
const STALL: f64 = 10.0;
/// What refit's settings can express: 60 s in nanoseconds.
const LONGEST_FLUSH_NS: u64 = 60 * 1_000_000_000;
/// Two-sided error of the intervals.
const ALPHA: f64 = 0.05;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No file can be made there.
    #[error("cannot make a file in {}: {cause}\n  name a directory on the disk to be probed, in which this user may write", directory.display())]
    Directory {
        /// As it was given.
        directory: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
    /// A write or a flush failed.
    #[error("the file that was being flushed in {} failed: {cause}", directory.display())]
    Flush {
        /// As it was given.
        directory: PathBuf,
        /// The error of the system call.
        cause: io::Error,
    },
    /// A flush took longer than any that can be emulated.
    #[error("a flush in {} took {seconds} s; refit emulates disks of at most 60 s for each", directory.display())]
    TooSlow {
        /// As it was given.
        directory: PathBuf,
        /// Whole seconds.
        seconds: u64,
    },
    /// The user asked refit to end.
    #[error("interrupted after {samples} samples; nothing was stored")]
    Interrupted {
        /// So far.
        samples: usize,
    },
}

/// A disk, as it was sampled. [`refit_run::disk::profile`] reads the JSON back.
#[derive(Debug, Clone, Serialize)]
pub struct DiskProfile {
    /// Of this record.
    pub schema: u64,
    /// What this record is.
    pub kind: &'static str,
    /// refit's version.
    pub refit: &'static str,
    /// Where the file lay.
    pub directory: String,
    /// What was timed.
    pub operation: String,
    /// Type and options of the mount.
    pub filesystem: Option<String>,
    /// The block device beneath, as far as the kernel says.
    pub device: Option<String>,
    /// Its release.
    pub kernel: String,
    /// Whether the file system is kept in memory.
    pub in_memory: bool,
    /// From the first flush to the last, in nanoseconds.
    pub took_ns: u64,
    /// Of each flush, in the order in which they came; nanoseconds.
    pub samples_ns: Vec<u64>,
}

/// Flushes that took [`STALL`] times the median or longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// Their number.
    pub count: usize,
    /// The most in a row.
    pub in_a_row: usize,
    /// Their share of the time of all flushes.
    pub share: f64,
}

/// Samples the disk beneath a directory, for 3 to 10 s in most cases, with a file that is deleted afterwards, even when
/// interrupted. From then on SIGINT and similar signals are only counted.
///
/// # Errors
/// The directory cannot be written, a flush fails, or refit is asked to end.
pub fn probe(directory: &Path) -> Result<DiskProfile, ProbeError> {
    let cannot = |cause| ProbeError::Directory {
        directory: directory.to_owned(),
        cause,
    };
    let real = directory.canonicalize().map_err(cannot)?;
    count_interruptions();
    // Not unlinked while it is used: btrfs has nothing to log for a file without a name (btrfs_log_inode_parent).
    let file = tempfile::Builder::new()
        .prefix("refit-probe-")
        .tempfile_in(&real)
        .map_err(cannot)?;
    let began = Instant::now();
    let samples_ns = sample(file.as_file(), directory)?;
    let took_ns = nanoseconds(began.elapsed());
    let kernel = rustix::system::uname();
    Ok(DiskProfile {
        schema: SCHEMA,
        kind: KIND,
        refit: env!("CARGO_PKG_VERSION"),
        operation: format!("{LINE_BYTES} bytes appended, then fsync (timed)"),
        filesystem: fingerprint::mount_of(&real),
        device: device::beneath(Path::new("/sys"), &real),
        kernel: kernel.release().to_string_lossy().into_owned(),
        in_memory: is_tmpfs(&real),
        directory: real.to_string_lossy().into_owned(),
        took_ns,
        samples_ns,
    })
}

fn sample(mut file: &std::fs::File, directory: &Path) -> Result<Vec<u64>, ProbeError> {
    let mut line = [b'x'; LINE_BYTES];
    line[LINE_BYTES - 1] = b'\n';
    let mut flush = || {
        file.write_all(&line)?;
        let began = Instant::now();
        file.sync_all()?;
        io::Result::Ok(nanoseconds(began.elapsed()).max(1))
    };
    let failed = |cause| ProbeError::Flush {
        directory: directory.to_owned(),
        cause,
    };
    // The first flush also writes the new directory entry.
    flush().map_err(failed)?;
    let mut samples_ns = Vec::new();
    let began = Instant::now();
    while !is_enough(samples_ns.len(), began.elapsed()) {
        let ns = flush().map_err(failed)?;
        if interruptions() > 0 {
            let samples = samples_ns.len();
            return Err(ProbeError::Interrupted { samples });
        }
        if ns > LONGEST_FLUSH_NS {
            return Err(ProbeError::TooSlow {
                directory: directory.to_owned(),
                seconds: ns / 1_000_000_000,
            });
        }
        samples_ns.push(ns);
    }
    Ok(samples_ns)
}

fn is_enough(samples: usize, elapsed: Duration) -> bool {
    samples >= MOST
        || (samples >= ENOUGH && elapsed >= SHORTEST)
        || (samples >= LEAST && elapsed >= LONGEST)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl DiskProfile {
    /// A quantile of the samples in nanoseconds, with its 95 % interval.
    ///
    /// # Errors
    /// There are too few samples for it.
    pub fn percentile(&self, quantile: f64) -> Result<Percentile, PercentileError> {
        percentile(&self.floats(), quantile, ALPHA)
    }

    /// The slowest flush in nanoseconds.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.samples_ns.iter().copied().max().unwrap_or(0)
    }

    /// Whether flushes waited for a device. In memory, without barriers, or on a disk that ignores flushes, they do not.
    #[must_use]
    pub fn is_disk(&self) -> bool {
        !self.in_memory
            && self
                .percentile(0.5)
                .is_ok_and(|median| median.value >= NO_DISK_NS)
    }

    /// The flushes that stalled.
    #[must_use]
    pub fn stalls(&self) -> Stalls {
        let samples = self.floats();
        let median = self.percentile(0.5).map_or(0.0, |median| median.value);
        let is_stall = |ns: &f64| *ns >= median * STALL;
        let rows = samples.split(|ns| !is_stall(ns)).map(<[f64]>::len);
        let stalled = samples.iter().filter(|ns| is_stall(ns));
        Stalls {
            count: stalled.clone().count(),
            in_a_row: rows.max().unwrap_or(0),
            share: stalled.sum::<f64>() / samples.iter().sum::<f64>(),
        }
    }

    fn floats(&self) -> Vec<f64> {
        self.samples_ns.iter().map(|ns| *ns as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(samples_ns: Vec<u64>) -> DiskProfile {
        DiskProfile {
            schema: SCHEMA,
            kind: KIND,
            refit: "0",
            directory: "/srv".to_owned(),
            operation: "x".to_owned(),
            filesystem: None,
            device: None,
            kernel: "6".to_owned(),
            in_memory: false,
            took_ns: 1,
            samples_ns,
        }
    }

    #[test]
    fn a_written_profile_is_read_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("disk.json");
        let samples: Vec<u64> = (0..100).map(|i| 1_000_000 + (i * 7919) % 1000).collect();
        let text = serde_json::to_string(&profile(samples.clone())).unwrap();
        std::fs::write(&file, text).unwrap();
        assert_eq!(refit_run::disk::profile::read(&file).unwrap(), samples);
    }

    #[test]
    fn stalls_are_what_takes_ten_times_the_median() {
        let mut samples = vec![1_000_000; 96];
        samples.extend([9_999_999, 10_000_000, 30_000_000, 1_000_000]);
        let stalls = profile(samples).stalls();
        assert_eq!((stalls.count, stalls.in_a_row), (2, 2));
        assert!(
            (stalls.share - 40.0 / 146.999_999).abs() < 1e-9,
            "{stalls:?}"
        );
        let none = profile(vec![1_000_000; 50]).stalls();
        assert_eq!((none.count, none.in_a_row, none.share), (0, 0, 0.0));
    }

    #[test]
    fn what_waits_for_nothing_is_no_disk() {
        assert!(profile(vec![20_000; 50]).is_disk());
        assert!(!profile(vec![19_999; 50]).is_disk());
        let mut memory = profile(vec![1_000_000; 50]);
        memory.in_memory = true;
        assert!(!memory.is_disk());
    }

    #[test]
    fn sampling_ends_when_there_is_enough() {
        for (samples, seconds, enough) in [
            (499, 9, false),
            (500, 2, false),
            (500, 3, true),
            (50, 10, true),
            (49, 30, false),
            (20_000, 0, true),
        ] {
            let elapsed = Duration::from_secs(seconds);
            assert_eq!(is_enough(samples, elapsed), enough, "{samples} {seconds}");
        }
    }
}
