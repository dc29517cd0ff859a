//! Crash reports for the tests: what a cut does is made by a rule.

use refit_crash::CrashReport;
use refit_crash::acknowledgement::Loss;
use refit_crash::filesystem::{Filesystem, Kind};
use refit_crash::mode::{Mode, RecordSummary, Role, State};
use refit_crash::report::SCHEMA;
use refit_run::Run;

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
