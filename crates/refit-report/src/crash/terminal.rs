//! A crash report on a terminal.

use refit_crash::CrashReport;
use refit_crash::report::{Role, Tally};

use crate::crash::words::{notes, number, oldest, otherwise, verdict, worst};
use crate::fold::fold;
use crate::paint::Tone;
use crate::table::{Column, head, row};
use crate::terminal::Style;

/// The table, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(report: &CrashReport, style: &Style) -> String {
    let modes: Vec<_> = report
        .modes
        .iter()
        .map(|mode| (mode, mode.tally()))
        .collect();
    let numbers = |title: &str, of: fn(&Tally) -> usize| {
        Column::right(title, modes.iter().map(|(_, tally)| number(of(tally))))
    };
    let text = |title: &str, of: fn(&Tally) -> String| {
        Column::left(title, modes.iter().map(|(_, tally)| of(tally)))
    };
    let verdicts = modes.iter().map(|(mode, tally)| {
        let is_good = tally.bad_images == 0;
        let tone = match mode.role {
            Role::Control if is_good => Tone::Bad,
            Role::Control => Tone::Plain,
            _ if is_good => Tone::Good,
            _ => Tone::Bad,
        };
        (verdict(mode, tally), tone)
    });
    let all = [
        Column::left("mode", modes.iter().map(|(mode, _)| mode.name.clone())),
        Column::right(
            "acked",
            modes
                .iter()
                .map(|(mode, _)| number(mode.record.acknowledged_ns.len())),
        ),
        numbers("cuts", |tally| tally.cuts),
        numbers("images", |tally| tally.images),
        numbers("lossy", |tally| tally.bad_images),
        text("worst loss", worst),
        text("oldest", oldest),
        text("otherwise", otherwise),
        Column::toned("verdict", verdicts),
        Column::left(
            "class",
            modes.iter().map(|(mode, _)| {
                if mode.role == Role::Candidate {
                    mode.class.clone()
                } else {
                    String::new()
                }
            }),
        ),
    ];
    let columns: Vec<&Column> = all.iter().collect();
    let mut out = head(&columns, style.colour);
    out.push('\n');
    for index in 0..modes.len() {
        out.push_str(&row(&columns, index, style.colour));
        out.push('\n');
    }
    for note in notes(report) {
        for line in fold(&note, style.width) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}
