//! Which process is part of what a recipe runs.

use refit_meter::{Cgroups, Membership};
use refit_session::printable;

use super::groups::{Found, Groups};
use super::record::{Group, GroupKind};
use super::target::{Instances, Target};
use crate::tree::{Part, Tree};

impl Groups {
    /// The refit whose instances are watched.
    pub fn refit(&self) -> Option<u32> {
        match &self.target {
            Target::Instances(instances) => Some(instances.refit),
            _ => None,
        }
    }

    /// The part of a recipe that a process is; `None` where its parents decide.
    pub(super) fn instance(&mut self, pid: u32, parent: u32) -> Option<Found> {
        let Target::Instances(Instances {
            recipe,
            refit,
            cgroup,
        }) = &self.target
        else {
            return None;
        };
        let (recipe, refit) = (recipe.clone(), *refit);
        if pid == refit {
            return Some(Found::Group(None));
        }
        let Some(cgroup) = cgroup else {
            return (parent == refit).then(|| Found::Group(Some(self.started_by(refit, &recipe))));
        };
        let path = Cgroups::unified_path(&self.proc, pid).unwrap_or_default();
        let (name, path) = match Tree::part_of(cgroup, &path) {
            Some((Part::Service, path)) => (recipe, path.to_owned()),
            Some((Part::Hooks, path)) => (format!("{recipe} load"), path.to_owned()),
            None if parent == refit => return Some(Found::NotYet),
            None => return Some(Found::Group(None)),
        };
        let group = self.cgroup_called(Membership::unified(path), &name);
        Some(Found::Group(Some(group)))
    }

    fn started_by(&mut self, refit: u32, recipe: &str) -> usize {
        if self.all.is_empty() {
            self.all.push(Group {
                name: printable(recipe),
                kind: GroupKind::Tree,
                cgroup: None,
                pid: Some(refit),
            });
        }
        0
    }
}
