//! Where the witness and refit's own counters disagree.

use refit_meter::{Caller, Witnessed};
use refit_session::{ExecutableReport, OPENING};

use crate::run::Run;

/// Durable calls that reached a filesystem, and that refit did not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escape {
    /// Who made them; `None` if that is not known.
    pub executable: Option<String>,
    /// A kernel thread of its io_uring made them.
    pub io_uring_worker: bool,
    /// It opens files with O_SYNC or O_DSYNC, whose writes refit does not count.
    pub opens_sync: bool,
    /// How many, at least.
    pub calls: u64,
}

/// Calls on all files of a filesystem: how many filesystems one reaches is
/// unknown.
const WHOLE: [&str; 2] = ["sync", "syncfs"];
/// The io_uring's own.
const RING: &str = "io_uring(fsync)";
/// Counted, and never seen under the program's name: sync_file_range(2) asks for
/// no durability, and a thread of the kernel works for libaio.
const UNSEEN: [&str; 2] = ["sync_file_range", "io_submit(fsync)"];

/// What of the calls that were seen refit did not count, by executable.
#[must_use]
pub fn escaped(run: &Run, seen: &Witnessed) -> Vec<Escape> {
    let beyond = |caller: &Caller| {
        let path = caller.executable.as_deref();
        let counted = run
            .executables
            .iter()
            .find(|one| Some(one.executable.as_str()) == path);
        let real = |is_it: &dyn Fn(&str) -> bool| counted.map_or(0, |one| reals(one, is_it));
        let events = |whole: bool| -> u64 {
            let all = caller.events.iter();
            all.filter(|(name, _)| name.ends_with("_sync_fs") == whole)
                .map(|(_, n)| n)
                .sum()
        };
        let of_files = if caller.io_uring_worker {
            real(&|name| name == RING)
        } else {
            real(&|name| name != RING && !WHOLE.contains(&name) && !UNSEEN.contains(&name))
        };
        let whole = real(&|name| WHOLE.contains(&name));
        let calls =
            events(false).saturating_sub(of_files) + if whole == 0 { events(true) } else { 0 };
        let opens = counted.and_then(|one| one.calls.get("open(O_SYNC)"));
        (calls > 0).then(|| Escape {
            executable: caller.executable.clone(),
            io_uring_worker: caller.io_uring_worker,
            opens_sync: opens.is_some_and(|opens| opens.real > 0),
            calls,
        })
    };
    seen.callers.iter().filter_map(beyond).collect()
}

/// Real fsync and fdatasync calls that were counted: the witness sees each on a filesystem that it watches.
#[must_use]
pub fn counted_fsyncs(run: &Run) -> u64 {
    let executables = run.executables.iter();
    executables
        .map(|one| reals(one, &|name| ["fsync", "fdatasync"].contains(&name)))
        .fold(0, u64::saturating_add)
}

fn reals(executable: &ExecutableReport, is_it: &dyn Fn(&str) -> bool) -> u64 {
    let calls = executable.calls.iter();
    calls
        .filter(|(name, _)| !OPENING.contains(&name.as_str()) && is_it(name))
        .map(|(_, calls)| calls.real)
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use refit_session::Calls;

    use super::*;

    fn run(executables: &[(&str, &[(&str, u64)])]) -> Run {
        let mut run = Run::not_started();
        for (path, calls) in executables {
            let calls = calls.iter().map(|(name, real)| {
                let calls = Calls {
                    seen: *real,
                    real: *real,
                    ..Calls::default()
                };
                ((*name).to_owned(), calls)
            });
            run.executables.push(ExecutableReport {
                executable: (*path).to_owned(),
                processes: 1,
                calls: calls.collect(),
                malloc_object: None,
                deepbind: false,
                directories: Vec::new(),
            });
        }
        run
    }

    /// Executable, worker, events.
    type Row<'a> = (&'a str, bool, &'a [(&'a str, u64)]);

    fn seen(callers: &[Row]) -> Witnessed {
        let caller = |(path, worker, events): &Row| Caller {
            executable: (!path.is_empty()).then(|| (*path).to_owned()),
            io_uring_worker: *worker,
            events: events
                .iter()
                .map(|(name, n)| ((*name).to_owned(), *n))
                .collect::<BTreeMap<_, _>>(),
            calls: events.iter().map(|(_, n)| n).sum(),
        };
        Witnessed {
            callers: callers.iter().map(caller).collect(),
            ..Witnessed::default()
        }
    }

    const FILE: &str = "ext4_sync_file_enter";

    fn numbers(run: &Run, seen: &Witnessed) -> Vec<(Option<String>, bool, u64)> {
        let all = escaped(run, seen).into_iter();
        all.map(|one| (one.executable, one.io_uring_worker, one.calls))
            .collect()
    }

    #[test]
    fn what_was_counted_did_not_escape() {
        let run = run(&[("/a", &[("fsync", 3), ("msync", 1), ("sync", 1)])]);
        let same = seen(&[("/a", false, &[(FILE, 4), ("ext4_sync_fs", 2)])]);
        assert_eq!(escaped(&run, &same), []);
        // On a filesystem that has no tracepoints.
        assert_eq!(escaped(&run, &seen(&[])), []);
    }

    #[test]
    fn what_escaped_is_named_with_its_kind() {
        let run = run(&[
            ("/fio", &[("fsync", 1), ("io_uring_setup", 200)]),
            ("/dd", &[("open(O_SYNC)", 5), ("sync_file_range", 9)]),
        ]);
        let seen = seen(&[
            ("/fio", true, &[(FILE, 99)]),
            ("/fio", false, &[(FILE, 1)]),
            ("/dd", false, &[(FILE, 8)]),
            ("/static", false, &[(FILE, 2), ("ext4_sync_fs", 1)]),
            ("", false, &[(FILE, 1)]),
        ]);
        let named = |path: &str| Some(path.to_owned());
        assert_eq!(
            numbers(&run, &seen),
            [
                (named("/fio"), true, 99),
                (named("/dd"), false, 8),
                (named("/static"), false, 3),
                (None, false, 1),
            ]
        );
        assert_eq!(
            escaped(&run, &seen)
                .iter()
                .map(|one| one.opens_sync)
                .collect::<Vec<_>>(),
            [false, true, false, false]
        );
    }
}
