//! Who waits, and where.

use refit_run::{Calls, ExecutableReport, RunReport};

use crate::calls::{ALL, by_call, sum};
use crate::format::{duration, file_name};

/// Executables in the list.
const MOST_EXECUTABLES: usize = 8;
/// Directories named beside an executable.
const DIRECTORIES: usize = 3;

/// A line for each executable that made sync calls, where there are several; and
/// where one waited.
pub fn lines(report: &RunReport, field: fn(&Calls) -> u64, lines: &mut Vec<String>) {
    let busy: Vec<&ExecutableReport> = report
        .run
        .executables
        .iter()
        .filter(|e| sum(&e.calls, |c| c.seen) > 0)
        .collect();
    if let [only] = busy[..] {
        let places = places(only);
        if !places.is_empty() {
            lines.push(format!("  waited in {places}"));
        }
        return;
    }
    for executable in busy.iter().take(MOST_EXECUTABLES) {
        let count = by_call(&executable.calls, field, ALL);
        let count = if count.is_empty() {
            "0".to_owned()
        } else {
            count
        };
        lines.push(format!(
            "  {}: {count}{}",
            file_name(&executable.executable),
            waited(executable)
        ));
    }
    if busy.len() > MOST_EXECUTABLES {
        lines.push(format!(
            "  and {} more executables (--json names all)",
            busy.len() - MOST_EXECUTABLES
        ));
    }
}

fn waited(executable: &ExecutableReport) -> String {
    let waited = sum(&executable.calls, |calls| calls.waited_ns);
    if waited == 0 {
        return String::new();
    }
    let places = places(executable);
    let inside = if places.is_empty() { "" } else { ": " };
    format!(", waited {}{inside}{places}", duration(waited as f64))
}

/// `/var/spool/incoming/ 1.80 s, /etc/ 2 ms`: each that is at least a hundredth.
fn places(executable: &ExecutableReport) -> String {
    let waited = sum(&executable.calls, |calls| calls.waited_ns);
    let worth = |ns: u64| ns > 0 && ns >= waited / 100;
    let worthy = executable
        .directories
        .iter()
        .filter(|directory| worth(directory.waited_ns));
    let mut places: Vec<String> = worthy
        .clone()
        .take(DIRECTORIES)
        .map(|directory| {
            let path = directory.path.trim_end_matches('/');
            format!("{path}/ {}", duration(directory.waited_ns as f64))
        })
        .collect();
    let more = worthy.count().saturating_sub(DIRECTORIES);
    if more > 0 {
        places.push(format!("{more} more"));
    }
    places.join(", ")
}
