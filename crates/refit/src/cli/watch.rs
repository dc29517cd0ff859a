//! `refit watch`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::duration;

const SAMPLING: &str = "Sampling";
const OUTPUT: &str = "Output";

/// Watch what already runs: who waits for the disk, where memory is, how it grows
///
///   refit watch            every service of this machine
///   refit watch PID…       the trees of these processes
///
/// Nothing is stopped, traced or written to. A line for each service and
/// interval; at the end, what grew and what watching took. As root durable calls
/// are counted and timed by the kernel's own tracepoints; other users see the
/// memory of their own processes.
///
/// Exit codes: 0; 2 when there is nothing to watch.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct WatchArgs {
    /// Processes, by number
    #[arg(value_name = "PID")]
    pub what: Vec<OsString>,

    /// Print lines, also on a terminal
    #[arg(long, help_heading = OUTPUT)]
    pub batch: bool,

    /// End after TIME, as in 10s or 5m; without it Ctrl-C ends it
    #[arg(long = "for", value_name = "TIME", value_parser = duration, help_heading = SAMPLING)]
    pub time: Option<Duration>,

    /// The time between two samples
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s", help_heading = SAMPLING)]
    pub interval: Duration,
}

/// The shortest interval: what is read in less is mostly the reading.
const SHORTEST: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < SHORTEST {
        return Err("the shortest interval is 100ms".to_owned());
    }
    Ok(interval)
}
