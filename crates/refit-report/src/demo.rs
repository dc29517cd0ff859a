//! What `refit demo` prints.

use std::path::Path;

use refit_crash::CrashReport;

use crate::crash::row::rows;
use crate::crash::sentence::sentence;
use crate::fold::fold;
use crate::format;
use crate::page::Page;
use crate::paint::Style;
use crate::table::{Column, lines};
use crate::terminal::beneath;
use crate::values::middle;
use crate::{Compared, Proof};

/// Of a paragraph.
const WIDTH: usize = 110;

/// The comparison of a mail queue, with what it is of and what to type next. Each run
/// had `messages` of the `most` that a faster disk allows in `budget_s`.
#[must_use]
pub fn mail_queue(
    compared: &Compared,
    style: &Style,
    [messages, most]: [u32; 2],
    budget_s: f64,
) -> String {
    let risk = match &compared.proof {
        Some(Proof::Cut(report)) => risk(report),
        Some(Proof::NotCut(why)) => not_cut(why),
        None => String::new(),
    };
    let mut text = format!(
        "A small mail queue: {messages} messages, each written, synced, renamed, and its directory synced.\n\n\
         {}\n\
         {risk}\n\
         Next:  refit demo fsync                       what a log line costs on this disk\n       \
         refit run -- YOUR COMMAND              what your program waits for; nothing is changed\n       \
         refit compare sync=off -- YOUR COMMAND whether those waits matter\n\n\
         The demo itself takes --budget and --dir; other options above are those of refit compare.\n",
        beneath(&compared.sentence(), &compared.comparison, style)
    );
    if messages < most {
        text += &format!(
            "\nnote: a run has {messages} messages instead of {most}, so that enough runs fit into {}; for more: --budget\n",
            format::about(budget_s)
        );
    }
    text
}

/// What power cuts took of the queue.
fn risk(report: &CrashReport) -> String {
    let took = sentence(report, &rows(report));
    paragraph(&format!(
        "What sync=off risks, by power cuts of a simulated disk (yours is not touched): {took}."
    ))
}

/// What is known without a power cut, and why none was made.
fn not_cut(why: &str) -> String {
    paragraph(&format!(
        "What sync=off risks: after a power cut, messages that were acknowledged are lost or torn. \
         No power was cut here to show it: {why}."
    ))
}

fn paragraph(text: &str) -> String {
    let mut page = Page::default();
    for line in fold(text, WIDTH) {
        page.line(0, line.trim_start());
    }
    page.text()
}

/// A way to write log lines.
#[derive(Clone, Debug)]
pub struct LogMode {
    /// Its name.
    pub name: &'static str,
    /// Whether a line outlives the program.
    pub outlives_program: bool,
    /// Whether it outlives a power cut.
    pub outlives_cut: bool,
    /// Nanoseconds for each line, one number for each slice of the time.
    pub ns_per_line: Vec<f64>,
}

/// What a line costs in a directory.
#[must_use]
pub fn log_lines(directory: &Path, modes: &[LogMode]) -> String {
    let median = |mode: &LogMode| middle(mode.ns_per_line.clone()).unwrap_or(0.0);
    let range = |mode: &LogMode| {
        let ends = [f64::min, f64::max].map(|end: fn(f64, f64) -> f64| {
            mode.ns_per_line.iter().copied().reduce(end).unwrap_or(0.0)
        });
        format!(
            "{} to {}",
            format::duration(ends[0]),
            format::duration(ends[1])
        )
    };
    let word = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let each = modes.iter();
    let columns = [
        Column::words("per line", each.clone().map(|mode| mode.name.to_owned())),
        Column::numbers(
            "median",
            each.clone().map(|mode| format::duration(median(mode))),
        ),
        Column::words("range", each.clone().map(range)),
        Column::numbers(
            "lines/s",
            each.clone().map(|mode| format::count(1e9 / median(mode))),
        ),
        Column::words(
            "outlives the program",
            each.clone().map(|mode| word(mode.outlives_program)),
        ),
        Column::words(
            "outlives a power cut",
            each.map(|mode| word(mode.outlives_cut)),
        ),
    ];
    let mut page = Page::default();
    page.line(
        0,
        format!(
            "One log line after another, for ten seconds in all, on {}.",
            directory.display()
        ),
    );
    page.line(0, "");
    for line in lines(&columns.each_ref(), false) {
        page.line(0, line);
    }
    page.line(0, "");
    page.lines(
        0,
        "none: lines wait in the program's buffer. fflush: each line reaches the kernel. fsync alone does not\n\
         write what is still in the buffer: it costs the same and makes nothing durable. both: each line is on the\n\
         disk, if the disk does what it is told.",
    );
    page.text()
}

/// Below either, where no disk was measured.
#[must_use]
pub fn in_memory(directory: &Path) -> String {
    let mut page = Page::default();
    page.line(0, "");
    page.line(
        0,
        format!(
            "note: {} is in memory, where a sync has nothing to do; name a directory on a disk: --dir",
            directory.display()
        ),
    );
    page.text()
}
