//! A pool as text: on a terminal, and in Markdown.

use refit_lab::Pool;

use super::{heading, lines, notes, notes_of, sentence, subject, table, title};
use crate::fold::fold;
use crate::markdown::{code, escaped, grid, in_markdown, noted, origin, warned};
use crate::notes::warnings_apart;
use crate::paint::{Style, Tone};

/// The answer, a table for each variant, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(pool: &Pool, style: &Style) -> String {
    let mut out = fold(&sentence(pool), style.width);
    out.extend(fold(&title(pool), style.width));
    let (warnings, others) = warnings_apart(notes(pool));
    out.extend(warnings.iter().flat_map(|note| note.lines(style)));
    for variant in &pool.variants {
        out.push(String::new());
        out.push(Tone::Head.paint(&heading(variant), style.colour));
        let rows = lines(pool, variant);
        if !rows.is_empty() {
            out.extend(table(pool, &rows).terminal(style).lines);
        }
        let notes = notes_of(pool, variant);
        out.extend(notes.iter().flat_map(|note| note.lines(style)));
    }
    out.push(String::new());
    out.extend(others.iter().flat_map(|note| note.lines(style)));
    out.push(String::new());
    out.join("\n")
}

/// GitHub's Markdown.
#[must_use]
pub fn markdown(pool: &Pool) -> String {
    let mut out = format!("{}\n\n", in_markdown(&sentence(pool)));
    out.push_str(&format!("**refit pool** {}\n", code(&subject(pool))));
    if let Some(question) = &pool.question {
        out.push_str(&format!("{}\n", escaped(question)));
    }
    let (warnings, others) = warnings_apart(notes(pool));
    out.push_str(&warned(&warnings));
    for variant in &pool.variants {
        out.push_str(&format!(
            "\n### {} ({})\n\n",
            code(&variant.name),
            variant.risk
        ));
        let rows = lines(pool, variant);
        if !rows.is_empty() {
            out.push_str(&grid(&table(pool, &rows).columns()));
            out.push('\n');
        }
        out.push_str(&noted(&notes_of(pool, variant)));
    }
    out.push('\n');
    out.push_str(&noted(&others));
    let last = pool.results.iter().map(|result| result.started_unix).max();
    out.push_str(&origin(&pool.refit, last.unwrap_or_default()));
    out
}
