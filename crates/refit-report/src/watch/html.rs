//! A series as one page: no network, no script, light and dark.

use refit_run::series::{GroupSample, Sample, Series};

use super::columns::{is_partial, rate, share, signed_bytes, waited};
use super::parts::{Part, Parts, time_ticks};
use super::summary::facts;
use crate::format;
use crate::html::elements::section;
use crate::html::grid::grid;
use crate::html::{chart, footer, page};
use crate::markup::{At, Markup, number};
use crate::table::Column;

const MEMORY: f64 = 240.0;
const WAITS: f64 = 90.0;
/// The charts' breadth in their own units.
const BREADTH: f64 = 1000.0;
const MIB: f64 = 1_048_576.0;
const UNKNOWN: &str = "unknown";

/// The page.
#[must_use]
pub fn html(series: &Series) -> String {
    let title = super::title(series);
    let styles = [include_str!("style.css")];
    page(&title, &styles, |body| {
        body.element("header", &[], |header| {
            header.leaf("p", &[("class", "of")], "refit watch");
            header.element("h1", &[], |h1| {
                h1.leaf("code", &[], &super::subject(series))
            });
        });
        body.element("main", &[], |main| sections(main, series));
        footer(body, &series.refit, series.started_unix);
    })
}

fn class(part: &Part) -> String {
    part.colour.map_or("hidden-base".to_owned(), |index| {
        format!("v{}", index % crate::palette::COLOURS.len())
    })
}

fn sections(main: &mut Markup, series: &Series) {
    main.element("section", &[("class", "result")], |section| {
        let facts = facts(series);
        let mut facts = facts.iter();
        if let Some(first) = facts.next() {
            section.element("p", &[("class", "answer")], |p| p.prose(first));
        }
        section.element("ul", &[("class", "notes")], |list| {
            for fact in facts {
                list.element("li", &[], |item| item.prose(fact));
            }
        });
    });
    let parts = Parts::of(series);
    section(main, &parts.title, |section| {
        legend(section, &parts.memory);
        memory(section, &parts);
    });
    section(main, "Sync waits", |section| {
        section.leaf("p", &[], &super::waits_title(series, &parts));
        if !parts.waits.is_empty() {
            legend(section, &parts.waits);
            waits(section, &parts);
        }
    });
    section(main, "At the last sample", |section| table(section, series));
}

fn legend(section: &mut Markup, parts: &[Part]) {
    section.element("ul", &[("class", "legend")], |list| {
        for part in parts {
            list.element("li", &[("class", &class(part))], |item| {
                item.leaf("span", &[("class", "dot")], "");
                item.text(&part.name);
            });
        }
    });
}

/// A chart with lines across at these values, below them the times.
fn frame(
    section: &mut Markup,
    name: &str,
    height: f64,
    span: f64,
    across: &[(f64, String)],
    content: impl FnOnce(&mut Markup),
) {
    section.element("div", &[("class", "chart")], |chart| {
        chart::labels(chart, height, across.iter().cloned());
        chart.element("div", &[("class", "field")], |field| {
            let text = number(height);
            field.element(
                "svg",
                &[("height", &*text), ("role", "img"), ("aria-label", name)],
                |svg| {
                    for (y, _) in across {
                        svg.line(
                            "grid",
                            [At::Px(0.0), At::Px(*y)],
                            [At::Part(1.0), At::Px(*y)],
                        );
                    }
                    let area = format!("0 0 {} {text}", number(BREADTH));
                    svg.element(
                        "svg",
                        &[("viewBox", &*area), ("preserveAspectRatio", "none")],
                        content,
                    );
                },
            );
            field.element("svg", &[("height", "18"), ("aria-hidden", "true")], |svg| {
                for (i, (at, text)) in time_ticks(span).iter().enumerate() {
                    let part = at / span;
                    let anchor = match (i, part > 0.93) {
                        (0, _) => "start",
                        (_, true) => "end",
                        _ => "middle",
                    };
                    svg.label([At::Part(part), At::Px(14.0)], anchor, text);
                }
            });
        });
    });
}

fn points<'a>(values: impl Iterator<Item = (&'a f64, f64)>, span: f64) -> String {
    let points =
        values.map(|(seconds, y)| format!("{},{}", number(seconds / span * BREADTH), number(y)));
    points.collect::<Vec<_>>().join(" ")
}

fn memory(section: &mut Markup, parts: &Parts) {
    let stack = parts.stacked();
    let most = stack
        .last()
        .and_then(|(_, above)| above.iter().copied().reduce(f64::max));
    let most = most.unwrap_or(0.0).max(1.0) * 1.05;
    let y = |bytes: f64| MEMORY - 1.0 - bytes / most * (MEMORY - 8.0);
    let unit = if most < MIB { 1024.0 } else { MIB };
    let label = |bytes: f64| {
        if bytes > 0.0 {
            format::bytes(bytes)
        } else {
            "0".to_owned()
        }
    };
    let across: Vec<(f64, String)> = chart::steps(most, unit)
        .into_iter()
        .map(|bytes| (y(bytes), label(bytes)))
        .collect();
    frame(
        section,
        &parts.title,
        MEMORY,
        parts.span(),
        &across,
        |svg| {
            for (part, (below, above)) in parts.memory.iter().zip(&stack) {
                for run in &parts.known {
                    let at = |index: usize, bytes: &[f64]| (&parts.seconds[index], y(bytes[index]));
                    let upper = run.clone().map(|index| at(index, above));
                    let lower = run.clone().rev().map(|index| at(index, below));
                    let points = points(upper.chain(lower), parts.span());
                    svg.void(
                        "polygon",
                        &[
                            ("class", &format!("part {}", class(part))),
                            ("points", &points),
                        ],
                    );
                }
            }
        },
    );
}

fn waits(section: &mut Markup, parts: &Parts) {
    let y = |share: f64| WAITS - 1.0 - share * (WAITS - 8.0);
    let across = [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")]
        .map(|(share, text)| (y(share), text.to_owned()));
    frame(
        section,
        "sync waits over time",
        WAITS,
        parts.span(),
        &across,
        |svg| {
            for part in &parts.waits {
                let before = [0.0].iter().chain(&parts.seconds);
                let steps = before.zip(&parts.seconds).zip(&part.values);
                let ends =
                    steps.flat_map(|((from, to), share)| [(from, y(*share)), (to, y(*share))]);
                let points = points(ends, parts.span());
                svg.void(
                    "polyline",
                    &[
                        ("class", &format!("memory {}", class(part))),
                        ("points", &points),
                    ],
                );
            }
        },
    );
}

/// The last sample in which a process ran: after a command that has ended nothing is left to be read.
fn last(series: &Series) -> Option<&Sample> {
    let has_process = |sample: &&Sample| sample.groups.iter().any(|one| one.processes > 0);
    let samples = || series.samples.iter().rev();
    samples().find(has_process).or_else(|| samples().next())
}

fn table(section: &mut Markup, series: &Series) {
    let Some(last) = last(series) else {
        section.leaf("p", &[], "Nothing was sampled.");
        return;
    };
    let groups: Vec<&GroupSample> = super::columns::ordered(last);
    let numbers = |title: &str, of: &dyn Fn(&GroupSample) -> String| {
        Column::numbers(title, groups.iter().map(|one| of(one)))
    };
    let bound = |one: &GroupSample, bytes: u64| {
        let sign = if is_partial(one) { "≥" } else { "" };
        format!("{sign}{}", format::bytes(bytes as f64))
    };
    let memory = |one: &GroupSample, of: fn(&refit_run::Memory) -> u64| {
        one.memory
            .map_or(UNKNOWN.to_owned(), |memory| bound(one, of(&memory)))
    };
    let lasted = last.lasted_us;
    let columns = [
        Column::words(
            "service",
            groups.iter().map(|one| {
                let group = series.groups.get(one.group);
                group.map_or("?", |group| &group.name).to_owned()
            }),
        ),
        numbers("processes", &|one| format::grouped(one.processes)),
        numbers("syncs/s", &|one| {
            one.syncs
                .as_ref()
                .map_or(UNKNOWN.to_owned(), |syncs| rate(syncs.calls, lasted))
        }),
        numbers("waited", &|one| {
            one.syncs
                .as_ref()
                .map_or(UNKNOWN.to_owned(), |syncs| waited(syncs, lasted))
        }),
        numbers("PSI: io", &|one| {
            one.pressure
                .map_or("–".to_owned(), |pressure| share(pressure.io_us, lasted))
        }),
        numbers("PSS", &|one| memory(one, |memory| memory.pss_bytes)),
        numbers("USS", &|one| memory(one, |memory| memory.uss_bytes)),
        numbers("RSS", &|one| format::bytes(one.rss_bytes as f64)),
        numbers("swap", &|one| memory(one, |memory| memory.swap_bytes)),
        numbers("page tables", &|one| {
            memory(one, |memory| memory.page_tables_bytes)
        }),
        numbers(
            "PSS per hour",
            &|one| match refit_run::series::growth(series, one.group) {
                None => "–".to_owned(),
                Some(growth) if !growth.is_certain() => "±0".to_owned(),
                Some(growth) => signed_bytes(growth.bytes_per_hour),
            },
        ),
        numbers("VSZ", &|one| format::bytes(one.vsz_bytes as f64)),
    ];
    grid(section, "services", "services", &columns.each_ref());
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_table_is_of_the_last_sample_with_a_process() {
        let mut series = sample::machine();
        let before = html(&series);
        let mut after = series.samples.last().unwrap().clone();
        for one in &mut after.groups {
            (one.processes, one.rss_bytes, one.memory) = (0, 0, None);
        }
        series.samples.push(after);
        let table = |page: &str| page.split("At the last sample").nth(1).unwrap().to_owned();
        assert_eq!(table(&html(&series)), table(&before));
    }

    #[test]
    fn the_page_is_drawn_whatever_the_series_holds() {
        let mut series = sample::machine();
        for at in 0..4 {
            let drawn = html(&series);
            let rest = drawn.strip_prefix("<!DOCTYPE html>\n").unwrap();
            roxmltree::Document::parse(rest).unwrap();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf,"), "{at}");
            assert!(!drawn.contains(|c: char| c.is_control() && c != '\n'));
            match at {
                0 => series.samples.truncate(1),
                1 => series.samples.clear(),
                _ => series.groups.clear(),
            }
        }
    }

    #[test]
    fn what_the_end_says_is_on_the_page() {
        let drawn = html(&sample::machine());
        for text in [
            "all of cleanup",
            "postfix",
            "0.4\u{a0}% of a core",
            "≥120\u{a0}MiB",
            "PSS per hour",
        ] {
            assert!(drawn.contains(text), "{text}");
        }
    }
}
