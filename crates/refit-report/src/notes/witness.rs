//! What the kernel saw of each variant.

use refit_lab::experiment::{Experiment, VariantRecord};
use refit_run::{Caller, Run, Testimony, Witnessed};

use super::note::{Note, note};
use crate::format;
use crate::paint::Tone;
use crate::run_summary::{calls_not_counted, calls_not_seen, who};

/// Callers of a variant that are named.
const MOST: usize = 3;

/// The baseline's durable calls and those of each variant about syncs.
pub fn witness(experiment: &Experiment) -> Option<Note> {
    let testimonies = experiment
        .variants
        .iter()
        .enumerate()
        .filter_map(|(at, variant)| Some((at, variant, variant.witness.as_ref()?)));
    let mut parts: Vec<String> = Vec::new();
    let mut filesystems = None;
    for (at, variant, testimony) in testimonies {
        let part = match testimony {
            Testimony::Seen(seen) => {
                let what = if filesystems.is_none() {
                    let ending = if seen.calls == 1 { "" } else { "s" };
                    let filesystems = seen.filesystems.join(", ");
                    format!(" durable call{ending} reached {filesystems}")
                } else {
                    String::new()
                };
                filesystems = Some(());
                seen_part(variant, seen, &what) + &gap(experiment, at, seen)
            }
            Testimony::Unavailable(reason) => {
                format!("not available: {}", reason)
            }
        };
        // One reason for all.
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    (!parts.is_empty()).then(|| note("witness:", Tone::Plain, parts.join("; ")))
}

fn seen_part(variant: &VariantRecord, seen: &Witnessed, what: &str) -> String {
    let lost = if seen.lost > 0 { "at least " } else { "" };
    let with = match variant.settings.as_slice() {
        [] => "at the baseline ".to_owned(),
        _ => format!("with {} ", variant.name),
    };
    // What still arrives is what the setting did not reach.
    let callers = if variant.settings.is_empty() {
        String::new()
    } else {
        callers(&seen.callers)
    };
    format!(
        "{with}{lost}{}{what}{callers}",
        format::count(seen.calls as f64)
    )
}

/// Durable calls that the kernel saw of a variant, and that none of its runs counted; 0 where the kernel was not asked.
pub fn uncounted(experiment: &Experiment, variant: usize) -> u64 {
    match &experiment.variants[variant].witness {
        Some(Testimony::Seen(seen)) => least(experiment, variant, seen, calls_not_counted),
        _ => 0,
    }
}

/// The least that holds of any of its runs beside what the kernel saw of one more.
fn least(
    experiment: &Experiment,
    variant: usize,
    seen: &Witnessed,
    of: fn(&Run, &Witnessed) -> u64,
) -> u64 {
    let runs = experiment.runs.counted(variant);
    runs.map(|run| of(&run.run, seen)).min().unwrap_or(0)
}

/// Where no run of the variant counted what the kernel saw of one more.
fn gap(experiment: &Experiment, variant: usize, seen: &Witnessed) -> String {
    let [uncounted, unseen] =
        [calls_not_counted, calls_not_seen].map(|of| least(experiment, variant, seen, of));
    match (uncounted, unseen) {
        (0, 0) => String::new(),
        (0, _) => format!(
            ", {} more were counted than it saw",
            format::grouped(unseen)
        ),
        (all, _) if all == seen.calls => ", not counted".to_owned(),
        (_, _) => format!(", {} of them not counted", format::grouped(uncounted)),
    }
}

fn callers(all: &[Caller]) -> String {
    let named = all.iter().take(MOST);
    let mut named: Vec<String> = named
        .map(|caller| who(caller.executable.as_deref(), caller.io_uring_worker))
        .collect();
    if all.len() > MOST {
        named.push(format!("and {} more", all.len() - MOST));
    }
    match named.as_slice() {
        [] => String::new(),
        named => format!(" ({})", named.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn seen(callers: &[(&str, bool, u64)]) -> Option<Testimony> {
        let callers = callers.iter().map(|(path, io_uring_worker, calls)| Caller {
            executable: Some((*path).to_owned()),
            io_uring_worker: *io_uring_worker,
            events: std::collections::BTreeMap::new(),
            calls: *calls,
        });
        let callers: Vec<Caller> = callers.collect();
        Some(Testimony::Seen(Witnessed {
            filesystems: vec!["ext4".to_owned()],
            calls: callers.iter().map(|caller| caller.calls).sum(),
            callers,
            ..Witnessed::default()
        }))
    }

    fn text(experiment: &Experiment) -> String {
        witness(experiment)
            .map(|note| note.text)
            .unwrap_or_default()
    }

    #[test]
    fn the_baseline_is_reported_with_what_was_suppressed() {
        let mut comparison = sample::experiment();
        assert!(witness(&comparison.experiment).is_none());
        comparison.experiment.variants[0].witness = seen(&[("/a", false, 1_812)]);
        comparison.experiment.variants[1].witness = seen(&[]);
        assert_eq!(
            text(&comparison.experiment),
            "at the baseline 1,812 durable calls reached ext4; with sync=off 0"
        );
        comparison.experiment.variants[1].witness =
            seen(&[("/b/fio", true, 99), ("/b/fio", false, 1)]);
        assert_eq!(
            text(&comparison.experiment),
            "at the baseline 1,812 durable calls reached ext4; \
             with sync=off 100 (fio (io_uring worker); fio)"
        );
    }

    #[test]
    fn one_reason_is_reported_once() {
        let mut comparison = sample::experiment();
        for variant in &mut comparison.experiment.variants {
            variant.witness = Some(Testimony::Unavailable("only root".to_owned()));
        }
        assert_eq!(text(&comparison.experiment), "not available: only root");
    }
}
