//! Exact answers as a table.

use refit_lab::experiment::Experiment;

use super::elements;
use super::grid::grid;
use crate::answers::columns;
use crate::markup::Markup;
use crate::table::Column;

/// Nothing where nothing was asked.
pub fn section(main: &mut Markup, experiment: &Experiment) {
    let columns = columns(experiment);
    if columns.is_empty() {
        return;
    }
    elements::section(main, "Exact answers", |section| {
        let text = "All runs of a variant gave the same answers; a variant whose runs differed was disqualified.";
        section.leaf("p", &[], text);
        let columns: Vec<&Column> = columns.iter().collect();
        grid(section, "exact answers", "facts", &columns);
    });
}
