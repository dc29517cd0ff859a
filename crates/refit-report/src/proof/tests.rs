mod junit;

use std::path::Path;

use refit_crash::acknowledgement::Loss;
use refit_crash::mode::{Harm, Role as ModeRole};
use refit_stats::Measure;
use roxmltree::Document;

use super::front::places;
use super::row::rows;
use super::sentence::sentence;
use super::*;
use crate::crash::sample::{mode, newest, nothing, report};
use crate::crash::sentence::Manner;
use crate::sample::{self, effect_mut, golden};

/// The service of the samples: a variant whose loss has an end, one that loses everything, and
/// an allocator, which is not cut.
fn cut() -> (Comparison, Proof) {
    let mut report = report();
    let candidate = |name: &str, rule| {
        let mut mode = mode(name, ModeRole::Candidate, 60, rule);
        mode.class = "loses-on-crash".to_owned();
        mode.may_lose = true;
        mode
    };
    report.recipe = Some("postfix-cleanup".to_owned());
    report.modes.truncate(2);
    report.modes.extend([
        candidate("sync@exe:cleanup=off", |at, _| newest(at, 400)),
        candidate("conf.queue=tmpfs", |at, _| newest(at, 5000)),
    ]);
    (sample::service(), Proof::Cut(Box::new(report)))
}

fn compared() -> Compared {
    let (comparison, proof) = cut();
    Compared {
        comparison,
        proof: Some(proof),
    }
}

fn at(compared: &Compared, width: usize) -> String {
    let colour = false;
    compared.terminal(&Style { width, colour })
}

fn report_of(compared: &mut Compared) -> &mut CrashReport {
    match &mut compared.proof {
        Some(Proof::Cut(report)) => report,
        _ => panic!("it was cut"),
    }
}

fn answer(compared: &Compared) -> String {
    let proof = compared.proof.as_ref().unwrap();
    let rows = rows(&compared.comparison, row::cuts(proof));
    sentence(&compared.comparison, proof, &rows)
}

#[test]
fn one_table_holds_what_is_gained_and_what_is_risked() {
    let compared = compared();
    golden("proof-120.txt", &at(&compared, 120));
    let narrow = at(&compared, 60);
    let block = "conf.queue=tmpfs (loses-on-crash)\n  3.1× faster; loses everything\n  vs baseline +213.0 %; 95 % interval";
    assert!(narrow.contains(block), "{narrow}");
    let row = "| `conf.queue=tmpfs` | +213.0 % | [+199.0 %, +225.0 %] | 373 of 373 | 1.86 s | 38 of 40 | \
               **3.1× faster; loses everything** | 1,294 mail/s | 44 MiB | loses-on-crash |\n";
    assert!(compared.markdown().contains(row), "{}", compared.markdown());
    for width in 60..=200 {
        for line in at(&compared, width).lines() {
            // A command to copy is not broken.
            let is_command = line.contains("refit-crash") || line.contains("/tmp/");
            assert!(
                line.chars().count() <= width || is_command,
                "{width}: {line}"
            );
        }
    }
}

#[test]
fn the_answer_is_the_first_line_of_every_format() {
    let compared = compared();
    let answer = answer(&compared);
    assert_eq!(
        answer,
        "Only if losing data at a power cut is acceptable: \
         `sync@exe:cleanup=off` is 2.5× faster (+145.9 %) and lost at most 400 ms (80 items) in 40 images, newest only; \
         `conf.queue=tmpfs` is 3.1× faster (+213.0 %) and lost everything"
    );
    assert!(at(&compared, 400).starts_with(&format!("{answer}\n")));
    let answer = answer.replace('`', "");
    let plain = |text: &str| text.replace(['`', '\\'], "");
    let first = compared.markdown().lines().next().map(plain);
    assert_eq!(first.as_deref(), Some(&*answer));
    page("proof.html", &compared, |document| {
        let is_answer = |node: &roxmltree::Node| node.attribute("class") == Some("answer");
        let node = document.descendants().find(is_answer).unwrap();
        let text: String = node
            .descendants()
            .filter_map(|n| n.text().filter(|_| n.is_text()))
            .collect();
        assert_eq!(text.replace('\u{a0}', " "), answer);
    });
}

#[test]
fn on_a_narrow_page_each_value_stands_beside_the_name_of_its_column() {
    page("proof.html", &compared(), |document| {
        let table = document.descendants().find(|node| {
            let classes = node.attribute("class").unwrap_or("");
            node.has_tag_name("table") && classes.contains("proof-verdicts")
        });
        let cells = table.unwrap().descendants();
        let titles: Vec<_> = cells
            .filter(|cell| cell.has_tag_name("td"))
            .map(|cell| cell.attribute("data-title").unwrap_or_default())
            .collect();
        assert_eq!(titles.len() % 4, 0, "{titles:?}");
        let rows: Vec<&[&str]> = titles.chunks(titles.len() / 4).collect();
        assert!(rows.iter().all(|row| row == &rows[0]), "{rows:?}");
        assert!(
            rows[0].contains(&"worst loss") && !rows[0].contains(&""),
            "{rows:?}"
        );
    });
    let styles = include_str!("../html/style.css");
    assert!(styles.contains(".cards td::before { display: block; content: attr(data-title)"));
}

/// A page is well-formed, and written where REFIT_SAMPLE_HTML says: to be looked at.
fn page(name: &str, compared: &Compared, check: impl FnOnce(&Document)) {
    let page = compared.html();
    if let Some(directory) = std::env::var_os("REFIT_SAMPLE_HTML") {
        std::fs::write(Path::new(&directory).join(name), &page).unwrap();
    }
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    check(&Document::parse(body).unwrap());
}

#[test]
fn the_picture_is_a_file_of_its_own() {
    let compared = compared();
    let picture = compared.svg();
    if let Some(directory) = std::env::var_os("REFIT_SAMPLE_HTML") {
        std::fs::write(Path::new(&directory).join("proof.svg"), &picture).unwrap();
    }
    let document = Document::parse(&picture).unwrap();
    let text: String = document
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    let text = text.replace('\u{a0}', " ");
    let answer = answer(&compared).replace('`', "");
    for word in answer
        .split(' ')
        .chain(["conf.queue=tmpfs", "everything", "2×"])
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    // Of an uncut comparison, every run.
    let mut uncut = compared;
    uncut.proof = Some(Proof::NotCut("no root".to_owned()));
    assert_eq!(uncut.svg(), crate::svg(&uncut.comparison));
    assert_ne!(uncut.svg(), picture);
}

#[test]
fn the_picture_has_a_mark_for_each_variant_and_joins_what_nothing_beats() {
    let mut compared = compared();
    let count = |document: &Document, class: &str| {
        let has = |node: &roxmltree::Node| {
            let classes = node.attribute("class").unwrap_or("");
            node.is_element() && classes.split(' ').any(|one| one == class)
        };
        document.descendants().filter(has).count()
    };
    page("proof.html", &compared, |document| {
        assert_eq!(count(document, "place"), 4);
        assert_eq!(count(document, "uncut"), 1);
        assert_eq!(count(document, "front"), 2);
    });
    // A hole is a ring, and beaten by what gains no less and loses less.
    let modes = &mut report_of(&mut compared).modes;
    for state in &mut modes[3].states {
        state.loss.is_hole = state.loss.lost > 0;
        state.loss.lost = state.loss.lost.min(3);
        state.loss.oldest_ns = state.loss.oldest_ns.map(|_| 50_000_000);
    }
    effect_mut(&mut compared.comparison, 2, "rate").change = 1.2;
    page("proof-holes.html", &compared, |document| {
        assert_eq!(count(document, "holed"), 1);
        assert_eq!(count(document, "front"), 1);
    });
    let text = at(&compared, 200);
    assert!(text.contains("loses with holes"), "{text}");
    assert!(
        !answer(&compared).contains("tmpfs"),
        "{}",
        answer(&compared)
    );
}

#[test]
fn what_was_not_cut_is_called_that() {
    let mut compared = compared();
    compared.proof = Some(Proof::NotCut(
        "root is needed to mount file systems".to_owned(),
    ));
    let text = at(&compared, 400);
    assert!(
        text.starts_with(
            "Only if losing data at a power cut is acceptable: `sync@exe:cleanup=off` is 2.5× faster (+145.9 %, loses-on-crash); \
             `conf.queue=tmpfs` is 3.1× faster (+213.0 %, loses-on-crash); \
             what a power cut takes was not tested: root is needed"
        ),
        "{text}"
    );
    assert!(text.contains("2.5× faster; not cut"), "{text}");
    assert!(!text.contains("no loss found"));
    page("proof-not-cut.html", &compared, |_| {});
}

#[test]
fn an_invalid_run_concludes_nothing_of_a_loss() {
    let mut compared = compared();
    let report = report_of(&mut compared);
    report.invalid = Some("on a disk that ignored its flushes nothing was lost".to_owned());
    report.modes.truncate(1);
    let answer = answer(&compared);
    assert!(answer.contains("INVALID RUN"), "{answer}");
    assert!(!answer.contains("lost nothing"));
    page("proof-invalid.html", &compared, |_| {});
}

#[test]
fn without_an_acknowledgement_no_loss_is_denied() {
    let mut compared = compared();
    let nobody = |_, _| Loss::default();
    for (cuts, told, verdict) in [
        (
            60,
            "acknowledged nothing that a cut could take",
            "nothing was acknowledged",
        ),
        (0, "was not cut", "no cut was made"),
    ] {
        let mode = mode("conf.queue=tmpfs", ModeRole::Candidate, cuts, nobody);
        report_of(&mut compared).modes[3] = mode;
        let answer = answer(&compared);
        assert!(
            answer.ends_with(&format!(
                "`conf.queue=tmpfs` is 3.1× faster (+213.0 %) and {told}"
            )),
            "{answer}"
        );
        assert!(!answer.contains("lost nothing"), "{answer}");
        assert!(at(&compared, 200).contains(&format!("3.1× faster; {verdict}")));
    }
}

#[test]
fn the_program_s_own_loss_is_part_of_the_answer() {
    let mut compared = compared();
    let own = mode("baseline", ModeRole::Baseline, 60, |at, _| newest(at, 5));
    report_of(&mut compared).modes[1] = own;
    let answer = answer(&compared);
    let own = "; the program itself lost at most 5.00 ms (1 item) in 40 images, newest only";
    assert!(answer.ends_with(own), "{answer}");
    assert!(at(&compared, 200).contains("the program itself loses the newest"));
    // What is safe by its class loses what the baseline loses, and no more.
    let rows = rows(
        &compared.comparison,
        row::cuts(compared.proof.as_ref().unwrap()),
    );
    let all = places(&rows, Measure::Rate);
    let uncut = all.iter().flatten().find(|place| place.by_class).unwrap();
    assert_eq!(uncut.loss, (Manner::Newest, 5_000_000));
}

#[test]
fn what_lost_nothing_in_any_cut_is_a_yes() {
    let mut compared = compared();
    let modes = &mut report_of(&mut compared).modes;
    modes[2] = mode("sync@exe:cleanup=off", ModeRole::Candidate, 60, nothing);
    let effect = effect_mut(&mut compared.comparison, 3, "rate");
    (effect.gain, effect.verdict) = (true, Some(refit_lab::Verdict::Faster));
    (effect.change, effect.interval) = (9.0, Some([8.8, 9.2]));
    let answer = answer(&compared);
    assert_eq!(
        answer,
        "Yes: `malloc=jemalloc` is 10× faster (+900.0 %; safe, not cut) and costs pss +21 %"
    );
    effect_mut(&mut compared.comparison, 3, "rate").gain = false;
    let answer = self::answer(&compared);
    assert_eq!(
        answer,
        "Yes: `sync@exe:cleanup=off` is 2.5× faster (+145.9 %) and lost nothing in 40 images; \
         if losing data at a power cut is acceptable, `conf.queue=tmpfs` is 3.1× faster (+213.0 %) and lost everything"
    );
}

#[test]
fn without_a_gain_the_losses_are_still_told() {
    let mut compared = compared();
    for index in 1..=3 {
        let effect = effect_mut(&mut compared.comparison, index, "rate");
        (effect.gain, effect.verdict) = (false, Some(refit_lab::Verdict::Same));
    }
    let answer = answer(&compared);
    assert!(
        answer.starts_with("No: no variant gains more than the noise; `sync@exe"),
        "{answer}"
    );
    assert!(
        answer.ends_with("`conf.queue=tmpfs` lost everything"),
        "{answer}"
    );
}

#[test]
fn damage_is_worse_than_any_age() {
    let mut compared = compared();
    let modes = &mut report_of(&mut compared).modes;
    modes[2].states[30].loss = Loss {
        damaged: 1,
        ..newest(1000, 20)
    };
    assert!(modes[2].states[30].harms().contains(&Harm::Damaged));
    modes[3] = mode("conf.queue=tmpfs", ModeRole::Candidate, 60, nothing);
    let rows = rows(
        &compared.comparison,
        row::cuts(compared.proof.as_ref().unwrap()),
    );
    let manners: Vec<Option<Manner>> = rows.iter().map(|row| row.manner).collect();
    let expected = [
        Some(Manner::Nothing),
        Some(Manner::Damaged),
        Some(Manner::Nothing),
    ];
    assert_eq!(manners[..3], expected);
}

#[test]
fn it_is_stored_and_read_again() {
    let compared = compared();
    let text = serde_json::to_string(&compared).unwrap();
    let again: Compared = serde_json::from_str(&text).unwrap();
    assert_eq!(at(&again, 120), at(&compared, 120));
    // One that was never cut is stored as before.
    let plain = Compared {
        proof: None,
        ..compared
    };
    let before = serde_json::to_string(&plain.comparison).unwrap();
    assert_eq!(serde_json::to_string(&plain).unwrap(), before);
}

#[test]
fn a_bound_is_told_to_be_kept_or_broken() {
    for (oldest_ms, says, verdict) in [
        (
            400,
            "within its bound (x)",
            "2.5× faster; loses within its bound",
        ),
        (
            399,
            "BREAKING its bound (x) by 1.00 ms",
            "2.5× faster; BREAKS ITS BOUND",
        ),
    ] {
        let mut compared = compared();
        report_of(&mut compared).modes[2].bound = Some(refit_crash::mode::BoundRecord {
            text: "x".to_owned(),
            oldest_ns: Some(oldest_ms * 1_000_000),
        });
        let text = at(&compared, 200);
        assert!(text.contains(says) && text.contains(verdict), "{text}");
        let is_kept = text.contains("bound: x of sync@exe:cleanup=off: kept in 40 images");
        assert_eq!(is_kept, oldest_ms == 400, "{text}");
        assert_eq!(text.contains("broken in "), !is_kept, "{text}");
    }
}

#[test]
fn a_bound_without_a_time_allows_to_lose_everything() {
    let mut compared = compared();
    let mut modes = report_of(&mut compared).modes.iter_mut();
    let tmpfs = modes.find(|mode| mode.name == "conf.queue=tmpfs").unwrap();
    tmpfs.bound = Some(refit_crash::mode::BoundRecord {
        text: "newest-only".to_owned(),
        oldest_ns: None,
    });
    let answer = answer(&compared);
    let expected = "lost everything, which its bound (newest-only) allows";
    assert!(answer.contains(expected), "{answer}");
}
