use super::*;
use crate::sample;
use refit_lab::experiment::{Class, Disqualified};
use roxmltree::{Document, Node};

/// What a browser reads, which for our pages is XML as well.
fn parsed(page: &str, check: impl FnOnce(&Document)) {
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    check(&Document::parse(body).unwrap());
}

fn with_class<'a>(document: &'a Document<'a>, class: &str) -> Vec<Node<'a, 'a>> {
    let has = |node: &Node| {
        let classes = node.attribute("class").unwrap_or("");
        classes.split(' ').any(|one| one == class)
    };
    document.descendants().filter(has).collect()
}

fn write(name: &str, page: &str) {
    if let Some(directory) = std::env::var_os("REFIT_SAMPLE_HTML") {
        std::fs::write(std::path::Path::new(&directory).join(name), page).unwrap();
    }
}

#[test]
fn a_service_has_all_of_its_parts() {
    let mut comparison = sample::service();
    comparison.warnings = sample::experiment().warnings;
    let page = html(&comparison);
    write("service.html", &page);
    for text in [
        "Does Postfix get faster",
        "1,004 mail/s",
        "[+138.0\u{a0}%, +153.0\u{a0}%]",
        "cleanup is the only daemon",
        "libtcmalloc is not installed",
        "right of 0 is faster",
        "/usr/lib/postfix/sbin/cleanup",
        "spread evenly",
        ">--seed</span> 0x5e1f",
        "postfix-cleanup sync@exe:cleanup=off conf.queue=tmpfs malloc=jemalloc",
    ] {
        assert!(page.replace("<wbr/>", "").contains(text), "{text}");
    }
    parsed(&page, |document| {
        assert_eq!(with_class(document, "estimate").len(), 4);
        // Two charts, since there are children; without the hidden baseline.
        assert_eq!(with_class(document, "memory").len(), 2 * 4);
        assert_eq!(with_class(document, "bar-all").len(), 5 * 4);
        assert_eq!(with_class(document, "warning").len(), 1);
        let counted: usize = (0..5)
            .map(|i| comparison.experiment.runs.counted(i).count())
            .sum();
        assert_eq!(with_class(document, "run").len(), counted);
    });
}

#[test]
fn a_command_has_no_memory_over_operations() {
    let mut comparison = sample::experiment();
    comparison.confirmation = Some(Box::new(sample::confirmation()));
    comparison.gates = sample::gates();
    comparison.experiment.runs.as_mut_slice()[20].failure = Some("exit code 1".to_owned());
    let page = html(&comparison);
    write("command.html", &page);
    parsed(&page, |document| {
        assert_eq!(with_class(document, "memory").len(), 0);
        assert_eq!(with_class(document, "failed").len(), 1);
    });
    for text in [
        "Confirmation",
        "left of 0 is faster",
        "max RSS",
        "1 run: exit code 1",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn it_needs_nothing_from_elsewhere() {
    for experiment in [sample::service(), sample::experiment()] {
        let page = html(&experiment);
        for word in [
            "http:", "https:", "//", "url(", "@import", "<script", "<link", "<img",
        ] {
            assert!(!page.contains(word), "{word}");
        }
        assert_eq!(page, html(&experiment));
    }
}

/// Puts `text` wherever a record has words.
fn hostile(text: &str) -> refit_lab::Comparison {
    let mut comparison = sample::service();
    let own = || text.to_owned();
    let why = comparison
        .experiment
        .variants
        .iter()
        .map(|_| (own(), own()))
        .collect();
    let recipe = comparison.experiment.recipe.as_mut().unwrap();
    (recipe.name, recipe.question, recipe.unit) = (own(), own(), own());
    recipe.folder = Some(own());
    recipe.metrics[0].about = own();
    recipe.metrics[0].name = own();
    recipe.why = why;
    comparison.experiment.command = vec![own()];
    comparison.experiment.refit = own();
    for variant in &mut comparison.experiment.variants[1..] {
        variant.name = own();
    }
    comparison.experiment.variants[3].disqualified = Some(Disqualified::Failed(own()));
    comparison.experiment.unavailable[0].settings = own();
    comparison.experiment.unavailable[0].reason = own();
    comparison.experiment.with = vec![sample::setting(
        &format!("env.WORD={}", text.replace('\0', "")),
        Class::ChangesBehaviour,
    )];
    comparison.gates = sample::gates();
    comparison.gates[0].gate = format!("{}<+2%", text.replace(['<', '>'], ""))
        .parse()
        .unwrap();
    let warning = refit_lab::Warning {
        text: own(),
        action: own(),
    };
    comparison.warnings = vec![warning];
    let environment = &mut comparison.experiment.environment;
    for facts in [
        &mut environment.fixed,
        &mut environment.before,
        &mut environment.after,
    ] {
        facts.insert(own(), own());
    }
    for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
        let load = run.load.as_mut().unwrap();
        load.outcome = own();
        load.values.insert(own(), 3.0);
        let service = load.service.as_mut().unwrap();
        let calls = service
            .calls
            .values()
            .next()
            .unwrap()
            .values()
            .next()
            .unwrap();
        service.calls = [(own(), [(own(), *calls)].into())].into();
    }
    comparison.experiment.runs.as_mut_slice()[12].failure = Some(own());
    comparison.confirmation = Some(Box::new(comparison.clone()));
    comparison
}

#[test]
fn no_name_becomes_markup() {
    for text in [
        "<script>alert(1)</script>",
        "\" onload=\"alert(1)",
        "' style='x",
        "</style></title></svg><b>",
        "<!--",
        "]]>",
        "&lt;script&gt;&#0;",
        &"x".repeat(300),
        "\u{0}\u{1b}[2J\u{9b}\u{202e}\n\u{fffe}",
    ] {
        let page = html(&hostile(text));
        if text.len() == 300 {
            write("hostile.html", &page);
        }
        assert!(!page.contains(|c: char| c.is_control() && c != '\n'));
        assert!(!page.contains(['\u{202e}', '\u{fffe}']));
        parsed(&page, |document| {
            let plain = html(&hostile("words"));
            parsed(&plain, |plain| {
                let names = |document: &Document| -> std::collections::BTreeSet<String> {
                    let nodes = document.descendants();
                    let names = nodes.map(|node| node.tag_name().name().to_owned());
                    names.filter(|name| name != "wbr").collect()
                };
                assert!(names(document).is_subset(&names(plain)), "{text}");
            });
            for node in document.descendants() {
                for attribute in node.attributes() {
                    let name = attribute.name();
                    assert!(!name.starts_with("on") && name != "style" && name != "href");
                }
            }
            assert_eq!(
                document
                    .descendants()
                    .filter(|node| node.is_comment())
                    .count(),
                0
            );
        });
    }
}
