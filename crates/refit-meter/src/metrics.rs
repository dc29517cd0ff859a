//! What a run took, and from which source each number comes.

use std::fs;

use serde::{Deserialize, Serialize};

/// What a run took. Times of the clock and of the processor, memory, faults,
/// context switches and writes as wait4(2) has them for the first process and
/// all that it waited for; daemons are not in them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Metrics {
    /// From the start of the program to its end, CLOCK_MONOTONIC.
    pub wall_ns: u64,
    /// Processor time in the programs.
    pub user_ns: u64,
    /// Processor time in the kernel.
    pub system_ns: u64,
    /// Resident memory of the *largest* process at its peak; no sum. `None`
    /// where it was not above refit's own, which the kernel counts in.
    pub max_rss_bytes: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// The program waited for something.
    pub voluntary_switches: u64,
    /// The kernel took the processor away.
    pub involuntary_switches: u64,
    /// Bytes that were to be written to a disk (ru_oublock × 512).
    pub written_bytes: u64,
    /// Microseconds during the run in which some task *of the whole machine*
    /// waited; `None` where the kernel has no PSI.
    pub pressure: Option<Pressure>,
}

/// Totals of /proc/pressure ("some"), in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Pressure {
    /// Waiting for a processor.
    pub cpu_us: u64,
    /// Waiting for I/O.
    pub io_us: u64,
    /// Waiting for memory.
    pub memory_us: u64,
}

impl Pressure {
    /// The totals since the machine started.
    #[must_use]
    pub fn now() -> Option<Pressure> {
        let total = |what: &str| {
            let text = fs::read_to_string(format!("/proc/pressure/{what}")).ok()?;
            let line = text.lines().find(|line| line.starts_with("some "))?;
            line.rsplit_once("total=")?.1.trim().parse().ok()
        };
        Some(Pressure {
            cpu_us: total("cpu")?,
            io_us: total("io")?,
            memory_us: total("memory")?,
        })
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(self, before: Pressure) -> Pressure {
        Pressure {
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            io_us: self.io_us.saturating_sub(before.io_us),
            memory_us: self.memory_us.saturating_sub(before.memory_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_a_difference_of_totals() {
        let at = |n| Pressure {
            cpu_us: n,
            io_us: 2 * n,
            memory_us: 0,
        };
        assert_eq!(at(5).since(at(3)), at(2));
        assert_eq!(at(3).since(at(5)), at(0));
    }
}
