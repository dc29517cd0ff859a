//! The states that are worth a look, with the command that mounts each again.

use refit_crash::CrashReport;
use refit_crash::report::{Harm, Role, State};

use crate::crash::row::{Row, age, number, reopen};
use crate::format;
use crate::html::markup::Html;
use crate::html::scrolled;
use crate::html::syncs::titles;

/// For each kind of harm the worst state, below the picture.
pub fn worst(figure: &mut Html, report: &CrashReport, row: &Row) {
    let states = chosen(row);
    if row.mode.role == Role::Control || states.is_empty() {
        return;
    }
    scrolled(figure, "worst states", |figure| {
        figure.element("table", &[("class", "data states")], |table| {
            let numbers = ["lost", "oldest", "pending writes"];
            titles(table, &["worst states", "to look at it"], &numbers);
            table.element("tbody", &[], |body| {
                for (what, state) in states {
                    body.element("tr", &[], |tr| {
                        tr.element("th", &[("scope", "row")], |th| {
                            th.text(&what);
                            if let Some(why) = why(state) {
                                th.leaf("span", &[("class", "small")], &why);
                            }
                        });
                        tr.element("td", &[], |td| {
                            let command = reopen(report, row.mode, &state.name);
                            td.leaf("code", &[], &command);
                        });
                        let loss = &state.loss;
                        let lost =
                            format!("{} of {}", number(loss.lost), number(loss.acknowledged));
                        let oldest = loss.oldest_ns.map_or("–".to_owned(), age);
                        for text in [lost, oldest, number(state.pending)] {
                            tr.leaf("td", &[("class", "number")], &text);
                        }
                    });
                }
            });
        });
    });
}

/// What the check or the kernel said.
fn why(state: &State) -> Option<String> {
    let words = state.unmountable.as_ref().or(state.broken.as_ref())?;
    // A check may say a lot.
    Some(format::shortened(&format::printable(words), 200))
}

fn chosen<'a>(row: &Row<'a>) -> Vec<(String, &'a State)> {
    let states = &row.mode.states;
    let with = |harm: Harm| {
        let some = states
            .iter()
            .filter(move |state| state.harms().contains(&harm));
        some.max_by_key(|state| (state.loss.oldest_ns, state.loss.lost))
    };
    let lost = states.iter().filter(|state| state.loss.lost > 0);
    let all = [
        ("most lost", lost.max_by_key(|state| state.loss.lost)),
        ("oldest loss", with(Harm::Lost)),
        ("a hole", with(Harm::Hole)),
        ("resurrected", with(Harm::Resurrected)),
        ("damaged", with(Harm::Damaged)),
        ("did not mount", with(Harm::Unmountable)),
    ];
    // A state may be the worst in several ways.
    let mut chosen: Vec<(String, &State)> = Vec::new();
    for (what, state) in all {
        let Some(state) = state else { continue };
        match chosen
            .iter_mut()
            .find(|(_, known)| known.name == state.name)
        {
            Some((words, _)) => *words = format!("{words}, {what}"),
            None => chosen.push((what.to_owned(), state)),
        }
    }
    chosen
}
