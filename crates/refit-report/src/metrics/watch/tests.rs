use super::super::Format;
use super::*;
use crate::watch::sample;

/// All samples of a series, taken in one by one, with every growth estimated.
fn watched(series: &Series) -> WatchMetrics {
    let mut metrics = WatchMetrics::default();
    for sample in &series.samples {
        metrics.add(series, sample);
    }
    while metrics.estimate_next(series) {}
    metrics
}

fn text(metrics: &WatchMetrics) -> String {
    metrics.metrics().text(Format::Prometheus)
}

#[track_caller]
fn expect(text: &str, sample: &str) {
    let mut lines = text.lines();
    assert!(
        lines.any(|line| line == sample),
        "{sample} is not in {text}"
    );
}

#[test]
fn counts_are_of_all_samples_and_memory_is_of_the_last() {
    let text = text(&watched(&sample::machine()));
    // 60 samples with 204 calls of 500 µs each, which overlap: 80 ms in each second.
    expect(&text, "refit_sync_calls_total{service=\"postfix\"} 12240");
    expect(
        &text,
        "refit_sync_wait_seconds_total{service=\"postfix\"} 6.12",
    );
    expect(
        &text,
        "refit_sync_busy_seconds_total{service=\"postfix\"} 4.8",
    );
    expect(
        &text,
        "refit_memory_pss_bytes{service=\"postfix\"} 104857600",
    );
    // 10 KiB a second.
    expect(
        &text,
        "refit_memory_growth_bytes_per_hour{service=\"postfix\"} 36864000",
    );
    expect(
        &text,
        "refit_unread_processes{service=\"app\\\\u{1b}[2J\"} 1",
    );
    expect(
        &text,
        "refit_watch_last_sample_timestamp_seconds 1795208000",
    );
    let names: Vec<String> = FAMILIES.iter().map(|family| family.sample_name()).collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn what_is_unknown_has_no_sample() {
    let mut series = sample::machine();
    for group in series.samples.iter_mut().flat_map(|one| &mut one.groups) {
        group.syncs = None;
        group.memory = None;
    }
    let text = text(&watched(&series));
    for absent in [
        "refit_sync",
        "refit_watch_lost",
        "_pss_",
        "_swap_",
        "growth",
    ] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
    expect(&text, "refit_processes{service=\"postfix\"} 4");
    assert!(WatchMetrics::default().metrics().text(Format::OpenMetrics) == "# EOF\n");
}

#[test]
fn calls_without_times_have_no_wait() {
    let mut series = sample::machine();
    for group in series.samples.iter_mut().flat_map(|one| &mut one.groups) {
        let syncs = group.syncs.as_mut().unwrap();
        (syncs.untimed, syncs.waited_us, syncs.busy_us) = (syncs.calls, 0, 0);
    }
    let text = text(&watched(&series));
    expect(
        &text,
        "refit_sync_untimed_calls_total{service=\"postfix\"} 12240",
    );
    assert!(
        !text.contains("wait_seconds_total{service=\"postfix\"}"),
        "{text}"
    );
}

#[test]
fn no_two_services_have_the_same_label() {
    let mut series = sample::machine();
    let (group, of) = (
        series.groups[0].clone(),
        series.samples[0].groups[0].clone(),
    );
    for index in 2..5 {
        series.groups.push(group.clone());
        series.samples[0].groups.push(GroupSample {
            group: index,
            ..of.clone()
        });
    }
    series.groups[4].cgroup = Some("/user.slice/postfix.service".to_owned());
    series.samples.truncate(1);
    let text = text(&watched(&series));
    for name in ["postfix", "postfix (40)", "postfix (40) #3"] {
        expect(&text, &format!("refit_processes{{service=\"{name}\"}} 4"));
    }
    expect(
        &text,
        "refit_processes{service=\"postfix (/user.slice/postfix.service)\"} 4",
    );
}

#[test]
fn what_has_ended_keeps_its_counts_for_a_while_and_has_no_memory() {
    let mut series = sample::machine();
    let mut metrics = watched(&series);
    let mut last = series.samples.pop().unwrap();
    last.groups.remove(0);
    last.at_ms += GONE_MS;
    metrics.add(&series, &last);
    let soon = text(&metrics);
    expect(&soon, "refit_sync_calls_total{service=\"postfix\"} 12240");
    assert!(!soon.contains("bytes{service=\"postfix\"}"), "{soon}");
    last.at_ms += 1000;
    metrics.add(&series, &last);
    assert!(!text(&metrics).contains("postfix"));
}
