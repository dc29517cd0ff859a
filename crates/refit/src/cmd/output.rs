//! The files of a result: those that were asked for, and those that are read again.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use refit_crash::CrashReport;
use refit_lab::{Comparison, Pool, Tuning};
use refit_report::{
    Compared, Kept, bencher, crash, csv, github_benchmark, history_html, junit, pool, run_html,
    tuning_html, watch,
};
use refit_run::series::{SERIES_SCHEMA, Series};
use refit_run::{RunReport, printable};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::bounded::bounded;
use super::result_file::{ResultFile, is_stdout, replace, to_stdout};
use super::step_summary::StepSummary;
use crate::cli::{OutputArgs, PoolOutput};

/// The files of a result.
pub struct Output {
    args: OutputArgs,
    to_stdout: bool,
    summary: Option<StepSummary>,
}

impl Output {
    /// Looks before anything runs whether every file can be made where it was
    /// asked for.
    pub fn open(args: &OutputArgs) -> Result<Output> {
        let to_stdout = to_stdout(args.files())?;
        for path in args
            .files()
            .into_iter()
            .filter_map(|(_, path)| path.as_ref())
        {
            ResultFile::create(path)?;
        }
        Ok(Output {
            args: args.clone(),
            to_stdout,
            summary: args.github_summary.then(StepSummary::open).transpose()?,
        })
    }

    /// Whether a file is standard output: nothing else goes there then.
    pub fn is_streamed(&self) -> bool {
        self.to_stdout
    }

    /// The JSON alone, after each round pair: what was measured is never lost.
    pub fn store(&self, comparison: &impl Serialize) -> Result<()> {
        match &self.args.json {
            Some(path) if !is_stdout(path) => write_json(path, comparison),
            _ => Ok(()),
        }
    }

    /// Every file that was asked for.
    pub fn write(&self, compared: &Compared) -> Result<()> {
        self.write_to(compared, |_| true)
    }

    /// The same of a result that is not yet whole: files are written again, and a stream is not.
    pub fn write_early(&self, compared: &Compared) -> Result<()> {
        self.write_to(compared, |path| !is_stdout(path))
    }

    fn write_to(&self, compared: &Compared, is_wanted: fn(&Path) -> bool) -> Result<()> {
        type Draw = fn(&Compared) -> String;
        let args = &self.args;
        let formats: [(_, Draw); 7] = [
            (&args.csv, |compared| csv(&compared.comparison)),
            (&args.md, Compared::markdown),
            (&args.html, Compared::html),
            (&args.svg, Compared::svg),
            (&args.junit, junit),
            (&args.github_benchmark, |compared| {
                github_benchmark(&compared.comparison)
            }),
            (&args.bencher, |compared| bencher(&compared.comparison)),
        ];
        let json = args.json.as_ref().filter(|path| is_wanted(path));
        let mut written = json.map_or(Ok(()), |path| write_json(path, compared));
        let shown = bounded(compared);
        for (path, draw) in formats {
            if let Some(path) = path.as_ref().filter(|path| is_wanted(path)) {
                // One that cannot be written takes no other with it.
                written = written.and(replace(path, draw(&shown).as_bytes()));
            }
        }
        written
    }

    /// Once, when nothing more comes: the summary of a step is not written anew.
    pub fn summarize(&self, markdown: impl FnOnce() -> String) -> Result<()> {
        match &self.summary {
            Some(summary) => summary.append(&markdown()),
            None => Ok(()),
        }
    }

    /// Of a comparison that an error ended before anything was measured: what a CI system shows,
    /// which would otherwise show nothing of it.
    pub fn write_unmade(&self, compared: &Compared) -> Result<()> {
        let written = match &self.args.junit {
            Some(path) => replace(path, junit(compared).as_bytes()),
            None => Ok(()),
        };
        written.and(self.summarize(|| compared.markdown()))
    }
}

impl Output {
    /// The same of a crash report, which has fewer forms.
    pub fn write_crash(&self, report: &CrashReport) -> Result<()> {
        let args = &self.args;
        if let Some(option) = args.other_than(&["--md", "--html", "--github-summary"]) {
            bail!("{option}: a crash report is drawn as --md, --html or --github-summary");
        }
        if let Some(path) = &args.md {
            replace(path, crash::markdown(report).as_bytes())?;
        }
        if let Some(path) = &args.html {
            replace(path, crash::html(report).as_bytes())?;
        }
        self.summarize(|| crash::markdown(report))
    }

    /// The same of a series, which has its page and its chart.
    pub fn write_series(&self, series: &Series) -> Result<()> {
        let args = &self.args;
        if let Some(option) = args.other_than(&["--html", "--svg"]) {
            bail!("{option}: a watch is drawn as --html or --svg");
        }
        let page = args.html.as_ref().map(|path| (path, watch::html(series)));
        let chart = args.svg.as_ref().map(|path| (path, watch::svg(series)));
        let mut written = Ok(());
        for (path, text) in [page, chart].into_iter().flatten() {
            written = written.and(replace(path, text.as_bytes()));
        }
        written
    }

    /// The same of one run, which has a page.
    pub fn write_run(&self, report: &RunReport) -> Result<()> {
        self.write_page("run", || run_html(report))
    }

    /// The same of a tuning, which has a page; `log`: its directory.
    pub fn write_tuning(&self, tuning: &Tuning, log: &str) -> Result<()> {
        self.write_page("tuning", || tuning_html(tuning, log))
    }

    /// The page of a history.
    pub fn write_history(&self, all: &[(PathBuf, Comparison)], kept: &Kept) -> Result<()> {
        self.write_page("history", || history_html(all, kept))
    }

    fn write_page(&self, what: &str, draw: impl FnOnce() -> String) -> Result<()> {
        if let Some(option) = self.args.other_than(&["--html"]) {
            bail!("{option}: a {what} is drawn as --html");
        }
        match &self.args.html {
            Some(path) => replace(path, draw().as_bytes()),
            None => Ok(()),
        }
    }

    /// The same of a pool.
    pub fn write_pool(&self, pool: &Pool) -> Result<()> {
        let args = &self.args;
        let known = ["--json", "--md", "--html", "--svg", "--github-summary"];
        if let Some(option) = args.other_than(&known) {
            bail!("{option}: a pool is drawn as --md, --html, --svg or --github-summary");
        }
        let files = PoolOutput {
            json: args.json.clone(),
            md: args.md.clone(),
            html: args.html.clone(),
            svg: args.svg.clone(),
        };
        write_pool(pool, &files).and(self.summarize(|| pool::markdown(pool)))
    }
}

fn write_json(path: &Path, result: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(result)?;
    text.push('\n');
    replace(path, text.as_bytes())
}

/// What a stored result is of.
pub enum Stored {
    /// `refit run`
    Run(Box<RunReport>),
    /// `refit compare`
    Comparison(Box<Compared>),
    /// `refit crash`
    Crash(Box<CrashReport>),
    /// `refit watch`
    Series(Box<Series>),
    /// `refit tune`
    Tuning(Box<Tuning>),
    /// `refit pool`
    Pool(Box<Pool>),
}

/// Every file of a pool that was asked for.
pub fn write_pool(pool: &Pool, args: &PoolOutput) -> Result<()> {
    type Draw = fn(&Pool) -> String;
    let formats: [(_, Draw); 3] = [
        (&args.md, pool::markdown),
        (&args.html, pool::html),
        (&args.svg, pool::svg),
    ];
    let mut written = Ok(());
    if let Some(path) = &args.json {
        written = write_json(path, pool);
    }
    let shown = bounded(pool);
    for (path, draw) in formats {
        if let Some(path) = path {
            written = written.and(replace(path, draw(&shown).as_bytes()));
        }
    }
    written
}

/// The file is not one that refit wrote, or holds something else than was looked for.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Foreign(String);

/// Whether a file failed to be read because it is not a result of refit.
pub fn is_foreign(error: &anyhow::Error) -> bool {
    error.is::<Foreign>()
}

/// What every stored result begins with.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    schema: Option<u64>,
    #[serde(default)]
    kind: Option<String>,
}

/// Reads what refit stored.
pub fn read(path: &Path) -> Result<Stored> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, path.display())
}

/// The same of a text from a place that is shown so.
pub fn parse(text: &str, shown: impl Display) -> Result<Stored> {
    let head = match serde_json::from_str::<Head>(text) {
        Ok(head) => head,
        Err(error) if error.is_data() => Head {
            schema: None,
            kind: None,
        },
        Err(error) => return Err(error).with_context(|| format!("{shown} is not JSON")),
    };
    let Some(schema) = head.schema else {
        bail!(Foreign(format!(
            "{shown} is not a result of refit: it has no `schema`"
        )));
    };
    let known = match head.kind.as_deref() {
        Some("compare") => refit_lab::experiment::SCHEMA,
        Some("crash") => refit_crash::report::SCHEMA,
        Some("run") => refit_run::SCHEMA,
        Some("watch") => SERIES_SCHEMA,
        Some("tune") => refit_lab::TUNING_SCHEMA,
        Some("pool") => refit_lab::POOL_SCHEMA,
        other => bail!(Foreign(format!(
            "{shown} holds a `{}`, not a result\n  make one: refit compare --json FILE …, refit crash --json FILE … or refit watch --json FILE …",
            printable(other.unwrap_or("?"))
        ))),
    };
    if schema != u64::from(known) {
        bail!(
            "{shown} has schema {schema}, and this refit knows {known}\n  use the refit that wrote it (its field `refit` is the version)"
        );
    }
    let damaged = || format!("{shown} is damaged");
    let stored = match head.kind.as_deref() {
        Some("run") => Stored::Run(parsed(text).with_context(damaged)?),
        Some("crash") => Stored::Crash(parsed(text).with_context(damaged)?),
        Some("watch") => {
            let series: Box<Series> = parsed(text).with_context(damaged)?;
            if !series.is_whole() {
                bail!("{}: a sample is of a group that it lacks", damaged());
            }
            Stored::Series(series)
        }
        Some("tune") => Stored::Tuning(parsed(text).with_context(damaged)?),
        Some("pool") => Stored::Pool(parsed(text).with_context(damaged)?),
        _ => {
            let Compared { comparison, proof } = parsed(text).with_context(damaged)?;
            let comparison = comparison.restored();
            Stored::Comparison(Box::new(Compared { comparison, proof }))
        }
    };
    Ok(stored)
}

/// An error may repeat a part of the text.
fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| anyhow!(printable(&error.to_string())))
}

#[cfg(test)]
mod fuzz {
    use refit_lab::PoolInput;

    use super::*;

    /// What `refit report`, `refit pool` and `refit plan --from` read.
    #[test]
    fn stored_results() {
        let kinds = ["crash", "watch", "tune", "pool", "compare", "run"];
        let heads = kinds.map(|kind| format!("{{\"schema\":1,\"kind\":\"{kind}\"}}"));
        refit_fuzz::Target::new(env!("CARGO_MANIFEST_DIR"), "stored_results")
            .seeds([include_str!("../../fuzz/comparison.json")])
            .seeds(heads)
            .words(kinds.map(|kind| format!("\"{kind}\"")))
            .words([
                "\"schema\":1",
                "null",
                "1e308",
                "18446744073709551615",
                "\\u001b[2J",
                "{}",
                "[]",
            ])
            .longest(32 << 10)
            .memory(16 << 20, 1 << 10)
            .mutations(20)
            .run(|input| {
                let Ok(text) = str::from_utf8(input) else {
                    return;
                };
                match parse(text, "a.json") {
                    Ok(Stored::Comparison(compared)) => pooled(&compared),
                    Ok(_) => {}
                    Err(error) => {
                        let message = format!("{error:#}");
                        assert!(message.contains("a.json"), "names the file: {message}");
                        assert!(!message.contains('\u{1b}'), "{message:?}");
                    }
                }
            });
    }

    /// Pooled with one like it, of another start.
    fn pooled(compared: &Compared) {
        let comparison = &compared.comparison;
        let mut other = comparison.clone();
        other.experiment.started_unix = other.experiment.started_unix.wrapping_add(1);
        other.experiment.seed = other.experiment.seed.wrapping_add(1);
        let input = |name: &str, of| PoolInput::new(name.to_owned(), of);
        if let Ok(pool) = refit_lab::pool(vec![input("a", comparison), input("b", &other)]) {
            let text = pool::markdown(&pool);
            assert!(!text.contains("NaN"), "{text}");
            let _ = (pool::html(&pool), pool::svg(&pool));
            let json = serde_json::to_string(&pool).unwrap();
            assert!(
                serde_json::from_str::<Pool>(&json).is_ok(),
                "it is stored and read"
            );
        }
        let _ = comparison.winner();
    }
}
