//! How long the tasks of the machine waited (PSI).

use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Totals of /proc/pressure ("some"), in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq, JsonSchema)]
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
