//! Postfix's processes, and what its master reports of them.

use std::process::{Command, Stdio};

use crate::ask::{Ask, QUESTION};
use crate::check::{Check, Layer};
use crate::processes::{Process, processes_of};
use crate::systemd::Unit;

/// The processes of a unit that are Postfix's own: what they start for a recipient is not.
pub fn daemons_of(unit: &Unit, directory: &str) -> Vec<Process> {
    let mut all = processes_of(unit);
    let dir = format!("{}/", directory.trim_end_matches('/'));
    all.retain(|process| process.program.starts_with(&dir));
    all
}

/// Whether master waits before it starts a daemon again, because it ended at its start; of one
/// program, or of any where `program` is empty. From the journal, since the last start or reload.
pub fn throttled(service: &str, program: &str) -> Check {
    let output = Command::new("journalctl")
        .args([
            "--quiet",
            "--output=cat",
            "--lines=10000",
            "--unit",
            service,
        ])
        .stdin(Stdio::null())
        .answer(QUESTION);
    let lines = output.ok().filter(|output| output.status.success());
    let lines = lines.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let found = lines
        .as_deref()
        .and_then(|lines| throttled_in(lines, program));
    Check {
        layer: Layer::Effective,
        key: "daemons that do not start".to_owned(),
        expected: "none".to_owned(),
        holds: found.as_ref().map(|found| found == "none"),
        found: found.unwrap_or_else(|| "the journal does not go back to the last start".to_owned()),
    }
}

/// Likewise, in lines of the journal; `None` where they do not go back to a start or reload.
fn throttled_in(lines: &str, program: &str) -> Option<String> {
    let mut found = None;
    for line in lines.lines() {
        if line.starts_with("daemon started -- version") || line.starts_with("reload -- version") {
            found = Some("none".to_owned());
        }
        let of_this = line
            .strip_prefix("warning: ")
            .and_then(|text| text.split_once(": "));
        if let Some((path, "bad command startup -- throttling")) = of_this
            && path.ends_with(program)
        {
            found = Some(line.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_master_reported_before_a_reload_is_over() {
        let bad = "warning: /usr/lib/postfix/sbin/../../refit/0/cleanup: bad command startup -- throttling\n";
        let start = "daemon started -- version 3.7.11, configuration /etc/postfix\n";
        let reload = "reload -- version 3.7.11, configuration /etc/postfix\n";
        let found = |parts: &[&str], program| throttled_in(&parts.concat(), program);
        assert_eq!(found(&["x\n"], ""), None);
        assert_eq!(found(&[bad, start, "x\n"], "").as_deref(), Some("none"));
        assert_eq!(found(&[start, bad, reload], "").as_deref(), Some("none"));
        for program in ["", "/refit/0/cleanup"] {
            assert_eq!(
                found(&[start, bad, "x\n"], program).as_deref(),
                Some(bad.trim())
            );
        }
        assert_eq!(found(&[start, bad], "/smtpd").as_deref(), Some("none"));
    }
}
