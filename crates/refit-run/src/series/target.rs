//! What a watch is of.

use std::path::Path;

use refit_meter::{Cgroups, descendants};

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

/// The units of a template that have processes: `postgresql@15-main` of `postgresql`, whose own unit has none.
#[must_use]
pub fn instances_of_unit(template: &str) -> Vec<String> {
    Cgroups::of(Path::new(PROC)).instances(template)
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
            format!("no unit `{name}` has a running process")
        } else {
            format!(
                "`{name}` is not the number of a process, and not a unit either: systemd does not run here"
            )
        })
    }

    /// Its processes now, in ascending order; none of the whole machine, which has no end of them.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let proc = Path::new(PROC);
        let below = |pid: &u32| descendants(proc, *pid);
        let mut all = match self {
            Target::Processes(pids) => {
                [pids.clone(), pids.iter().flat_map(below).collect()].concat()
            }
            Target::Instances(instances) => below(&instances.refit),
            Target::Cgroup(unit) => {
                let is_inside = |pid: &u32| {
                    let path = Cgroups::service(proc, *pid).map(|service| service.path);
                    path.is_some_and(|path| is_below(&path, unit))
                };
                below(&1).into_iter().filter(is_inside).collect()
            }
            Target::Machine => Vec::new(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Whether a path of a cgroup is this one's or one below it.
pub(super) fn is_below(path: &str, cgroup: &str) -> bool {
    let rest = path.strip_prefix(cgroup);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
