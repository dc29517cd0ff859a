//! Coverage, computed from what the processes and the guardian counted.

use std::path::Path;

use refit_launch::own_syscalls::Search;
use refit_session::{
    CALLS, Collected, ExecutableReport, IMAGE_FILTERED, IMAGE_OWN_SECCOMP, IMAGE_UNFILTERED,
    OPENING, OTHERS, UnreachedProgram, sum,
};

use super::{
    ANSWERED, Coverage, Filter, FilterPlace, FilterReport, OWN_SYSCALLS, OtherDefinitions, Reached,
    Unknown,
};

/// What coverage is computed from.
pub(crate) struct Sources<'a> {
    /// With what the guardian counted.
    pub counted: &'a Collected,
    /// The filter beneath the program, or why there is none; `None` where nothing
    /// asked for one.
    pub filter: Option<&'a Result<Filter, String>>,
    /// What each rule of the policy is for, in the order of the bits.
    pub scopes: &'a [Option<String>],
}

/// A report that perhaps no process of the tree has written.
const FOREIGN: &str = "foreign report";

impl Coverage {
    /// The coverage of a run; `executables`: those that were counted.
    pub(crate) fn of(sources: &Sources, executables: &[ExecutableReport]) -> Coverage {
        let counted = sources.counted;
        let unknown = sources.unknown(executables);
        let preloaded = sum(counted.executables.values().map(|e| e.processes));
        let unreached = counted.unreached_programs();
        let silent = unknown
            .iter()
            .filter(|u| u.executable.is_none() && u.what != FOREIGN)
            .map(|u| u.count);
        let seccomp = sources.filter_report(executables, &unreached);
        let (filtered, unreached) = match &seccomp {
            Some(FilterReport::Installed(reached)) => {
                (reached.processes, beyond(unreached, &reached.programs))
            }
            _ => (0, unreached),
        };
        let named = unreached.iter().map(|program| program.count);
        let backend = match (preloaded, filtered) {
            (_, 0) => "preload",
            (0, _) => "seccomp",
            _ => "preload and seccomp",
        };
        let reached = preloaded.saturating_add(filtered);
        Coverage {
            backend: backend.to_owned(),
            processes_seen: sum([reached].into_iter().chain(silent).chain(named)),
            processes_reached: reached,
            unreached,
            unknown,
            path_unknown: counted.path_unknown,
            not_delayed: counted.not_delayed,
            unmatched_scopes: sources.unmatched(),
            answered_uncounted: sources.answered_uncounted(),
            others: sources.others(),
            seccomp,
        }
    }
}

/// What is left of `all` without `some` of them.
fn beyond(all: Vec<UnreachedProgram>, some: &[UnreachedProgram]) -> Vec<UnreachedProgram> {
    let left = all.into_iter().map(|program| {
        let same =
            |one: &&UnreachedProgram| (&one.name, &one.reason) == (&program.name, &program.reason);
        let known = some.iter().find(same).map_or(0, |one| one.count);
        UnreachedProgram {
            count: program.count.saturating_sub(known),
            ..program
        }
    });
    left.filter(|program| program.count > 0).collect()
}

impl Sources<'_> {
    /// The scopes that matched nothing; none of paths where an open was left to the kernel, whose file was not looked at.
    fn unmatched(&self) -> Vec<String> {
        let is_left =
            matches!(self.filter, Some(Ok(filter)) if filter.guardian.left_synchronous > 0);
        let scopes = self.scopes.iter().enumerate();
        let (matched, unmatched): (Vec<_>, Vec<_>) =
            scopes.partition(|(i, _)| self.counted.matched >> i & 1 == 1);
        let unmatched = unmatched.into_iter().filter_map(|(_, scope)| scope.clone());
        // Of two equal ones the last decides for both.
        let is_matched = |scope: &String| {
            let mut matched = matched.iter();
            matched.any(|(_, other)| other.as_ref() == Some(scope))
        };
        let may_match = |scope: &String| is_left && scope.starts_with("sync@/");
        let unmatched = unmatched.filter(|scope| !is_matched(scope) && !may_match(scope));
        unmatched.collect()
    }

    fn answered_uncounted(&self) -> bool {
        let Some(Ok(filter)) = self.filter else {
            return false;
        };
        let mut executables = self.counted.executables.values();
        let is_beneath = |executable: &refit_session::Executable| {
            executable.processes > 0
                && (filter.beneath == FilterPlace::All || executable.flags & IMAGE_FILTERED != 0)
        };
        !filter.asks && executables.any(is_beneath)
    }

    fn others(&self) -> Vec<OtherDefinitions> {
        let all = self.counted.executables.iter();
        let with = all.filter(|(_, executable)| executable.others != 0);
        with.map(|(name, executable)| {
            let of = |passes: bool| {
                let functions = OTHERS.iter().enumerate();
                functions
                    .filter(|(bit, (_, one))| executable.others >> bit & 1 == 1 && *one == passes)
                    .map(|(_, (function, _))| (*function).to_owned())
                    .collect()
            };
            OtherDefinitions {
                library: executable.other_object.clone(),
                executable: name.clone(),
                passed_on: of(true),
                skipped: of(false),
            }
        })
        .collect()
    }

    fn unknown(&self, executables: &[ExecutableReport]) -> Vec<Unknown> {
        let mut unknown = Vec::new();
        // What of its calls by instructions of its own is not known; `None`: a guardian counts them as all others.
        let hidden = |flags: u32| match self.filter {
            Some(Ok(filter)) if filter.asks => None,
            Some(Ok(filter)) => {
                let is_beneath =
                    filter.beneath == FilterPlace::All || flags & IMAGE_UNFILTERED == 0;
                Some(if is_beneath { ANSWERED } else { OWN_SYSCALLS })
            }
            _ => Some(OWN_SYSCALLS),
        };
        let mut search = Search::default();
        for executable in executables {
            let mut add = |what: &str, count| {
                unknown.push(Unknown {
                    what: what.to_owned(),
                    executable: Some(executable.executable.clone()),
                    count,
                });
            };
            let known = &self.counted.executables[&executable.executable];
            let flags = known.flags;
            // What the C library or liburing submits is seen there, where the preload is.
            let rings = executable.calls.get("io_uring_setup");
            let rings = rings.filter(|_| known.filtered > 0);
            match rings.map_or(known.rings_unseen, |rings| rings.seen) {
                0 => {}
                unseen => add("io_uring", unseen),
            }
            if let Some(what) = hidden(flags)
                && search.finds(Path::new(&executable.executable))
            {
                add(what, 1);
            }
            if flags & IMAGE_OWN_SECCOMP != 0 {
                add("own seccomp filter", 1);
            }
        }
        let silent = self.counted.expected.saturating_sub(self.counted.reported);
        for (what, count) in [
            ("never reported", silent),
            ("unnamed", self.counted.unreached_lost),
            (FOREIGN, self.counted.foreign),
        ] {
            if count > 0 {
                unknown.push(Unknown {
                    what: what.to_owned(),
                    executable: None,
                    count,
                });
            }
        }
        unknown
    }

    /// What the filter reached, of `unreached` by the preload; without one that
    /// is nothing.
    fn filter_report(
        &self,
        executables: &[ExecutableReport],
        unreached: &[UnreachedProgram],
    ) -> Option<FilterReport> {
        let filter = match self.filter? {
            Ok(filter) => filter,
            Err(reason) => return Some(FilterReport::Refused(reason.clone())),
        };
        let of_preload;
        let unreached = match filter.beneath {
            FilterPlace::All => unreached,
            FilterPlace::Unreached => {
                of_preload = self.counted.filtered_programs();
                &of_preload
            }
        };
        if filter.beneath == FilterPlace::Unreached && unreached.is_empty() {
            return None;
        }
        let is_filtered =
            |report: &&ExecutableReport| self.counted.executables[&report.executable].filtered > 0;
        let filtered: Vec<&ExecutableReport> = executables.iter().filter(is_filtered).collect();
        // A program that was started twice, and forked, is known by both.
        let known = |program: &UnreachedProgram| {
            // The name is as the program's parent wrote it.
            let name = program.name.strip_prefix("./").unwrap_or(&program.name);
            let of_name = filtered
                .iter()
                .filter(|e| Path::new(&e.executable).ends_with(name));
            sum(of_name.map(|e| e.processes))
        };
        let beyond = unreached
            .iter()
            .map(|program| program.count.saturating_sub(known(program)));
        let guardian = &filter.guardian;
        let is_sync = |call: &usize| !OPENING.contains(&CALLS[*call]);
        let real = guardian.executables.iter().flat_map(|executable| {
            let calls = (0..executable.calls.len()).filter(is_sync);
            calls.map(|call| executable.calls[call].real)
        });
        Some(FilterReport::Installed(Box::new(Reached {
            answers: if filter.asks { "guardian" } else { "kernel" }.to_owned(),
            has_listener: filter.has_listener,
            at_exec: filter.beneath == FilterPlace::Unreached,
            processes: sum(filtered.iter().map(|e| e.processes).chain(beyond)),
            programs: unreached.to_vec(),
            unmeasured: sum(real),
            left_synchronous: guardian.left_synchronous,
            crowded: guardian.crowded,
            takeovers: guardian.takeovers,
            released: guardian.released,
            listeners_refused: guardian.listeners_refused,
        })))
    }
}

#[cfg(test)]
mod tests {
    use refit_session::guardian::{ExecutableCounts, GuardianCounts};

    use super::*;

    fn counts(executable: &str, processes: u64, suppressed: u64) -> GuardianCounts {
        let mut counts = ExecutableCounts {
            executable: executable.to_owned(),
            processes,
            ..ExecutableCounts::default()
        };
        counts.calls[0].seen = suppressed + 1;
        counts.calls[0].suppressed = suppressed;
        counts.calls[0].real = 1;
        GuardianCounts {
            executables: vec![counts],
            ..GuardianCounts::default()
        }
    }

    /// A run with two static programs.
    fn coverage(filter: Result<Filter, String>) -> Coverage {
        coverage_of(&["/bin/one", "/bin/two"], filter)
    }

    fn coverage_of(names: &[&str], filter: Result<Filter, String>) -> Coverage {
        let mut counted = Collected::default();
        for name in names {
            counted.unreached.insert(((*name).to_owned(), "static"), 1);
        }
        if let Ok(filter) = &filter {
            counted.add_guardian(&filter.guardian);
        }
        let sources = Sources {
            counted: &counted,
            filter: Some(&filter),
            scopes: &[],
        };
        Coverage::of(&sources, &counted.executable_reports())
    }

    #[test]
    fn what_the_filter_reached_is_reached() {
        let coverage = coverage(Ok(Filter {
            beneath: FilterPlace::All,
            asks: true,
            has_listener: true,
            guardian: counts("/bin/one", 3, 7),
        }));
        assert_eq!(
            (coverage.processes_seen, coverage.processes_reached),
            (4, 4)
        );
        assert!(coverage.unreached.is_empty());
        let Some(FilterReport::Installed(reached)) = coverage.seccomp else {
            panic!("it was installed");
        };
        assert_eq!((reached.processes, reached.programs.len()), (4, 2));
        assert_eq!(reached.unmeasured, 1);
    }

    #[test]
    fn a_relative_name_is_that_of_the_same_program() {
        let processes_seen = |name: &str| {
            let filter = Filter {
                beneath: FilterPlace::All,
                asks: true,
                has_listener: true,
                guardian: counts("/bin/one", 1, 7),
            };
            coverage_of(&[name], Ok(filter)).processes_seen
        };
        assert_eq!(processes_seen("./one"), 1);
        assert_eq!(processes_seen("/bin/one"), 1);
        assert_eq!(processes_seen("ne"), 2, "another program");
    }

    #[test]
    fn a_refused_filter_reaches_nothing() {
        let coverage = coverage(Err("no permission".to_owned()));
        assert_eq!(
            (coverage.processes_seen, coverage.processes_reached),
            (2, 0)
        );
        assert_eq!(coverage.unreached.len(), 2);
        assert_eq!(coverage.backend, "preload");
    }
}
