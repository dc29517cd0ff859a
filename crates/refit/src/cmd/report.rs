//! `refit report`: draws stored comparisons, crash reports and watches again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use refit_report::{crash, history, pool, tuning, watch};

use super::output::{self, Output, Stored};
use super::print;
use crate::cli::ReportArgs;

pub fn main(args: &ReportArgs) -> ExitCode {
    let result = if let Some(dir) = &args.history {
        log(dir)
    } else {
        redraw(args)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn redraw(args: &ReportArgs) -> Result<()> {
    if args.files.is_empty() {
        bail!(
            "no result to draw\n  name one: refit report FILE.json, or refit report --history DIR"
        );
    }
    let output = Output::open(&args.output)?;
    if let (true, Some(option)) = (args.files.len() > 1, args.output.other_than(&[])) {
        bail!(
            "one file can be drawn into one picture or table; name one result, or leave out {option}"
        );
    }
    for path in &args.files {
        match output::read(path)? {
            Stored::Comparison(compared) if args.output.any() => {
                output.write(&compared)?;
                output.summarize(|| compared.markdown())?;
            }
            Stored::Comparison(compared) => {
                print::result(&compared.terminal(&print::style()))?;
            }
            Stored::Crash(report) if args.output.any() => output.write_crash(&report)?,
            Stored::Crash(report) => {
                print::result(&crash::terminal(&report, &print::style()))?;
            }
            Stored::Series(series) if args.output.any() => output.write_series(&series)?,
            Stored::Series(series) => print::result(&watch::terminal(&series))?,
            Stored::Pool(pool) if args.output.any() => output.write_pool(&pool)?,
            Stored::Pool(pool) => print::result(&pool::terminal(&pool, &print::style()))?,
            Stored::Tuning(_) if args.output.any() => bail!(
                "{}: a tuning has no page or picture\n  draw one of the comparisons beside it, of the files that it names",
                path.display()
            ),
            Stored::Tuning(record) => {
                let log = path.parent().unwrap_or(Path::new("")).display().to_string();
                print::result(&tuning(&record, &log, &print::style()))?;
            }
        }
    }
    Ok(())
}

/// Every comparison in a directory; other files are passed over.
fn log(dir: &PathBuf) -> Result<()> {
    let entries =
        std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot read {}", dir.display()))?
            .path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
            // A pipe would be waited for.
            && path.is_file()
            && let Ok(Stored::Comparison(compared)) = output::read(&path)
        {
            all.push((path, compared.comparison));
        }
    }
    if all.is_empty() {
        bail!(
            "no comparison in {}\n  store one there: refit compare --json {0}/NAME.json …",
            dir.display()
        );
    }
    all.sort_by_key(|(_, experiment)| experiment.experiment.started_unix);
    print::result(&history(&all))
}
