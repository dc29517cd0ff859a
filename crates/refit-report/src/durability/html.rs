//! The findings of the durability check as a section of a page.

use refit_run::{DurabilityReport, Finding};

use super::{MOST_FUNCTIONS, sentence, title};
use crate::html::elements::section;
use crate::html::grid::grid;
use crate::markup::Markup;
use crate::stacks::call_chain;
use crate::table::Column;

/// All of them that are not known before, the heaviest first.
pub fn html(main: &mut Markup, report: &DurabilityReport) {
    let found: Vec<&Finding> = report.new_findings().collect();
    if found.is_empty() {
        return;
    }
    section(main, "What no sync covers", |section| {
        let text = "An error can lose or damage what was durable, a warning what was acknowledged or meant to stay; \
                    a note is true, and harmless to many programs.";
        section.leaf("p", &[], text);
        let each = |of: fn(&Finding) -> String| found.iter().map(move |one| of(one));
        let columns = [
            Column::words("level", each(|one| one.level.name().to_owned())),
            Column::prose("rule and file", each(title)),
            Column::prose("what a power cut does", each(sentence)),
            Column::prose("where", each(place)),
        ];
        grid(
            section,
            "findings of the durability check",
            "",
            &columns.each_ref(),
        );
    });
}

fn place(finding: &Finding) -> String {
    let frames: Vec<_> = finding.at.iter().collect();
    match frames.is_empty() {
        true => "unknown".to_owned(),
        false => call_chain(&frames, MOST_FUNCTIONS),
    }
}
