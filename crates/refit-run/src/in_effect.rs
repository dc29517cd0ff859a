//! Whether a setting was in effect in the processes of a run. A swap that did not
//! take is not a swap, and earns no verdict.

use std::path::Path;

use refit_knobs::{Allocator, Disk, Launch, Setting, Settings};
use refit_meter::ElfFacts;
use refit_session::{Calls, ExecutableReport, OPENING, sum};
use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, FilterReport};
use crate::run::Run;
use crate::serves_malloc::{is_allocator, served_by};

/// In which processes of a program a setting was in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InEffect {
    /// In all that refit knows of.
    Everywhere,
    /// In some; in which it was not.
    Partly(String),
    /// In none; why, and what would help.
    Nowhere(String),
    /// That cannot be observed.
    Unknown,
}

/// Calls that take O_DIRECT.
const DIRECT: [&str; 2] = ["open(O_DIRECT)", "fcntl(O_DIRECT)"];
/// An open for synchronous writes asks for syncs.
pub const OPEN_SYNC: &str = "open(O_SYNC)";
/// At most this many programs are named.
const MOST: usize = 3;

impl InEffect {
    /// Of a setting in a run that has ended.
    #[must_use]
    pub fn of(setting: &Setting, run: &Run) -> InEffect {
        if let Some(scope) = setting.scoped_knob()
            && run.coverage.unmatched_scopes.contains(&scope)
        {
            return unless_hidden(run, format!("nothing matched {scope}"));
        }
        let settings = Settings(vec![setting.clone()]);
        match settings.launch() {
            Launch { sync, .. } if sync.iter().any(|rule| !rule.on) => of_sync(run),
            Launch { odirect, .. } if odirect.iter().any(|rule| !rule.on) => of_odirect(run),
            Launch {
                disk: Some(rule), ..
            } => of_disk(&rule.disk, run),
            Launch {
                malloc: Some(malloc),
                ..
            } => of_malloc(&malloc, run),
            // The kernel granted it before the start, and hands it down.
            Launch { thp: Some(_), .. } => InEffect::Everywhere,
            // What runs is what was exec'ed.
            Launch {
                program: Some(_), ..
            } => InEffect::Everywhere,
            _ => InEffect::Unknown,
        }
    }

    /// Of several runs, of which the first that had it in effect counts.
    pub fn of_runs(runs: impl Iterator<Item = InEffect>) -> InEffect {
        let rank = |one: &InEffect| match one {
            InEffect::Partly(_) => 0,
            InEffect::Everywhere => 1,
            InEffect::Unknown => 2,
            InEffect::Nowhere(_) => 3,
        };
        runs.min_by_key(rank).unwrap_or(InEffect::Unknown)
    }
}

fn is_sync(name: &str) -> bool {
    !OPENING.contains(&name) || name == OPEN_SYNC
}

/// One field, summed over the calls of these names.
fn total(run: &Run, is_it: impl Fn(&str) -> bool, field: fn(&Calls) -> u64) -> u64 {
    let calls = run.totals.iter().filter(|(name, _)| is_it(name));
    sum(calls.map(|(_, calls)| field(calls)))
}

fn of_sync(run: &Run) -> InEffect {
    if total(run, is_sync, |calls| calls.suppressed) > 0 {
        return unless_unreached(run);
    }
    let seen = total(run, is_sync, |calls| calls.seen);
    unless_hidden(
        run,
        match seen {
            0 => "nothing asked for a sync".to_owned(),
            _ => "none of the program's sync calls could be suppressed".to_owned(),
        },
    )
}

fn of_odirect(run: &Run) -> InEffect {
    let of = |field| total(run, |name| DIRECT.contains(&name), field);
    if of(|calls| calls.suppressed) > 0 {
        return unless_unreached(run);
    }
    let reason = match of(|calls| calls.seen) {
        0 => "nothing was opened with O_DIRECT",
        _ => "O_DIRECT could be removed from none of the open files",
    };
    unless_hidden(run, reason.to_owned())
}

fn of_disk(disk: &Disk, run: &Run) -> InEffect {
    let real = total(run, is_sync, |calls| calls.real);
    let injected = total(run, is_sync, |calls| calls.injected);
    match disk {
        Disk::Fail { .. } if injected > 0 => unless_unreached(run),
        // Whether the next one had failed, nobody knows.
        Disk::Fail { .. } if real > 0 => InEffect::Unknown,
        Disk::Latency(_) | Disk::Profile(_) if real > 0 => unless_unreached(run),
        _ => unless_hidden(run, "nothing asked for a sync".to_owned()),
    }
}

fn of_malloc(malloc: &Allocator, run: &Run) -> InEffect {
    let mut served = 0_u64;
    let mut others = Vec::new();
    let mut hidden = false;
    for executable in &run.executables {
        match &executable.malloc_object {
            Some(object) if is_allocator(&malloc.kind, object) => {
                served = served.saturating_add(executable.processes);
            }
            Some(object) if is_address_only(executable, object) => hidden = true,
            Some(object) => others.push(served_by(&executable.executable, object, &malloc.kind)),
            // Only the filter reached it, or it could not tell.
            None => {}
        }
    }
    // What was not reached has no library preloaded.
    let reasons = others.into_iter().take(MOST).chain(unreached(run));
    let reason = reasons.collect::<Vec<_>>().join("; ");
    match (served, reason.is_empty()) {
        (0, true) => InEffect::Unknown,
        (_, true) => InEffect::Everywhere,
        (0, false) if !hidden && !hides_something(&run.coverage) => InEffect::Nowhere(reason),
        (0, false) => InEffect::Unknown,
        (_, false) => InEffect::Partly(reason),
    }
}

/// Whether the program only lends malloc its address, as the preload knows with glibc,
/// not with musl: in an executable at a fixed address that takes the address of malloc,
/// this is an entry of its own linkage table (ELF x86-64 psABI, "Function Addresses"),
/// which leads to whoever really serves it.
fn is_address_only(executable: &ExecutableReport, object: &str) -> bool {
    object == executable.executable
        && ElfFacts::of(Path::new(object)).is_ok_and(|facts| !facts.exports_malloc)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// It was in effect; in all processes that were reached.
fn unless_unreached(run: &Run) -> InEffect {
    match unreached(run) {
        None => InEffect::Everywhere,
        Some(unreached) => InEffect::Partly(unreached),
    }
}

/// It was not in effect in what refit saw, for this reason; where some of that is hidden,
/// nobody knows.
fn unless_hidden(run: &Run, reason: String) -> InEffect {
    if hides_something(&run.coverage) || !run.survivors.is_empty() {
        return InEffect::Unknown;
    }
    InEffect::Nowhere(match (run.coverage.processes_reached, unreached(run)) {
        (_, None) => reason,
        (0, Some(unreached)) => unreached,
        (_, Some(unreached)) => format!("{unreached}; elsewhere {reason}"),
    })
}

/// `not reached: ldconfig (static)`.
fn unreached(run: &Run) -> Option<String> {
    let programs = run.coverage.unreached.iter().take(MOST);
    let named = programs.map(|one| format!("{} ({})", file_name(&one.name), one.reason));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("not reached: {}", named.join(", ")))
}

fn hides_something(coverage: &Coverage) -> bool {
    // The kernel answers for what only the filter reached, and counts nothing.
    let is_uncounted = matches!(&coverage.seccomp, Some(FilterReport::Installed(reached))
        if reached.answers == "kernel" && reached.processes > 0);
    coverage.processes_seen == 0 || is_uncounted || !coverage.unknown.is_empty()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use refit_session::UnreachedProgram;

    use super::*;
    use crate::coverage::{Reached, Unknown};

    /// A run of `/bin/a`, whose malloc the C library serves.
    fn run(calls: &[(&str, Calls)]) -> Run {
        let mut run = Run::not_started();
        let calls = calls
            .iter()
            .map(|(name, calls)| ((*name).to_owned(), *calls));
        run.totals = calls.collect();
        (run.coverage.processes_seen, run.coverage.processes_reached) = (1, 1);
        run.executables.push(executable("/bin/a", "/lib/libc.so.6"));
        run
    }

    fn executable(path: &str, malloc: &str) -> ExecutableReport {
        ExecutableReport {
            executable: path.to_owned(),
            processes: 1,
            calls: BTreeMap::new(),
            malloc_object: Some(malloc.to_owned()),
            deepbind: false,
            directories: Vec::new(),
        }
    }

    fn seen(seen: u64, suppressed: u64) -> Calls {
        Calls {
            seen,
            suppressed,
            real: seen - suppressed,
            ..Calls::default()
        }
    }

    fn of(setting: &str, run: &Run) -> InEffect {
        InEffect::of(&setting.parse().expect("a setting"), run)
    }

    fn nowhere(reason: &str) -> InEffect {
        InEffect::Nowhere(reason.to_owned())
    }

    #[test]
    fn what_nothing_asked_for_is_nowhere() {
        let idle = run(&[]);
        for (setting, reason) in [
            ("sync=off", "nothing asked for a sync"),
            ("disk=8ms", "nothing asked for a sync"),
            ("odirect=off", "nothing was opened with O_DIRECT"),
        ] {
            assert_eq!(of(setting, &idle), nowhere(reason));
        }
        let busy = run(&[("fsync", seen(2, 2)), ("open(O_DIRECT)", seen(1, 1))]);
        for setting in ["sync=off", "odirect=off", "thp=never"] {
            assert_eq!(of(setting, &busy), InEffect::Everywhere, "{setting}");
        }
        assert_eq!(
            of("disk=8ms", &run(&[("fsync", seen(1, 0))])),
            InEffect::Everywhere
        );
        let writes = run(&[("open(O_SYNC)", seen(1, 1))]);
        assert_eq!(of("sync=off", &writes), InEffect::Everywhere);
        assert_eq!(of("env.A=1", &idle), InEffect::Unknown);
    }

    #[test]
    fn a_scope_that_nothing_matched_is_nowhere() {
        let mut run = run(&[("fsync", seen(2, 0))]);
        run.coverage.unmatched_scopes = vec!["sync@exe:b".to_owned(), "disk@/x/".to_owned()];
        assert_eq!(
            of("sync@exe:b=off", &run),
            nowhere("nothing matched sync@exe:b")
        );
        assert_eq!(
            of("disk@/x/=8ms", &run),
            nowhere("nothing matched disk@/x/")
        );
        assert_eq!(of("disk=8ms", &run), InEffect::Everywhere);
    }

    #[test]
    fn what_is_not_seen_is_unknown() {
        let mut hidden = run(&[]);
        hidden.coverage.unknown.push(Unknown {
            what: "io_uring".to_owned(),
            executable: None,
            count: 1,
        });
        let mut uncounted = run(&[]);
        uncounted.coverage.seccomp = Some(FilterReport::Installed(Box::new(Reached {
            answers: "kernel".to_owned(),
            processes: 1,
            ..Reached::default()
        })));
        for run in [hidden, uncounted, Run::not_started()] {
            assert_eq!(of("sync=off", &run), InEffect::Unknown);
        }
    }

    #[test]
    fn who_serves_malloc_decides() {
        let mut run = run(&[]);
        assert_eq!(of("malloc=glibc", &run), InEffect::Everywhere);
        run.executables
            .push(executable("/bin/redis", "/lib/libjemalloc.so.2"));
        let partly = of("malloc=glibc", &run);
        let InEffect::Partly(reason) = partly else {
            panic!("{partly:?}");
        };
        assert!(
            reason.starts_with("malloc is served by libjemalloc.so.2, which redis links"),
            "{reason}"
        );
        let partly = "malloc is served by libc.so.6 in a";
        assert_eq!(
            of("malloc=jemalloc", &run),
            InEffect::Partly(partly.to_owned())
        );
        run.executables = vec![executable("/bin/small", "/lib/ld-musl-x86_64.so.1")];
        let musl = "malloc is served by musl in small";
        assert_eq!(of("malloc=glibc", &run), nowhere(musl));
        run.executables = vec![executable("/bin/small", "/usr/lib/musl/lib/libc.so")];
        assert_eq!(of("malloc=glibc", &run), nowhere(musl));
        run.executables = vec![executable("/bin/own", "/bin/own")];
        let own = "own has a malloc of its own, which no library can replace";
        assert_eq!(of("malloc=/lib/x.so", &run), nowhere(own));
        run.executables.clear();
        assert_eq!(of("malloc=glibc", &run), InEffect::Unknown);
        run.coverage.unreached.push(UnreachedProgram {
            name: "/sbin/ldconfig".to_owned(),
            reason: "static".to_owned(),
            count: 1,
        });
        let cannot = nowhere("not reached: ldconfig (static)");
        assert_eq!(of("malloc=jemalloc", &run), cannot);
    }

    #[test]
    fn of_several_runs_one_in_effect_is_enough() {
        let none = || nowhere("nothing asked for a sync");
        let of = |runs: Vec<InEffect>| InEffect::of_runs(runs.into_iter());
        assert_eq!(of(vec![none(), none()]), none());
        assert_eq!(of(vec![none(), InEffect::Unknown]), InEffect::Unknown);
        assert_eq!(of(vec![none(), InEffect::Everywhere]), InEffect::Everywhere);
        assert_eq!(of(Vec::new()), InEffect::Unknown);
    }
}
