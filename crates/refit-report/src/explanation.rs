//! What a setting swaps, covers and risks, before anyone uses it.

use refit_run::Explanation;

use crate::page::Page;

/// One block for each setting; without any, what refit does then.
#[must_use]
pub fn explanation(settings: &[Explanation]) -> String {
    let mut page = Page::default();
    if settings.is_empty() {
        observe(&mut page);
    }
    for e in settings {
        page.heading(&e.setting);
        let class = e.class.to_string();
        for (name, text) in [
            ("swaps", &e.swaps),
            ("class", &class),
            ("risk", &e.risk),
            ("backend", &e.backend),
        ] {
            page.folded(name, text);
        }
        for (name, list) in [
            ("covers", &e.covers),
            ("not covered", &e.not_covered),
            ("note", &e.notes),
        ] {
            for (i, item) in list.iter().enumerate() {
                page.folded(if i == 0 { name } else { "" }, item);
            }
        }
    }
    page.text()
}

fn observe(page: &mut Page) {
    page.heading("no settings: refit observes");
    for (name, text) in [
        (
            "swaps",
            "nothing; the program's sync calls are counted and timed, and all are real",
        ),
        ("class", "safe"),
        (
            "backend",
            "a preloaded library; about 50 ns more for each sync call",
        ),
        (
            "next",
            "refit run -- COMMAND, or refit run --explain sync=off",
        ),
    ] {
        page.folded(name, text);
    }
}
