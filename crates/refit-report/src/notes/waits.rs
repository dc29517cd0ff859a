//! Who waits for the disk, and where, without any swap.

use std::collections::BTreeMap;

use refit_lab::experiment::{Experiment, RunRecord};
use refit_run::{Calls, ExecutableReport};

use super::note::{Note, note};
use crate::calls::{by_call, sum};
use crate::format;
use crate::paint::Tone;
use crate::values::{middle, waits};

/// Executables named, and directories of each.
const MOST: usize = 3;
/// A directory with less of the waiting than this says nothing.
const MOST_OF_IT: f64 = 0.5;
/// A smaller part of all waiting is not named.
const SMALLEST: f64 = 0.05;

/// Of the baseline: `cleanup 1.90 s (fsync 3,000), 98 % of it in …/incoming/`.
pub fn waiting(experiment: &Experiment) -> Option<Note> {
    let runs: Vec<&RunRecord> = experiment.runs.counted(0).collect();
    let mut executables: BTreeMap<&str, Vec<(f64, String)>> = BTreeMap::new();
    for run in &runs {
        for (name, calls) in waits(run) {
            executables.entry(name).or_default().push(summed(calls));
        }
    }
    let mut waiting: Vec<(f64, &str, String)> = executables
        .into_iter()
        .filter_map(|(name, runs)| {
            let waited = middle(runs.iter().map(|(waited, _)| *waited).collect())?;
            let (_, kinds) = runs.into_iter().next()?;
            Some((waited, name, kinds))
        })
        .collect();
    waiting.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: f64 = waiting.iter().map(|(waited, ..)| waited).sum();
    let parts: Vec<String> = waiting
        .iter()
        .filter(|(waited, ..)| *waited > all * SMALLEST)
        .take(MOST)
        .map(|(waited, name, kinds)| {
            let place = place(&runs, name).map_or(String::new(), |place| format!(", {place}"));
            let name = format::file_name(name);
            format!("{name} {} ({kinds}){place}", format::duration(*waited))
        })
        .collect();
    (!parts.is_empty()).then(|| note("baseline waits:", Tone::Plain, parts.join("; ")))
}

/// Nanoseconds waited by one executable in one run, and its two most frequent calls.
fn summed(calls: &BTreeMap<String, Calls>) -> (f64, String) {
    let waited = sum(calls, |calls| calls.waited_ns);
    (waited as f64, by_call(calls, |calls| calls.seen, 2))
}

/// Where most of it was: `98 % of it in …/queue/incoming/`. Each run of a service has directories of its own, so
/// only their ends are compared.
fn place(runs: &[&RunRecord], executable: &str) -> Option<String> {
    let reports = runs.iter().flat_map(|run| &run.run.executables);
    let reports: Vec<&ExecutableReport> = reports
        .filter(|report| report.executable == executable)
        .collect();
    let mut places: BTreeMap<String, f64> = BTreeMap::new();
    let mut all = 0.0;
    for report in reports {
        for directory in &report.directories {
            *places.entry(end(&directory.path)).or_default() += directory.waited_ns as f64;
        }
        let waited = report.calls.values().map(|calls| calls.waited_ns as f64);
        all += waited.sum::<f64>();
    }
    let (place, waited) = places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // Where each run has a copy of its own, no one name holds most of it.
    (waited > all * MOST_OF_IT).then(|| {
        format!(
            "{:.0} % of it in {}",
            (100.0 * waited / all).min(100.0),
            place
        )
    })
}

/// The last two names of a directory.
fn end(path: &str) -> String {
    let mut names = path.trim_end_matches('/').rsplitn(3, '/');
    let last = names.next().unwrap_or_default();
    match (names.next(), names.next()) {
        (Some(before), Some(rest)) if !rest.is_empty() => format!("…/{before}/{last}/"),
        _ => format!("{}/", path.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use refit_run::DirectoryReport;

    #[test]
    fn it_names_who_waits_and_where() {
        let mut comparison = sample::experiment();
        for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
            let directory = |path: &str, waited_ns| DirectoryReport {
                path: path.to_owned(),
                count: 1,
                waited_ns,
            };
            run.run.executables = vec![ExecutableReport {
                executable: "/usr/bin/import".to_owned(),
                processes: 1,
                calls: run.run.totals.clone(),
                malloc_object: None,
                deepbind: false,
                directories: vec![
                    directory("/srv/data/db", 200_000_000),
                    directory("/etc", 1_000_000),
                ],
            }];
        }
        assert_eq!(
            waiting(&comparison.experiment).map(|note| note.text),
            Some("import 244 ms (fsync 812), 82 % of it in …/data/db/".to_owned())
        );
    }

    #[test]
    fn only_the_end_of_a_long_path_is_shown() {
        for (path, shown) in [
            ("/", "/"),
            ("/etc", "/etc/"),
            ("/var/spool", "/var/spool/"),
            ("/var/spool/x", "…/spool/x/"),
        ] {
            assert_eq!(end(path), shown, "{path}");
        }
    }
}
