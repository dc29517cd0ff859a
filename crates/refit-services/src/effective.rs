//! Whether the processes of a service have the libraries and variables of a change.

use refit_knobs::holds;
use refit_run::grouped;

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
