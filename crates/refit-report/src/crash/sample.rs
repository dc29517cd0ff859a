//! Crash reports for the tests: what a cut does is made by a rule.

use refit_crash::CrashReport;
use refit_crash::acknowledgement::Loss;
use refit_crash::filesystem::{Filesystem, Kind};
use refit_crash::mode::{BoundRecord, Mode, RecordSummary, Role, State};
use refit_crash::report::SCHEMA;
use refit_lab::experiment::Class;
use refit_run::{InEffect, Run, SettingReport, WhyNot};
use refit_stats::Rng;

const MS: u64 = 1_000_000;
/// The run lasts two seconds, with an acknowledgement each 5 ms after 100 ms.
const LENGTH_MS: u64 = 2000;
const FIRST_MS: u64 = 100;
const EACH_MS: u64 = 5;

/// What a cut does, at a time in ms and as the nth of all.
pub type Rule = fn(u64, usize) -> Loss;

/// Nothing is lost.
pub fn nothing(at_ms: u64, _: usize) -> Loss {
    Loss {
        acknowledged: acknowledged(at_ms),
        ..Loss::default()
    }
}

/// The newest is lost, as far as `ms` back.
pub fn newest(at_ms: u64, ms: u64) -> Loss {
    let all = nothing(at_ms, 0);
    let lost = usize::try_from(ms / EACH_MS).unwrap().min(all.acknowledged);
    Loss {
        lost,
        oldest_ns: (lost > 0).then(|| lost as u64 * EACH_MS * MS),
        ..all
    }
}

/// A sixth of the cuts lose one old thing and keep newer ones.
fn holes(at_ms: u64, n: usize) -> Loss {
    let all = nothing(at_ms, n);
    if n % 6 != 3 || all.acknowledged < 40 {
        return newest(at_ms, if n.is_multiple_of(4) { 20 } else { 0 });
    }
    Loss {
        lost: 3,
        oldest_ns: Some((at_ms - FIRST_MS) / 2 * MS),
        is_hole: true,
        damaged: usize::from(n.is_multiple_of(9)),
        ..all
    }
}

fn acknowledged(at_ms: u64) -> usize {
    usize::try_from(at_ms.saturating_sub(FIRST_MS) / EACH_MS).unwrap()
}

/// A mode of as many cuts, of which every third gives the image of the one before.
pub fn mode(name: &str, role: Role, cuts: usize, rule: Rule) -> Mode {
    let may_lose = name.starts_with("sync=");
    let class = if may_lose { "loses-on-crash" } else { "safe" };
    let states = (0..cuts).map(|n| {
        let at_ms = (n as u64 + 1) * LENGTH_MS / (cuts as u64 + 1);
        State {
            name: format!("c{}-torn-{n}", at_ms * MS),
            at_ns: at_ms * MS,
            pending: n % 4,
            image: format!("{name} {}", n - usize::from(n % 3 == 2)),
            unmountable: None,
            broken: None,
            loss: rule(at_ms, n),
        }
    });
    Mode {
        name: name.to_owned(),
        role,
        settings: Vec::new(),
        class: class.to_owned(),
        may_lose,
        bound: None,
        record: RecordSummary {
            name: if role == Role::Control {
                "baseline".to_owned()
            } else {
                refit_crash::directory_name(name)
            },
            length_ns: LENGTH_MS * MS,
            from_ns: 0,
            writes: 800,
            written_bytes: 3_276_800,
            flushes: 400,
            stored_bytes: 700_000,
            acknowledged_ns: (FIRST_MS..LENGTH_MS).step_by(5).map(|ms| ms * MS).collect(),
            flushed_ns: (FIRST_MS..LENGTH_MS).step_by(5).map(|ms| ms * MS).collect(),
            outside_syncs: None,
        },
        durability: None,
        run: (role != Role::Control).then(|| Run {
            exit: refit_run::Outcome::Code(0),
            ..Run::not_started()
        }),
        checked_ns: 12_400 * MS,
        states: states.collect(),
    }
}

/// A clean baseline, a variant that loses the newest and one that leaves holes.
pub fn report() -> CrashReport {
    let control = mode("control", Role::Control, 12, |at, _| newest(at, 1000));
    let baseline = mode("baseline", Role::Baseline, 60, nothing);
    let modes = vec![
        control,
        baseline,
        mode("sync=off", Role::Candidate, 60, |at, _| newest(at, 5000)),
        mode("malloc=jemalloc", Role::Candidate, 60, holes),
        mode("thp=never", Role::Candidate, 60, nothing),
    ];
    CrashReport {
        schema: SCHEMA,
        kind: "crash".to_owned(),
        refit: "0.1.0".to_owned(),
        recipe: None,
        command: ["python3", "writer.py", "400"].map(str::to_owned).into(),
        with: String::new(),
        check: "log:a.log".to_owned(),
        ack: "fd:1".to_owned(),
        load: None,
        background: None,
        prepare: Some("touch $REFIT_MOUNT/a.log".to_owned()),
        ready: None,
        length_ns: 60_000 * MS,
        stop: false,
        cuts: 60,
        options: ["--check-timeout", "60000ms", "--backend", "seccomp"]
            .map(str::to_owned)
            .into(),
        filesystem: Filesystem {
            kind: Kind::Ext4,
            options: "data=ordered".to_owned(),
        },
        disk_bytes: 64 << 20,
        tear_bytes: 4096,
        kernel: "Linux 6.18.44 x86_64".to_owned(),
        machine: [("cpu", "a CPU"), ("cores", "2")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        mkfs: "mke2fs 1.47.0 (5-Feb-2023)".to_owned(),
        seed: 0x5eed,
        started: 1_795_249_791,
        directory: "/var/tmp/refit-crash-x".to_owned(),
        mount: "/var/tmp/refit-crash-x/mount".to_owned(),
        modes,
        sees_torn_blocks: Some(true),
        invalid: None,
    }
}

/// A control, a baseline and up to five candidates, each with cuts of its own kind, any class, and any bound.
pub fn random(rng: &mut Rng) -> CrashReport {
    let candidates = 1 + rng.below(5);
    let mut modes = vec![
        mode("control", Role::Control, 6, |at, _| newest(at, 1000)),
        random_mode(rng, "baseline", Role::Baseline),
    ];
    for at in 0..candidates {
        modes.push(random_mode(rng, &format!("env.N={at}"), Role::Candidate));
    }
    CrashReport {
        modes,
        invalid: (rng.below(20) == 0).then(|| "the control lost nothing".to_owned()),
        ..report()
    }
}

fn random_mode(rng: &mut Rng, name: &str, role: Role) -> Mode {
    let cuts = [0, 1, 8, 30][rng.below(4) as usize];
    let mut mode = mode(name, role, cuts, nothing);
    mode.may_lose = role == Role::Candidate && rng.below(2) == 0;
    let bounds = [
        ("50ms", Some(50 * MS)),
        ("600ms", Some(600 * MS)),
        ("newest-only", None),
    ];
    let (text, oldest_ns) = bounds[rng.below(3) as usize];
    mode.bound = (mode.may_lose && rng.below(2) == 0).then(|| BoundRecord {
        text: text.to_owned(),
        oldest_ns,
    });
    if role == Role::Candidate {
        mode.settings = vec![SettingReport {
            setting: "sync=off".parse().expect("a setting"),
            class: Class::LosesOnCrash,
            in_effect: match rng.below(4) {
                0 => InEffect::Nowhere(WhyNot::NoSyncCall.into()),
                1 => InEffect::Partly(WhyNot::NoneSuppressed.into()),
                2 => InEffect::Unknown,
                _ => InEffect::Everywhere,
            },
        }];
    }
    // Half of the modes know one kind of loss, and the others all of them.
    let kinds = [rng.below(8), rng.below(8)];
    let is_one = rng.below(2) == 0;
    let never_acknowledges = rng.below(10) == 0;
    for state in &mut mode.states {
        let at_ms = state.at_ns / MS;
        if never_acknowledges {
            state.loss = Loss::default();
            continue;
        }
        let acknowledged = state.loss.acknowledged;
        let kind = match is_one {
            true => kinds[rng.below(2) as usize],
            false => rng.below(8),
        };
        match kind {
            0 | 1 => {}
            2 | 3 => state.loss = newest(at_ms, rng.below(200)),
            4 if acknowledged > 40 => {
                state.loss.lost = 1 + rng.below(20) as usize;
                state.loss.oldest_ns = Some((at_ms - FIRST_MS) / 2 * MS);
                state.loss.is_hole = true;
            }
            5 if acknowledged > 0 => state.loss.resurrected = 1,
            6 => state.loss = newest(at_ms, LENGTH_MS),
            7 if acknowledged > 0 => match rng.below(3) {
                0 => state.unmountable = Some("Structure needs cleaning".to_owned()),
                1 => state.broken = Some("malformed".to_owned()),
                _ => {
                    state.loss = newest(at_ms, 10);
                    state.loss.damaged = state.loss.lost;
                }
            },
            _ => {}
        }
    }
    if never_acknowledges {
        mode.record.acknowledged_ns.clear();
    }
    mode
}

/// The program loses its last promise by itself; a variant that does no other
/// harm, one that leaves holes, and one that brings removed things back.
pub fn losing() -> CrashReport {
    let last: Rule = |at, n| newest(at, if n.is_multiple_of(2) { EACH_MS } else { 0 });
    let back: Rule = |at, n| Loss {
        resurrected: usize::from(n == 30) * 2,
        ..nothing(at, n)
    };
    CrashReport {
        modes: vec![
            mode("control", Role::Control, 12, |at, _| newest(at, 1000)),
            mode("baseline", Role::Baseline, 60, last),
            mode("thp=never", Role::Candidate, 60, last),
            mode("malloc=jemalloc", Role::Candidate, 60, holes),
            mode("malloc=mimalloc", Role::Candidate, 60, back),
        ],
        ..report()
    }
}

/// A variant of which a third did not mount, and a check that could not read others.
pub fn unmountable() -> CrashReport {
    let mut report = report();
    report.modes.truncate(3);
    for (n, state) in report.modes[2].states.iter_mut().enumerate() {
        state.unmountable =
            (n % 3 == 0).then(|| "Structure needs cleaning (os error 117)".to_owned());
        state.broken = (n == 31).then(|| "database disk image is malformed".to_owned());
    }
    report
}

/// The control lost nothing.
pub fn invalid() -> CrashReport {
    let mut report = report();
    report.modes = vec![mode("control", Role::Control, 12, nothing)];
    report.invalid =
        Some("on a disk that ignored its flushes for a second nothing was lost".to_owned());
    report
}
