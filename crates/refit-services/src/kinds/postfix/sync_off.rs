//! `sync=off` of one daemon: its script starts it by refit's launcher, and that gives it a filter of
//! system calls.
//!
//! master starts each daemon as root, and the daemon itself becomes another user, in a chroot
//! (chroot_uid in Postfix's src/util): when the launcher installs the filter it may, and the filter
//! stays (seccomp(2)).

use refit_knobs::{Assignment, Join};

use crate::check::{Check, Layer};
use crate::kinds::systemd_unit::SYNC_OFF;
use crate::processes::Process;
use crate::{Change, Error, sync_filter};

/// A word of the launcher, as `sync=off` is one.
const NO_NEW_PRIVS: &str = "no-new-privs";

/// Bit of /proc/PID/status, `CapEff` (linux/capability.h).
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Daemons that start no other program, so that no_new_privs takes nothing from them: their man pages name none but
/// `debugger_command` (with -D), and of Debian's Postfix 3.7 and 3.10 only local(8), pipe(8), spawn(8) and master(8) import
/// a function that starts one (`nm -D`: pipe_command, spawn_command, execvp). smtpd(8) imports mail_stream_command for
/// `sendmail -bs`, which starts it by its own file, and not the script.
const STARTS_NOTHING: [&str; 9] = [
    "bounce",
    "cleanup",
    "lmtp",
    "pickup",
    "qmgr",
    "smtp",
    "smtpd",
    "trivial-rewrite",
    "virtual",
];

/// What the launcher is told, so that the kernel takes the filter: it does so from a process with CAP_SYS_ADMIN or
/// no_new_privs (seccomp(2)), and Debian 13's unit has a `CapabilityBoundingSet=` without the one. `None` for the master:
/// nobody knows what it will have.
///
/// # Errors
/// [`Error::BadConf`] where no_new_privs could take rights from what the daemon starts.
pub fn words(
    service: &str,
    daemon: &str,
    master: Option<&Process>,
) -> Result<&'static [&'static str], Error> {
    let has_right = |master: &Process| {
        let text = master.status("CapEff")?;
        let rights = u64::from_str_radix(text, 16).ok()?;
        Some(rights & CAP_SYS_ADMIN != 0 || master.status("NoNewPrivs") == Some("1"))
    };
    if master.and_then(has_right).unwrap_or(true) {
        return Ok(&[SYNC_OFF]);
    }
    if STARTS_NOTHING.contains(&daemon) {
        return Ok(&[NO_NEW_PRIVS, SYNC_OFF]);
    }
    Err(Error::BadConf {
        setting: SYNC_OFF.to_owned(),
        service: service.to_owned(),
        reason: format!(
            "Postfix's master has no CAP_SYS_ADMIN (CapabilityBoundingSet= of its unit): the kernel then takes a \
             filter of system calls only with no_new_privs, which takes the rights of set-id programs away from \
             all that the daemon starts; refit sets it for {}\n  \
             a library that drops syncs needs no such right: preload=/PATH/LIB.so (libeatmydata, for example), \
             which is loses-on-crash too",
            STARTS_NOTHING.join(", ")
        ),
    })
}

/// What to know of it.
pub fn notes(daemon: &str, words: &[&str]) -> Vec<String> {
    let mut notes = vec![
        sync_filter::NOT_COVERED.to_owned(),
        "what the daemon itself starts has the filter too, and cannot take it away: of local(8), pipe(8) and spawn(8) \
         the programs that they start for a recipient or a client"
            .to_owned(),
    ];
    if words.contains(&NO_NEW_PRIVS) {
        notes.push(format!(
            "{daemon} gets no_new_privs, since Postfix's master has no CAP_SYS_ADMIN: the kernel takes the filter only \
             so. Until it ends, programs that it starts gain nothing by set-id bits and file capabilities; {daemon} \
             starts none"
        ));
    }
    notes
}

/// The variable by which a process is known that was started by the launcher: one that was started
/// before has no filter, and is none that failed to get it.
pub fn mark(words: &[&str]) -> Assignment {
    Assignment {
        name: MARK.to_owned(),
        value: words.join(" "),
        join: Join::Replace,
    }
}

const MARK: &str = "REFIT_APPLIED";

/// Whether the processes that were started by the launcher have one filter more than master, which
/// may run beneath others: those of its unit, or of a container; and no_new_privs where it is set.
pub fn checks(change: &Change, master: Option<&Process>, daemons: &[Process]) -> Vec<Check> {
    let mut variables = change.variables.iter();
    let value = variables.find_map(|(name, value)| (name == MARK).then_some(value));
    let started: Vec<&Process> = daemons
        .iter()
        .filter(|process| process.variable(MARK).as_ref() == value)
        .collect();
    let check = |expected: &str, is_told: bool, has: &dyn Fn(&Process) -> bool| {
        let with = started.iter().filter(|process| has(process)).count();
        Check {
            layer: Layer::Effective,
            key: "/proc/PID/status".to_owned(),
            expected: expected.to_owned(),
            found: match (is_told, started.len()) {
                (false, _) => "this kernel does not tell".to_owned(),
                (_, 0) => {
                    "not observed: no process that was started with the change runs now".to_owned()
                }
                (_, all) => format!("{with} of {all} processes that were started with it"),
            },
            holds: (is_told && !started.is_empty()).then_some(with == started.len()),
        }
    };
    // Since Linux 5.9.
    let filters = |process: &Process| process.status("Seccomp_filters")?.parse::<u32>().ok();
    let of_master = master.and_then(filters);
    let mut checks = vec![check(
        "Seccomp_filters: one more than master's",
        of_master.is_some(),
        &|process| filters(process) > of_master,
    )];
    if value.is_some_and(|value| value.split(' ').any(|word| word == NO_NEW_PRIVS)) {
        let is_set = |process: &Process| process.status("NoNewPrivs") == Some("1");
        checks.push(check("NoNewPrivs: 1", true, &is_set));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::Plan;
    use refit_knobs::Settings;

    const FILTERED: &str = "REFIT_APPLIED=sync=off";
    const WITH_BOTH: &str = "REFIT_APPLIED=no-new-privs sync=off";

    fn process(filters: u32, no_new_privs: u32, variable: &str) -> Process {
        Process::told(
            &format!("NoNewPrivs:\t{no_new_privs}\nSeccomp:\t2\nSeccomp_filters:\t{filters}\n"),
            variable,
        )
    }

    /// Whether each check of a change with this variable holds.
    fn held(variable: &str, master: Option<&Process>, daemons: &[Process]) -> Vec<Option<bool>> {
        let mut change = Plan::new("postfix/cleanup", "", &Settings(Vec::new())).change;
        let (name, value) = variable.split_once('=').expect("a variable");
        change.variables.push((name.to_owned(), value.to_owned()));
        let checks = checks(&change, master, daemons);
        checks.iter().map(|check| check.holds).collect()
    }

    #[test]
    fn a_filter_counts_where_master_has_one_less() {
        for (master, daemons, holds) in [
            (Some(0), &[(1, FILTERED)][..], Some(true)),
            (Some(1), &[(2, FILTERED), (2, FILTERED)], Some(true)),
            // In a container, each process has one.
            (Some(1), &[(1, FILTERED)], Some(false)),
            (Some(1), &[(2, FILTERED), (1, FILTERED)], Some(false)),
            // One that was started before.
            (Some(0), &[(0, "A=1"), (1, FILTERED)], Some(true)),
            (Some(0), &[(0, "A=1")], None),
            (Some(0), &[], None),
            (None, &[(1, FILTERED)], None),
        ] {
            let of_master = master.map(|filters| process(filters, 0, "A=1"));
            let one = |(filters, variable): &(u32, &str)| process(*filters, 0, variable);
            let all: Vec<Process> = daemons.iter().map(one).collect();
            let held = held(FILTERED, of_master.as_ref(), &all);
            assert_eq!(held, [holds], "{master:?} {daemons:?}");
        }
        let of_old_kernel = Process::told("Seccomp:\t2\n", FILTERED);
        let daemons = [process(1, 0, FILTERED)];
        assert_eq!(held(FILTERED, Some(&of_old_kernel), &daemons), [None]);
    }

    #[test]
    fn no_new_privs_counts_where_it_is_set() {
        let master = process(0, 0, "A=1");
        for (daemon, holds) in [
            (process(1, 1, WITH_BOTH), [Some(true), Some(true)]),
            (process(1, 0, WITH_BOTH), [Some(true), Some(false)]),
            (process(0, 0, WITH_BOTH), [Some(false), Some(false)]),
            (process(1, 1, FILTERED), [None, None]),
        ] {
            assert_eq!(held(WITH_BOTH, Some(&master), &[daemon]), holds);
        }
    }

    #[test]
    fn no_new_privs_is_set_where_it_is_needed_and_takes_nothing() {
        // Of root, of Debian 13's unit, and of one that gave up its rights for good.
        for (status, has_right) in [
            ("CapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n", true),
            ("CapEff:\t00000000000404c7\nNoNewPrivs:\t0\n", false),
            ("CapEff:\t00000000000404c7\nNoNewPrivs:\t1\n", true),
            ("", true),
        ] {
            let master = Process::told(status, "");
            let words = |daemon| words("postfix/DAEMON", daemon, Some(&master)).ok();
            let (of_cleanup, of_local) = match has_right {
                true => (&["sync=off"][..], Some(&["sync=off"][..])),
                false => (&["no-new-privs", "sync=off"][..], None),
            };
            assert_eq!(words("cleanup"), Some(of_cleanup), "{status}");
            assert_eq!(words("local"), of_local, "{status}");
        }
        let not_running = words("postfix/local", "local", None).ok();
        assert_eq!(not_running, Some(&["sync=off"][..]));
    }
}
