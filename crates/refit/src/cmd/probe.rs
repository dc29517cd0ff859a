//! `refit doctor --probe-disk`: what a flush costs here, in figures and as the setting that emulates it.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use refit_knobs::Setting;
use refit_lab::{DiskProfile, probe};
use refit_report::doctor::Page;
use refit_report::{count, duration};

use super::output::{check, print_text, replace};

/// The percentiles of a `disk=` setting, by name and quantile.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Exits with 0, with 1 where a flush waits for no disk, and with 2 without samples.
pub fn main(directory: &Path, json: Option<&Path>) -> ExitCode {
    match sample(directory, json) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "refit: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether it is a disk.
fn sample(directory: &Path, json: Option<&Path>) -> Result<bool> {
    if let Some(path) = json {
        check(path)?;
    }
    if directory.is_dir() {
        let _ = writeln!(
            io::stderr(),
            "refit: appending lines to a new file in {} and flushing each, for 3 to 10 s",
            directory.display()
        );
    }
    let profile = probe(directory)?;
    let mut page = figures(&profile);
    if let Some(path) = json {
        let mut text = serde_json::to_string(&profile)?;
        text.push('\n');
        replace(path, text.as_bytes())?;
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot find {}", path.display()))?;
        page.row("profile", format!("disk={}", path.display()));
    }
    print_text(&page.0)?;
    Ok(profile.is_disk())
}

fn figures(profile: &DiskProfile) -> Page {
    let mut page = Page::default();
    let samples = profile.samples_ns.len();
    page.heading(&format!(
        "{}: {} flushes in {}",
        profile.directory,
        count(samples as f64),
        duration(profile.took_ns as f64)
    ));
    page.row("operation", &profile.operation);
    let unknown = || "unknown".to_owned();
    page.row(
        "filesystem",
        profile.filesystem.clone().unwrap_or_else(unknown),
    );
    page.row("device", profile.device.clone().unwrap_or_else(unknown));
    for (name, quantile) in PERCENTILES {
        page.row(
            name,
            match profile.percentile(quantile) {
                Ok(percentile) => format!(
                    "{:<9} 95 % interval [{}, {}]",
                    duration(percentile.value),
                    duration(percentile.low),
                    duration(percentile.high)
                ),
                Err(too_few) => too_few.to_string(),
            },
        );
    }
    page.row("max", duration(profile.max_ns() as f64));
    page.row("stalls", stalls(profile));
    page.row(
        "note",
        "these figures include delays by other processes that used the disk or the processors",
    );
    if profile.is_disk() {
        page.row("setting", setting(profile));
    } else {
        page.row("no disk", no_disk(profile));
    }
    page
}

fn stalls(profile: &DiskProfile) -> String {
    let stalls = profile.stalls();
    match stalls.count {
        0 => "none: no flush took 10 times the median".to_owned(),
        count => format!(
            "{count} took 10 times the median or longer, at most {} in a row: {:.1} % of all waiting",
            stalls.in_a_row,
            stalls.share * 100.0
        ),
    }
}

fn no_disk(profile: &DiskProfile) -> String {
    if profile.in_memory {
        "this file system is in memory: there is nothing to wait for, and nothing to emulate"
            .to_owned()
    } else {
        "a flush returns faster than any device can answer: it does not wait for one (a file system in memory, \
         barriers switched off, or a cache that answers for the disk)"
            .to_owned()
    }
}

/// The setting to type, with three significant digits.
fn setting(profile: &DiskProfile) -> String {
    let percentiles: Vec<String> = PERCENTILES
        .iter()
        .filter_map(|(name, quantile)| {
            let percentile = profile.percentile(*quantile).ok()?;
            Some(format!("{name}={}ns", three_digits(percentile.value)))
        })
        .collect();
    let word = format!("disk={}", percentiles.join(","));
    // Parsed and printed again: in the units that people write.
    word.parse::<Setting>()
        .map_or(word, |setting| setting.to_string())
}

fn three_digits(ns: f64) -> u64 {
    let unit = 10_f64.powf((ns.log10().floor() - 2.0).max(0.0));
    ((ns / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_keeps_three_digits() {
        for (ns, rounded) in [
            (7.0, 7),
            (999.0, 999),
            (1_234_567.0, 1_230_000),
            (59_999_000_000.0, 60_000_000_000),
        ] {
            assert_eq!(three_digits(ns), rounded);
        }
    }
}
