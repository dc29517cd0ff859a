//! Which process belongs to what.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use refit_meter::{Cgroups, Membership};
use refit_session::printable;

use super::known::Processes;
use super::record::{Group, GroupKind};
use super::target::{Target, is_below};

/// A chain of parents is not longer.
const DEEPEST: usize = 200;

/// The groups, in the order in which they were found.
pub struct Groups {
    pub(super) target: Target,
    pub(super) proc: PathBuf,
    pub all: Vec<Group>,
    /// Of those that are a cgroup.
    pub cgroups: BTreeMap<usize, Membership>,
    kernel: Option<usize>,
}

/// What the walk up the parents found.
pub(super) enum Found {
    Group(Option<usize>),
    /// The process at the top of a tree.
    Top(u32),
    /// It is to be moved into a cgroup, and is not in it yet.
    NotYet,
}

impl Groups {
    pub fn new(target: Target, proc: &Path) -> Groups {
        Groups {
            target,
            proc: proc.to_owned(),
            all: Vec::new(),
            cgroups: BTreeMap::new(),
            kernel: None,
        }
    }

    /// Decides for every process that is new. `parents`: of those that began while
    /// they were watched, who had them first; who is a daemon now was somebody's child.
    pub fn assign(&mut self, processes: &mut Processes, parents: &BTreeMap<u32, u32>) {
        let new: Vec<u32> = processes
            .living()
            .filter(|known| known.group.is_none())
            .map(|known| known.process.pid)
            .collect();
        for pid in new {
            self.of(pid, processes, parents, 0);
        }
    }

    /// The group of a process, also of one that was never in the table.
    pub fn of(
        &mut self,
        pid: u32,
        processes: &mut Processes,
        parents: &BTreeMap<u32, u32>,
        depth: usize,
    ) -> Option<usize> {
        if let Some(decided) = processes.0.get(&pid).and_then(|known| known.group) {
            return decided;
        }
        let found = self.look(pid, processes, parents, depth);
        let group = match found {
            Found::Group(group) => group,
            Found::Top(top) => self.make(top, processes),
            Found::NotYet => return None,
        };
        if let Some(known) = processes.0.get_mut(&pid) {
            known.group = Some(group);
        }
        group
    }

    fn look(
        &mut self,
        pid: u32,
        processes: &mut Processes,
        parents: &BTreeMap<u32, u32>,
        depth: usize,
    ) -> Found {
        let is_root = matches!(&self.target, Target::Processes(roots) if roots.contains(&pid));
        if pid == std::process::id() || depth > DEEPEST {
            return Found::Group(None);
        }
        let Some(known) = processes.0.get(&pid) else {
            // It began and ended between two samples.
            let parent = parents.get(&pid).copied();
            return Found::Group(
                parent.and_then(|parent| self.of(parent, processes, parents, depth + 1)),
            );
        };
        if is_root {
            return Found::Top(pid);
        }
        if known.is_kernel() {
            return Found::Group(self.kernel());
        }
        if let Some(service) = self.service(pid) {
            return Found::Group(service);
        }
        let now = known.process.parent;
        if let Some(found) = self.instance(pid, now) {
            return found;
        }
        // A parent that has ended has left it to init.
        let parent = if now <= 1 {
            parents.get(&pid).copied().unwrap_or(now)
        } else {
            now
        };
        let has_parent =
            parent > 1 && (processes.0.contains_key(&parent) || parents.contains_key(&parent));
        if has_parent {
            return Found::Group(self.of(parent, processes, parents, depth + 1));
        }
        if !self.is_machine() {
            return Found::Group(None);
        }
        if pid > 1 && self.is_of_init(pid, processes) {
            return Found::Group(self.of(1, processes, parents, depth + 1));
        }
        Found::Top(pid)
    }

    /// The process that is watched now, where it could not be known before.
    pub fn set_root(&mut self, pid: u32) {
        self.target = Target::Processes(vec![pid]);
    }

    /// The group of its cgroup, where cgroups are what is watched.
    fn service(&mut self, pid: u32) -> Option<Option<usize>> {
        let unit = match &self.target {
            Target::Processes(_) | Target::Instances(_) => return None,
            Target::Cgroup(path) => Some(path.clone()),
            Target::Machine => None,
        };
        let service = Cgroups::service(&self.proc, pid);
        if let Some(unit) = unit {
            return Some(service.filter(|one| is_below(&one.path, &unit)).map(|one| {
                let mut whole = one;
                whole.path = unit;
                self.cgroup(whole)
            }));
        }
        service.map(|one| Some(self.cgroup(one)))
    }

    fn cgroup(&mut self, of: Membership) -> usize {
        let name = of.path.rsplit('/').next().unwrap_or_default();
        let name = name.strip_suffix(".service").unwrap_or(name).to_owned();
        self.cgroup_called(of, &name)
    }

    pub(super) fn cgroup_called(&mut self, of: Membership, name: &str) -> usize {
        let known = self.cgroups.iter().find(|(_, one)| one.path == of.path);
        if let Some((index, _)) = known {
            return *index;
        }
        self.all.push(Group {
            name: printable(name),
            kind: GroupKind::Cgroup,
            cgroup: Some(printable(&of.path)),
            pid: None,
        });
        self.cgroups.insert(self.all.len() - 1, of);
        self.all.len() - 1
    }

    pub(super) fn is_machine(&self) -> bool {
        matches!(self.target, Target::Machine)
    }

    /// Whether it runs the same executable as process 1: a server that is the first process
    /// of a container has its workers as children.
    fn is_of_init(&self, pid: u32, processes: &mut Processes) -> bool {
        let mut name =
            |pid: u32| Some(processes.0.get_mut(&pid)?.executable(&self.proc).to_owned());
        let init = name(1);
        init.is_some() && init == name(pid)
    }

    fn make(&mut self, top: u32, processes: &Processes) -> Option<usize> {
        let known = processes.0.get(&top)?;
        let name = printable(&known.process.name);
        let is_taken = self.all.iter().any(|group| group.name == name);
        self.all.push(Group {
            name: if is_taken {
                format!("{name} {top}")
            } else {
                name
            },
            kind: GroupKind::Tree,
            cgroup: None,
            pid: Some(top),
        });
        Some(self.all.len() - 1)
    }

    fn kernel(&mut self) -> Option<usize> {
        if !self.is_machine() {
            return None;
        }
        if self.kernel.is_none() {
            self.all.push(Group {
                name: "kernel".to_owned(),
                kind: GroupKind::Kernel,
                cgroup: None,
                pid: None,
            });
            self.kernel = Some(self.all.len() - 1);
        }
        self.kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_meter::Process;

    fn table(rows: &[(u32, u32, &str)]) -> Vec<Process> {
        let row = |(pid, parent, name): &(u32, u32, &str)| Process {
            pid: *pid,
            started: 1,
            parent: *parent,
            name: (*name).to_owned(),
            ended: false,
            threads: 1,
            rss_bytes: 0,
            vsz_bytes: 0,
        };
        rows.iter().map(row).collect()
    }

    fn names(groups: &Groups, processes: &Processes) -> Vec<(u32, Option<String>)> {
        let name = |index: usize| groups.all[index].name.clone();
        let of = |known: &super::super::known::Known| {
            (known.process.pid, known.group.flatten().map(name))
        };
        processes.living().map(of).collect()
    }

    fn nowhere() -> &'static Path {
        Path::new("/nowhere")
    }

    const ROWS: &[(u32, u32, &str)] = &[
        (1, 0, "init"),
        (2, 0, "kthreadd"),
        (3, 2, "kworker"),
        (40, 1, "server"),
        (41, 40, "worker"),
        (42, 41, "leaf"),
        (7, 42, "low number"),
        (50, 1, "other"),
    ];

    #[test]
    fn below_init_each_tree_is_a_group() {
        let mut processes = Processes::default();
        processes.update(table(ROWS));
        let mut groups = Groups::new(Target::Machine, nowhere());
        groups.assign(&mut processes, &BTreeMap::new());
        let named = |name: &str| Some(name.to_owned());
        let expected = [
            (1, named("init")),
            (2, named("kernel")),
            (3, named("kernel")),
            (7, named("server")),
            (40, named("server")),
            (41, named("server")),
            (42, named("server")),
            (50, named("other")),
        ];
        assert_eq!(names(&groups, &processes), expected);
        // Its parent ended, and init has it now.
        let mut later = table(ROWS);
        later[5].parent = 1;
        later.retain(|one| one.pid != 41);
        processes.update(later);
        groups.assign(&mut processes, &BTreeMap::new());
        assert_eq!(processes.0[&42].group, processes.0[&40].group);
    }

    #[test]
    fn who_was_never_seen_belongs_to_whom_its_parents_belong() {
        let mut processes = Processes::default();
        processes.update(table(ROWS));
        let mut groups = Groups::new(Target::Processes(vec![40]), nowhere());
        groups.assign(&mut processes, &BTreeMap::new());
        assert_eq!(groups.all.len(), 1);
        let parents = BTreeMap::from([(90, 91), (91, 41), (80, 50), (70, 70)]);
        assert_eq!(groups.of(90, &mut processes, &parents, 0), Some(0));
        assert_eq!(groups.of(80, &mut processes, &parents, 0), None);
        assert_eq!(
            groups.of(70, &mut processes, &parents, 0),
            None,
            "a ring ends"
        );
        // A daemon whose parents ended before it was seen.
        let mut more = table(ROWS);
        more.extend(table(&[(92, 1, "daemon")]));
        processes.update(more);
        groups.assign(
            &mut processes,
            &BTreeMap::from([(92, 90), (90, 91), (91, 41)]),
        );
        assert_eq!(processes.0[&92].group, Some(Some(0)));
        assert_eq!(processes.0[&50].group, Some(None));
    }

    #[test]
    fn workers_of_a_server_that_is_process_1_are_its_own() {
        let mut processes = Processes::default();
        processes.update(table(&[
            (1, 0, "postgres"),
            (9, 1, "postgres"),
            (10, 1, "sshd"),
        ]));
        let mut groups = Groups::new(Target::Machine, nowhere());
        groups.assign(&mut processes, &BTreeMap::new());
        assert_eq!(groups.all.len(), 2);
        assert_eq!(processes.0[&9].group, processes.0[&1].group);
    }

    #[test]
    fn a_unit_is_its_cgroup_and_what_is_below_it() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, path) in [
            (5, "/system.slice/a.service"),
            (6, "/system.slice/a.service/sub"),
            (7, "/system.slice/a.service2"),
            (8, "/"),
        ] {
            let directory = proc.path().join(pid.to_string());
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join("cgroup"), format!("0::{path}\n")).unwrap();
        }
        let rows = table(&[(5, 1, "a"), (6, 1, "a"), (7, 1, "b"), (8, 7, "b")]);
        let mut processes = Processes::default();
        processes.update(rows.clone());
        let unit = Target::Cgroup("/system.slice/a.service".to_owned());
        let mut groups = Groups::new(unit, proc.path());
        groups.assign(&mut processes, &BTreeMap::new());
        let decided =
            |processes: &Processes| [5, 6, 7, 8].map(|pid| processes.0[&pid].group.flatten());
        assert_eq!(decided(&processes), [Some(0), Some(0), None, None]);
        assert_eq!(groups.all[0].name, "a");
        let mut processes = Processes::default();
        processes.update(rows);
        let mut groups = Groups::new(Target::Machine, proc.path());
        groups.assign(&mut processes, &BTreeMap::new());
        // Whose cgroup holds no service belongs to its parent's.
        assert_eq!(decided(&processes), [Some(0), Some(0), Some(1), Some(1)]);
    }

    #[test]
    fn a_hostile_name_is_printable() {
        let mut processes = Processes::default();
        processes.update(table(&[(9, 1, "a\u{1b}[2J")]));
        let mut groups = Groups::new(Target::Machine, nowhere());
        groups.assign(&mut processes, &BTreeMap::new());
        assert_eq!(groups.all[0].name, "a\\u{1b}[2J");
        processes.update(table(&[(9, 1, "a\u{1b}[2J"), (12, 1, "a\u{1b}[2J")]));
        groups.assign(&mut processes, &BTreeMap::new());
        assert_eq!(
            groups.all[1].name, "a\\u{1b}[2J 12",
            "two of a name are told apart"
        );
    }
}
