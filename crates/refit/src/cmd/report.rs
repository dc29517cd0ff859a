//! `refit report`: draws stored comparisons, crash reports and watches again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use refit_lab::Comparison;
use refit_lab::experiment::Role;
use refit_report::{Kept, crash, history, pool, run_summary, scan, tuning, watch};

use super::bounded::bounded;
use super::named_file;
use super::output::{self, Output, Stored};
use super::print;
use super::result_file::replace;
use crate::cli::ReportArgs;

pub fn main(args: &ReportArgs) -> ExitCode {
    let result = if let Some(dir) = &args.history {
        log(dir, args)
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
            Stored::Comparison(compared) if args.output.any() => output.write(&compared)?,
            Stored::Comparison(compared) => {
                print::result(&bounded(&*compared).terminal(&print::style()))?;
            }
            Stored::Crash(report) if args.output.any() => output.write_crash(&bounded(&*report))?,
            Stored::Crash(report) => {
                print::result(&crash::terminal(&bounded(&*report), &print::style()))?;
            }
            Stored::Series(series) if args.output.any() => {
                output.write_series(&bounded(&*series))?
            }
            Stored::Series(series) => print::result(&watch::terminal(&bounded(&*series)))?,
            Stored::Pool(pool) if args.output.any() => output.write_pool(&pool)?,
            Stored::Pool(pool) => {
                print::result(&pool::terminal(&bounded(&*pool), &print::style()))?
            }
            Stored::Scan(scan) if args.output.any() => output.write_scan(&scan)?,
            Stored::Scan(scan) => {
                print::result(&scan::terminal(&bounded(&*scan), &print::style()))?;
            }
            Stored::Tuning(record) if args.output.any() => {
                output.write_tuning(&bounded(&*record), &directory(path))?;
            }
            Stored::Tuning(record) => {
                print::result(&tuning(
                    &bounded(&*record),
                    &directory(path),
                    &print::style(),
                ))?;
            }
            Stored::Run(report) if args.output.any() => output.write_run(&bounded(&*report))?,
            Stored::Run(report) => print::result(&run_summary(&bounded(&*report), print::width()))?,
        }
    }
    Ok(())
}

fn directory(file: &Path) -> String {
    file.parent().unwrap_or(Path::new("")).display().to_string()
}

/// Every comparison in a directory; other files are passed over.
fn log(dir: &Path, args: &ReportArgs) -> Result<()> {
    let output = Output::open(&args.output)?;
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
            all.push((path, bounded(&compared.comparison).into_owned()));
        }
    }
    if all.is_empty() {
        bail!(
            "no comparison in {}\n  store one there: refit compare --json {0}/NAME.json …",
            dir.display()
        );
    }
    all.sort_by_key(|(_, experiment)| experiment.experiment.started_unix);
    let kept = decided(dir, &all, args)?;
    match args.output.any() {
        true => output.write_history(&all, &kept),
        false => print::result(&history(&all, &kept)),
    }
}

/// Where it is stored which changes were kept.
const KEPT: &str = "kept";

/// What is stored, with what was typed.
fn decided(dir: &Path, all: &[(PathBuf, Comparison)], args: &ReportArgs) -> Result<Kept> {
    let file = dir.join(KEPT);
    let text = match file.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        _ => named_file::read(&file, named_file::MOST_OF_RESULT)?,
    };
    let mut kept = Kept::parse(&text);
    let before = kept.clone();
    for (words, is_kept) in [(&args.keep, true), (&args.drop, false)] {
        for pair in words.chunks_exact(2) {
            let (path, comparison) = named(dir, all, &pair[0])?;
            expect_candidate(path, comparison, &pair[1])?;
            kept.decide(path, &pair[1], is_kept);
        }
    }
    if kept != before {
        replace(&file, kept.text().as_bytes())?;
    }
    Ok(kept)
}

fn named<'a>(
    dir: &Path,
    all: &'a [(PathBuf, Comparison)],
    name: &str,
) -> Result<&'a (PathBuf, Comparison)> {
    let is_named = |(path, _): &&(PathBuf, Comparison)| {
        path.file_name() == Path::new(name).file_name() && path.file_name().is_some()
    };
    all.iter().find(is_named).with_context(|| {
        let names = all.iter().filter_map(|(path, _)| path.file_name());
        let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
        format!(
            "there is no comparison `{name}` in {}\n  name one of: {}",
            dir.display(),
            names.join(", ")
        )
    })
}

fn expect_candidate(path: &Path, comparison: &Comparison, variant: &str) -> Result<()> {
    let variants = comparison.experiment.variants.iter();
    let candidates = variants.filter(|one| one.role == Role::Candidate);
    let names: Vec<&str> = candidates.map(|one| one.name.as_str()).collect();
    if !names.contains(&variant) {
        bail!(
            "{} has no variant `{variant}`\n  name one of: {}",
            path.display(),
            names.join(", ")
        );
    }
    Ok(())
}
