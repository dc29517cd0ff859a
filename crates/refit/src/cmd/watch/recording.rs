//! The series while it is recorded, and the files and words that come of it.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use refit_report::watch;
use refit_run::series::{Member, SERIES_SCHEMA, Series, Target, Watcher};

use super::publisher::Publisher;
use crate::cli::WatchArgs;
use crate::cmd::bounded::bounded;
use crate::cmd::print;
use crate::cmd::result_file::{ResultFile, refuse_stdout, replace, to_stdout};

/// Lines between two headings.
const HEADING_EVERY: usize = 40;

/// The share of one core that watching may take.
pub const SHARE: f64 = 0.01;
/// How often the kernel's records are read.
pub const TICK: Duration = Duration::from_millis(50);

/// A watch that goes on.
pub struct Recording<'a> {
    args: &'a WatchArgs,
    watcher: Watcher,
    of_machine: bool,
    pub series: Series,
    printed: usize,
    /// One of its files is standard output: nothing else goes there then.
    pub to_stdout: bool,
    publisher: Option<Publisher>,
}

impl<'a> Recording<'a> {
    /// Looks first whether every file can be written that was asked for, and listens.
    pub fn begin(args: &'a WatchArgs, target: Target) -> Result<Recording<'a>> {
        // Rewritten with each sample, so that a stream would have all of them.
        refuse_stdout([("--openmetrics", &args.openmetrics)])?;
        let to_stdout = to_stdout(args.files())?;
        let files = args.files().map(|(_, path)| path);
        for path in files.into_iter().chain([&args.openmetrics]).flatten() {
            ResultFile::create(path)?;
        }
        let publisher = Publisher::begin(args)?;
        let of_machine = matches!(target, Target::Machine);
        let watcher = Watcher::begin(target, args.interval, SHARE).context("cannot read /proc")?;
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let words = args.what.iter().chain(&args.command);
        let series = Series {
            schema: SERIES_SCHEMA,
            kind: "watch".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix: started.map_or(0, |since| since.as_secs()),
            target: words
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            interval_ms: u64::try_from(args.interval.as_millis()).unwrap_or(u64::MAX),
            witness: watcher.witness(),
            groups: Vec::new(),
            samples: Vec::new(),
            cost: watcher.cost(),
            largest_process_bytes: None,
            huge_pages: Vec::new(),
            heap_coverage: None,
        };
        Ok(Recording {
            args,
            watcher,
            of_machine,
            series,
            printed: 0,
            to_stdout,
            publisher,
        })
    }

    /// Watches the tree of this process.
    pub fn set_root(&mut self, pid: u32) {
        self.watcher.set_root(pid);
    }

    pub fn is_due(&self) -> bool {
        self.watcher.due(Instant::now())
    }

    /// Whether there is, or can be again, something to watch.
    pub fn has_processes(&self) -> bool {
        self.of_machine || self.watcher.has_processes()
    }

    pub fn tick(&mut self) {
        self.watcher.tick();
        if let Some(publisher) = &mut self.publisher {
            publisher.tick();
        }
    }

    pub fn sample(&mut self) {
        let sample = self.watcher.sample();
        self.watcher.groups().clone_into(&mut self.series.groups);
        self.series.cost = self.watcher.cost();
        if let Some(publisher) = &mut self.publisher {
            publisher.add(&self.series, &sample);
        }
        self.series.add(sample);
        if let Some(publisher) = &mut self.publisher {
            publisher.publish(&self.series);
        }
    }

    /// The processes of a group.
    pub fn members(&self, group: usize) -> Vec<Member> {
        self.watcher.members(group)
    }

    /// The lines of the last sample, below a heading now and then.
    pub fn lines(&mut self) -> String {
        let lines = watch::lines(&self.series);
        let before = self.printed;
        self.printed += lines.lines().count();
        let is_due = before / HEADING_EVERY != self.printed / HEADING_EVERY;
        match before == 0 || is_due {
            true => watch::heading() + &lines,
            false => lines,
        }
    }

    /// Writes what was asked for, and tells what came of it.
    pub fn finish(mut self) -> Result<()> {
        // The look at the end keeps within the budget of a machine. Of what was named it is whole, once,
        // however long that takes: it does not count as watching.
        let watching = self.watcher.cost();
        self.series.huge_pages = self.watcher.huge_pages();
        self.series.cost = match self.of_machine {
            true => self.watcher.cost(),
            false => watching,
        };
        // Its thread has to be gone, and its port free, before something is forked.
        let published = self.publisher.map_or(Ok(()), Publisher::finish);
        self.watcher.close_in_background();
        let written = published.and(write(self.args, &self.series));
        let shown = bounded(&self.series);
        print::drawn(&watch::summary(&shown));
        let recipes: Vec<&str> = refit_recipe::shipped_names().collect();
        print::drawn(&match self.args.command.is_empty() {
            true => watch::advice(&shown, &recipes),
            // All that is watched is the command: its words are the target.
            false => watch::advice_of_command(&shown, &shown.target),
        });
        written
    }
}

/// Each file, whatever became of the others.
fn write(args: &WatchArgs, series: &Series) -> Result<()> {
    let shown = bounded(series);
    let json = || Ok::<_, anyhow::Error>(serde_json::to_string(series)? + "\n");
    let texts = [
        (&args.json, args.json.as_ref().map(|_| json()).transpose()?),
        (&args.html, args.html.as_ref().map(|_| watch::html(&shown))),
        (&args.svg, args.svg.as_ref().map(|_| watch::svg(&shown))),
    ];
    let mut written = Ok(());
    for (path, text) in texts {
        if let (Some(path), Some(text)) = (path, text) {
            written = written.and(replace(path, text.as_bytes()));
        }
    }
    written
}
