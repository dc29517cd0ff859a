//! Sweeps of kills on a booted machine: see `apply_booted_kills`.

use std::collections::BTreeMap;

use crate::live::{CLEAN, Files, Live, differing};
use crate::points::{Points, all_points};
use crate::runner::Outcome;
use crate::sys::kill_point::{Calls, KillPoint, Seen};
use crate::test_env::expect_code;

/// What is changed while refit is killed. Conditions are of the shell, inside.
pub struct Subject {
    pub service: &'static str,
    pub settings: &'static [&'static str],
    /// `--confirm-within`.
    pub within: Option<&'static str>,
    /// Files that are as before or as applied at each point.
    pub files: &'static [&'static str],
    /// Holds where the service works, with the change or without.
    pub runs: &'static str,
    /// Holds where the service answers as before the change.
    pub before: &'static str,
    /// Holds where it answers with the change.
    pub with: &'static str,
}

impl Subject {
    /// The words that apply it.
    pub fn apply(&self) -> Vec<&'static str> {
        let mut words = vec!["apply", "--yes"];
        if let Some(within) = self.within {
            words.extend(["--confirm-within", within]);
        }
        words.push(self.service);
        words.extend(self.settings);
        words
    }

    /// How far the only change came, as `status --exit-code` reports it and ends; `None` where there is none. It waits for
    /// what the killed refit started, and the service works then.
    fn phase(&self, live: &Live, point: KillPoint) -> Option<&'static str> {
        let output = live.refit(&["status", "--exit-code"]);
        let printed = String::from_utf8_lossy(&output.stdout);
        let phases = [
            (": applied", "applied"),
            (": interrupted while it was applied", "applying"),
            (": interrupted while it was confirmed", "confirming"),
            (": interrupted while it was reverted", "reverting"),
        ];
        let found = phases.iter().find(|(text, _)| printed.contains(text));
        let phase = found.map(|(_, phase)| *phase);
        assert!(
            phase.is_some() || printed == "nothing is applied\n",
            "{point:?}: {output:?}"
        );
        let is_right = matches!(phase, None | Some("applied"));
        let code = Some(i32::from(!is_right));
        assert_eq!(output.status.code(), code, "{point:?}: {output:?}");
        live.shell(self.runs);
        if phase == Some("applied") {
            live.shell(self.with);
        }
        if !is_right {
            let proposes = |verb: &str| printed.contains(&format!("refit {verb} {}", self.service));
            assert!(proposes("revert"), "{point:?}: {printed}");
            // What was interrupted otherwise cannot be confirmed.
            let is_confirming = phase == Some("confirming");
            assert_eq!(proposes("confirm"), is_confirming, "{point:?}: {printed}");
        }
        phase
    }

    /// Each of its files is as in one of these.
    fn expect_whole(&self, now: &Files, then: [&Files; 2], point: KillPoint) {
        for file in self.files {
            let is_whole = then.iter().any(|then| then.get(*file) == now.get(*file));
            assert!(is_whole, "{point:?}: a part of {file}");
        }
    }

    /// All is as before the change.
    fn expect_as_before(&self, live: &Live, before: &Files, point: KillPoint) {
        let none: [&str; 0] = [];
        assert_eq!(
            differing(&live.files(), before),
            none,
            "{point:?}: reverted"
        );
        live.shell(self.before);
        live.shell(CLEAN);
        assert_eq!(self.phase(live, point), None, "{point:?}");
    }
}

/// What a sweep saw.
struct Sweep {
    points: Points<usize>,
    kills: usize,
    /// By the word of `status` after them.
    phases: BTreeMap<&'static str, usize>,
    /// Of the run that was not killed.
    whole: Seen,
}

/// Runs `one` to its end, and then for points of its calls, with REFIT_POINTS=all until there is none any more: it
/// returns what was seen, and the word of `status`. Not after a call where a kill before the next one leaves the same.
fn each_point(mut one: impl FnMut(KillPoint) -> (Seen, Option<&'static str>)) -> Sweep {
    let (whole, _) = one(KillPoint::Before(usize::MAX));
    let points = Points::of(1..=whole.files + whole.sent + whole.starts);
    let mut sweep = Sweep {
        points,
        kills: 0,
        phases: BTreeMap::new(),
        whole,
    };
    // Another run may make more calls: it asks a server until it has started.
    let last = *sweep.points.tried.last().expect("there is one");
    for n in sweep.points.tried.clone().into_iter().chain(last + 1..) {
        let mut kill = |point| {
            let (seen, phase) = one(point);
            if seen.was_killed {
                sweep.kills += 1;
                *sweep.phases.entry(phase.unwrap_or("none")).or_insert(0) += 1;
            }
            seen
        };
        let seen = kill(KillPoint::Before(n));
        if (seen.acted || !seen.was_killed) && n > 1 {
            kill(KillPoint::After(n - 1));
        }
        if !seen.was_killed && n > last {
            return sweep;
        }
    }
    unreachable!("a program ends");
}

impl Sweep {
    /// Prints it, and compares it with what strace counted. Checks that are repeated until they hold start the same
    /// processes and ask the same server again, so that the number of these differs from run to run.
    fn report(&self, subject: &Subject, verb: &str, calls: Calls, strace: (usize, usize)) {
        let Sweep {
            points,
            kills,
            phases,
            whole,
        } = self;
        let starts = match calls {
            Calls::FilesAndStarts => {
                format!(
                    ", {} that start processes (strace: {})",
                    whole.starts, strace.1
                )
            }
            Calls::Files => String::new(),
        };
        println!(
            "counted: {}: {verb}: {} calls that change files (strace: {}), {} writes to sockets{starts}; {points}: {kills} kills; \
             status after them: {phases:?}",
            subject.service, whole.files, strace.0, whole.sent
        );
        assert_eq!(whole.files, strace.0, "calls that change files");
        assert!(whole.files > 0);
        assert!(phases.len() > 1, "{phases:?}");
        assert!(!all_points() || *kills > whole.files, "{kills} kills");
    }
}

/// Kills `apply` or `revert` before and after each of these calls, where that differs; looks at `status`, and takes back.
pub fn sweep(live: &Live, subject: &Subject, verb: &str, calls: Calls) -> Outcome {
    let apply = subject.apply();
    let revert = ["revert", subject.service];
    live.shell(subject.before);
    live.shell(CLEAN);
    let before = live.files();
    // The first change of a machine makes the directory of the records.
    expect_code(&live.refit(&apply), 0);
    expect_code(&live.refit(&revert), 0);
    let by_apply = live.counted(&apply);
    live.shell(subject.with);
    let after = live.files();
    let by_revert = live.counted(&revert);
    let none: [&str; 0] = [];
    assert_eq!(differing(&live.files(), &before), none);
    let sweep = each_point(|point| {
        let killed = if verb == "apply" {
            live.killed(&apply, calls, point)
        } else {
            expect_code(&live.refit(&apply), 0);
            live.killed(&revert, calls, point)
        };
        let phase = subject.phase(live, point);
        println!("{point:?}: {killed:?}, {phase:?}");
        let now = live.files();
        subject.expect_whole(&now, [&before, &after], point);
        match phase {
            None => assert_eq!(differing(&now, &before), none, "{point:?}: no change"),
            Some("applied") => assert_eq!(differing(&now, &after), none, "{point:?}: applied"),
            Some(_) => {}
        }
        if phase.is_some() {
            expect_code(&live.refit(&revert), 0);
        }
        subject.expect_as_before(live, &before, point);
        (killed, phase)
    });
    live.shell("! ls -d /run/refit-*");
    let counted = if verb == "apply" { by_apply } else { by_revert };
    sweep.report(subject, verb, calls, counted);
    Outcome::Pass
}

/// Kills `confirm` before and after each of these calls, where that differs. After a kill before each second one another
/// `confirm` completes it; each is taken back.
pub fn sweep_of_confirm(live: &Live, subject: &Subject, calls: Calls) -> Outcome {
    let apply = subject.apply();
    let confirm = ["confirm", subject.service];
    let revert = ["revert", subject.service];
    live.shell(subject.before);
    live.shell(CLEAN);
    let before = live.files();
    expect_code(&live.refit(&apply), 0);
    let trial = live.files();
    let counted = live.counted(&confirm);
    live.shell(subject.with);
    let kept = live.files();
    expect_code(&live.refit(&revert), 0);
    let none: [&str; 0] = [];
    assert_eq!(differing(&live.files(), &before), none);
    assert_ne!(differing(&kept, &trial), none);
    let sweep = each_point(|point| {
        expect_code(&live.refit(&apply), 0);
        let killed = live.killed(&confirm, calls, point);
        let phase = subject.phase(live, point);
        println!("{point:?}: {killed:?}, {phase:?}");
        let now = live.files();
        subject.expect_whole(&now, [&trial, &kept], point);
        match phase {
            Some("confirming") => {}
            Some("applied") => assert!(
                [&trial, &kept].map(|then| differing(&now, then).is_empty()) != [false; 2],
                "{point:?}: applied"
            ),
            _ => panic!("{point:?}: {phase:?}"),
        }
        if matches!(point, KillPoint::Before(n) if n % 2 == 1) {
            expect_code(&live.refit(&confirm), 0);
            assert_eq!(differing(&live.files(), &kept), none, "{point:?}: kept");
            assert_eq!(subject.phase(live, point), Some("applied"), "{point:?}");
            live.shell(
                "test -z \"$(systemctl list-units --all --plain --no-legend 'refit-undo-*')\"",
            );
        }
        expect_code(&live.refit(&revert), 0);
        subject.expect_as_before(live, &before, point);
        (killed, phase)
    });
    sweep.report(subject, "confirm", calls, counted);
    Outcome::Pass
}

/// Kills what the timer runs, likewise. Then the unit that ran it takes the change back, as systemd starts it again;
/// where it is gone already, a person does.
pub fn sweep_of_timer(live: &Live, subject: &Subject, calls: Calls) -> Outcome {
    let apply = subject.apply();
    let unconfirmed = ["revert", "--unconfirmed", subject.service];
    // Named after the unit of the service. Its file is the last that goes.
    let again =
        "unit=$(cd /run/systemd/system && ls refit-undo-*.service) && systemctl start $unit";
    live.shell(subject.before);
    live.shell(CLEAN);
    let before = live.files();
    expect_code(&live.refit(&apply), 0);
    let trial = live.files();
    let counted = live.counted(&unconfirmed);
    let none: [&str; 0] = [];
    assert_eq!(differing(&live.files(), &before), none);
    let (mut by_unit, mut by_hand) = (0, 0);
    let sweep = each_point(|point| {
        expect_code(&live.refit(&apply), 0);
        let killed = live.killed(&unconfirmed, calls, point);
        let phase = subject.phase(live, point);
        println!("{point:?}: {killed:?}, {phase:?}");
        subject.expect_whole(&live.files(), [&before, &trial], point);
        if phase.is_some() {
            if live.holds(again) {
                by_unit += 1;
            } else {
                by_hand += 1;
                expect_code(&live.refit(&["revert", subject.service]), 0);
            }
        }
        subject.expect_as_before(live, &before, point);
        (killed, phase)
    });
    sweep.report(subject, "revert --unconfirmed", calls, counted);
    println!("counted: taken back by the unit after {by_unit} of them, by hand after {by_hand}");
    assert!(by_unit > if all_points() { by_hand } else { 0 });
    Outcome::Pass
}
