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
    /// What a recipe runs.
    Instances(Instances),
    /// Everything.
    Machine,
}

/// The instances of a recipe that a refit runs, one after the other or side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instances {
    /// The recipe's name.
    pub recipe: String,
    /// The refit that started them.
    pub refit: u32,
    /// The name of the cgroup that holds them, where one could be made; else they descend from
    /// that refit.
    pub cgroup: Option<String>,
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
