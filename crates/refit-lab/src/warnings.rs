//! What a reader has to know before he believes a table.

use crate::experiment::{Experiment, Role, RunRecord, SettingRecord, Warning};
use crate::verdict::Verdict;

/// A noise floor above this is worth a word.
const NOISY: f64 = 0.05;

/// The part of all processors above which neighbours are worth a word.
const LOUD: f64 = 0.1;

/// Everything that was noticed. `others` is the part of all processors that
/// other processes used.
pub fn warnings(experiment: &Experiment, others: f64) -> Vec<Warning> {
    let mut all = Vec::new();
    let mut warn = |text: String, action: &str| {
        all.push(Warning {
            text,
            action: action.to_owned(),
        });
    };
    let is_exact = experiment
        .recipe
        .as_ref()
        .is_some_and(|recipe| recipe.is_exact);
    if !is_exact && does_less_the_second_time(experiment) {
        warn(
            "the first run took more than twice as long as any later one of its variant: your command does less work the second time".to_owned(),
            "bring it back to the start before each run: --prepare COMMAND, or --fresh-copy DIR",
        );
    }
    if let Some(floor) = experiment.noise_floor().filter(|floor| *floor > NOISY) {
        warn(
            format!(
                "the noise floor is {:.1} %: two equal variants differed by that much",
                floor * 100.0
            ),
            "wait for a quieter machine, or give it more time: --budget",
        );
    }
    small_effects(experiment, &mut warn);
    let environment = &experiment.environment;
    for name in ["thp", "governor"] {
        if let (Some(before), Some(after)) =
            (environment.before.get(name), environment.after.get(name))
            && before != after
        {
            warn(
                format!(
                    "the system's {name} changed during the comparison, from {before} to {after}"
                ),
                "repeat it, and find out who changed it",
            );
        }
    }
    // A busy machine changes no exact answer.
    if !is_exact && others > LOUD {
        warn(
            format!(
                "others, the kernel's own threads included, used {:.0} % of the machine's processors",
                others * 100.0
            ),
            "repeat it when nothing else runs",
        );
    }
    syncs(experiment, &mut warn);
    reach(experiment, &mut warn);
    scopes(experiment, &mut warn);
    all
}

/// A verdict on a difference that two equal variants showed as well.
fn small_effects(experiment: &Experiment, warn: &mut impl FnMut(String, &str)) {
    let Some(floor) = experiment.noise_floor() else {
        return;
    };
    for effect in experiment
        .effects
        .iter()
        .filter(|effect| effect.metric == experiment.main)
    {
        let is_told = effect.verdict.is_some_and(Verdict::is_difference);
        if is_told && effect.change.abs() < floor {
            warn(
                format!(
                    "{} differs by less than the noise floor of {:.1} %",
                    experiment.variants[effect.variant].name,
                    floor * 100.0
                ),
                "see whether it holds: --confirm",
            );
        }
    }
}

fn does_less_the_second_time(experiment: &Experiment) -> bool {
    // Whichever variant came first has done the work for all.
    let Some((first, later)) = experiment.runs.split_first() else {
        return false;
    };
    let same = later.iter().filter(|run| run.variant == first.variant);
    let slowest = same.map(|run| run.run.metrics.wall_ns).max();
    slowest.is_some_and(|slowest| first.run.metrics.wall_ns / 2 > slowest)
}

fn syncs(experiment: &Experiment, warn: &mut impl FnMut(String, &str)) {
    let swaps_sync = |index: &usize| {
        let settings = &experiment.variants[*index].settings;
        settings.iter().any(SettingRecord::is_about_syncs)
    };
    // An open with O_SYNC is no sync call, and makes each write one.
    let syncs = |run: &RunRecord| {
        run.run.syncs(|calls| calls.seen) > 0 || run.run.totals.contains_key("open(O_SYNC)")
    };
    // A candidate may sync where the baseline does not: conf.… can ask for it.
    let looked = |run: &&RunRecord| run.variant == 0 || swaps_sync(&run.variant);
    let mut runs = experiment.runs.iter().filter(looked).peekable();
    let never = runs.peek().is_some() && !runs.any(syncs);
    if never && (0..experiment.variants.len()).any(|index| swaps_sync(&index)) {
        warn(
            "no sync call was seen, so sync=… has nothing to swap".to_owned(),
            "see whether the command syncs at all: refit run -- COMMAND",
        );
    }
}

/// Scopes that nothing matched in any run of their variant, and calls that a path
/// scope could not judge.
fn scopes(experiment: &Experiment, warn: &mut impl FnMut(String, &str)) {
    for (index, variant) in experiment.variants.iter().enumerate() {
        let runs = experiment.runs.iter().filter(|run| run.variant == index);
        let coverage: Vec<_> = runs.map(|run| &run.run.coverage).collect();
        let Some((first, rest)) = coverage.split_first() else {
            continue;
        };
        let never = |scope: &&String| {
            rest.iter()
                .all(|coverage| coverage.unmatched_scopes.contains(scope))
        };
        for scope in first.unmatched_scopes.iter().filter(never) {
            warn(
                format!("{}: nothing matched {scope}", variant.name),
                "see the names of what syncs, and where: refit run -- COMMAND",
            );
        }
        if coverage.iter().any(|coverage| coverage.path_unknown > 0) {
            warn(
                format!(
                    "{}: some calls were real because their file could not be told (a chroot, or no /proc)",
                    variant.name
                ),
                "as root, refit is asked about them through seccomp",
            );
        }
    }
}

fn reach(experiment: &Experiment, warn: &mut impl FnMut(String, &str)) {
    let candidate = |run: &&RunRecord| experiment.variants[run.variant].role == Role::Candidate;
    let Some(run) = experiment.runs.iter().filter(candidate).find(|run| {
        let coverage = &run.run.coverage;
        coverage.processes_reached < coverage.processes_seen
    }) else {
        return;
    };
    let coverage = &run.run.coverage;
    let names: Vec<String> = coverage
        .unreached
        .iter()
        .take(3)
        .map(|program| format!("{} ({})", program.name, program.reason))
        .collect();
    warn(
        format!(
            "{} of {} processes were not reached: {}",
            coverage.processes_seen - coverage.processes_reached,
            coverage.processes_seen,
            if names.is_empty() {
                "unknown which".to_owned()
            } else {
                names.join(", ")
            }
        ),
        "what they do is the same in every variant; see refit doctor COMMAND",
    );
}
