//! What the kernel saw of each variant.

use refit_lab::experiment::{Experiment, VariantRecord};
use refit_run::{Caller, Testimony, Witnessed};

use super::note::{Note, note};
use crate::format;
use crate::paint::Tone;
use crate::run_summary::who;

/// Callers of a variant that are named.
const MOST: usize = 3;

/// The baseline's durable calls and those of each variant about syncs.
pub fn witness(experiment: &Experiment) -> Option<Note> {
    let testimonies = experiment
        .variants
        .iter()
        .filter_map(|variant| Some((variant, variant.witness.as_ref()?)));
    let mut parts: Vec<String> = Vec::new();
    let mut filesystems = None;
    for (variant, testimony) in testimonies {
        let part = match testimony {
            Testimony::Seen(seen) => {
                let what = if filesystems.is_none() {
                    let at = seen.filesystems.join(", ");
                    format!(" durable calls reached {}", at)
                } else {
                    String::new()
                };
                filesystems = Some(());
                seen_part(variant, seen, &what)
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
