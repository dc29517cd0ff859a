//! What the terminal shows while a comparison runs: the plan, what runs now, live
//! estimates (never a verdict), and the time that is left.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, Progress};
use refit_report::{at_most, estimates};
use refit_run::printable;

use super::output::Output;
use super::print;

/// On a terminal a bar on stderr; elsewhere only the plan.
pub struct Bar<'a> {
    bar: ProgressBar,
    estimates: String,
    quiet: bool,
    output: &'a Output,
    /// The measurement is over, and `--prove` cuts the power.
    cuts: Arc<AtomicBool>,
}

impl Bar<'_> {
    /// `quiet`: nothing at all.
    pub fn new(quiet: bool, output: &Output) -> Bar<'_> {
        let target = if quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        Bar {
            bar: ProgressBar::with_draw_target(Some(1), target),
            estimates: String::new(),
            quiet,
            output,
            cuts: Arc::default(),
        }
    }

    /// From here on an interruption ends power cuts, not rounds.
    pub fn power_cuts_begin(&self) {
        self.cuts.store(true, Ordering::Relaxed);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// What an interruption does, in words, as soon as it comes.
    pub fn notice(&self) -> impl Fn(usize) + Send + Sync + 'static {
        let (bar, quiet, cuts) = (self.bar.clone(), self.quiet, self.cuts.clone());
        move |interruptions| {
            let text = match (interruptions, cuts.load(Ordering::Relaxed)) {
                (1, false) => {
                    "interrupted: this round pair is finished first; once more ends it at once"
                }
                (2, false) => "interrupted again: it ends now",
                (1, true) => "interrupted: the power cuts end now; what was measured is printed",
                _ => return,
            };
            if !quiet {
                bar.suspend(|| print::say(text));
            }
        }
    }

    /// A message of refit's, unless it is to be quiet.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            // Above the bar, where there is one.
            self.bar.suspend(|| {
                print::say(text);
            });
        }
    }
}

impl Progress for Bar<'_> {
    fn begins(&mut self, experiment: &Experiment) {
        let names: Vec<&str> = experiment
            .variants
            .iter()
            .filter(|v| v.role != Role::Hidden)
            .map(|v| v.name.as_str())
            .collect();
        self.say(&format!(
            "comparing {} and a hidden second baseline; at most {}",
            names.join(", "),
            at_most(Duration::from_secs_f64(experiment.plan.budget_s))
        ));
    }

    fn planned(&mut self, experiment: &Experiment, longest: Duration) {
        let looks: Vec<String> = experiment
            .plan
            .looks
            .iter()
            .map(ToString::to_string)
            .collect();
        self.say(&format!(
            "plan: looks after {} round {}; at most {}",
            looks.join(", "),
            if looks == ["1"] { "pair" } else { "pairs" },
            at_most(longest)
        ));
        let pairs = experiment.plan.looks.last().copied().unwrap_or(1);
        self.bar
            .set_length((pairs * 2 * experiment.variants.len()) as u64);
        let style = ProgressStyle::with_template(
            "{bar:24} {human_pos}/{human_len} runs, {eta} left  {wide_msg}",
        );
        if let Ok(style) = style {
            self.bar.set_style(style);
        }
        self.bar.set_position(0);
    }

    fn runs(&mut self, experiment: &Experiment, variant: usize) {
        let name = &experiment.variants[variant].name;
        // The hidden baseline is not shown.
        let name = match experiment.variants[variant].role {
            Role::Hidden => "baseline".to_owned(),
            _ => printable(name),
        };
        self.bar.set_message(format!("{name}   {}", self.estimates));
        if experiment.plan.looks.is_empty() {
            self.bar.tick();
        } else {
            self.bar.inc(1);
        }
    }

    fn pair_done(&mut self, experiment: &Comparison) {
        self.estimates = estimates(experiment);
        // If it still fails at the end, that is reported then.
        let _ = self.output.store(experiment);
    }
}
