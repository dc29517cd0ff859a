//! A variant with what it gains and what it risks, the same in every format.

use refit_crash::CrashReport;
use refit_crash::mode::Role as ModeRole;
use refit_lab::experiment::Role;
use refit_lab::{Comparison, EffectRecord, Verdict};

use super::Proof;
use crate::crash::row as crash_row;
use crate::crash::sentence::Manner;
use crate::format;
use crate::paint::Tone;
use crate::row::{self, main_metric, side_titles};
use crate::table::{Column, Table};

/// What was not cut.
const NOT_CUT: &str = "not cut";

/// One variant.
pub struct Row<'a> {
    /// What it gains.
    pub gain: row::Row<'a>,
    /// What cuts took of it; `None` where it was not cut.
    pub loss: Option<crash_row::Row<'a>>,
    /// The manner of the worst loss; `None` where no cut could show any.
    pub manner: Option<Manner>,
    /// It lost more than its class allows.
    pub breaks_class: bool,
}

impl Manner {
    /// As it stands in a verdict.
    fn words(self) -> &'static str {
        match self {
            Manner::Nothing => "no loss found",
            Manner::Newest => "loses the newest",
            Manner::Holes => "loses with holes",
            Manner::Everything => "loses everything",
            Manner::Damaged => "leaves damage",
        }
    }
}

impl Row<'_> {
    /// Age of the oldest loss, in nanoseconds.
    pub fn oldest_ns(&self) -> u64 {
        let tally = self.loss.as_ref().map(|loss| &loss.tally);
        tally.and_then(|tally| tally.oldest_ns).unwrap_or(0)
    }

    /// Whether a cut took something.
    fn loses(&self) -> bool {
        self.manner.is_some_and(|manner| manner > Manner::Nothing)
    }

    fn verdict(&self) -> (String, Tone) {
        let loss = match (&self.loss, self.manner) {
            (Some(loss), _) if self.breaks_class => crash_row::beyond(loss.mode),
            (Some(loss), _) if loss.tally.images == 0 => "no cut was made",
            (Some(_), None) => "nothing was acknowledged",
            (Some(loss), Some(manner)) if loss.mode.bound.is_some() && manner > Manner::Nothing => {
                "loses within its bound"
            }
            (_, Some(manner)) => manner.words(),
            _ => NOT_CUT,
        };
        let gain = &self.gain;
        match gain.variant.role {
            Role::Baseline if self.loses() => (format!("the program itself {loss}"), Tone::Bad),
            Role::Baseline => (loss.to_owned(), Tone::Plain),
            // The program without refit is never cut.
            Role::Bare => (gain.verdict.clone(), gain.tone),
            _ if gain.verdict.is_empty() => (loss.to_owned(), Tone::Plain),
            _ => {
                let tone = match gain.tone {
                    _ if self.breaks_class => Tone::Bad,
                    Tone::Good if self.loses() => Tone::Unsure,
                    tone => tone,
                };
                (format!("{}; {loss}", gain.verdict), tone)
            }
        }
    }

    /// `–` where it was not cut.
    fn lossy(&self, of: fn(&crash_row::Row) -> String) -> String {
        self.loss.as_ref().map_or_else(|| "–".to_owned(), of)
    }
}

/// The baseline first, then the candidates, then `bare`.
pub fn rows<'a>(comparison: &'a Comparison, report: Option<&'a CrashReport>) -> Vec<Row<'a>> {
    let mut cut: Vec<crash_row::Row> = report.map(crash_row::rows).unwrap_or_default();
    cut.retain(|row| row.mode.role != ModeRole::Control);
    let rows = row::rows(comparison).into_iter();
    rows.map(|mut gain| {
        let at = cut.iter().position(|row| row.mode.name == gain.name);
        let loss = at.map(|at| cut.swap_remove(at));
        let manner = loss.as_ref().and_then(Manner::of);
        // Cuts outrank a count of calls.
        if manner == Some(Manner::Nothing) && gain.variant.role == Role::Candidate {
            gain.class = row::declared(gain.variant);
        }
        Row {
            manner,
            breaks_class: loss
                .as_ref()
                .zip(report)
                .filter(|(loss, _)| loss.mode.role == ModeRole::Candidate)
                .is_some_and(|(loss, report)| report.breaks_class(loss.mode)),
            gain,
            loss,
        }
    })
    .collect()
}

/// The rows as a table.
pub fn table<'a>(comparison: &Comparison, rows: &[Row<'a>]) -> Table<'a> {
    let cells =
        |of: for<'b> fn(&'b Row<'a>) -> &'b str| rows.iter().map(move |row| of(row).to_owned());
    let lossy = |of: fn(&crash_row::Row) -> String| rows.iter().map(move |row| row.lossy(of));
    let level = format!(
        "{} interval",
        format::magnitude(1.0 - refit_stats::OVERALL_ALPHA)
    );
    let is_known = |row: &Row| !["", "unknown"].contains(&&*row.gain.sides[0]);
    let memory = rows.iter().any(is_known).then(|| {
        let title = side_titles(&comparison.experiment)[0];
        Column::numbers(title, cells(|row| &row.gain.sides[0]))
    });
    let value = Column::numbers(
        &main_metric(&comparison.experiment),
        cells(|row| &row.gain.value),
    );
    let class = Column::words("class", cells(|row| &row.gain.class));
    Table {
        name: Column::code("variant", cells(|row| &row.gain.name)),
        numbers: vec![
            Column::numbers("vs baseline", cells(|row| &row.gain.change)),
            Column::numbers(&level, cells(|row| &row.gain.interval)),
            Column::numbers("worst loss", lossy(|row| row.worst.clone())),
            Column::numbers("oldest", lossy(|row| row.oldest.clone())),
            Column::numbers("lossy images", lossy(|row| row.images.clone())),
        ],
        bars: None,
        verdict: Column::verdicts("verdict", rows.iter().map(Row::verdict)),
        extras: [value].into_iter().chain(memory).chain([class]).collect(),
    }
}

/// What a candidate's main metric shows, if anything is known of it.
pub fn effect<'a>(row: &Row<'a>) -> Option<(&'a EffectRecord, Verdict)> {
    let effect = row.gain.effect?;
    let is_candidate = row.gain.variant.role == Role::Candidate;
    Some((effect, effect.verdict?)).filter(|_| is_candidate)
}

/// The cuts, where there were any.
pub fn cuts(proof: &Proof) -> Option<&CrashReport> {
    match proof {
        Proof::Cut(report) => Some(report),
        Proof::NotCut(_) => None,
    }
}
