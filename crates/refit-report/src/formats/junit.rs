//! A comparison as JUnit XML, for the test pages of CI systems.
//!
//! There is one test case for the baseline, one for each candidate and gate (without gates: one for
//! each candidate), and with power cuts one for each program that was cut.

use refit_crash::CrashReport;
use refit_crash::mode::Role as CutRole;
use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, GateAnswer, GateRecord, Verdict};

use crate::Style;
use crate::format;
use crate::markup::Markup;
use crate::proof::{Compared, Proof};
use crate::row::{Row, rows};
use crate::title::title;

/// The width of the table in the output of the test suite.
const WIDTH: usize = 120;

/// What became of a test case, with the sentence that tells why it did not pass.
enum Answer {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

struct Case {
    /// The variant.
    class: String,
    /// The gate.
    name: String,
    /// What all runs of the variant took.
    seconds: f64,
    answer: Answer,
}

/// One `testsuites` with one `testsuite`, in the order that the stricter schemas ask for.
#[must_use]
pub fn junit(compared: &Compared) -> String {
    let comparison = &compared.comparison;
    let experiment = &comparison.experiment;
    let cases = cases(compared);
    let count = |is: fn(&Answer) -> bool| {
        let found = cases.iter().filter(|case| is(&case.answer));
        found.count().to_string()
    };
    let tests = cases.len().to_string();
    let failures = count(|answer| matches!(answer, Answer::Failure(_)));
    let errors = count(|answer| matches!(answer, Answer::Error(_)));
    let skipped = count(|answer| matches!(answer, Answer::Skipped(_)));
    let time = seconds(experiment.plan.took_s);
    let counts = [
        ("tests", &*tests),
        ("failures", &failures),
        ("errors", &errors),
        ("time", &time),
    ];
    let name = format!("refit compare {}", title(experiment));
    let timestamp = format::date(experiment.started_unix).replacen(' ', "T", 1) + ":00";
    let fixed = &experiment.environment.fixed;
    let hostname = fixed.get("machine").map_or("unknown", |name| name);
    let mut out = Markup::default();
    let of_all = [&[("name", "refit")], &counts[..]].concat();
    out.element("testsuites", &of_all, |out| {
        out.end_line();
        let of_suite = [
            ("skipped", &*skipped),
            ("timestamp", &timestamp),
            ("hostname", hostname),
        ];
        let of_suite = [&[("name", &*name)], &counts[..], &of_suite].concat();
        out.element("testsuite", &of_suite, |out| {
            out.end_line();
            properties(out, experiment);
            for case in &cases {
                case.write(out);
            }
            // What a terminal shows.
            let style = Style {
                width: WIDTH,
                colour: false,
            };
            let shown = compared.terminal(&style);
            out.element("system-out", &[], |out| lines(out, &shown));
            out.end_line();
        });
        out.end_line();
    });
    out.end_line();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
        out.finish()
    )
}

fn properties(out: &mut Markup, experiment: &Experiment) {
    let mut all = vec![
        ("refit".to_owned(), experiment.refit.clone()),
        ("seed".to_owned(), format::seed(experiment.seed)),
    ];
    let fixed = experiment.environment.fixed.iter();
    all.extend(fixed.map(|(name, value)| (format!("machine.{name}"), value.clone())));
    out.element("properties", &[], |out| {
        out.end_line();
        for (name, value) in &all {
            out.void("property", &[("name", name), ("value", value)]);
            out.end_line();
        }
    });
    out.end_line();
}

/// Text of several lines.
fn lines(out: &mut Markup, text: &str) {
    for line in text.lines() {
        out.plain(line);
        out.end_line();
    }
}

impl Case {
    fn write(&self, out: &mut Markup) {
        let time = seconds(self.seconds);
        let attributes = [
            ("classname", &*self.class),
            ("name", &self.name),
            ("time", &time),
        ];
        let why = |out: &mut Markup, element: &'static str, kind: &str, text: &str| {
            let message = text.lines().next().unwrap_or_default();
            out.element(element, &[("message", message), ("type", kind)], |out| {
                lines(out, text);
            });
        };
        out.element("testcase", &attributes, |out| match &self.answer {
            Answer::Passed => {}
            Answer::Failure(text) => why(out, "failure", "gate", text),
            Answer::Error(text) => why(out, "error", "run", text),
            // Its attribute of that name is all that most schemas allow.
            Answer::Skipped(text) => out.void("skipped", &[("message", text)]),
        });
        out.end_line();
    }
}

fn cases(compared: &Compared) -> Vec<Case> {
    let comparison = &compared.comparison;
    let experiment = &comparison.experiment;
    let mut cases = vec![Case {
        class: "baseline".to_owned(),
        name: "runs".to_owned(),
        seconds: seconds_of(experiment, 0),
        answer: match &experiment.failed {
            Some(failed) => Answer::Error(failed.clone()),
            None => Answer::Passed,
        },
    }];
    for row in rows(comparison) {
        if row.variant.role != Role::Candidate {
            continue;
        }
        let gates = comparison.gates.iter();
        let gates: Vec<&GateRecord> = gates.filter(|gate| gate.variant == row.index).collect();
        let case = |name: String, answer: Answer| Case {
            class: row.name.clone(),
            name,
            seconds: seconds_of(experiment, row.index),
            answer: match &row.variant.disqualified {
                Some(why) => Answer::Error(format!("disqualified: {why}")),
                None => answer,
            },
        };
        cases.extend(
            gates
                .iter()
                .map(|record| case(record.gate.to_string(), gate(comparison, record))),
        );
        if gates.is_empty() {
            cases.push(case(experiment.main.clone(), verdict(comparison, &row)));
        }
    }
    match &compared.proof {
        Some(Proof::Cut(report)) => cases.extend(cuts(report)),
        Some(Proof::NotCut(why)) => cases.push(Case {
            class: "power cuts".to_owned(),
            name: "promise".to_owned(),
            seconds: 0.0,
            answer: Answer::Skipped(why.clone()),
        }),
        None => {}
    }
    cases
}

fn gate(comparison: &Comparison, record: &GateRecord) -> Answer {
    let measured = measured(comparison, record.variant, &record.gate.metric);
    let sentence = |answer: &str| format!("gate {} {answer}: {measured}", record.gate);
    match record.answer {
        GateAnswer::Passed => Answer::Passed,
        GateAnswer::Failed => Answer::Failure(sentence("failed")),
        GateAnswer::Undecided => Answer::Skipped(sentence("is undecided")),
    }
}

/// Of a candidate without a gate. Whatever the answer is, it does not fail: no limit was set.
fn verdict(comparison: &Comparison, row: &Row) -> Answer {
    let experiment = &comparison.experiment;
    let verdict = row.effect.and_then(|effect| effect.verdict);
    if experiment.is_exact() || verdict.is_some_and(Verdict::is_settled) {
        return Answer::Passed;
    }
    let measured = measured(comparison, row.index, &experiment.main);
    Answer::Skipped(format!("inconclusive: {measured}"))
}

/// `wall −5.0 % [−7.0 %, −2.0 %] against the baseline`, or why that is not known.
fn measured(comparison: &Comparison, variant: usize, metric: &str) -> String {
    if comparison.experiment.failed.is_some() {
        return "the comparison ended early, see the test case of the baseline".to_owned();
    }
    let early = match comparison.experiment.interrupted {
        true => "; the comparison was interrupted",
        false => "",
    };
    match comparison.effects.get(variant, metric) {
        Some(effect) => {
            let change = format::percent(effect.change);
            let interval = match effect.interval {
                Some(_) => format!(" {}", format::interval(effect.interval)),
                None => ", without an interval: too few round pairs".to_owned(),
            };
            format!("{metric} {change}{interval} against the baseline{early}")
        }
        None => format!("{metric} was not measured often enough{early}"),
    }
}

/// Every program that was cut. The disk that ignores flushes has to lose, and is not one.
fn cuts(report: &CrashReport) -> Vec<Case> {
    let modes = report.modes.iter();
    let modes = modes.filter(|mode| mode.role != CutRole::Control);
    modes
        .map(|mode| Case {
            class: mode.name.clone(),
            name: "power cuts".to_owned(),
            seconds: mode.checked_ns as f64 / 1e9,
            answer: match &report.invalid {
                Some(why) => Answer::Error(format!("nothing can be concluded: {why}")),
                None if report.breaks_class(mode) => Answer::Failure(format!(
                    "a power cut took what the class {} forbids",
                    mode.class
                )),
                None => Answer::Passed,
            },
        })
        .collect()
}

fn seconds_of(experiment: &Experiment, variant: usize) -> f64 {
    let runs = experiment.runs.iter();
    let runs = runs.filter(|run| run.variant == variant);
    runs.map(|run| run.run.metrics.wall_ns as f64 / 1e9).sum()
}

/// As `xs:decimal` has it.
fn seconds(seconds: f64) -> String {
    format!("{seconds:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_lab::experiment::Disqualified;

    use crate::sample;

    fn compared(comparison: Comparison) -> Compared {
        Compared {
            comparison,
            proof: None,
        }
    }

    /// The test cases as `VARIANT NAME: ANSWER`.
    fn answers(compared: &Compared) -> Vec<String> {
        let word = |answer: &Answer| match answer {
            Answer::Passed => "passed".to_owned(),
            Answer::Failure(text) => format!("failure {text}"),
            Answer::Error(text) => format!("error {text}"),
            Answer::Skipped(text) => format!("skipped {text}"),
        };
        let cases = cases(compared).into_iter();
        cases
            .map(|case| format!("{} {}: {}", case.class, case.name, word(&case.answer)))
            .collect()
    }

    #[test]
    fn each_gate_and_candidate_is_a_test_case() {
        let mut comparison = sample::experiment();
        comparison.gates = sample::gates();
        comparison.gates[1].answer = GateAnswer::Failed;
        sample::golden("junit.xml", &junit(&compared(comparison.clone())));
        comparison.experiment.variants[1].disqualified =
            Some(Disqualified::Failed("exit code 1".to_owned()));
        assert_eq!(
            answers(&compared(comparison)),
            [
                "baseline runs: passed",
                "sync=off wall<+2%: error disqualified: exit code 1",
                "malloc=jemalloc wall<+2%: failure gate wall<+2% failed: wall −0.5 % [−0.9 %, +0.2 %] against the baseline",
                "thp=never wall<+2%: skipped gate wall<+2% is undecided: wall −3.2 % [−6.9 %, +0.4 %] against the baseline",
            ]
        );
    }

    #[test]
    fn without_gates_nothing_fails_and_what_is_open_is_skipped() {
        let mut comparison = sample::experiment();
        let effect = sample::effect_mut(&mut comparison, 1, "wall");
        (effect.gain, effect.verdict) = (false, Some(Verdict::Slower));
        comparison.experiment.interrupted = true;
        assert_eq!(
            answers(&compared(comparison)),
            [
                "baseline runs: passed",
                "sync=off wall: passed",
                "malloc=jemalloc wall: passed",
                "thp=never wall: skipped inconclusive: wall −3.2 % [−6.9 %, +0.4 %] against the baseline; \
                 the comparison was interrupted",
            ]
        );
    }

    #[test]
    fn a_failed_baseline_is_an_error_and_no_gate_passes() {
        let mut comparison = sample::experiment();
        comparison.gates = sample::gates();
        for gate in &mut comparison.gates {
            gate.answer = GateAnswer::Undecided;
        }
        comparison.experiment.failed = Some("the baseline failed: exit code 1".to_owned());
        let answers = answers(&compared(comparison));
        assert_eq!(
            answers[0],
            "baseline runs: error the baseline failed: exit code 1"
        );
        assert_eq!(answers.len(), 4);
        for answer in &answers[1..] {
            assert!(
                answer.contains(": skipped gate wall<+2% is undecided"),
                "{answer}"
            );
        }
    }
}
