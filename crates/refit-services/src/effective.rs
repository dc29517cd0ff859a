//! Whether the processes of a service have the libraries and variables of a change, and whether its allocator serves
//! them.

use refit_knobs::{AllocatorKind, Settings, holds};
use refit_run::{grouped, is_allocator, server_of};

use crate::Change;
use crate::check::{Check, Layer};
use crate::processes::Process;

/// The main process has to have everything; where none is known, each process has to. `mark` is a
/// variable that all of them start with: one that does not show it wrote over its environment.
pub fn effective(change: &Change, main_pid: u32, processes: &[Process], mark: &str) -> Vec<Check> {
    let main = processes.iter().find(|process| process.pid == main_pid);
    let judged = |has: &dyn Fn(&Process) -> bool| {
        let with = processes.iter().filter(|process| has(process)).count();
        let holds = match main {
            Some(main) => has(main),
            None => with > 0 && with == processes.len(),
        };
        let main_word = match main {
            Some(main) if has(main) => ", the main one among them",
            Some(_) => ", the main one not among them",
            None => "",
        };
        (
            format!(
                "{} of {} processes{main_word}",
                grouped(with),
                grouped(processes.len())
            ),
            holds,
        )
    };
    let mut checks = Vec::new();
    for library in &change.libraries {
        let (found, holds) = judged(&|process| process.executes(&library.path));
        checks.push(Check {
            layer: Layer::Effective,
            key: "executable mapping".to_owned(),
            expected: library.path.clone(),
            found,
            holds: Some(holds),
        });
    }
    let judged_alone = main.map_or(processes, std::slice::from_ref);
    checks.extend(serves_malloc(change, judged_alone.iter()));
    // Of LD_PRELOAD the mappings tell more.
    let variables = change.variables.iter();
    for (name, value) in variables.filter(|(name, _)| name != "LD_PRELOAD") {
        let (found, holds) = judged(&|process| process.variable(name).as_ref() == Some(value));
        let is_told = processes
            .iter()
            .any(|process| process.variable(mark).is_some());
        checks.push(Check {
            layer: Layer::Effective,
            key: "variable".to_owned(),
            expected: format!("{name}={value}"),
            found: if is_told {
                found
            } else {
                "the processes wrote over their environment".to_owned()
            },
            holds: is_told.then_some(holds),
        });
    }
    for (setting, key, value) in OF_PROCESSES {
        if !change.settings.iter().any(|one| one == setting) {
            continue;
        }
        let (found, holds) = judged(&|process| process.status(key) == Some(value));
        let is_told = processes
            .iter()
            .any(|process| process.status(key).is_some());
        checks.push(Check {
            layer: Layer::Effective,
            key: "/proc/PID/status".to_owned(),
            expected: format!("{key}: {value}"),
            found: if is_told {
                found
            } else {
                "this kernel does not tell".to_owned()
            },
            holds: is_told.then_some(holds),
        });
    }
    checks
}

/// Settings that show in a line of /proc/PID/status, and that line (proc_pid_status(5); `THP_enabled`
/// since Linux 5.0).
const OF_PROCESSES: [(&str, &str, &str); 2] = [
    ("sync=off", "Seccomp", "2"),
    ("thp=never", "THP_enabled", "0"),
];

/// What is seen of a change that reaches only processes started since, and not all of these: those
/// that show its variables have to execute its libraries. Where none is seen, nothing is claimed.
pub fn observed(change: &Change, processes: &[Process]) -> Vec<Check> {
    let has = |process: &&Process, (name, value): &(String, String)| {
        let found = process.variable(name).unwrap_or_default();
        holds(name, &found, value)
    };
    let started: Vec<&Process> = processes
        .iter()
        .filter(|process| {
            change
                .variables
                .iter()
                .all(|variable| has(process, variable))
        })
        .collect();
    let seen = |with: usize| match started.len() {
        0 => "not observed: no process that was started with the change runs now".to_owned(),
        all => format!(
            "{} of {} processes that were started with it",
            grouped(with),
            grouped(all)
        ),
    };
    let mut checks = Vec::new();
    for library in &change.libraries {
        let with = started
            .iter()
            .filter(|process| process.executes(&library.path));
        let with = with.count();
        checks.push(Check {
            layer: Layer::Effective,
            key: "executable mapping".to_owned(),
            expected: library.path.clone(),
            found: seen(with),
            holds: (!started.is_empty()).then_some(with == started.len()),
        });
    }
    checks.extend(serves_malloc(change, started.iter().copied()));
    for (name, value) in change
        .variables
        .iter()
        .filter(|(name, _)| name != "LD_PRELOAD")
    {
        checks.push(Check {
            layer: Layer::Effective,
            key: "variable".to_owned(),
            expected: format!("{name}={value}"),
            found: seen(started.len()),
            holds: (!started.is_empty()).then_some(true),
        });
    }
    checks
}

/// Whether the allocator of a change serves malloc in each of these processes, by the list of the loader: a library
/// that is mapped serves nothing where another one comes before it. `None` where no allocator was asked for.
fn serves_malloc<'a>(
    change: &Change,
    processes: impl Iterator<Item = &'a Process>,
) -> Option<Check> {
    let settings = change.settings.iter();
    let settings = Settings(settings.filter_map(|one| one.parse().ok()).collect());
    let wanted = settings.launch().malloc?.kind;
    let mut libraries = change.libraries.iter();
    // A service gets a copy of the library.
    let placed = libraries.find(|one| wanted == AllocatorKind::Path(one.from.clone().into()));
    let wanted = placed.map_or(wanted, |one| AllocatorKind::Path(one.path.clone().into()));
    let mut found: Vec<(String, Option<bool>, usize)> = Vec::new();
    for process in processes {
        let (who, holds) = match server_of(process.pid) {
            Ok(object) => {
                let object = object.to_string_lossy();
                (object.to_string(), Some(is_allocator(&wanted, &object)))
            }
            Err(reason) => (format!("not known: {reason}"), None),
        };
        match found.iter_mut().find(|(one, ..)| *one == who) {
            Some((.., processes)) => *processes += 1,
            None => found.push((who, holds, 1)),
        }
    }
    let any_fails = found.iter().any(|(_, holds, _)| *holds == Some(false));
    let all_hold = found.iter().all(|(_, holds, _)| *holds == Some(true));
    Some(Check {
        layer: Layer::Effective,
        key: "serves malloc".to_owned(),
        expected: match &wanted {
            AllocatorKind::Named(named) => named.name.to_owned(),
            AllocatorKind::Path(path) => path.display().to_string(),
        },
        found: match &*found {
            [] => "not observed: no such process runs now".to_owned(),
            [(who, ..)] => who.clone(),
            _ => {
                let each = found
                    .iter()
                    .map(|(who, _, number)| format!("{who} in {}", grouped(*number)));
                each.collect::<Vec<_>>().join(", ")
            }
        },
        holds: match any_fails {
            true => Some(false),
            false => (!found.is_empty() && all_hold).then_some(true),
        },
    })
}

/// Of a service that does not run.
pub fn not_running(state: &str) -> Check {
    Check {
        layer: Layer::Effective,
        key: "processes".to_owned(),
        expected: "with the change".to_owned(),
        found: format!("none: the service is {state}"),
        holds: None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};

    use refit_knobs::ALLOCATORS;
    use refit_run::allocator::{find, here};

    use super::*;
    use crate::{LibraryFile, Plan};

    /// A program that waits for input.
    pub struct Running(Child);

    impl Running {
        pub fn with(preloaded: &[String]) -> Running {
            let mut program = Command::new("cat");
            program.env("LD_PRELOAD", preloaded.join(":"));
            program.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut program = Running(program.spawn().unwrap());
            // What comes back was read by the program itself, after its loader.
            let mut byte = [0];
            program.0.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            let mut output = program.0.stdout.take().unwrap();
            output.read_exact(&mut byte).unwrap();
            program
        }

        pub fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// An installed allocator's file, as it is mapped.
    pub fn library(name: &str) -> String {
        let named = ALLOCATORS.iter().find(|one| one.name == name).unwrap();
        let real = find(named, None, here).unwrap().canonicalize().unwrap();
        real.display().to_string()
    }

    /// What a change of this setting has of a program with these libraries.
    fn checks(setting: &str, preloaded: &[&str]) -> Vec<Check> {
        let paths: Vec<String> = preloaded.iter().map(|name| library(name)).collect();
        let program = Running::with(&paths);
        let settings = Settings(vec![setting.parse().unwrap()]);
        let mut change = Plan::new("x.service", "systemd unit", &settings).change;
        if let Some(last) = paths.last() {
            change.libraries.push(LibraryFile {
                path: last.clone(),
                sha256: String::new(),
                from: last.clone(),
                package: None,
            });
        }
        let processes = [Process::read(program.pid()).unwrap()];
        effective(&change, program.pid(), &processes, "HOME")
    }

    #[test]
    fn a_library_that_is_mapped_may_serve_nothing() {
        let of = |setting: &str, preloaded: &[&str]| {
            let all = checks(setting, preloaded);
            let mapped = all.iter().find(|one| one.key == "executable mapping");
            assert!(mapped.is_none_or(|one| one.holds == Some(true)), "{all:?}");
            let serves = all.into_iter().find(|one| one.key == "serves malloc");
            let serves = serves.unwrap();
            let name = serves.found.rsplit('/').next().unwrap().to_owned();
            (serves.expected, name, serves.holds)
        };
        let file_of = |name| library(name).rsplit('/').next().unwrap().to_owned();
        let table = [
            (
                "malloc=mimalloc",
                &["mimalloc"][..],
                "mimalloc",
                &*file_of("mimalloc"),
                true,
            ),
            (
                "malloc=mimalloc",
                &["jemalloc", "mimalloc"],
                "mimalloc",
                &*file_of("jemalloc"),
                false,
            ),
            ("malloc=glibc:arena_max=2", &[], "glibc", "libc.so.6", true),
            (
                "malloc=glibc:arena_max=2",
                &["jemalloc"],
                "glibc",
                &*file_of("jemalloc"),
                false,
            ),
        ];
        for (setting, preloaded, expected, found, holds) in table {
            let expected = (expected.to_owned(), found.to_owned(), Some(holds));
            assert_eq!(of(setting, preloaded), expected, "{setting} {preloaded:?}");
        }
    }

    #[test]
    fn without_a_list_of_the_loader_nothing_is_claimed() {
        let settings = Settings(vec!["malloc=glibc:arena_max=2".parse().unwrap()]);
        let change = Plan::new("x.service", "systemd unit", &settings).change;
        let program = Running::with(&[]);
        let ended = Process::read(program.pid()).unwrap();
        drop(program);
        let serves = serves_malloc(&change, [ended].iter()).unwrap();
        assert_eq!(
            (serves.holds, &*serves.found),
            (None, "not known: the process has ended")
        );
        assert_eq!(
            serves_malloc(&change, std::iter::empty()).unwrap().holds,
            None
        );
    }
}
