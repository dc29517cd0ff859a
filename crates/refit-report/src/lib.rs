//! A comparison, drawn: a [`refit_lab::Comparison`] in, text, a page or a picture out.
//!
//! Promises: nothing is measured, judged or left out here; the same experiment
//! gives the same bytes. Whatever a record holds,
//! no control character of it reaches a terminal or a file.

mod answers;
mod bar;
mod calls;
#[cfg(test)]
mod claims;
mod coverage;
mod cpu_profile;
pub mod crash;
pub mod demo;
pub mod doctor;
mod durability;
mod explanation;
mod fold;
mod format;
mod formats;
#[cfg(test)]
mod fuzz;
mod gain;
mod heap_paths;
mod history;
mod html;
mod markdown;
mod markup;
pub mod memory_growth;
mod memory_words;
pub mod metrics;
mod notes;
mod page;
mod paint;
mod palette;
mod picture;
mod plot;
pub mod pool;
pub mod process;
mod progress;
pub mod proof;
mod row;
mod run_summary;
pub mod scan;
mod sentence;
mod series;
pub mod services;
mod stacks;
mod standing;
mod svg;
mod table;
mod terminal;
mod title;
mod tuning;
mod values;
pub mod watch;

#[cfg(test)]
mod sample;

pub use crate::cpu_profile::{cpu_lines, cpu_profile};
pub use crate::durability::{junit as durability_junit, sarif};
pub use crate::explanation::explanation;
pub use crate::format::shell_word;
pub use crate::formats::{FORMATS, MARKDOWN, ResultFormat};
pub use crate::heap_paths::heap_profile;
pub use crate::history::{Kept, history};
pub use crate::page::Page;
pub use crate::paint::Style;
pub use crate::progress::{at_most, estimates};
pub use crate::proof::{Compared, Proof};
pub use crate::run_summary::{run_html, run_summary};
pub use crate::stacks::{Profile, Stacks, Weight};
pub use crate::terminal::terminal;
pub use crate::tuning::{proposed, step_ended, tuning};

use crate::history::history_html;
use crate::html::html;
use crate::markdown::markdown;
use crate::plot::svg;
use crate::tuning::tuning_html;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use refit_lab::Comparison;
    use refit_lab::experiment::{Class, Samples};

    /// Draws a record, as a file may hold it, in every format.
    fn draw(comparison: &Comparison) {
        let style = |width| Style {
            width,
            colour: false,
        };
        let mut texts: Vec<String> = [0, 60, 200]
            .into_iter()
            .map(|width| terminal(comparison, &style(width)))
            .collect();
        let compared = Compared {
            comparison: comparison.clone(),
            proof: None,
        };
        texts.extend(FORMATS.iter().map(|format| (format.comparison)(&compared)));
        let stored = [(PathBuf::from("a.json"), comparison.clone())];
        texts.push(history(&stored, &Kept::default()));
        texts.push(history_html(&stored, &Kept::default()));
        for text in texts {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn no_record_is_too_strange_to_be_drawn() {
        let mut comparison = sample::experiment();
        comparison.experiment.refit = "\u{7}".to_owned();
        comparison.experiment.variants[1].name = "a\u{1b}[2J\n".to_owned();
        comparison.experiment.with = vec![sample::setting("env.WORD=\r", Class::ChangesBehaviour)];
        comparison.warnings[0].text = "\u{9b}".to_owned();
        comparison.experiment.seed = u64::MAX;
        comparison.experiment.started_unix = u64::MAX;
        comparison.experiment.delta = -7.0;
        comparison.experiment.plan.pairs = usize::MAX;
        comparison.experiment.plan.took_s = 1e300;
        for (i, effect) in comparison.effects.iter_mut().enumerate() {
            effect.variant = [0, 1, 2, 3, 999][i % 5];
            effect.change = [-1.0, -3.0, 1e308, -1e308][i % 4];
            effect.interval = [Some([1e308, -1e308]), Some([-1.0, 0.0]), None][i % 3];
            effect.pairs_needed = Some(usize::MAX);
        }
        for (i, run) in comparison
            .experiment
            .runs
            .as_mut_slice()
            .iter_mut()
            .enumerate()
        {
            run.variant = [0, 1, 999][i % 3];
            run.run.metrics.wall_ns = [0, u64::MAX, 1][i % 3];
            run.pair = usize::MAX;
        }
        comparison.gates = sample::gates();
        comparison.gates[0].variant = 999;
        draw(&comparison);
        comparison.experiment.variants.clear();
        draw(&comparison);
        comparison.experiment.command.clear();
        comparison.experiment.runs = Samples::default();
        draw(&comparison);
    }

    #[test]
    fn no_service_is_too_strange_to_be_drawn() {
        let mut comparison = sample::service();
        let most = refit_run::MemorySample {
            at_ms: u64::MAX,
            processes: u64::MAX,
            unreadable: 1,
            parent_pss_bytes: u64::MAX,
            children_pss_bytes: u64::MAX,
            rss_bytes: u64::MAX,
            vsz_bytes: u64::MAX,
            swap_pss_bytes: u64::MAX,
            cost_us: u64::MAX,
        };
        for (i, run) in comparison
            .experiment
            .runs
            .as_mut_slice()
            .iter_mut()
            .enumerate()
        {
            let load = run.load.as_mut().unwrap();
            load.operations = [0, u64::MAX, 1][i % 3];
            load.window_ns = [u64::MAX, 0][i % 2];
            load.values = [("p99".to_owned(), [1e308, -1e308, 0.0][i % 3])].into();
            let service = load.service.as_mut().unwrap();
            service.memory_used_bytes = [Some(i64::MIN), None, Some(i64::MAX)][i % 3];
            (service.user_ns, service.system_ns) = (u64::MAX, u64::MAX);
            service.memory = vec![most.clone(), refit_run::MemorySample::default()];
            if i % 5 == 0 {
                service.memory.clear();
                service.calls.clear();
            }
            service.end = most.clone();
            for calls in service.calls.values_mut().flat_map(|of| of.values_mut()) {
                calls.waited_ns = u64::MAX;
            }
        }
        draw(&comparison);
        for main in ["p99", "pss", "no such metric", "sync-wait"] {
            comparison.experiment.main = main.to_owned();
            draw(&comparison);
        }
        for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
            run.load = None;
        }
        draw(&comparison);
    }
}
