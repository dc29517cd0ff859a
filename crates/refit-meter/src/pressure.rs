//! How long the tasks of the machine waited (PSI).

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Totals of /proc/pressure ("some"), in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        Pressure::of_machine(Path::new("/proc"))
    }

    /// The same of the reports below `proc`.
    #[must_use]
    pub fn of_machine(proc: &Path) -> Option<Pressure> {
        Pressure::read(|what| proc.join("pressure").join(what))
    }

    /// The totals of a cgroup of version 2 since it was made (cgroup-v2.rst).
    #[must_use]
    pub fn of_cgroup(directory: &Path) -> Option<Pressure> {
        Pressure::read(|what| directory.join(format!("{what}.pressure")))
    }

    fn read(place: impl Fn(&str) -> PathBuf) -> Option<Pressure> {
        let total = |what: &str| {
            let text = fs::read_to_string(place(what)).ok()?;
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

    #[test]
    fn the_machine_s_and_a_cgroup_s_files_have_one_form() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Pressure::of_cgroup(dir.path()), None);
        fs::create_dir(dir.path().join("pressure")).unwrap();
        for (n, what) in ["cpu", "io", "memory"].iter().enumerate() {
            let text = format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={n}\nfull avg10=0.00 total=9\n"
            );
            fs::write(dir.path().join(format!("{what}.pressure")), &text).unwrap();
            fs::write(dir.path().join("pressure").join(what), text).unwrap();
        }
        let expected = Pressure {
            cpu_us: 0,
            io_us: 1,
            memory_us: 2,
        };
        assert_eq!(Pressure::of_cgroup(dir.path()), Some(expected));
        assert_eq!(Pressure::of_machine(dir.path()), Some(expected));
        fs::write(dir.path().join("io.pressure"), "some total=x").unwrap();
        assert_eq!(Pressure::of_cgroup(dir.path()), None);
    }
}
