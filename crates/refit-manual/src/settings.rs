//! The settings, from the table that they are parsed with.

use std::fmt::Write;

use refit_knobs::{KNOBS, Setting};

/// Each knob: how it is written, what it does, and everything that `refit run --explain` has to say about its example.
pub(crate) fn markdown() -> String {
    let mut out = String::new();
    for knob in KNOBS {
        let _ = write!(out, "## {}\n\n```\n{}\n```\n\n", knob.name, knob.form);
        let Ok(setting) = knob.example.parse::<Setting>() else {
            continue;
        };
        let all = setting.explain();
        let _ = write!(
            out,
            "{}. For example `{}`:\n\n",
            capital(knob.about),
            all.setting
        );
        for (name, text) in [
            ("swaps", &all.swaps),
            ("class", &all.class.to_string()),
            ("risk", &all.risk),
            ("by", &all.backend),
        ] {
            let _ = writeln!(out, "- {name}: {}", literal(text));
        }
        for (name, list) in [
            ("covers", &all.covers),
            ("does not cover", &all.not_covered),
            ("note", &all.notes),
        ] {
            match list.as_slice() {
                [] => {}
                [only] => {
                    let _ = writeln!(out, "- {name}: {}", literal(only));
                }
                all => {
                    let _ = writeln!(out, "- {name}:");
                    for item in all {
                        let _ = writeln!(out, "  - {}", literal(item));
                    }
                }
            }
        }
        out.push('\n');
    }
    out
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    first
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

/// Prose that was not written as Markdown; backticks mean the same in both.
pub(crate) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, piece) in text.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        for c in piece.chars() {
            if at % 2 == 0 && matches!(c, '*' | '_' | '[' | ']' | '<' | '\\' | '#' | '|') {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_knob_has_an_example_that_is_explained() {
        let page = markdown();
        for knob in KNOBS {
            assert!(
                page.contains(&format!("## {}\n", knob.name)),
                "{}",
                knob.name
            );
            assert!(knob.example.parse::<Setting>().is_ok(), "{}", knob.example);
        }
    }

    #[test]
    fn prose_stays_what_it_is() {
        assert_eq!(literal("a_b `c_d` *"), "a\\_b `c_d` \\*");
    }
}
