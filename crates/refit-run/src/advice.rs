//! What an observed run makes worth trying.

use std::time::Duration;

use refit_knobs::Class;
use refit_session::{ExecutableReport, OPENING, sum};

use crate::report::RunReport;

/// Runs until a comparison's first look: baseline, candidate and hidden baseline,
/// twice in each of a warm-up and eight round pairs.
const RUNS: u64 = 3 * 2 * 9;
/// A comparison that takes longer is not proposed.
const LONGEST: Duration = Duration::from_secs(180);
/// A swap that gains less than one in so many of the run's time could not be
/// told from noise.
const WORTH: u64 = 20;

/// Why a setting is worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Sync calls waited for a good part of the run.
    SyncsWait,
    /// Some files were opened with O_DIRECT.
    Direct,
}

/// A setting that is worth trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Why.
    pub reason: Reason,
    /// As it is typed.
    pub setting: String,
    /// What it risks.
    pub class: Class,
    /// How long a comparison with the baseline takes until its first look; `None`
    /// where that is too long.
    pub comparison: Option<Duration>,
}

/// What is worth trying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// The settings.
    pub proposals: Vec<Proposal>,
    /// Why a comparison of them would not do what this run did.
    pub obstacle: Option<String>,
    /// What `refit compare` needs in order to do it.
    pub options: Vec<String>,
}

/// What is worth trying after a run with no settings; nothing otherwise.
#[must_use]
pub fn advice(report: &RunReport) -> Advice {
    let repetition = &report.repetition;
    Advice {
        proposals: proposals(report),
        obstacle: repetition.obstacle(report.run.exit),
        options: repetition.options(),
    }
}

fn proposals(report: &RunReport) -> Vec<Proposal> {
    if !report.settings.is_empty() {
        return Vec::new();
    }
    let wall_ns = report.run.metrics.wall_ns;
    let comparison = Some(Duration::from_nanos(wall_ns.saturating_mul(RUNS)))
        .filter(|duration| *duration < LONGEST);
    let proposal = |reason, setting| Proposal {
        reason,
        setting,
        class: Class::LosesOnCrash,
        comparison,
    };
    let waited_ns = report.run.syncs(|calls| calls.waited_ns);
    let syncs = waited_ns > wall_ns / WORTH;
    let direct = report.run.totals.contains_key("open(O_DIRECT)");
    [
        syncs.then(|| {
            proposal(
                Reason::SyncsWait,
                format!("sync{}=off", scope(report, waited_ns)),
            )
        }),
        direct.then(|| proposal(Reason::Direct, "odirect=off".to_owned())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `@exe:NAME` where one executable of several does nearly all the waiting.
fn scope(report: &RunReport, waited_ns: u64) -> String {
    let executables = &report.run.executables;
    let several = executables.iter().filter(|one| syncs(one).0 > 0).count() > 1;
    executables
        .iter()
        .find(|one| syncs(one).1 > waited_ns / 10 * 9)
        .filter(|one| several && one.executable != "?")
        .map(|one| one.executable.rsplit('/').next().unwrap_or_default())
        .map(|name| format!("@exe:{name}"))
        .unwrap_or_default()
}

/// How many sync calls an executable made, and how long they waited.
fn syncs(executable: &ExecutableReport) -> (u64, u64) {
    let syncs = || {
        let calls = executable.calls.iter();
        calls.filter(|(name, _)| !OPENING.contains(&name.as_str()))
    };
    (
        sum(syncs().map(|(_, calls)| calls.seen)),
        sum(syncs().map(|(_, calls)| calls.waited_ns)),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use refit_session::Calls;

    use super::*;
    use crate::in_effect::InEffect;
    use crate::repetition::Repetition;
    use crate::report::{SCHEMA, SettingReport};
    use crate::run::Run;

    /// Executables with the milliseconds that one fsync of each waited, in a run
    /// of `wall_ms`.
    fn report(wall_ms: u64, executables: &[(&str, u64)]) -> RunReport {
        let mut run = Run::not_started();
        run.metrics.wall_ns = wall_ms * 1_000_000;
        for (path, waited_ms) in executables {
            let calls = Calls {
                seen: 1,
                real: 1,
                waited_ns: waited_ms * 1_000_000,
                ..Calls::default()
            };
            run.totals
                .entry("fsync".to_owned())
                .or_default()
                .add(&calls);
            run.executables.push(ExecutableReport {
                executable: (*path).to_owned(),
                processes: 1,
                calls: BTreeMap::from([("fsync".to_owned(), calls)]),
                malloc_object: None,
                deepbind: false,
                directories: Vec::new(),
            });
        }
        RunReport {
            schema: SCHEMA,
            kind: "run".to_owned(),
            refit: "0".to_owned(),
            command: vec!["a".to_owned()],
            settings: Vec::new(),
            repetition: Repetition::default(),
            heap_paths: Vec::new(),
            durability: None,
            cpu: None,
            run,
        }
    }

    fn settings(report: &RunReport) -> Vec<String> {
        let all = advice(report).proposals.into_iter();
        all.map(|one| one.setting).collect()
    }

    #[test]
    fn who_waits_alone_is_named_and_a_short_wait_is_not_worth_it() {
        for (executables, expected) in [
            (&[("/bin/a", 60)][..], &["sync=off"][..]),
            (&[("/bin/a", 60), ("/bin/b", 1)], &["sync@exe:a=off"]),
            (&[("/bin/a", 60), ("/bin/b", 30)], &["sync=off"]),
            (&[("?", 60), ("/bin/b", 1)], &["sync=off"]),
            (&[("/bin/a", 50)], &[]),
            (&[], &[]),
        ] {
            assert_eq!(
                settings(&report(1000, executables)),
                expected,
                "{executables:?}"
            );
        }
    }

    #[test]
    fn a_comparison_is_proposed_where_it_ends_soon() {
        let duration =
            |wall_ms| advice(&report(wall_ms, &[("/a", wall_ms)])).proposals[0].comparison;
        assert_eq!(duration(1000), Some(Duration::from_secs(54)));
        assert_eq!(duration(3400), None);
    }

    #[test]
    fn direct_files_are_worth_a_try_and_a_swapped_run_proposes_nothing() {
        let mut direct = report(1000, &[]);
        let opens = BTreeMap::from([("open(O_DIRECT)".to_owned(), Calls::default())]);
        direct.run.totals = opens;
        assert_eq!(settings(&direct), ["odirect=off"]);
        direct.settings.push(SettingReport::new(
            "sync=off".parse().unwrap(),
            InEffect::Unknown,
        ));
        assert!(settings(&direct).is_empty());
    }
}
