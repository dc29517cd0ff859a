//! What `refit watch` shows of a [`Series`].

mod advice;
mod columns;
mod html;
mod parts;
mod screen;
mod summary;
mod svg;

use refit_run::printable;
use refit_run::series::{Series, Witnessing};

use crate::format;
use parts::Parts;

pub use advice::{advice, advice_of_command};
pub use columns::{heading, lines};
pub use html::html;
pub use screen::{Detail, Input, Mappings, Screen, View};
pub use summary::summary;
pub use svg::svg;

#[cfg(test)]
pub mod sample;

/// A stored series: its last sample, and what came of it.
#[must_use]
pub fn terminal(series: &Series) -> String {
    let title = printable(&title(series));
    let mut text = format!("{title}\n\n{}{}\n", heading(), lines(series));
    for fact in summary::facts(series) {
        text += &format!("{}\n", printable(&fact));
    }
    text
}

/// What was watched.
fn subject(series: &Series) -> String {
    match (&series.target[..], &series.groups[..]) {
        ([], _) => "all services".to_owned(),
        ([number], [only]) if number.parse::<u32>().is_ok() => format!("{} ({number})", only.name),
        (words, _) => format::command_line(words),
    }
}

fn title(series: &Series) -> String {
    format!("refit watch: {}", subject(series))
}

/// What the waits' picture shows, or why there is none.
fn waits_title(series: &Series, parts: &Parts) -> String {
    match &series.witness {
        Witnessing::Unavailable(reason) => format!("Sync waits are unknown: {reason}"),
        Witnessing::Filesystems(_) if parts.waits.is_empty() => {
            "Nothing waited for a sync call".to_owned()
        }
        Witnessing::Filesystems(_) => {
            "Share of the time in which a thread waited for a sync call".to_owned()
        }
    }
}
