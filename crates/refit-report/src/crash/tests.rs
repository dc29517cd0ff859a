use std::path::Path;

use refit_crash::CrashReport;
use refit_crash::mode::Role;
use roxmltree::{Document, Node};

use super::{html, markdown, sample, terminal};
use crate::Style;
use crate::sample::golden;

fn at(report: &CrashReport, width: usize) -> String {
    terminal(
        report,
        &Style {
            width,
            colour: false,
        },
    )
}

/// The page, written where REFIT_SAMPLE_HTML says: to be looked at.
fn page(name: &str, report: &CrashReport) -> String {
    let page = html(report);
    if let Some(directory) = std::env::var_os("REFIT_SAMPLE_HTML") {
        std::fs::write(Path::new(&directory).join(name), &page).unwrap();
    }
    page
}

fn parsed(page: &str, check: impl FnOnce(&Document)) {
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    check(&Document::parse(body).unwrap());
}

fn with_class<'a>(document: &'a Document<'a>, name: &str, class: &str) -> Vec<Node<'a, 'a>> {
    let nodes = document
        .descendants()
        .filter(|node| node.has_tag_name(name));
    nodes
        .filter(|node| node.attribute("class") == Some(class))
        .collect()
}

#[test]
fn a_clean_baseline_and_what_its_variants_lose() {
    let report = sample::report();
    golden("crash-140.txt", &at(&report, 140));
    golden("crash-60.txt", &at(&report, 60));
    golden("crash.md", &markdown(&report));
}

#[test]
fn the_program_s_own_loss_is_told_first_and_blamed_on_nobody() {
    let text = at(&sample::losing(), 120);
    golden("crash-losing.txt", &text);
    let own = text.find("the program itself loses data").unwrap();
    assert!(own < text.find("malloc=jemalloc: in").unwrap());
    assert!(text.contains("loses as the baseline does"));
    assert_eq!(text.matches("LOSES WHAT ITS CLASS FORBIDS").count(), 2);
}

#[test]
fn what_did_not_mount_and_what_is_broken() {
    let text = at(&sample::unmountable(), 100);
    golden("crash-unmountable.txt", &text);
}

#[test]
fn a_control_that_lost_nothing_is_no_result() {
    let text = at(&sample::invalid(), 100);
    golden("crash-invalid.txt", &text);
}

#[test]
fn no_line_is_wider_than_the_terminal_and_none_loses_its_verdict() {
    let reports = [
        sample::report(),
        sample::losing(),
        sample::unmountable(),
        sample::invalid(),
    ];
    for (report, width) in reports.iter().flat_map(|r| (60..=200).map(move |w| (r, w))) {
        let text = at(report, width);
        for line in text.lines() {
            // A path is left whole, to be copied.
            let is_path = line.trim_start().starts_with('/');
            assert!(line.chars().count() <= width || is_path, "{width}: {line}");
            assert_eq!(line, line.trim_end());
        }
        for row in super::row::rows(report) {
            for words in [&row.name, &row.worst, &row.oldest, &row.verdict, &row.class] {
                assert!(text.contains(words), "{width}: {words} is not in\n{text}");
            }
        }
    }
}

#[test]
fn the_picture_tells_the_newest_from_a_hole() {
    let report = sample::report();
    let page = page("crash.html", &report);
    parsed(&page, |document| {
        let with = |class| with_class(document, "line", class).len();
        // A control of twelve cuts, the first two before much was acknowledged.
        let bad = |mode: usize, hole: bool| {
            let states = report.modes[mode].states.iter();
            states
                .filter(|s| s.loss.lost > 0 && s.loss.is_hole == hole)
                .count()
        };
        assert_eq!(with("hole"), bad(3, true));
        assert_eq!(
            with("newest"),
            (0..5).map(|mode| bad(mode, false)).sum::<usize>()
        );
        assert_eq!(with_class(document, "circle", "ring").len(), bad(3, true));
        // All but the control and `sync=off` had cuts that took nothing.
        assert_eq!(with_class(document, "path", "damaged").len(), 1);
        assert_eq!(with_class(document, "path", "acknowledged").len(), 5);
    });
    let unbroken = page.replace("<wbr/>", "");
    for text in [
        "LOSES WHAT ITS CLASS FORBIDS",
        "refit crash open /var/tmp/refit-crash-x/malloc=jemalloc/c",
        "data=ordered",
        "mke2fs 1.47.0",
        ">--check</span> log:a.log",
        "--prepare",
        "disk with a volatile cache",
        "That does not prove that none is possible",
        "0x5eed",
    ] {
        assert!(unbroken.contains(text), "{text}");
    }
}

#[test]
fn a_long_run_of_many_cuts_is_a_small_page() {
    let mut report = sample::report();
    let modes = (0..6).map(|n| {
        let name = format!("sync=off+malloc=jemalloc:{n}");
        let mut mode = sample::mode(&name, Role::Candidate, 5000, |at, n| {
            let lost = sample::newest(at, 5000);
            refit_crash::acknowledgement::Loss {
                is_hole: n % 7 == 0,
                ..lost
            }
        });
        let record = &mut mode.record;
        record.acknowledged_ns = (0..10_000).map(|i| i * record.length_ns / 10_000).collect();
        record.flushed_ns = record.acknowledged_ns.clone();
        mode
    });
    report.modes.extend(modes);
    let page = page("crash-large.html", &report);
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn it_needs_nothing_from_elsewhere() {
    for report in [sample::report(), sample::unmountable(), sample::invalid()] {
        let page = html(&report);
        for word in [
            "http:", "https:", "//", "url(", "@import", "<script", "<link", "<img",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page, html(&report));
    }
    page("crash-losing.html", &sample::losing());
    page("crash-unmountable.html", &sample::unmountable());
    page("crash-invalid.html", &sample::invalid());
}

/// Puts `text` wherever a report has words.
fn hostile(text: &str) -> CrashReport {
    let own = || text.to_owned();
    let mut report = sample::unmountable();
    (report.command, report.options) = (vec![own()], vec![own()]);
    for words in [
        &mut report.refit,
        &mut report.with,
        &mut report.check,
        &mut report.ack,
        &mut report.filesystem.options,
        &mut report.kernel,
        &mut report.mkfs,
        &mut report.directory,
        &mut report.mount,
    ] {
        *words = own();
    }
    for words in [
        &mut report.load,
        &mut report.background,
        &mut report.prepare,
        &mut report.ready,
        &mut report.invalid,
    ] {
        *words = Some(own());
    }
    report.machine.insert(own(), own());
    for mode in &mut report.modes {
        (mode.name, mode.class, mode.record.name) = (own(), own(), own());
        for state in &mut mode.states {
            (state.name, state.image) = (own(), own());
            for words in [&mut state.unmountable, &mut state.broken] {
                *words = words.is_some().then(own);
            }
        }
        let Some(run) = &mut mode.run else { continue };
        run.coverage.unreached = vec![refit_run::UnreachedProgram {
            name: own(),
            reason: own(),
            count: 3,
        }];
        run.coverage.unmatched_scopes = vec![own()];
        run.coverage.seccomp = Some(refit_run::FilterReport::Refused(own()));
    }
    report
}

#[test]
fn no_name_becomes_markup() {
    for text in [
        "<script>alert(1)</script>",
        "\" onload=\"alert(1)",
        "</style></title></svg><b>",
        "<!--",
        "]]>",
        "&lt;script&gt;&#0;",
        "a|b\n| c |",
        &"x".repeat(300),
        "\u{0}\u{1b}[2J\u{9b}\u{202e}\n\u{fffe}",
    ] {
        let report = hostile(text);
        let page = html(&report);
        for text in [&page, &at(&report, 80), &markdown(&report)] {
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
            assert!(!text.contains('\u{202e}'));
        }
        let table = markdown(&report);
        for line in table.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(line.replace(r"\|", "").matches('|').count(), 10, "{line}");
        }
        let plain = html(&hostile("words"));
        parsed(&page, |document| {
            let count = |document: &Document| {
                let elements = document.descendants().filter(Node::is_element);
                let is_break = |node: &Node| node.has_tag_name("wbr");
                elements.filter(|node| !is_break(node)).count()
            };
            parsed(&plain, |plain| {
                assert!(count(document) <= count(plain) + 40, "{text}")
            });
            for node in document.descendants() {
                assert!(!node.is_comment());
                for attribute in node.attributes() {
                    let name = attribute.name();
                    assert!(!name.starts_with("on") && name != "style" && name != "href");
                }
            }
        });
    }
}

#[test]
fn no_report_is_too_strange_to_be_drawn() {
    let strange = [0, 1, u64::MAX, u64::MAX / 2];
    for seed in 0..40_usize {
        let mut report = sample::losing();
        report.modes.extend(sample::unmountable().modes);
        let mut next = seed;
        let mut draw = || {
            next += 1;
            strange[(next * 7 + next / 5 + seed) % strange.len()]
        };
        (report.seed, report.started) = (draw(), draw());
        (report.disk_bytes, report.tear_bytes) = (draw(), draw());
        (report.length_ns, report.cuts) = (draw(), usize::MAX);
        for mode in &mut report.modes {
            let record = &mut mode.record;
            (record.from_ns, record.length_ns) = (draw(), draw());
            record.flushes = usize::try_from(draw()).unwrap();
            record.written_bytes = draw();
            mode.checked_ns = draw();
            record.acknowledged_ns = vec![draw(), draw()];
            for state in &mut mode.states {
                state.at_ns = draw();
                state.loss.lost = usize::try_from(draw()).unwrap();
                state.loss.acknowledged = usize::try_from(draw()).unwrap();
                state.loss.oldest_ns = Some(draw()).filter(|ns| *ns != 1);
                state.loss.is_hole = draw() == 0;
            }
        }
        match seed % 4 {
            0 => report.modes.truncate(1),
            1 => report.modes[0].states.clear(),
            2 => report.modes.clear(),
            _ => report.command.clear(),
        }
        for text in [
            html(&report),
            markdown(&report),
            at(&report, 0),
            at(&report, 80),
        ] {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}

#[test]
fn where_survivors_are_newer_no_time_is_told() {
    let report = sample::losing();
    let rows = super::row::rows(&report);
    let holed = rows.iter().find(|row| row.name == "malloc=jemalloc");
    let mut mode = holed.expect("it is there").mode.clone();
    for state in &mut mode.states {
        state.loss.damaged = 0;
    }
    let report = CrashReport {
        modes: vec![mode],
        ..report.clone()
    };
    let text = super::sentence::sentence(&report, &super::row::rows(&report));
    assert!(
        text.contains("lost up to ") && text.contains(", some older than survivors: no bound"),
        "{text}"
    );
    assert!(
        !text.contains(" at most ") && !text.contains(" ms") && !text.contains(" s "),
        "{text}"
    );
}
