//! `refit watch`.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

const SAMPLING: &str = "Sampling";
const OUTPUT: &str = "Output";
const METRICS: &str = "Metrics";

/// Watch what already runs: who waits for the disk, where memory is, how it grows
///
///   refit watch               every service of this machine
///   refit watch PID…          the trees of these processes
///   refit watch UNIT          a running unit of systemd
///   refit watch RECIPE        what a comparison or check of this recipe runs now
///   refit watch -- COMMAND    a command, until it ends; lines go to stderr
///
/// Nothing is stopped, traced or written to. On a terminal a live view, with its
/// keys below it; elsewhere a line for each service and interval. At the end,
/// what waited, what grew and what watching itself cost. As root durable calls are
/// counted and timed by the kernel's own tracepoints; other users see the memory
/// of their own processes.
///
/// Exit codes: 0; 2 when there is nothing to watch, a file cannot be written or a
/// port is taken; of a command its own, as with run.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit watch [OPTIONS] [PID]... | UNIT | RECIPE\n       refit watch [OPTIONS] -- COMMAND [ARG]..."
)]
pub struct WatchArgs {
    /// Processes, by number, or the name of a unit or of a recipe
    #[arg(value_name = "PID|UNIT|RECIPE", conflicts_with = "command")]
    pub what: Vec<OsString>,

    /// Print lines, also on a terminal, in place of the live view
    #[arg(long, help_heading = OUTPUT)]
    pub batch: bool,

    /// Write all samples (docs/series.schema.json); `-` is stdout, as for each
    /// FILE here
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// Draw memory by part over time, with the sync waits beneath it, as SVG
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub svg: Option<PathBuf>,

    /// Keep what the last sample found, and what was counted since the beginning, in FILE, for
    /// node_exporter's textfile collector (docs/metrics.md): rewritten with each sample
    #[arg(long, value_name = "FILE", help_heading = METRICS)]
    pub openmetrics: Option<PathBuf>,

    /// Answer GET /metrics at this address with the same, for a scraper
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, help_heading = METRICS)]
    pub listen: Option<SocketAddr>,

    /// End after TIME, as in 10s or 5m; without it Ctrl-C ends it
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = duration,
        conflicts_with = "command",
        help_heading = SAMPLING
    )]
    pub time: Option<Duration>,

    /// For a command: count what malloc gives out, and how it grows. Without `--purge`, which
    /// is an option of `refit run` (docs/memory.md)
    #[arg(long, requires = "command", conflicts_with = "what", help_heading = SAMPLING)]
    pub heap: bool,

    /// The time between two samples
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s", help_heading = SAMPLING)]
    pub interval: Duration,

    /// Tell which part of the memory of one process and its children grows with
    /// the work: a shell command that prints how many operations were done so
    /// far; its first number counts
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with_all = ["command", "json", "html", "svg", "openmetrics", "listen"],
        help_heading = "Growth"
    )]
    pub per: Option<String>,

    /// Sample where processes or a unit are on the processors, each millisecond: functions
    /// with file and line (docs/time.md). Of a command: refit run --cpu
    #[arg(
        long,
        conflicts_with_all = ["command", "per", "json", "html", "svg", "openmetrics", "listen", "batch"],
        help_heading = "Processors"
    )]
    pub cpu: bool,

    /// Write these samples to FILE: a flame graph if it ends with .svg, for speedscope if
    /// it ends with .json, else folded text
    #[arg(
        long,
        value_name = "FILE",
        requires = "cpu",
        help_heading = "Processors"
    )]
    pub cpu_stacks: Option<PathBuf>,

    /// A command to start, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl WatchArgs {
    /// Whether what is measured goes somewhere else than to stdout.
    pub fn is_kept(&self) -> bool {
        let is_file = |path: &PathBuf| path.as_os_str() != "-";
        let mut files = self.files().into_iter().map(|(_, path)| path);
        files.any(|path| path.as_ref().is_some_and(is_file))
            || self.openmetrics.is_some()
            || self.listen.is_some()
    }

    /// What is written when the watch ends, with the options.
    pub fn files(&self) -> [(&'static str, &Option<PathBuf>); 3] {
        [
            ("--json", &self.json),
            ("--html", &self.html),
            ("--svg", &self.svg),
        ]
    }
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

/// A number alone, or after the name of a machine, is probably the port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.parse().ok());
        let likely = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
        format!("write an IP address and a port, as in --listen {likely}")
    })
}
