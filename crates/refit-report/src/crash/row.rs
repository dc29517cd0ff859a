//! What is shown of one mode, the same in every format.

use refit_crash::CrashReport;
use refit_crash::mode::{Harm, Mode, Role};
use refit_crash::tally::Tally;

use crate::format::{self, grouped};
use crate::paint::Tone;
use crate::table::{Column, Table};

/// A mode in words.
pub struct Row<'a> {
    /// The mode.
    pub mode: &'a Mode,
    /// Its states, counted.
    pub tally: Tally,
    /// As it is printed.
    pub name: String,
    /// `3 of 812`.
    pub worst: String,
    /// The age of the oldest loss.
    pub oldest: String,
    /// What its cuts say, in a few words.
    pub verdict: String,
    /// How that is.
    pub tone: Tone,
    /// `12 of 212`: lossy images among the different ones.
    pub images: String,
    /// In which manner it loses.
    pub how: String,
    /// How often it was cut.
    pub cuts: String,
    /// Acknowledgements in the whole run.
    pub acknowledged: String,
    /// What a candidate may do.
    pub class: String,
}

impl Row<'_> {
    /// What its class says.
    fn risk(&self) -> Tone {
        match self.mode.role {
            Role::Candidate if self.mode.may_lose => Tone::Unsure,
            _ => Tone::Plain,
        }
    }
}

/// All modes in their order.
pub fn rows(report: &CrashReport) -> Vec<Row<'_>> {
    report.modes.iter().map(|mode| row(report, mode)).collect()
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> Table<'static> {
    let cells = |of: for<'b> fn(&'b Row) -> &'b str| rows.iter().map(move |row| of(row).to_owned());
    let verdicts = rows.iter().map(|row| (row.verdict.clone(), row.tone));
    let mut classes = Column::words("class", cells(|row| &row.class));
    for ((_, tone), row) in classes.cells.iter_mut().zip(rows) {
        *tone = row.risk();
    }
    Table {
        name: Column::code("variant", cells(|row| &row.name)),
        numbers: vec![
            Column::numbers("worst loss", cells(|row| &row.worst)),
            Column::numbers("oldest", cells(|row| &row.oldest)),
        ],
        bars: None,
        verdict: Column::verdicts("verdict", verdicts),
        extras: vec![
            Column::numbers("lossy images", cells(|row| &row.images)),
            Column::words("how", cells(|row| &row.how)),
            Column::numbers("cuts", cells(|row| &row.cuts)),
            Column::numbers("acked", cells(|row| &row.acknowledged)),
            classes,
        ],
    }
}

fn row<'a>(report: &CrashReport, mode: &'a Mode) -> Row<'a> {
    let tally = mode.tally();
    let (verdict, tone) = verdict(report, mode, &tally);
    let is_candidate = mode.role == Role::Candidate;
    let (lost, of) = tally.worst;
    Row {
        mode,
        name: mode.name.clone(),
        worst: match lost {
            0 => "0".to_owned(),
            _ => format!("{} of {}", grouped(lost), grouped(of)),
        },
        oldest: tally.oldest_ns.map_or("–".to_owned(), age),
        verdict,
        tone,
        images: format!("{} of {}", grouped(tally.bad_images), grouped(tally.images)),
        how: how(mode, &tally),
        cuts: grouped(tally.cuts),
        acknowledged: grouped(mode.record.acknowledged_ns.len()),
        class: if is_candidate {
            mode.class.clone()
        } else {
            String::new()
        },
        tally,
    }
}

/// How long before the cut.
pub fn age(ns: u64) -> String {
    format::duration(ns as f64)
}

fn verdict(report: &CrashReport, mode: &Mode, tally: &Tally) -> (String, Tone) {
    let found = tally.bad_images > 0;
    let (words, tone) = match mode.role {
        Role::Control if mode.shows_a_loss() => ("loses: the check can see it", Tone::Plain),
        Role::Control if found => ("INVALID RUN: it did not mount", Tone::Bad),
        Role::Control => ("INVALID RUN: nothing was lost", Tone::Bad),
        _ if tally.images == 0 => ("no cut was made", Tone::Unsure),
        _ if !found && tally.worst.1 == 0 => ("nothing was acknowledged", Tone::Unsure),
        Role::Baseline if found => ("the program itself loses", Tone::Bad),
        Role::Candidate if found && report.breaks_class(mode) => (beyond(mode), Tone::Bad),
        Role::Candidate if found && mode.bound.is_some() => {
            ("loses within its bound", Tone::Unsure)
        }
        Role::Candidate if found && mode.may_lose => ("loses, as its class allows", Tone::Unsure),
        Role::Candidate if found => ("loses as the baseline does", Tone::Unsure),
        _ => {
            let words = format!("no loss found in {}", plural_images(tally.images));
            // That it may lose and did not is luck, or it was not in effect.
            let tone = if mode.may_lose || mode.is_idle() {
                Tone::Plain
            } else {
                Tone::Good
            };
            return (words, tone);
        }
    };
    (words.to_owned(), tone)
}

/// What a mode that loses too much does.
pub fn beyond(mode: &Mode) -> &'static str {
    match mode.bound {
        Some(_) => "BREAKS ITS BOUND",
        None => "LOSES WHAT ITS CLASS FORBIDS",
    }
}

/// `212 images`.
pub fn plural_images(n: usize) -> String {
    format::plural(n, "image")
}

/// A word for each harm beyond a plain loss.
const HARMS: [(Harm, &str); 4] = [
    (Harm::Hole, "with holes"),
    (Harm::Damaged, "damaged"),
    (Harm::Resurrected, "resurrected"),
    (Harm::Unmountable, "did not mount"),
];

/// The oldest loss reaches back to the first acknowledgement: how far it would
/// in a longer run is not known, and no window can be claimed.
pub fn takes_everything(mode: &Mode) -> bool {
    let first = mode.record.acknowledged_ns.iter().min().copied();
    let states = mode.states.iter();
    let oldest = states.filter_map(|state| Some((state.loss.oldest_ns?, state)));
    oldest
        .max_by_key(|(oldest, _)| *oldest)
        .is_some_and(|(oldest, state)| {
            let lost_at = state.at_ns.saturating_sub(oldest);
            state.loss.lost >= state.loss.acknowledged
                || first.is_some_and(|first| lost_at <= first)
        })
}

fn how(mode: &Mode, tally: &Tally) -> String {
    let counts: Vec<String> = HARMS
        .iter()
        .filter_map(|(harm, word)| Some(format!("{} {word}", grouped(*tally.harms.get(harm)?))))
        .collect();
    match counts.as_slice() {
        [] if takes_everything(mode) => "everything".to_owned(),
        [] if tally.harms.contains_key(&Harm::Lost) => "newest only".to_owned(),
        [] => "–".to_owned(),
        _ => counts.join(", "),
    }
}

/// The recipe, or the command.
pub fn program(report: &CrashReport) -> String {
    match &report.recipe {
        Some(recipe) => recipe.clone(),
        None => format::command_line(&report.command),
    }
}

/// The command that mounts a state again.
pub fn reopen(report: &CrashReport, mode: &Mode, state: &str) -> String {
    let path = format!("{}/{}/{state}", report.directory, mode.record.name);
    let words = ["refit", "crash", "open", &path].map(str::to_owned);
    format::command_line(&words)
}
