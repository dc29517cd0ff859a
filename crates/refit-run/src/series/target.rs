//! What a watch is of.

use std::path::Path;

use refit_meter::Cgroups;

use crate::tree::PROC;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The trees of these processes.
    Processes(Vec<u32>),
    /// What is in this cgroup and below it: a path below its hierarchy.
    Cgroup(String),
    /// Everything.
    Machine,
}

impl Target {
    /// A unit of systemd, by its name.
    ///
    /// # Errors
    /// Why it is not found.
    pub fn unit(name: &str) -> Result<Target, String> {
        if let Some(path) = Cgroups::of(Path::new(PROC)).find_unit(name) {
            return Ok(Target::Cgroup(path));
        }
        // sd_booted(3)
        Err(if Path::new("/run/systemd/system").is_dir() {
            format!("no unit `{name}` is running")
        } else {
            format!(
                "`{name}` is not the number of a process, and not a unit either: systemd does not run here"
            )
        })
    }
}
