//! `--from RESULT`: the winner of a stored comparison, and what was measured of it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use refit_crash::CrashReport;
use refit_knobs::Settings;
use refit_lab::{Comparison, EffectRecord, Experiment, ProofRecord, Tuning};
use refit_report::services::{gain, loss, lost_nothing};
use refit_report::{Compared, Proof};
use refit_run::fingerprint;
use refit_services::{Evidence, MeasuredEffect, Request};

use super::output::{self, Stored};

/// Completes what is asked for with the winner of a result, and where no service was named
/// with the one that its recipe stands for.
///
/// # Errors
/// Where there is no winner, or nothing tells the service.
pub fn take(path: &Path, request: &mut Request) -> Result<()> {
    let stored = match output::read(path)? {
        Stored::Tuning(tuning) => return take_answer(path, &tuning, request),
        stored => stored,
    };
    let Stored::Comparison(compared) = stored else {
        bail!(
            "{} is not a comparison, so it has no winner\n  make one: refit compare --json FILE …",
            path.display()
        );
    };
    if request.word.is_empty() {
        request.word = service(path, &compared.comparison)?;
    }
    let is_second = compared.comparison.confirmation.is_some();
    take_winner(
        path,
        &compared,
        compared.comparison.winner(),
        is_second,
        request,
    )
}

/// The answer of a tuning that risks least, as its confirmation measured it.
fn take_answer(path: &Path, tuning: &Tuning, request: &mut Request) -> Result<()> {
    let answer = tuning
        .answers
        .iter()
        .find_map(|answer| answer.variant.as_deref());
    let (Some(answer), Some(step)) = (answer, tuning.confirmation()) else {
        bail!(
            "nothing in {} is proven to help, so there is nothing to plan",
            path.display()
        );
    };
    let file = path.with_file_name(&step.file);
    let Stored::Comparison(mut compared) = output::read(&file)? else {
        bail!("{} is not a comparison", file.display());
    };
    if let Some(ProofRecord::Cut { file }) = &tuning.proof
        && let Stored::Crash(report) = output::read(&path.with_file_name(file))?
    {
        compared.proof = Some(Proof::Cut(report));
    }
    let comparison = &compared.comparison;
    if request.word.is_empty() {
        request.word = service(&file, comparison)?;
    }
    let mut variants = comparison.experiment.variants.iter();
    let winner = variants.position(|variant| variant.name == answer);
    take_winner(
        &file,
        &compared,
        winner,
        tuning.measured_before(answer),
        request,
    )
}

/// `is_second`: the winner was chosen by other runs than those that its gain is from.
fn take_winner(
    path: &Path,
    compared: &Compared,
    winner: Option<usize>,
    is_second: bool,
    request: &mut Request,
) -> Result<()> {
    let Compared { comparison, proof } = compared;
    let Some(winner) = winner else {
        bail!(
            "no variant in {} is proven better than the baseline{}\n  name what you want all the same: refit plan {} SETTINGS",
            path.display(),
            verdicts(comparison),
            request.word
        );
    };
    let variant = &comparison.experiment.variants[winner];
    let effect = confirmed(comparison, winner);
    let Some(effect) = effect.filter(|effect| effect.gain) else {
        bail!(
            "`{}` seemed to gain in {}, and measured again it is {}\n  compare longer: refit compare --budget TIME --json FILE …",
            variant.name,
            path.display(),
            effect.map_or("not proven", word)
        );
    };
    let recipe = comparison.experiment.recipe.as_ref();
    let settings = variant.settings.iter().map(|record| {
        let word = record.setting.to_string();
        let applied = recipe.and_then(|recipe| recipe.applied.get(&word));
        applied.map_or_else(|| Ok(record.setting.clone()), |word| word.parse())
    });
    request.settings = Settings(settings.collect::<Result<_, _>>()?);
    if request.health.is_none() {
        request.health = recipe.and_then(|recipe| recipe.health.clone());
    }
    let place = path
        .canonicalize()
        .with_context(|| format!("cannot read {}", path.display()))?;
    let differs = differences(&comparison.experiment);
    let mut lacks = lacks(comparison, proof.as_ref(), effect, &variant.name);
    if !is_second {
        lacks.insert(
            0,
            "the gain was not measured again (--remeasure)".to_owned(),
        );
    }
    // The runs had a directory of their own: the service's data may be on another file system in any case.
    let elsewhere = differs
        .iter()
        .filter(|what| !what.starts_with("filesystem:"));
    lacks.extend(elsewhere.map(|what| format!("it was measured elsewhere: {what}")));
    request.evidence = Some(Evidence {
        files: vec![place.display().to_string()],
        gain: gain(comparison, effect),
        effect: Some(MeasuredEffect {
            metric: effect.metric.clone(),
            ratio: 1.0 + effect.change,
            interval: effect.interval.map(|ends| ends.map(|end| 1.0 + end)),
        }),
        differs,
        packages: recipe.map_or_else(BTreeMap::new, |recipe| recipe.packages.clone()),
        loss: cut(proof.as_ref()).and_then(|report| loss(report, &variant.name)),
        fewer_durable: variant.fewer_durable.is_some()
            && !cut(proof.as_ref()).is_some_and(|report| lost_nothing(report, &variant.name)),
        lacks,
    });
    Ok(())
}

/// The service that the recipe stands for.
fn service(path: &Path, comparison: &Comparison) -> Result<String> {
    let recipe = comparison.experiment.recipe.as_ref();
    if let Some(service) = recipe.and_then(|recipe| recipe.applies_to.clone()) {
        return Ok(service);
    }
    let what = match recipe {
        Some(recipe) => format!(
            "the recipe {}, which names no service of a machine (applies-to in its recipe.toml)",
            recipe.name
        ),
        None => "a command, which is no service".to_owned(),
    };
    bail!(
        "{} compares {what}\n  name the service: refit plan --from {0} SERVICE",
        path.display()
    );
}

/// The effect of the winner: where it was measured again, that one.
fn confirmed(comparison: &Comparison, winner: usize) -> Option<&EffectRecord> {
    let (comparison, at) = match &comparison.confirmation {
        // The baseline is the first.
        Some(again) => (&**again, 1),
        None => (comparison, winner),
    };
    comparison.effects.get(at, &comparison.experiment.main)
}

fn cut(proof: Option<&Proof>) -> Option<&CrashReport> {
    match proof {
        Some(Proof::Cut(report)) => Some(report),
        _ => None,
    }
}

/// Why a result is not enough to accept a risk by: the gain has to be beyond the noise, and power cuts have to show
/// what is risked.
fn lacks(
    comparison: &Comparison,
    proof: Option<&Proof>,
    effect: &EffectRecord,
    variant: &str,
) -> Vec<String> {
    let mut lacks = Vec::new();
    let again = comparison.confirmation.as_deref();
    let floors = [again, Some(comparison)].into_iter().flatten();
    let mut floors = floors.filter_map(|one| one.effects.noise_floor(&one.experiment));
    let least = effect
        .interval
        .map(|ends| ends.map(f64::abs).into_iter().fold(f64::MAX, f64::min));
    if least
        .zip(floors.next())
        .is_none_or(|(least, floor)| least <= floor)
    {
        lacks.push("the interval of the gain does not clear the noise floor".to_owned());
    }
    let of_cuts = match proof {
        None => Some("no power was cut (--prove)".to_owned()),
        Some(Proof::NotCut(why)) => Some(format!("no power was cut: {why}")),
        Some(Proof::Cut(report)) => not_shown(report, variant),
    };
    lacks.extend(of_cuts);
    lacks
}

/// Why a crash report does not show what a variant risks.
fn not_shown(report: &CrashReport, variant: &str) -> Option<String> {
    if let Some(why) = &report.invalid {
        return Some(format!("its power cuts show nothing: {why}"));
    }
    match report.modes.iter().find(|mode| mode.name == variant) {
        None => Some(format!("`{variant}` was not cut")),
        Some(mode) if report.breaks_class(mode) => Some(format!(
            "the cuts took more than the class of `{variant}` allows"
        )),
        Some(mode) if mode.shows_a_loss() => None,
        Some(_) => Some("no cut took anything, so what is risked is not shown".to_owned()),
    }
}

/// What of the machine can change a result. Its memory is not the same at each start.
const COMPARED: [&str; 4] = ["kernel", "cpu", "cores", "filesystem"];

/// What was different when it was measured.
fn differences(experiment: &Experiment) -> Vec<String> {
    let then = &experiment.environment.fixed;
    let directory = then.get("directory").map_or("/", String::as_str);
    let now = fingerprint::fixed(Path::new(directory));
    let of_machine = COMPARED.into_iter().filter_map(|key| {
        let (then, now) = (then.get(key)?, now.get(key)?);
        Some((key, then.as_str(), now.as_str()))
    });
    let refit = ("refit", &*experiment.refit, env!("CARGO_PKG_VERSION"));
    let all = of_machine
        .chain([refit])
        .filter(|(_, then, now)| then != now);
    all.map(|(key, then, now)| format!("{key}: measured with {then}, here is {now}"))
        .collect()
}

fn word(effect: &EffectRecord) -> &'static str {
    effect.verdict.map_or("too short", |verdict| verdict.word())
}

/// `: \`a\` same, \`b\` inconclusive`.
fn verdicts(comparison: &Comparison) -> String {
    let experiment = &comparison.experiment;
    let told = experiment.candidates().map(|(index, variant)| {
        let effect = comparison.effects.get(index, &experiment.main);
        let word = effect.map_or("without a verdict", word);
        format!("`{}` {word}", variant.name)
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    format!(": {}", told.join(", "))
}
