//! Whether a setting was in effect in the processes of a run. A swap that did not
//! take is not a swap, and earns no verdict.

use std::path::Path;

use refit_knobs::{Allocator, Disk, Launch, Setting, Settings};
use refit_meter::{ElfFacts, Testimony};
use refit_session::{Calls, ExecutableReport, OPENING, sum};
use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, FilterReport};
use crate::escape::escaped;
use crate::run::Run;
use crate::serves_malloc::{is_allocator, served_by};
use crate::why_not::{Reasons, UncountedCaller, WhyNot};

/// In which processes of a program a setting was in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InEffect {
    /// In all that refit knows of.
    Everywhere,
    /// In some; in which it was not.
    Partly(Reasons),
    /// In none; why, and what would help.
    Nowhere(Reasons),
    /// That cannot be observed.
    Unknown,
}

/// Calls that take O_DIRECT.
const DIRECT: [&str; 2] = ["open(O_DIRECT)", "fcntl(O_DIRECT)"];
/// An open for synchronous writes asks for syncs.
pub const OPEN_SYNC: &str = "open(O_SYNC)";

impl InEffect {
    /// Of a setting in a run that has ended.
    #[must_use]
    pub fn of(setting: &Setting, run: &Run) -> InEffect {
        if let Some(scope) = setting.scoped_knob()
            && run.coverage.unmatched_scopes.contains(&scope)
        {
            return unless_hidden(run, WhyNot::NothingMatched(scope));
        }
        let settings = Settings(vec![setting.clone()]);
        match settings.launch() {
            Launch { sync, .. } if sync.iter().any(|rule| !rule.on) => {
                // What a scope is not about reaches the disk rightly.
                let escaped = setting
                    .scoped_knob()
                    .is_none()
                    .then(|| reached_the_disk(run));
                of_sync(run, escaped.flatten())
            }
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

    /// Where it is known that the program makes no sync, a setting of syncs is in effect nowhere.
    #[must_use]
    pub fn no_sync_call() -> InEffect {
        InEffect::Nowhere(WhyNot::NoSyncCall.into())
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

/// Durable calls that reached a disk uncounted, where the kernel was asked, and saw such calls.
fn reached_the_disk(run: &Run) -> Option<WhyNot> {
    let Some(Testimony::Seen(seen)) = &run.witness else {
        return None;
    };
    let escaped = escaped(run, seen);
    let calls = sum(escaped.iter().map(|one| one.calls));
    let callers = escaped.into_iter().map(|one| UncountedCaller {
        executable: one.executable,
        io_uring_worker: one.io_uring_worker,
    });
    (calls > 0).then(|| WhyNot::Uncounted {
        calls,
        filesystems: seen.filesystems.clone(),
        callers: callers.collect(),
    })
}

/// `escaped`: durable calls that reached the disk although the setting has no scope that spares them.
fn of_sync(run: &Run, escaped: Option<WhyNot>) -> InEffect {
    let is_suppressed = total(run, is_sync, |calls| calls.suppressed) > 0;
    if let Some(escaped) = escaped {
        let elsewhere = answers_uncounted(&run.coverage) || !run.survivors.is_empty();
        let reasons = Reasons(unreached(run).into_iter().chain([escaped]).collect());
        return match is_suppressed || elsewhere {
            true => InEffect::Partly(reasons),
            false => InEffect::Nowhere(reasons),
        };
    }
    if is_suppressed {
        return unless_unreached(run);
    }
    let seen = total(run, is_sync, |calls| calls.seen);
    unless_hidden(
        run,
        match seen {
            0 => WhyNot::NoSyncCall,
            _ => WhyNot::NoneSuppressed,
        },
    )
}

fn of_odirect(run: &Run) -> InEffect {
    let of = |field| total(run, |name| DIRECT.contains(&name), field);
    if of(|calls| calls.suppressed) > 0 {
        return unless_unreached(run);
    }
    let reason = match of(|calls| calls.seen) {
        0 => WhyNot::NoDirectOpen,
        _ => WhyNot::DirectNotRemoved,
    };
    unless_hidden(run, reason)
}

fn of_disk(disk: &Disk, run: &Run) -> InEffect {
    let real = total(run, is_sync, |calls| calls.real);
    let injected = total(run, is_sync, |calls| calls.injected);
    match disk {
        Disk::Fail { .. } if injected > 0 => unless_unreached(run),
        // Whether the next one had failed, nobody knows.
        Disk::Fail { .. } if real > 0 => InEffect::Unknown,
        Disk::Latency(_) | Disk::Profile(_) if real > 0 => unless_unreached(run),
        _ => unless_hidden(run, WhyNot::NoSyncCall),
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
            Some(object) => {
                let server = served_by(&executable.executable, object, &malloc.kind);
                others.push(WhyNot::OtherMalloc(server));
            }
            // Only the filter reached it, or it could not tell.
            None => {}
        }
    }
    // What was not reached has no library preloaded.
    let reasons = Reasons(others.into_iter().chain(unreached(run)).collect());
    match (served, reasons.0.is_empty()) {
        (0, true) => InEffect::Unknown,
        (_, true) => InEffect::Everywhere,
        (0, false) if !hidden && !hides_something(&run.coverage) => InEffect::Nowhere(reasons),
        (0, false) => InEffect::Unknown,
        (_, false) => InEffect::Partly(reasons),
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

/// It was in effect; in all processes that were reached.
fn unless_unreached(run: &Run) -> InEffect {
    match unreached(run) {
        None => InEffect::Everywhere,
        Some(unreached) => InEffect::Partly(unreached.into()),
    }
}

/// It was not in effect in what refit saw, for this reason; where some of that is hidden,
/// nobody knows.
fn unless_hidden(run: &Run, reason: WhyNot) -> InEffect {
    if hides_something(&run.coverage) || !run.survivors.is_empty() {
        return InEffect::Unknown;
    }
    let reasons = match unreached(run) {
        Some(unreached) if run.coverage.processes_reached == 0 => vec![unreached],
        Some(unreached) => vec![unreached, reason],
        None => vec![reason],
    };
    InEffect::Nowhere(Reasons(reasons))
}

/// Programs that were not reached, if there are any.
fn unreached(run: &Run) -> Option<WhyNot> {
    let programs = &run.coverage.unreached;
    (!programs.is_empty()).then(|| WhyNot::NotReached(programs.clone()))
}

fn hides_something(coverage: &Coverage) -> bool {
    coverage.processes_seen == 0 || answers_uncounted(coverage) || !coverage.unknown.is_empty()
}

/// Whether a filter lies beneath some process, and the kernel answers what only the filter sees, and counts nothing.
fn answers_uncounted(coverage: &Coverage) -> bool {
    let is_alone = matches!(&coverage.seccomp, Some(FilterReport::Installed(reached))
        if reached.answers == "kernel" && reached.processes > 0);
    coverage.answered_uncounted || is_alone
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use refit_knobs::AllocatorKind;
    use refit_meter::{Caller, Witnessed};
    use refit_session::UnreachedProgram;

    use super::*;
    use crate::coverage::{OWN_SYSCALLS, Reached, Unknown};

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

    fn nowhere(reason: WhyNot) -> InEffect {
        InEffect::Nowhere(reason.into())
    }

    #[test]
    fn what_nothing_asked_for_is_nowhere() {
        let idle = run(&[]);
        for (setting, reason) in [
            ("sync=off", WhyNot::NoSyncCall),
            ("disk=8ms", WhyNot::NoSyncCall),
            ("odirect=off", WhyNot::NoDirectOpen),
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
            nowhere(WhyNot::NothingMatched("sync@exe:b".to_owned()))
        );
        assert_eq!(
            of("disk@/x/=8ms", &run),
            nowhere(WhyNot::NothingMatched("disk@/x/".to_owned()))
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

    fn witness(calls: u64) -> Option<Testimony> {
        let caller = Caller {
            executable: Some("/bin/a".to_owned()),
            io_uring_worker: false,
            events: BTreeMap::from([("ext4_sync_file_enter".to_owned(), calls)]),
            calls,
        };
        Some(Testimony::Seen(Witnessed {
            filesystems: vec!["ext4".to_owned()],
            calls,
            callers: vec![caller],
            ..Witnessed::default()
        }))
    }

    #[test]
    fn what_the_kernel_saw_was_not_suppressed() {
        let escaped = WhyNot::Uncounted {
            calls: 100,
            filesystems: vec!["ext4".to_owned()],
            callers: vec![UncountedCaller {
                executable: Some("/bin/a".to_owned()),
                io_uring_worker: false,
            }],
        };
        let mut run = run(&[]);
        run.witness = witness(100);
        run.coverage.unknown.push(Unknown {
            what: OWN_SYSCALLS.to_owned(),
            executable: Some("/bin/a".to_owned()),
            count: 1,
        });
        assert_eq!(of("sync=off", &run), nowhere(escaped.clone()));
        // What a scope is not about may reach the disk.
        assert_eq!(of("sync@/x/=off", &run), InEffect::Unknown);
        let partly = InEffect::Partly(escaped.into());
        let mut some = run.clone();
        some.totals.insert("fsync".to_owned(), seen(50, 50));
        assert_eq!(of("sync=off", &some), partly);
        run.coverage.answered_uncounted = true;
        assert_eq!(of("sync=off", &run), partly, "the kernel answered others");
        run.witness = witness(0);
        assert_eq!(of("sync=off", &run), InEffect::Unknown);
        run.coverage.unknown.clear();
        assert_eq!(of("sync=off", &run), InEffect::Unknown);
    }

    #[test]
    fn who_serves_malloc_decides() {
        let mut run = run(&[]);
        assert_eq!(of("malloc=glibc", &run), InEffect::Everywhere);
        run.executables
            .push(executable("/bin/redis", "/lib/libjemalloc.so.2"));
        let server = |executable: &str, object: &str, wanted: &AllocatorKind| {
            WhyNot::OtherMalloc(served_by(executable, object, wanted))
        };
        let wanted = |setting: &str| {
            let setting: Setting = setting.parse().expect("a setting");
            let malloc = Settings(vec![setting]).launch().malloc;
            malloc.expect("an allocator").kind
        };
        let jemalloc = server(
            "/bin/redis",
            "/lib/libjemalloc.so.2",
            &wanted("malloc=glibc"),
        );
        assert_eq!(of("malloc=glibc", &run), InEffect::Partly(jemalloc.into()));
        let libc = server("/bin/a", "/lib/libc.so.6", &wanted("malloc=jemalloc"));
        assert_eq!(of("malloc=jemalloc", &run), InEffect::Partly(libc.into()));
        for (setting, executable, object) in [
            ("malloc=glibc", "/bin/small", "/lib/ld-musl-x86_64.so.1"),
            ("malloc=glibc", "/bin/small", "/usr/lib/musl/lib/libc.so"),
            ("malloc=/lib/x.so", "/bin/own", "/bin/own"),
        ] {
            run.executables = vec![self::executable(executable, object)];
            let other = server(executable, object, &wanted(setting));
            assert_eq!(of(setting, &run), nowhere(other), "{object}");
        }
        run.executables.clear();
        assert_eq!(of("malloc=glibc", &run), InEffect::Unknown);
        let ldconfig = UnreachedProgram {
            name: "/sbin/ldconfig".to_owned(),
            reason: "static".to_owned(),
            count: 1,
        };
        run.coverage.unreached.push(ldconfig.clone());
        let cannot = nowhere(WhyNot::NotReached(vec![ldconfig]));
        assert_eq!(of("malloc=jemalloc", &run), cannot);
        // What was reached made no sync call; what was not may have.
        let of_both = |run: &Run| match of("sync=off", run) {
            InEffect::Nowhere(reasons) => reasons.0.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of_both(&run), 2);
        run.coverage.processes_reached = 0;
        assert_eq!(of_both(&run), 1);
    }

    #[test]
    fn of_several_runs_one_in_effect_is_enough() {
        let none = || nowhere(WhyNot::NoSyncCall);
        let of = |runs: Vec<InEffect>| InEffect::of_runs(runs.into_iter());
        assert_eq!(of(vec![none(), none()]), none());
        assert_eq!(of(vec![none(), InEffect::Unknown]), InEffect::Unknown);
        assert_eq!(of(vec![none(), InEffect::Everywhere]), InEffect::Everywhere);
        assert_eq!(of(Vec::new()), InEffect::Unknown);
    }
}
