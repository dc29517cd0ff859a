//! The states that are worth a look, with the command that mounts each again.

use refit_crash::CrashReport;
use refit_crash::mode::{Harm, Role, State};

use crate::crash::row::{Row, age, reopen};
use crate::format::{self, grouped};
use crate::html::grid::grid;
use crate::markup::Markup;
use crate::table::Column;

/// For each kind of harm the worst state, below the picture.
pub fn worst(figure: &mut Markup, report: &CrashReport, row: &Row) {
    let states = chosen(row);
    if row.mode.role == Role::Control || states.is_empty() {
        return;
    }
    let words = |of: &dyn Fn(&str, &State) -> String| -> Vec<String> {
        states.iter().map(|(what, state)| of(what, state)).collect()
    };
    let lost = |state: &State| {
        let loss = &state.loss;
        format!("{} of {}", grouped(loss.lost), grouped(loss.acknowledged))
    };
    let columns = [
        Column::prose(
            "worst states",
            words(&|what, _| what.to_owned()).into_iter(),
        ),
        Column::code(
            "command to open it",
            words(&|_, state| reopen(report, row.mode, &state.name)).into_iter(),
        ),
        Column::numbers("lost", words(&|_, state| lost(state)).into_iter()),
        Column::numbers(
            "oldest",
            words(&|_, state| state.loss.oldest_ns.map_or("–".to_owned(), age)).into_iter(),
        ),
        Column::numbers(
            "pending writes",
            words(&|_, state| grouped(state.pending)).into_iter(),
        ),
        Column::prose(
            "reported",
            words(&|_, state| why(state).unwrap_or_default()).into_iter(),
        ),
    ];
    let says = states.iter().any(|(_, state)| why(state).is_some());
    let shown = if says {
        columns.len()
    } else {
        columns.len() - 1
    };
    let columns: Vec<&Column> = columns.iter().take(shown).collect();
    grid(figure, "worst states", "states", &columns);
}

/// What the check or the kernel reported.
fn why(state: &State) -> Option<String> {
    let words = state.unmountable.as_ref().or(state.broken.as_ref())?;
    // A check may say a lot.
    Some(format::shortened(words, 200))
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
