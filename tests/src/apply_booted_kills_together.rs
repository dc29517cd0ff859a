//! SIGKILL of two `refit apply` or `revert` of different services at once, at random moments, on a Debian that systemd
//! boots: after each pair both services run, `status` tells the truth, and everything can be taken back.
//!
//! `REFIT_KILLS` is the number of pairs.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::apply_booted_kills::UNIT;
use crate::apply_booted_kills_servers::REDIS;
use crate::live::{CLEAN, Live, differing};
use crate::live_kills::Subject;
use crate::random::Random;
use crate::random_kills::{kill, wanted};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[test!(killed_while_two_services_are_changed)
    .alone()
    .when_named()
    .limit_seconds(7200)];

const BOTH: [Subject; 2] = [
    Subject {
        within: None,
        ..UNIT
    },
    REDIS,
];
const NONE: [&str; 0] = [];

/// The words of `status` for the services that have a change. It waits for what a killed refit started.
fn phases(live: &Live) -> BTreeMap<String, String> {
    let output = live.refit(&["status", "--json", "-"]);
    expect_code(&output, 0);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let services = status["services"].as_array().expect("a list").iter();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    services
        .map(|service| {
            let unit = word(&service["service"]);
            let name = unit.strip_suffix(".service").unwrap_or(&unit).to_owned();
            (name, word(&service["phase"]))
        })
        .collect()
}

fn apply(live: &Live) {
    for subject in &BOTH {
        expect_code(&live.refit(&subject.apply()), 0);
        live.shell(subject.with);
    }
}

fn revert(live: &Live) {
    for subject in &BOTH {
        expect_code(&live.refit(&["revert", subject.service]), 0);
        live.shell(subject.before);
    }
}

fn killed_while_two_services_are_changed(env: &TestEnv) -> Outcome {
    let mut random = Random::of_now();
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    // systemd refuses the sixth start within ten seconds.
    live.shell(
        "for unit in cron redis-server; do d=/etc/systemd/system/$unit.service.d && mkdir $d && \
         printf '[Unit]\\nStartLimitIntervalSec=0\\n' >$d/10-often.conf || exit; done; systemctl daemon-reload",
    );
    let before = live.files();
    let began = Instant::now();
    apply(&live);
    let longest = began.elapsed();
    let after = live.files();
    revert(&live);
    assert_eq!(differing(&live.files(), &before), NONE);
    let (mut seen, mut alive) = (BTreeMap::new(), 0);
    for n in 0..wanted() {
        let verb = ["apply", "revert"][n % 2];
        if verb == "revert" {
            apply(&live);
        }
        let both = BOTH.each_ref().map(|subject| match verb {
            "apply" => live.start(&subject.apply()),
            _ => live.start(&["revert", subject.service]),
        });
        let most = u64::try_from(longest.as_micros()).expect("it is short") / 2;
        for child in both {
            // Waits for nothing: it chooses the moment of the kill.
            sleep(Duration::from_micros(random.below(most)));
            alive += usize::from(kill(child));
        }
        let phases = phases(&live);
        let now = live.files();
        for subject in &BOTH {
            let phase = phases.get(subject.service);
            *seen.entry((verb, phase.cloned())).or_insert(0) += 1;
            live.shell(subject.runs);
            for file in subject.files {
                let is_as = |then: &crate::live::Files| now.get(*file) == then.get(*file);
                let is_right = match phase.map(String::as_str) {
                    None => is_as(&before),
                    Some("applied") => is_as(&after),
                    Some(_) => is_as(&before) || is_as(&after),
                };
                assert!(is_right, "kill {n}: {file}, {verb}, {phase:?}");
            }
            if phase.is_some_and(|phase| phase == "applied") {
                live.shell(subject.with);
            }
        }
        for subject in &BOTH {
            let output = live.refit(&["revert", subject.service]);
            let code = if phases.contains_key(subject.service) {
                0
            } else {
                2
            };
            assert_eq!(
                output.status.code(),
                Some(code),
                "kill {n}: {}",
                described(&output)
            );
            live.shell(subject.before);
        }
        assert_eq!(differing(&live.files(), &before), NONE, "kill {n}");
        live.shell(CLEAN);
    }
    live.shell(
        "for unit in cron redis-server; do rm -r /etc/systemd/system/$unit.service.d; done; systemctl daemon-reload",
    );
    println!(
        "counted: {} times two, {alive} of a living one; status after them: {seen:?}",
        wanted()
    );
    assert!(alive * 8 > wanted(), "{alive}");
    Outcome::Pass
}
