//! Control groups of both versions: which one a process is in, what is charged to it, and
//! how long its tasks waited (cgroups(7), cgroup-v2.rst, cgroup-v1/memory.rst).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::pressure::Pressure;

/// A unit's directory does not lie deeper below its hierarchy.
const DEEPEST: usize = 8;

/// Where the hierarchies are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    unified: Option<PathBuf>,
    /// systemd's own on version 1, without a controller.
    named: Option<PathBuf>,
    memory: Option<PathBuf>,
}

/// Which service a process belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The path below the hierarchy that tells services apart, cut after the unit.
    pub path: String,
    /// Its path below the memory controller of version 1.
    memory: Option<String>,
}

/// What a cgroup has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Memory that is charged to it, caches of files included.
    pub now_bytes: Option<u64>,
    /// The most that was.
    pub peak_bytes: Option<u64>,
    /// Of version 2.
    pub pressure: Option<Pressure>,
}

impl Membership {
    /// Of a cgroup below the unified hierarchy.
    #[must_use]
    pub fn unified(path: String) -> Membership {
        Membership { path, memory: None }
    }
}

impl Cgroups {
    /// As the mounts of `proc` (proc_pid_mounts(5)) show them.
    #[must_use]
    pub fn of(proc: &Path) -> Cgroups {
        let mounts = fs::read_to_string(proc.join("self/mounts")).unwrap_or_default();
        let mut found = Cgroups::default();
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, place, kind, options, ..] = fields[..] else {
                continue;
            };
            let has = |option: &str| options.split(',').any(|one| one == option);
            let slot = match kind {
                "cgroup2" => &mut found.unified,
                "cgroup" if has("name=systemd") => &mut found.named,
                "cgroup" if has("memory") => &mut found.memory,
                _ => continue,
            };
            slot.get_or_insert_with(|| PathBuf::from(place));
        }
        found
    }

    /// The versions that are mounted, 1 before 2; of version 1 the hierarchies of systemd and
    /// of the memory controller.
    #[must_use]
    pub fn versions(&self) -> Vec<u8> {
        let first = (self.named.is_some() || self.memory.is_some()).then_some(1);
        let second = self.unified.is_some().then_some(2);
        first.into_iter().chain(second).collect()
    }

    /// Whether the kernel tells the most memory that was charged to a service.
    #[must_use]
    pub fn tell_peaks(&self) -> bool {
        // No root of a hierarchy has it; the slices are below it.
        let below = self.unified.as_ref().map(fs::read_dir);
        let mut below = below.into_iter().flatten().flatten().flatten();
        self.memory.is_some() || below.any(|entry| entry.path().join("memory.peak").exists())
    }

    /// The service that a process belongs to; `None` where its cgroup is the root of
    /// the hierarchy or a mere slice, which hold no service, or cannot be read.
    #[must_use]
    pub fn service(proc: &Path, pid: u32) -> Option<Membership> {
        let text = fs::read_to_string(proc.join(pid.to_string()).join("cgroup")).ok()?;
        let of = |controllers: &dyn Fn(&str) -> bool| {
            text.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (names, path) = rest.split_once(':')?;
                controllers(names).then_some(path)
            })
        };
        let unified = of(&|names| names.is_empty()).and_then(service_path);
        let path =
            unified.or_else(|| of(&|names| names == "name=systemd").and_then(service_path))?;
        let memory = of(&|names| names.split(',').any(|name| name == "memory"));
        Some(Membership {
            path: path.to_owned(),
            memory: memory.and_then(service_path).map(str::to_owned),
        })
    }

    /// The path of a process below the unified hierarchy, as it stands there.
    #[must_use]
    pub fn unified_path(proc: &Path, pid: u32) -> Option<String> {
        let text = fs::read_to_string(proc.join(pid.to_string()).join("cgroup")).ok()?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(path.to_owned())
    }

    /// The path of a unit, such as `postfix.service` or `postfix`, below its
    /// hierarchy. One that has no processes has no cgroup.
    #[must_use]
    pub fn find_unit(&self, name: &str) -> Option<String> {
        let names: BTreeSet<String> = match name.rsplit_once('.') {
            Some((_, "service" | "scope" | "slice")) => [name.to_owned()].into(),
            _ => ["service", "scope"]
                .map(|kind| format!("{name}.{kind}"))
                .into(),
        };
        let hierarchies = [&self.unified, &self.named].into_iter().flatten();
        hierarchies
            .filter_map(|root| {
                let found = below(root, &names, DEEPEST)?;
                let path = found.strip_prefix(root).ok()?;
                Some(format!("/{}", path.display()))
            })
            .next()
    }

    /// The units of a template that have a cgroup, in their order: `postgresql@15-main` of `postgresql`.
    #[must_use]
    pub fn instances(&self, template: &str) -> Vec<String> {
        let template = template.strip_suffix(".service").unwrap_or(template);
        let start = format!("{}@", template.trim_end_matches('@'));
        let mut found = BTreeSet::new();
        for root in [&self.unified, &self.named].into_iter().flatten() {
            units_below(root, &start, DEEPEST, &mut found);
        }
        found.into_iter().collect()
    }

    /// What a service's cgroup has. What cannot be read is `None`.
    #[must_use]
    pub fn charged(&self, of: &Membership) -> Charged {
        let inside = |root: &PathBuf, path: &str| root.join(path.trim_start_matches('/'));
        let number = |directory: &Path, file: &str| {
            let text = fs::read_to_string(directory.join(file)).ok()?;
            text.trim().parse().ok()
        };
        let mut charged = Charged::default();
        if let Some(directory) = self.unified.as_ref().map(|root| inside(root, &of.path)) {
            charged.now_bytes = number(&directory, "memory.current");
            // Since Linux 5.19.
            charged.peak_bytes = number(&directory, "memory.peak");
            charged.pressure = Pressure::of_cgroup(&directory);
        }
        if let (None, Some(root), Some(path)) = (charged.now_bytes, &self.memory, &of.memory) {
            let directory = inside(root, path);
            charged.now_bytes = number(&directory, "memory.usage_in_bytes");
            charged.peak_bytes = number(&directory, "memory.max_usage_in_bytes");
        }
        charged
    }
}

/// The directories in a directory, in their order; `None` where it cannot be read.
fn directories_in(directory: &Path) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut directories: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    directories.sort();
    Some(directories)
}

/// Adds the names of services that begin so, without `.service`.
fn units_below(directory: &Path, start: &str, depth: usize, found: &mut BTreeSet<String>) {
    for path in directories_in(directory).unwrap_or_default() {
        let name = path.file_name().and_then(|name| name.to_str());
        let unit = name.and_then(|name| name.strip_suffix(".service"));
        match unit.filter(|unit| unit.starts_with(start)) {
            Some(unit) => drop(found.insert(unit.to_owned())),
            None if depth > 0 => units_below(&path, start, depth - 1, found),
            None => {}
        }
    }
}

/// The first directory of one of these names.
fn below(directory: &Path, names: &BTreeSet<String>, depth: usize) -> Option<PathBuf> {
    let directories = directories_in(directory)?;
    let named = |path: &&PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| names.contains(name))
    };
    directories.iter().find(named).cloned().or_else(|| {
        let depth = depth.checked_sub(1)?;
        directories
            .iter()
            .find_map(|path| below(path, names, depth))
    })
}

/// Up to the last unit; the whole path where there is none (a container's); nothing of a
/// root or a slice.
fn service_path(path: &str) -> Option<&str> {
    let is_unit = |part: &str| part.ends_with(".service") || part.ends_with(".scope");
    let mut end = None;
    let mut at = 0;
    for part in path.split('/') {
        at += part.len();
        if is_unit(part) {
            end = Some(at);
        }
        at += 1;
    }
    match end {
        Some(end) => Some(&path[..end]),
        None if path == "/" || path.ends_with(".slice") || path.starts_with("/..") => None,
        None => Some(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    #[test]
    fn a_service_is_a_unit_or_a_container_and_no_slice() {
        for (path, expected) in [
            (
                "/system.slice/postfix.service",
                Some("/system.slice/postfix.service"),
            ),
            (
                "/system.slice/pg.service/workers",
                Some("/system.slice/pg.service"),
            ),
            (
                "/user.slice/user-0.slice/user@0.service/app.slice/a.scope/b",
                Some("/user.slice/user-0.slice/user@0.service/app.slice/a.scope"),
            ),
            ("/docker/0123abcd", Some("/docker/0123abcd")),
            ("/", None),
            ("/system.slice", None),
            ("/../other", None),
        ] {
            assert_eq!(service_path(path), expected, "{path}");
        }
    }

    #[test]
    fn both_versions_are_read() {
        let root = FakeProc::new();
        let place = |name: &str| root.path().join(name).display().to_string();
        root.write("self/mounts", format!(
            "cgroup2 {} cgroup2 rw 0 0\ncgroup {} cgroup rw,memory 0 0\ncgroup {} cgroup rw,xattr,name=systemd 0 0\ntmpfs /x tmpfs rw 0 0\n",
            place("unified"), place("memory"), place("systemd")
        ));
        let cgroups = Cgroups::of(root.path());
        assert!(cgroups.unified.is_some() && cgroups.memory.is_some() && cgroups.named.is_some());
        assert_eq!(
            (cgroups.versions(), cgroups.tell_peaks()),
            (vec![1, 2], true)
        );
        root.write("5/cgroup", "4:memory:/system.slice/a.service\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n");
        root.write("6/cgroup", "0::/b\n");
        root.write("7/cgroup", "4:memory:/x\n0::/\n");
        root.write("8/cgroup", "garbage");
        let of = |pid| Cgroups::service(root.path(), pid);
        assert_eq!((of(7), of(8), of(9)), (None, None, None));
        // Version 2 has no memory controller here.
        root.write(
            "memory/system.slice/a.service/memory.usage_in_bytes",
            "4096\n",
        );
        root.write(
            "memory/system.slice/a.service/memory.max_usage_in_bytes",
            "8192\n",
        );
        let first = of(5).unwrap();
        assert_eq!(first.path, "/system.slice/a.service");
        let expected = Charged {
            now_bytes: Some(4096),
            peak_bytes: Some(8192),
            pressure: None,
        };
        assert_eq!(cgroups.charged(&first), expected);
        root.write("unified/b/memory.current", "5\n");
        root.write("unified/b/memory.peak", "x\n");
        let second = cgroups.charged(&of(6).unwrap());
        assert_eq!((second.now_bytes, second.peak_bytes), (Some(5), None));
        root.write("systemd/system.slice/a.service/cgroup.procs", "5\n");
        for name in ["a", "a.service"] {
            assert_eq!(
                cgroups.find_unit(name).as_deref(),
                Some("/system.slice/a.service")
            );
        }
        assert_eq!(cgroups.find_unit("b"), None);
        for instance in ["2", "1"] {
            let place = format!("systemd/system.slice/system-b.slice/b@{instance}.service");
            root.write(&format!("{place}/cgroup.procs"), "7\n");
        }
        for template in ["b", "b.service", "b@"] {
            assert_eq!(cgroups.instances(template), ["b@1", "b@2"]);
        }
        assert_eq!(cgroups.instances("a"), Vec::<String>::new());
        let none = Cgroups::of(Path::new("/nowhere"));
        assert_eq!(none, Cgroups::default());
        assert_eq!((none.versions(), none.tell_peaks()), (vec![], false));
    }
    #[test]
    fn the_peak_of_version_2_is_as_old_as_its_file() {
        let root = FakeProc::new();
        let place = root.path().join("unified").display().to_string();
        root.write("self/mounts", format!("cgroup2 {place} cgroup2 rw 0 0\n"));
        root.write("unified/system.slice/memory.current", "5\n");
        let cgroups = Cgroups::of(root.path());
        assert_eq!((cgroups.versions(), cgroups.tell_peaks()), (vec![2], false));
        root.write("unified/system.slice/memory.peak", "7\n");
        assert!(cgroups.tell_peaks());
    }
}
