//! What the pages are made of: sections, boxes that scroll, notes.

use crate::format;
use crate::markup::Markup;
use crate::notes::{Note, warnings_apart};
use crate::paint::Tone;

/// A part of the page, under its heading.
pub fn section(main: &mut Markup, title: &str, content: impl FnOnce(&mut Markup)) {
    main.element("section", &[], |section| {
        section.leaf("h2", &[], title);
        content(section);
    });
}

/// The command, to be copied.
pub fn repeat(main: &mut Markup, words: &[String], about: &str) {
    section(main, "To repeat it", |section| {
        scrolled(section, "command", |section| {
            section.element("pre", &[], |pre| {
                let line = format::command_line(words);
                pre.element("code", &[], |code| code.prose(&line));
            });
        });
        section.element("p", &[("class", "small")], |p| p.prose(about));
    });
}

/// What may be broader than a phone scrolls in a box of its own.
pub fn scrolled(section: &mut Markup, about: &str, content: impl FnOnce(&mut Markup)) {
    let attributes = [
        ("class", "scroll"),
        ("role", "region"),
        ("aria-label", about),
        ("tabindex", "0"),
    ];
    section.element("div", &attributes, content);
}

/// What weakens the numbers, and then the numbers; below them what else has to be known.
pub fn noted(section: &mut Markup, notes: Vec<Note>, numbers: impl FnOnce(&mut Markup)) {
    let (warnings, others) = warnings_apart(notes);
    for warning in &warnings {
        section.element("div", &[("class", "warning"), ("role", "note")], |warn| {
            let label = match &*warning.label {
                "warning:" => "Warning",
                label => label.trim_end_matches(':'),
            };
            warn.leaf("strong", &[], label);
            warn.text(" ");
            warn.prose(&warning.text);
        });
    }
    numbers(section);
    list(section, &others);
}

/// Notes, one below the other.
pub fn list(section: &mut Markup, notes: &[Note]) {
    section.element("ul", &[("class", "notes")], |list| {
        for note in notes {
            list.element("li", &[], |item| {
                let label = note.label.trim();
                if !label.is_empty() {
                    item.leaf("strong", &[("class", tone(note.tone))], label);
                    item.text(" ");
                }
                item.prose(&note.text);
            });
        }
    });
}

/// The class of a word that says this.
pub fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Head => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Unsure => "unsure",
    }
}
