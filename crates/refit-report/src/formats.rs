//! The formats in which results are drawn into files: one table. A new one is a file of this folder and a line here.

mod benchmark;
mod csv;
pub mod junit;

use std::path::PathBuf;

use refit_crash::CrashReport;
use refit_lab::{Comparison, Pool, Scan, Tuning};
use refit_run::RunReport;
use refit_run::series::Series;

use crate::{Compared, Kept, crash, history_html, pool, run_html, scan, tuning_html, watch};

/// Draws comparisons, each with its file, and which changes were kept.
pub type DrawHistory = fn(&[(PathBuf, Comparison)], &Kept) -> String;

/// A format, and how it draws each kind of result; `None`: that kind has no such format.
pub struct ResultFormat {
    /// The option that asks for it.
    pub option: &'static str,
    /// What is written, for `--help`.
    pub about: &'static str,
    /// It holds effects, which exact answers do not have.
    pub of_effects: bool,
    /// It tells too why nothing was measured.
    pub of_failures: bool,
    /// Draws a comparison.
    pub comparison: fn(&Compared) -> String,
    /// Draws a crash report.
    pub crash: Option<fn(&CrashReport) -> String>,
    /// Draws a watch.
    pub series: Option<fn(&Series) -> String>,
    /// Draws one run.
    pub run: Option<fn(&RunReport) -> String>,
    /// Draws a tuning, whose log is in this directory.
    pub tuning: Option<fn(&Tuning, &str) -> String>,
    /// Draws a pool.
    pub pool: Option<fn(&Pool) -> String>,
    /// Draws a scan.
    pub scan: Option<fn(&Scan) -> String>,
    /// Draws the comparisons of a directory.
    pub history: Option<DrawHistory>,
}

/// A format of comparisons alone.
const fn of_comparisons(
    option: &'static str,
    about: &'static str,
    comparison: fn(&Compared) -> String,
) -> ResultFormat {
    ResultFormat {
        option,
        about,
        of_effects: false,
        of_failures: false,
        comparison,
        crash: None,
        series: None,
        run: None,
        tuning: None,
        pool: None,
        scan: None,
        history: None,
    }
}

/// The format of a summary, which is appended to what others wrote.
pub const MARKDOWN: ResultFormat = ResultFormat {
    crash: Some(crash::markdown),
    pool: Some(pool::markdown),
    scan: Some(scan::markdown),
    ..of_comparisons("--md", "Write the table as Markdown", Compared::markdown)
};

/// Every format but JSON, which holds the whole result.
pub const FORMATS: &[ResultFormat] = &[
    of_comparisons("--csv", "Write one line for each run, as CSV", |of| {
        csv::csv(&of.comparison)
    }),
    MARKDOWN,
    ResultFormat {
        crash: Some(crash::html),
        series: Some(watch::html),
        run: Some(run_html),
        tuning: Some(tuning_html),
        pool: Some(pool::html),
        scan: Some(scan::html),
        history: Some(history_html),
        ..of_comparisons(
            "--html",
            "Write one self-contained HTML page",
            Compared::html,
        )
    },
    ResultFormat {
        series: Some(watch::svg),
        pool: Some(pool::svg),
        scan: Some(scan::svg),
        ..of_comparisons(
            "--svg",
            "Draw every run as SVG, its order against its ratio; with --prove gain against loss; of a pool the effect on \
             each machine; with --scan the effect at each value",
            Compared::svg,
        )
    },
    ResultFormat {
        of_failures: true,
        ..of_comparisons(
            "--junit",
            "Write JUnit XML: one test case for each gate and candidate",
            junit::junit,
        )
    },
    ResultFormat {
        of_effects: true,
        ..of_comparisons(
            "--github-benchmark",
            "Write the numbers for github-action-benchmark: its tool customSmallerIsBetter, or customBiggerIsBetter where \
             the main metric is a rate",
            |of| benchmark::github_benchmark(&of.comparison),
        )
    },
    ResultFormat {
        of_effects: true,
        ..of_comparisons(
            "--bencher",
            "Write the numbers for Bencher, in its metric format (adapter json)",
            |of| benchmark::bencher(&of.comparison),
        )
    },
];
