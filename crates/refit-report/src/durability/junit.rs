//! The durability check as JUnit XML, for the test pages of CI systems: a test case for each rule.

use refit_run::{DurabilityReport, Finding, Level, Rule};

use super::{sentence, title};
use crate::markup::Markup;
use crate::stacks::call_chain;

/// Functions of a call, the innermost first.
const MOST_FUNCTIONS: usize = 20;

/// Rules of `fail_on` fail where they are broken; without any of them those fail that errors break.
#[must_use]
pub fn junit(report: &DurabilityReport, command: &str, fail_on: &[Rule]) -> String {
    let failures: Vec<(Rule, Vec<&Finding>)> = Rule::all()
        .map(|rule| (rule, failures(report, rule, fail_on)))
        .collect();
    let tests = failures.len().to_string();
    let failed = failures.iter().filter(|(_, found)| !found.is_empty());
    let failed = failed.count().to_string();
    let counts = [
        ("tests", &*tests),
        ("failures", &failed),
        ("errors", "0"),
        ("time", "0"),
    ];
    let name = format!("refit run --durability -- {command}");
    let mut out = Markup::default();
    let of_all = [&[("name", "refit")], &counts[..]].concat();
    out.element("testsuites", &of_all, |out| {
        out.end_line();
        let of_suite = [&[("name", &*name)], &counts[..]].concat();
        out.element("testsuite", &of_suite, |out| {
            out.end_line();
            for (rule, found) in &failures {
                case(out, *rule, found);
            }
        });
        out.end_line();
    });
    out.end_line();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
        out.finish()
    )
}

fn failures<'a>(report: &'a DurabilityReport, rule: Rule, fail_on: &[Rule]) -> Vec<&'a Finding> {
    let counts = |finding: &&Finding| match fail_on.is_empty() {
        true => finding.level == Level::Error,
        false => fail_on.contains(&rule),
    };
    let broken = report.new_findings().filter(|one| one.rule == rule);
    broken.filter(counts).collect()
}

fn case(out: &mut Markup, rule: Rule, found: &[&Finding]) {
    let names = [
        ("classname", "durability"),
        ("name", rule.name()),
        ("time", "0"),
    ];
    out.element("testcase", &names, |out| {
        if let Some(first) = found.first() {
            out.end_line();
            let message = sentence(first);
            let of_failure = [("message", &*message), ("type", "rule")];
            out.element("failure", &of_failure, |out| {
                for finding in found {
                    out.plain(&format!("{}: {}", title(finding), sentence(finding)));
                    out.end_line();
                    let frames: Vec<_> = finding.at.iter().collect();
                    out.plain(&call_chain(&frames, MOST_FUNCTIONS));
                    out.end_line();
                }
            });
            out.end_line();
        }
    });
    out.end_line();
}
