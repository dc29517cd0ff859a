//! What `refit watch` shows of a [`Series`].

mod advice;
mod columns;
mod html;
mod parts;
mod screen;
mod summary;
mod svg;

use refit_run::series::{Series, Witnessing};

use crate::format;
use parts::Parts;

pub use advice::advice;
pub use columns::{heading, lines};
pub use html::html;
pub use screen::{Detail, Input, Mappings, Screen, View};
pub use summary::summary;
pub use svg::svg;

#[cfg(test)]
mod sample;

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
