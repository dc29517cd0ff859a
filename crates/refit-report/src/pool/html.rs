//! A pool as one page: the answer, a forest plot as a table for each variant, and the results that it rests on.

use refit_lab::{Pool, measure};

use super::{Line, heading, lines, notes, notes_of, sentence, subject, table, title};
use crate::format;
use crate::html::elements::{noted, repeat, scrolled, section};
use crate::html::grid::grid;
use crate::html::page;
use crate::html::verdicts::{Effects, caption};
use crate::markup::Markup;
use crate::sentence::{paragraph, with_code};
use crate::table::Column;

/// The page.
#[must_use]
pub fn html(pool: &Pool) -> String {
    page(&format!("refit pool: {}", title(pool)), &[], |body| {
        body.element("header", &[], |header| {
            header.element("p", &[("class", "of")], |of| {
                of.text("refit pool ");
                of.leaf("code", &[], &subject(pool));
            });
            let asked = pool.question.as_deref().filter(|text| !text.is_empty());
            let asked = asked.unwrap_or("Across machines");
            header.element("h1", &[], |h1| with_code(h1, asked));
        });
        body.element("main", &[], |main| sections(main, pool));
        let last = pool.results.iter().map(|result| result.started_unix).max();
        let text = format!(
            "refit {}; the last result is of {} UTC. All numbers are of these machines.",
            pool.refit,
            format::date(last.unwrap_or_default())
        );
        body.leaf("footer", &[], &text);
    })
}

fn sections(main: &mut Markup, pool: &Pool) {
    main.element("section", &[("class", "result")], |section| {
        paragraph(section, &sentence(pool));
        noted(section, notes(pool), |_| {});
    });
    for (index, variant) in pool.variants.iter().enumerate() {
        section(main, &heading(variant), |section| {
            let rows = lines(pool, variant);
            noted(section, notes_of(pool, variant), |section| {
                if !rows.is_empty() {
                    scrolled(section, "effects", |section| {
                        forest(section, pool, index, &rows);
                    });
                }
            });
        });
    }
    section(main, "Machines", |section| machines(section, pool));
    section(main, "Results", |section| results(section, pool));
    if let Some(words) = &pool.words {
        let words: Vec<String> = ["refit", "pool"]
            .map(str::to_owned)
            .into_iter()
            .chain(words.iter().cloned())
            .collect();
        repeat(main, &words, "From the same results it computes the same.");
    }
}

fn forest(section: &mut Markup, pool: &Pool, variant: usize, rows: &[Line]) {
    let table = table(pool, rows);
    let machines = pool.variants[variant].machines.len();
    let colour = format!("v{}", variant % 8);
    let class = |at: usize| match at < machines {
        true => colour.clone(),
        false => "base".to_owned(),
    };
    let effects = Effects {
        columns: table.columns(),
        effects: rows.iter().map(|line| Some(&line.effect)).collect(),
        classes: (0..rows.len()).map(class).collect(),
        caption: caption(measure(pool.measure), pool.delta, ""),
        delta: pool.delta,
    };
    effects.table(section);
}

fn machines(section: &mut Markup, pool: &Pool) {
    let mut keys: Vec<&str> = (pool.machines.iter())
        .flat_map(|machine| machine.fixed.keys())
        .map(String::as_str)
        .filter(|key| *key != "machine")
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let names = pool.machines.iter().map(|machine| machine.name.clone());
    let of = |key: &str| {
        let values = pool.machines.iter();
        let values = values.map(|machine| {
            machine
                .fixed
                .get(key)
                .map(|fact| format::fact(fact))
                .unwrap_or_default()
        });
        Column::prose(key, values.collect::<Vec<_>>().into_iter())
    };
    let columns: Vec<Column> = [Column::words("machine", names)]
        .into_iter()
        .chain(keys.into_iter().map(of))
        .collect();
    grid(section, "machines", "", &columns.iter().collect::<Vec<_>>());
}

fn results(section: &mut Markup, pool: &Pool) {
    let of = |value: fn(&refit_lab::ResultRecord) -> String| pool.results.iter().map(value);
    let machine = pool.results.iter().map(|result| {
        let machine = pool.machines.get(result.machine);
        machine.map_or(String::new(), |machine| machine.name.clone())
    });
    let columns = [
        Column::words("result", of(|result| result.file.clone())),
        Column::words("machine", machine),
        Column::words("date (UTC)", of(|result| format::date(result.started_unix))),
        Column::words("seed", of(|result| format::seed(result.seed))),
        Column::numbers("round pairs", of(|result| format::grouped(result.pairs))),
    ];
    grid(section, "results", "", &columns.each_ref());
}
