//! The files of a result: those that were asked for, and those that are read again.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use refit_crash::CrashReport;
use refit_lab::{Comparison, Pool, Scan, ScanPoint, Tuning};
use refit_report::{Compared, FORMATS, Kept, MARKDOWN, ResultFormat};
use refit_run::series::{SERIES_SCHEMA, Series};
use refit_run::{RunReport, printable};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::bounded::bounded;
use super::named_file;
use super::result_file::{ResultFile, is_stdout, replace, to_stdout};
use super::step_summary::StepSummary;
use crate::cli::OutputArgs;

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
        let to_stdout = to_stdout(args.files.iter())?;
        for path in args.files.paths() {
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
        match &self.args.files.json {
            Some(path) if !is_stdout(path) => write_json(path, comparison),
            _ => Ok(()),
        }
    }

    /// Every file that was asked for, and the summary.
    pub fn write(&self, compared: &Compared) -> Result<()> {
        let shown: &Compared = &bounded(compared);
        self.draw("comparison", Some(compared), |format| {
            let draw = format.comparison;
            Some(move || draw(shown))
        })
    }

    /// Writes a result that is not yet whole: files are written again later, and a stream or a summary is not.
    pub fn write_early(&self, compared: &Compared) -> Result<()> {
        let early = Output {
            args: OutputArgs {
                files: self.args.files.without(is_stdout),
                github_summary: false,
            },
            to_stdout: false,
            summary: None,
        };
        early.write(compared)
    }

    /// Of a comparison that an error ended before anything was measured: what a CI system shows,
    /// which would otherwise show nothing of it.
    pub fn write_unmade(&self, compared: &Compared) -> Result<()> {
        let mut written = Ok(());
        for (format, path) in &self.args.files.drawn {
            if let Some(path) = path.as_ref().filter(|_| format.of_failures) {
                written = written.and(replace(path, (format.comparison)(compared).as_bytes()));
            }
        }
        written.and(self.summarize(|| compared.markdown()))
    }

    /// Writes a crash report.
    pub fn write_crash(&self, report: &CrashReport) -> Result<()> {
        self.draw("crash report", NO_JSON, |format| {
            format.crash.map(|draw| move || draw(report))
        })
    }

    /// Writes a watch.
    pub fn write_series(&self, series: &Series) -> Result<()> {
        self.draw("watch", NO_JSON, |format| {
            format.series.map(|draw| move || draw(series))
        })
    }

    /// Writes one run.
    pub fn write_run(&self, report: &RunReport) -> Result<()> {
        self.draw("run", NO_JSON, |format| {
            format.run.map(|draw| move || draw(report))
        })
    }

    /// Writes a tuning, whose log is in the directory `log`.
    pub fn write_tuning(&self, tuning: &Tuning, log: &str) -> Result<()> {
        self.draw("tuning", NO_JSON, |format| {
            format.tuning.map(|draw| move || draw(tuning, log))
        })
    }

    /// Writes the comparisons of a directory.
    pub fn write_history(&self, all: &[(PathBuf, Comparison)], kept: &Kept) -> Result<()> {
        self.draw("history", NO_JSON, |format| {
            format.history.map(|draw| move || draw(all, kept))
        })
    }

    /// Writes a pool.
    pub fn write_pool(&self, pool: &Pool) -> Result<()> {
        let shown: &Pool = &bounded(pool);
        self.draw("pool", Some(pool), |format| {
            format.pool.map(|draw| move || draw(shown))
        })
    }

    /// Writes the comparisons of a scan.
    pub fn write_scan(&self, scan: &Scan) -> Result<()> {
        let shown: &Scan = &bounded(scan);
        self.draw("scan", Some(scan), |format| {
            format.scan.map(|draw| move || draw(shown))
        })
    }

    /// Whatever was asked for. `draw` draws `what` in a format, if it has that; `json`: it is stored as a whole too.
    fn draw<D: FnOnce() -> String>(
        &self,
        what: &str,
        json: Option<&impl Serialize>,
        draw: impl Fn(&'static ResultFormat) -> Option<D>,
    ) -> Result<()> {
        let args = &self.args;
        let drawn = FORMATS.iter().filter(|format| draw(format).is_some());
        let summary = draw(&MARKDOWN).map(|_| "--github-summary");
        let known: Vec<&str> = drawn.map(|format| format.option).chain(summary).collect();
        let stored = json.map(|_| "--json");
        if let Some(option) = args.other_than(&[&known[..], stored.as_slice()].concat()) {
            let (last, others) = known.split_last().unwrap_or((&"", &[]));
            let list = match others {
                [] => (*last).to_owned(),
                others => format!("{} or {last}", others.join(", ")),
            };
            bail!("{option}: a {what} is drawn as {list}");
        }
        let mut written = match (&args.files.json, json) {
            (Some(path), Some(result)) => write_json(path, result),
            _ => Ok(()),
        };
        for (format, path) in &args.files.drawn {
            if let (Some(path), Some(draw)) = (path, draw(format)) {
                // One that cannot be written takes no other with it.
                written = written.and(replace(path, draw().as_bytes()));
            }
        }
        match draw(&MARKDOWN) {
            Some(draw) => written.and(self.summarize(draw)),
            None => written,
        }
    }

    /// Once, when nothing more comes: the summary of a step is not written anew.
    fn summarize(&self, markdown: impl FnOnce() -> String) -> Result<()> {
        match &self.summary {
            Some(summary) => summary.append(&markdown()),
            None => Ok(()),
        }
    }
}

/// Of results that are stored by the command that makes them alone.
const NO_JSON: Option<&()> = None;

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
    /// `refit compare --scan`
    Scan(Box<Scan>),
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
    let text = named_file::read(path, named_file::MOST_OF_RESULT)?;
    parse(&text, path.display())
}

/// Reads a result from its text; `shown` names its place in messages.
pub fn parse(text: &str, shown: impl Display) -> Result<Stored> {
    let head = match serde_json::from_str::<Head>(text) {
        Ok(head) => head,
        Err(error) if error.is_data() => Head {
            schema: None,
            kind: None,
        },
        Err(error) => bail!("{shown} is not a result of refit: it is not JSON ({error})"),
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
        Some("scan") => refit_lab::SCAN_SCHEMA,
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
        Some("scan") => {
            let mut scan: Box<Scan> = parsed(text).with_context(damaged)?;
            let points = std::mem::take(&mut scan.points).into_iter();
            scan.points = points
                .map(|point| ScanPoint {
                    comparison: point.comparison.restored(),
                    ..point
                })
                .collect();
            Stored::Scan(scan)
        }
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
    use refit_report::pool;

    use super::*;

    /// What `refit report`, `refit pool` and `refit plan --from` read.
    #[test]
    fn stored_results() {
        let kinds = ["crash", "watch", "tune", "pool", "compare", "scan", "run"];
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
