//! SARIF 2.1.0 (OASIS), which code-scanning pages read.

use std::path::Path;

use refit_run::{DurabilityReport, Finding, Frame, Rule};
use serde_json::{Value, json};

use super::{sentence, title};

/// More results of one run are not shown by those pages.
const MOST_RESULTS: usize = 5_000;

/// The findings that are not known. Files below `directory` are named relative to it.
#[must_use]
pub fn sarif(report: &DurabilityReport, version: &str, directory: &Path) -> String {
    let rules: Vec<Value> = Rule::all().map(rule).collect();
    let results: Vec<Value> = report
        .new_findings()
        .take(MOST_RESULTS)
        .map(|finding| result(finding, directory))
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "refit", "version": version, "rules": rules}},
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn rule(rule: Rule) -> Value {
    json!({
        "id": rule.name(),
        "shortDescription": {"text": rule.asks()},
        "fullDescription": {"text": rule.because()},
        "help": {"text": format!("Instead: {}.", rule.instead())},
    })
}

fn result(finding: &Finding, directory: &Path) -> Value {
    let mut result = json!({
        "ruleId": finding.rule.name(),
        "level": finding.level.name(),
        "message": {"text": format!("{}. {}.", title(finding), sentence(finding))},
        "locations": [location(&finding.at, &finding.executable, directory)],
        "partialFingerprints": {"refit/v1": finding.fingerprint},
    });
    if !finding.written_at.is_empty() {
        let written = location(&finding.written_at, &finding.executable, directory);
        let steps = [
            written,
            location(&finding.at, &finding.executable, directory),
        ];
        let steps = steps.map(|location| json!({"location": location}));
        result["codeFlows"] = json!([{"threadFlows": [{"locations": steps}]}]);
    }
    result
}

/// The innermost function with a line, of the program that an interpreter runs if one does; the executable where there is
/// none.
fn location(frames: &[Frame], executable: &str, directory: &Path) -> Value {
    let is_script = frames.iter().any(|frame| frame.is_script);
    let mut of_program = frames
        .iter()
        .rev()
        .filter(|frame| frame.is_script == is_script);
    let found = of_program.find_map(|frame| {
        let (file, line) = (frame.file.as_deref()?, frame.line?);
        Some((frame, file, line))
    });
    match found {
        Some((frame, file, line)) => json!({
            "physicalLocation": {
                "artifactLocation": {"uri": uri(file, directory)},
                "region": {"startLine": line.max(1)},
            },
            "logicalLocations": [{"fullyQualifiedName": frame.function}],
        }),
        None => json!({
            "physicalLocation": {"artifactLocation": {"uri": uri(executable, directory)}},
        }),
    }
}

/// A path as a URI reference (RFC 3986): what is not unreserved there, nor a slash, is written as %XX.
fn uri(path: &str, directory: &Path) -> String {
    let below = Path::new(path).strip_prefix(directory);
    let (start, path) = match below {
        Ok(below) => ("", below.to_string_lossy().into_owned()),
        Err(_) if path.starts_with('/') => ("file://", path.to_owned()),
        Err(_) => ("", path.to_owned()),
    };
    let mut text = start.to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_directory_and_escaped() {
        let directory = Path::new("/home/me/src");
        assert_eq!(uri("/home/me/src/a b.c", directory), "a%20b.c");
        assert_eq!(uri("/usr/x", directory), "file:///usr/x");
        assert_eq!(uri("src/ü.rs", directory), "src/%C3%BC.rs");
    }
}
