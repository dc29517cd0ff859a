//! `refit pool`: comparisons of several machines as one.

mod kubernetes;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use refit_lab::{PoolInput, pool};
use refit_report::pool::terminal;

pub use self::kubernetes::CONTAINER;
use super::bounded::bounded;
use super::output::{self, Output, Stored};
use super::print;
use crate::cli::{OutputArgs, PoolArgs, PoolFrom, typed_options};

pub fn main(args: &PoolArgs) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn run(args: &PoolArgs) -> Result<()> {
    let files = OutputArgs {
        files: args.output.0.clone(),
        github_summary: false,
    };
    let output = Output::open(&files)?;
    let mut pool = pool(match args.from {
        None => of_files(&args.results)?,
        Some(PoolFrom::Kubernetes) => kubernetes::read(args)?,
    })?;
    let mut words = typed_options::<PoolArgs>(std::env::args_os().skip(2), &[])?;
    words.extend(args.results.iter().map(|path| path.display().to_string()));
    pool.words = Some(words);
    output.write_pool(&pool)?;
    if output.is_streamed() {
        return Ok(());
    }
    print::result(&terminal(&bounded(&pool), &print::style()))
}

fn of_files(results: &[PathBuf]) -> Result<Vec<PoolInput>> {
    let found = found(results)?;
    let inputs = read_all(&found)?;
    let left = found.len() - inputs.len();
    if left > 0 {
        print::say(format_args!(
            "{left} of {} files hold no comparison, and were left out",
            found.len()
        ));
    }
    Ok(inputs)
}

/// A file to be read.
struct Found {
    path: PathBuf,
    /// It was named, and not only found in a directory: it has to be a comparison.
    is_named: bool,
}

fn found(results: &[PathBuf]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for path in results {
        if path.is_dir() {
            let before = found.len();
            in_directory(path, &mut found)?;
            if found.len() == before {
                bail!(
                    "no result in {}\n  store one there: refit compare --json {0}/NAME.json …",
                    path.display()
                );
            }
        } else {
            found.push(Found {
                path: path.clone(),
                is_named: true,
            });
        }
    }
    Ok(found)
}

/// Files of this name ending, by name.
fn in_directory(dir: &Path, found: &mut Vec<Found>) -> Result<()> {
    let failed = || format!("cannot read {}", dir.display());
    let entries = fs::read_dir(dir).with_context(failed)?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(failed)?.path();
        // A pipe would be waited for.
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
            && path.is_file()
        {
            paths.push(path);
        }
    }
    paths.sort();
    found.extend(paths.into_iter().map(|path| Found {
        path,
        is_named: false,
    }));
    Ok(())
}

/// By all processors; of each result only what a pool needs is kept.
fn read_all(found: &[Found]) -> Result<Vec<PoolInput>> {
    let next = AtomicUsize::new(0);
    let readers = thread::available_parallelism().map_or(1, NonZero::get);
    let read_some = || -> Vec<(usize, Result<Option<PoolInput>>)> {
        let mut inputs = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = found.get(at) else {
                return inputs;
            };
            inputs.push((at, read(one)));
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..readers).map(|_| scope.spawn(read_some)).collect();
        let mut all = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(inputs) => all.extend(inputs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // In the order in which they were named.
        all.sort_by_key(|(at, _)| *at);
        all.into_iter()
            .filter_map(|(_, input)| input.transpose())
            .collect()
    })
}

/// `None` for what lies in a directory and is no comparison.
fn read(one: &Found) -> Result<Option<PoolInput>> {
    match output::read(&one.path) {
        Ok(Stored::Comparison(compared)) => {
            let file = one.path.display().to_string();
            Ok(Some(PoolInput::new(file, &compared.comparison)))
        }
        Ok(_) if one.is_named => bail!(
            "{} is not a comparison, and only comparisons can be pooled\n  make one: refit compare --json FILE …",
            one.path.display()
        ),
        Err(error) if one.is_named || !output::is_foreign(&error) => Err(error),
        _ => Ok(None),
    }
}
