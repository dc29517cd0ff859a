//! What the kernel saw, beside what refit counted.

use refit_run::{Escape, Run, RunReport, Testimony, Witnessed, counted_fsyncs, escaped};

use crate::coverage::some;
use crate::format::{file_name, grouped, plural};

/// The lines of a run's witness.
pub fn lines(report: &RunReport) -> Vec<String> {
    let about_syncs = report
        .settings
        .iter()
        .any(|s| s.setting.knob().name == "sync");
    match &report.run.witness {
        None => Vec::new(),
        // It matters to whom a call was to be kept from the disk.
        Some(Testimony::Unavailable(reason)) if about_syncs => {
            vec![format!("witness: not available: {reason}")]
        }
        Some(Testimony::Unavailable(_)) => Vec::new(),
        Some(Testimony::Seen(seen)) => testimony(report, seen, about_syncs),
    }
}

/// Durable calls that the kernel saw and refit did not count; 0 where the kernel was not asked.
pub fn escaped_calls(report: &RunReport) -> u64 {
    match &report.run.witness {
        Some(Testimony::Seen(seen)) => calls_not_counted(&report.run, seen),
        _ => 0,
    }
}

/// Durable calls that the kernel saw of such a run, and that were not counted in it.
pub fn calls_not_counted(run: &Run, seen: &Witnessed) -> u64 {
    let escaped = escaped(run, seen);
    let calls = escaped.iter().map(|one| one.calls);
    calls.fold(0, u64::saturating_add)
}

fn testimony(report: &RunReport, seen: &Witnessed, about_syncs: bool) -> Vec<String> {
    let filesystems = seen.filesystems.join(", ");
    let lost = if seen.lost > 0 { "at least " } else { "" };
    let reached = |calls: u64| {
        format!(
            "witness: {lost}{} reached {filesystems}",
            plural(calls, "durable call")
        )
    };
    let callers = seen.callers.iter().map(|caller| {
        let who = who(caller.executable.as_deref(), caller.io_uring_worker);
        format!("{who} {}", grouped(caller.calls))
    });
    let callers: Vec<String> = callers.collect();
    let by = if callers.is_empty() {
        String::new()
    } else {
        format!(" ({})", some(&callers))
    };
    let mut lines = vec![format!("{}{by}", reached(seen.calls))];
    let escaped = escaped(&report.run, seen);
    let calls = escaped.iter().map(|one| one.calls).sum::<u64>();
    if calls > 0 {
        let parts: Vec<String> = escaped.iter().map(escape).collect();
        let line = format!(
            "{} that refit did not count: {}",
            reached(calls),
            some(&parts)
        );
        // All of them: then one line says it.
        if calls == seen.calls {
            lines.clear();
        }
        lines.push(line);
    }
    let unseen = calls_not_seen(&report.run, seen);
    if unseen > 0 {
        lines.push(format!(
            "witness: {} more were counted than it saw: made on other filesystems, refused, or not made at all",
            grouped(unseen)
        ));
    }
    if about_syncs && seen.by_kernel > 0 {
        lines.push(format!(
            "witness: {} more by the kernel's own threads, for this program or another",
            grouped(seen.by_kernel)
        ));
    }
    lines
}

/// Calls that programs counted as real, and of which the kernel saw nothing; 0 where it may have missed some.
pub fn calls_not_seen(run: &Run, seen: &Witnessed) -> u64 {
    let events = seen.callers.iter().flat_map(|caller| &caller.events);
    let of_files = events.filter(|(name, _)| !name.ends_with("_sync_fs"));
    let saw = of_files.map(|(_, calls)| calls).sum();
    match seen.lost {
        0 => counted_fsyncs(run).saturating_sub(saw),
        _ => 0,
    }
}

/// A caller by its executable.
pub fn who(executable: Option<&str>, io_uring_worker: bool) -> String {
    let name = executable.map_or("?", file_name);
    if io_uring_worker {
        format!("{name} (io_uring worker)")
    } else {
        name.to_owned()
    }
}

fn escape(one: &Escape) -> String {
    let mut who = who(one.executable.as_deref(), one.io_uring_worker);
    if one.opens_sync && !one.io_uring_worker {
        who += " (writes to O_SYNC files)";
    }
    format!("{who} {}", grouped(one.calls))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use refit_run::Caller;

    use super::super::tests::{calls, executable, report};
    use super::*;

    fn caller(path: &str, io_uring_worker: bool, calls: u64) -> Caller {
        Caller {
            executable: Some(path.to_owned()),
            io_uring_worker,
            events: BTreeMap::from([("ext4_sync_file_enter".to_owned(), calls)]),
            calls,
        }
    }

    fn seen(callers: Vec<Caller>) -> Option<Testimony> {
        Some(Testimony::Seen(Witnessed {
            filesystems: vec!["ext4".to_owned()],
            calls: callers.iter().map(|caller| caller.calls).sum(),
            callers,
            ..Witnessed::default()
        }))
    }

    const OFF: &[&str] = &["sync=off"];

    #[test]
    fn the_witness_agrees() {
        let cleanup = executable("/usr/lib/cleanup", "fsync", calls(3_000, 0, 1));
        let mut report = report(&[], vec![cleanup]);
        report.run.witness = seen(vec![caller("/usr/lib/cleanup", false, 3_000)]);
        assert_eq!(
            lines(&report),
            ["witness: 3,000 durable calls reached ext4 (cleanup 3,000)"]
        );
    }

    #[test]
    fn what_was_counted_and_not_seen_is_doubted() {
        let one = executable("/bin/a", "fsync", calls(54_000, 0, 54_000));
        let mut report = report(&[], vec![one]);
        report.run.witness = seen(vec![caller("/bin/a", false, 5)]);
        let doubt = "witness: 53,995 more were counted than it saw: made on other filesystems, refused, or not made at all";
        assert_eq!(
            lines(&report),
            ["witness: 5 durable calls reached ext4 (a 5)", doubt]
        );
        if let Some(Testimony::Seen(seen)) = &mut report.run.witness {
            seen.lost = 1;
        }
        assert_eq!(lines(&report).len(), 1);
    }

    #[test]
    fn nothing_reached_the_disk_and_what_was_lost_is_reported() {
        let one = executable("/bin/a", "fsync", calls(9, 9, 0));
        let mut report = report(OFF, vec![one]);
        report.run.witness = seen(Vec::new());
        assert_eq!(lines(&report), ["witness: 0 durable calls reached ext4"]);
        if let Some(Testimony::Seen(seen)) = &mut report.run.witness {
            seen.lost = 2;
            seen.by_kernel = 3;
        }
        assert_eq!(
            lines(&report),
            [
                "witness: at least 0 durable calls reached ext4",
                "witness: 3 more by the kernel's own threads, for this program or another"
            ]
        );
    }

    #[test]
    fn what_escaped_is_named() {
        let one = executable("/usr/bin/fio", "fsync", calls(1, 0, 1));
        let mut report = report(OFF, vec![one]);
        report.run.witness = seen(vec![caller("/usr/bin/fio", true, 99)]);
        let escaped = "witness: 99 durable calls reached ext4 that refit did not count: \
                       fio (io_uring worker) 99";
        assert_eq!(lines(&report), [escaped]);
        report.run.witness = seen(vec![
            caller("/usr/bin/fio", true, 99),
            caller("/usr/bin/fio", false, 1),
        ]);
        assert_eq!(
            lines(&report),
            [
                "witness: 100 durable calls reached ext4 (fio (io_uring worker) 99, fio 1)",
                escaped
            ]
        );
    }

    #[test]
    fn what_was_suppressed_is_not_all_where_some_escaped() {
        let summary = |report: &RunReport| super::super::run_summary(report, None);
        let mut report = report(OFF, vec![executable("/bin/a", "fsync", calls(50, 50, 0))]);
        report.run.witness = seen(vec![caller("/bin/a", false, 50)]);
        let text = summary(&report);
        assert!(
            text.contains("suppressed 50 of at least 100 sync calls: fsync 50"),
            "{text}"
        );
        report.run.witness = seen(Vec::new());
        assert!(summary(&report).contains("suppressed 50 of 50 sync calls: fsync 50"));
        report.run.coverage.unknown = vec![refit_run::Unknown {
            what: "answered by the kernel".to_owned(),
            executable: Some("/bin/a".to_owned()),
            count: 1,
        }];
        let text = summary(&report);
        assert!(
            text.contains("suppressed 50 of 50 sync calls that were counted"),
            "{text}"
        );
        assert!(text.contains("the kernel answers the syncs among them with 0, uncounted"));
    }

    #[test]
    fn without_a_witness_only_who_cares_is_told() {
        let unavailable = || Some(Testimony::Unavailable("only root".to_owned()));
        let mut plain = report(&[], Vec::new());
        plain.run.witness = unavailable();
        assert_eq!(lines(&plain), [""; 0]);
        let mut off = report(OFF, Vec::new());
        assert_eq!(lines(&off), [""; 0]);
        off.run.witness = unavailable();
        assert_eq!(lines(&off), ["witness: not available: only root"]);
    }
}
