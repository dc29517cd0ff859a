//! Stored results of somebody else, drawn in every format.

use std::path::PathBuf;

use refit_crash::CrashReport;
use refit_fuzz::Target;
use refit_lab::{Pool, Scan, Tuning};
use refit_run::series::Series;
use serde::Serialize;

use crate::metrics::{Format, WatchMetrics, escaped};
use crate::{Compared, Proof, Style};

/// A text of a result may be this; on no page it may be an element.
const ELEMENT: &str = "<zzz>";

/// What means something in a result.
const WORDS: [&str; 22] = [
    ELEMENT,
    "\\u001b[2J",
    "\\u202e",
    "\\u0000",
    "\"&amp;",
    "null",
    "true",
    "[]",
    "{}",
    "-0.0",
    "1e308",
    "-1e308",
    "5e-324",
    "18446744073709551615",
    "-9223372036854775808",
    "\"faster\"",
    "\"inconclusive\"",
    "\"\"",
    "\"loses-on-crash\"",
    "]]>",
    "-->",
    "\\n",
];

const WIDTHS: [usize; 3] = [0, 60, 200];

fn style(width: usize) -> Style {
    Style {
        width,
        colour: false,
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

/// What no text may be, wherever it goes.
fn is_plain(text: &str) {
    let bad = text.chars().find(|c| c.is_control() && *c != '\n');
    assert!(
        bad.is_none(),
        "{bad:?} in {}",
        shown(text, |c| c.is_control() && c != '\n')
    );
    for word in ["NaN", "inf ", "inf%", "inf\n"] {
        assert!(!text.contains(word), "{word} in the text");
    }
}

fn shown(text: &str, of: impl Fn(char) -> bool) -> &str {
    let at = text.find(of).unwrap_or(0);
    let start = (0..=at.saturating_sub(60))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    let rest = &text[start.unwrap_or(0)..];
    rest.get(..160).unwrap_or(rest)
}

/// The same of a page or a picture, in which a text is no markup.
fn is_page(text: &str) {
    is_plain(text);
    assert!(!text.contains(ELEMENT), "a text became an element");
}

/// A picture is well formed.
fn is_picture(text: &str) {
    is_page(text);
    if let Err(error) = roxmltree::Document::parse(text) {
        panic!("{error}: {}", &text[..text.len().min(300)]);
    }
}

/// A text is passed on as a value of JSON.
fn is_json(text: &str) {
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        panic!("{error}");
    }
}

fn drawn(compared: &Compared) {
    for width in WIDTHS {
        is_plain(&compared.terminal(&style(width)));
    }
    for format in crate::FORMATS {
        let text = (format.comparison)(compared);
        // By what it begins with.
        match text.chars().next() {
            Some('<') if text.starts_with("<!DOCTYPE html>") => is_page(&text),
            Some('<') => is_picture(&text),
            Some('{' | '[') => is_json(&text),
            _ => is_plain(&text),
        }
    }
    let named = (PathBuf::from("a.json"), compared.comparison.clone());
    is_plain(&crate::history(&[named], &crate::Kept::default()));
}

#[test]
fn comparisons() {
    let mut few = crate::sample::experiment();
    // Some rounds are enough, and a mutation then meets each field sooner.
    let kept = few.experiment.runs.as_mut_slice().len().min(24);
    few.experiment.runs = few.experiment.runs.as_mut_slice()[..kept]
        .iter()
        .cloned()
        .collect();
    few.confirmation = None;
    let mut service = crate::sample::service();
    let kept = service.experiment.runs.as_mut_slice().len().min(8);
    service.experiment.runs = service.experiment.runs.as_mut_slice()[..kept]
        .iter()
        .cloned()
        .collect();
    few.gates = crate::sample::gates();
    let proven = Compared {
        comparison: few.clone(),
        proof: Some(Proof::Cut(Box::new(crate::crash::sample::losing()))),
    };
    Target::new(env!("CARGO_MANIFEST_DIR"), "comparisons")
        .seeds([json(&few), json(&service), json(&proven)])
        .words(WORDS)
        .longest(256 << 10)
        .mutations(3)
        .memory(64 << 20, 1 << 10)
        .run(|input| {
            let Ok(compared) = serde_json::from_slice::<Compared>(input) else {
                return;
            };
            drawn(&compared);
            let again: Compared = serde_json::from_slice(&json(&compared)).unwrap();
            assert_eq!(json(&again), json(&compared), "it is stored as it was read");
        });
}

#[test]
fn power_cuts() {
    let seeds = [
        crate::crash::sample::report(),
        crate::crash::sample::unmountable(),
        crate::crash::sample::invalid(),
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "power_cuts")
        .seeds(seeds.iter().map(json))
        .words(WORDS)
        .longest(256 << 10)
        .mutations(5)
        .memory(64 << 20, 1 << 10)
        .run(|input| {
            let Ok(report) = serde_json::from_slice::<CrashReport>(input) else {
                return;
            };
            for width in WIDTHS {
                is_plain(&crate::crash::terminal(&report, &style(width)));
            }
            is_plain(&crate::crash::markdown(&report));
            is_page(&crate::crash::html(&report));
            let again: CrashReport = serde_json::from_slice(&json(&report)).unwrap();
            assert_eq!(json(&again), json(&report), "it is stored as it was read");
        });
}

#[test]
fn watched() {
    let mut few = crate::watch::sample::machine();
    few.samples.truncate(12);
    Target::new(env!("CARGO_MANIFEST_DIR"), "watched")
        .seeds([json(&few)])
        .words(WORDS)
        .longest(64 << 10)
        .mutations(5)
        .memory(64 << 20, 1 << 10)
        .run(|input| {
            let Ok(series) = serde_json::from_slice::<Series>(input) else {
                return;
            };
            if !series.is_whole() {
                return;
            }
            is_plain(&crate::watch::terminal(&series));
            is_page(&crate::watch::html(&series));
            is_picture(&crate::watch::svg(&series));
            let mut metrics = WatchMetrics::default();
            for sample in &series.samples {
                metrics.add(&series, sample);
            }
            while metrics.estimate_next(&series) {}
            for format in [Format::Prometheus, Format::OpenMetrics] {
                is_metrics(&metrics.metrics().text(format));
            }
        });
}

/// Each line is a comment or `name{labels} number`, no two of the same name and labels, and the end is marked.
fn is_metrics(text: &str) {
    is_plain(text);
    let body = text.strip_suffix("# EOF\n").expect("it ends");
    let mut seen = std::collections::BTreeSet::new();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (sample, value) = line.rsplit_once(' ').expect("a value");
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(seen.insert(sample), "twice: {line}");
        let name = sample.split('{').next().unwrap_or_default();
        assert!(
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "{line}"
        );
        if let Some((_, labels)) = sample.split_once('{') {
            are_labels(labels.strip_suffix('}').expect("closed"));
        }
    }
}

/// `a="…",b="…"`, in which a quote and a backslash are escaped.
fn are_labels(text: &str) {
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").expect("a value");
        assert!(
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "{text}"
        );
        let mut is_escaped = false;
        let end = after.bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        rest = &after[end.expect("it ends") + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return assert!(rest.is_empty(), "{text}"),
        }
    }
}

#[test]
fn labels_of_metrics() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "labels_of_metrics")
        .seeds(["postfix/cleanup", "a \"b\" \\c", "\u{1b}[2J\u{202e}\n# EOF"])
        .words(["\"", "\\", "\n", "{", "}", ",", "# EOF\n"])
        .run(|input| {
            let value = escaped(&String::from_utf8_lossy(input));
            assert!(!value.contains(char::is_control), "{value:?}");
            are_labels(&format!("service=\"{value}\",layer=\"file\""));
        });
}

#[test]
fn pools() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "pools")
        .seeds([json(&crate::pool::tests::sample())])
        .words(WORDS)
        .mutations(20)
        .memory(32 << 20, 1 << 10)
        .run(|input| {
            let Ok(pool) = serde_json::from_slice::<Pool>(input) else {
                return;
            };
            for width in WIDTHS {
                is_plain(&crate::pool::terminal(&pool, &style(width)));
            }
            is_plain(&crate::pool::markdown(&pool));
            is_page(&crate::pool::html(&pool));
            is_picture(&crate::pool::svg(&pool));
        });
}

#[test]
fn scans() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "scans")
        .seeds([json(&crate::scan::tests::sample())])
        .words(WORDS)
        .longest(256 << 10)
        .mutations(3)
        .memory(64 << 20, 1 << 10)
        .run(|input| {
            let Ok(scan) = serde_json::from_slice::<Scan>(input) else {
                return;
            };
            for width in WIDTHS {
                is_plain(&crate::scan::terminal(&scan, &style(width)));
            }
            is_plain(&crate::scan::markdown(&scan));
            is_page(&crate::scan::html(&scan));
            is_picture(&crate::scan::svg(&scan));
        });
}

#[test]
fn tunings() {
    Target::new(env!("CARGO_MANIFEST_DIR"), "tunings")
        .seeds([&include_bytes!("../fuzz/tuning.json")[..]])
        .words(WORDS)
        .mutations(20)
        .memory(8 << 20, 1 << 10)
        .run(|input| {
            let Ok(tuning) = serde_json::from_slice::<Tuning>(input) else {
                return;
            };
            for width in WIDTHS {
                is_plain(&crate::tuning(&tuning, "a log", &style(width)));
            }
            is_plain(&crate::proposed(&tuning));
            for step in &tuning.steps {
                is_plain(&crate::step_ended(step));
            }
        });
}
