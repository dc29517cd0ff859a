//! The answer in a sentence: what cuts took of the program, and of each variant.

use refit_crash::CrashReport;
use refit_crash::mode::{Harm, Role};
use refit_run::printable;

use super::row::{Row, age, plural_images, takes_everything};
use crate::format::{self, grouped};
use crate::sentence::MOST;

/// In which manner cuts took data, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// No loss was found.
    Nothing,
    /// Only the newest is lost.
    Newest,
    /// Something older is lost, and something newer is there; or something is back.
    Holes,
    /// The loss reaches back to the first acknowledgement.
    Everything,
    /// Something is there in part, or the whole is unusable.
    Damaged,
}

impl Manner {
    /// `None`: without an image, or an acknowledgement, nobody can see a loss.
    pub fn of(row: &Row) -> Option<Manner> {
        let harms = &row.tally.harms;
        let has = |harm: Harm| harms.contains_key(&harm);
        Some(match () {
            () if row.tally.images == 0 => return None,
            () if has(Harm::Damaged) || has(Harm::Unmountable) => Manner::Damaged,
            () if takes_everything(row.mode) => Manner::Everything,
            () if has(Harm::Hole) || has(Harm::Resurrected) => Manner::Holes,
            () if has(Harm::Lost) => Manner::Newest,
            () if row.tally.worst.1 == 0 => return None,
            () => Manner::Nothing,
        })
    }
}

/// What was lost of the program itself, then of each variant, those first that lost more
/// than they may.
pub fn sentence(report: &CrashReport, rows: &[Row]) -> String {
    printable(&answer(report, rows))
}

fn answer(report: &CrashReport, rows: &[Row]) -> String {
    if report.invalid.is_some() {
        return "INVALID RUN: nothing can be concluded of a loss".to_owned();
    }
    let own = rows.iter().filter(|row| row.mode.role == Role::Baseline);
    let mut parts: Vec<String> = own
        .map(|row| format!("the program itself {}", takes(row)))
        .collect();
    let mut candidates: Vec<&Row> = (rows.iter())
        .filter(|row| row.mode.role == Role::Candidate)
        .collect();
    candidates.sort_by_key(|row| !report.breaks_class(row.mode));
    let told = candidates.iter().take(MOST);
    parts.extend(told.map(|row| {
        let breaks = report.breaks_class(row.mode);
        format!("`{}` {}{}", row.name, takes(row), judged(row, breaks))
    }));
    if candidates.len() > MOST {
        parts.push(format!("{} more in the table", candidates.len() - MOST));
    }
    if parts.is_empty() {
        return "nothing was cut".to_owned();
    }
    parts.join("; ")
}

/// `lost at most 0.4 s (80 items) in 200 images, newest only`; `lost up to 80 items in 200 images, some older than
/// survivors: no bound`. What was not in effect says so first.
pub fn takes(row: &Row) -> String {
    match row.mode.is_idle() {
        true => format!("was not in effect, and {}", taken(row)),
        false => taken(row),
    }
}

fn taken(row: &Row) -> String {
    let tally = &row.tally;
    let Some(manner) = Manner::of(row) else {
        return match tally.images {
            0 => "was not cut".to_owned(),
            _ => "acknowledged nothing that a cut could take".to_owned(),
        };
    };
    let images = plural_images(tally.images);
    let lost = format!(
        "lost at most {} ({}) in {images}",
        tally.oldest_ns.map_or("nothing".to_owned(), age),
        format::plural(tally.worst.0, "item")
    );
    match manner {
        Manner::Nothing => format!("lost nothing in {images}"),
        Manner::Newest => format!("{lost}, newest only"),
        Manner::Holes if tally.worst.0 == 0 => format!("brought removed items back in {images}"),
        // The age of what was lost bounds nothing where newer items are there.
        Manner::Holes => format!(
            "lost up to {} in {images}, some older than survivors: no bound",
            format::plural(tally.worst.0, "item")
        ),
        Manner::Everything => "lost everything".to_owned(),
        Manner::Damaged => format!("left damage in {} of {images}", grouped(tally.bad_images)),
    }
}

/// How a loss compares with what the recipe claims, or with what the class allows.
pub fn judged(row: &Row, breaks_class: bool) -> String {
    let mode = row.mode;
    match (&mode.bound, Manner::of(row)) {
        (_, None) => String::new(),
        (Some(bound), _) if breaks_class => {
            let most = bound.oldest_ns.unwrap_or(u64::MAX);
            let beyond = row.tally.oldest_ns.filter(|oldest| *oldest > most);
            let by = beyond.map_or(String::new(), |oldest| {
                format!(" by {}", age(oldest - most))
            });
            format!(", BREAKING its bound ({}){by}", bound.text)
        }
        (Some(bound), Some(Manner::Everything)) => {
            format!(", which its bound ({}) allows", bound.text)
        }
        (Some(bound), _) => format!(", within its bound ({})", bound.text),
        (None, _) if breaks_class => format!(", which its class ({}) forbids", mode.class),
        (None, _) => String::new(),
    }
}
