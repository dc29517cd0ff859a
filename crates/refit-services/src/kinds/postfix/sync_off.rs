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
use crate::{Error, sync_filter};

/// What to know of it.
pub const NOTES: [&str; 2] = [
    sync_filter::NOT_COVERED,
    "what the daemon itself starts has the filter too, and cannot take it away: of local(8), pipe(8) and spawn(8) \
     the programs that they start for a recipient or a client",
];

/// The variable by which a process is known that was started by the launcher: one that was started
/// before has no filter, and is none that failed to get it.
pub fn mark() -> Assignment {
    Assignment {
        name: "REFIT_APPLIED".to_owned(),
        value: SYNC_OFF.to_owned(),
        join: Join::Replace,
    }
}

/// Bit of /proc/PID/status, `CapEff` (linux/capability.h).
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Refuses a Postfix whose daemons could not have the filter: its master may not install one. Debian
/// 13's unit has a `CapabilityBoundingSet=` without CAP_SYS_ADMIN.
///
/// # Errors
/// [`Error::BadConf`].
pub fn refuse(service: &str, unit: &str, master: Option<&Process>) -> Result<(), Error> {
    let Some(master) = master else { return Ok(()) };
    let rights = master
        .status("CapEff")
        .and_then(|text| u64::from_str_radix(text, 16).ok());
    let may_not = rights.is_some_and(|rights| rights & CAP_SYS_ADMIN == 0);
    if !may_not || master.status("NoNewPrivs") == Some("1") {
        return Ok(());
    }
    Err(Error::BadConf {
        setting: SYNC_OFF.to_owned(),
        service: service.to_owned(),
        reason: format!(
            "Postfix's master has no CAP_SYS_ADMIN (CapabilityBoundingSet= of {unit}): the kernel then \
             takes a filter of system calls only with no_new_privs, which refit does not set, since it takes \
             rights away\n  a library that drops syncs needs no such right: preload=/PATH/LIB.so (libeatmydata, \
             for example); its risk is not judged"
        ),
    })
}

/// Whether the processes that were started by the launcher have one filter more than master, which
/// may run beneath others: those of its unit, or of a container.
pub fn check(master: Option<&Process>, daemons: &[Process]) -> Check {
    // Since Linux 5.9.
    let filters = |process: &Process| process.status("Seccomp_filters")?.parse::<u32>().ok();
    let of_master = master.and_then(filters);
    let mark = mark();
    let is_started =
        |process: &&Process| process.variable(&mark.name).as_ref() == Some(&mark.value);
    let started: Vec<&Process> = daemons.iter().filter(is_started).collect();
    let with = started
        .iter()
        .filter(|process| filters(process) > of_master)
        .count();
    Check {
        layer: Layer::Effective,
        key: "/proc/PID/status".to_owned(),
        expected: "Seccomp_filters: one more than master's".to_owned(),
        found: match (of_master, started.len()) {
            (None, _) => "this kernel does not tell".to_owned(),
            (_, 0) => {
                "not observed: no process that was started with the change runs now".to_owned()
            }
            (_, all) => format!("{with} of {all} processes that were started with it"),
        },
        holds: (of_master.is_some() && !started.is_empty()).then_some(with == started.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "REFIT_APPLIED=sync=off";

    fn process(filters: u32, variable: &str) -> Process {
        Process::told(
            &format!("Seccomp:\t2\nSeccomp_filters:\t{filters}\n"),
            variable,
        )
    }

    #[test]
    fn a_filter_counts_where_master_has_one_less() {
        for (master, daemons, holds) in [
            (Some(0), &[(1, MARK)][..], Some(true)),
            (Some(1), &[(2, MARK), (2, MARK)], Some(true)),
            // In a container, each process has one.
            (Some(1), &[(1, MARK)], Some(false)),
            (Some(1), &[(2, MARK), (1, MARK)], Some(false)),
            // One that was started before.
            (Some(0), &[(0, "A=1"), (1, MARK)], Some(true)),
            (Some(0), &[(0, "A=1")], None),
            (Some(0), &[], None),
            (None, &[(1, MARK)], None),
        ] {
            let of_master = master.map(|filters| process(filters, "A=1"));
            let all: Vec<Process> = daemons.iter().map(|(n, word)| process(*n, word)).collect();
            let check = check(of_master.as_ref(), &all);
            assert_eq!(
                check.holds, holds,
                "{master:?} {daemons:?}: {}",
                check.found
            );
        }
        let of_old_kernel = Process::told("Seccomp:\t2\n", MARK);
        assert_eq!(check(Some(&of_old_kernel), &[process(1, MARK)]).holds, None);
    }

    #[test]
    fn a_master_that_may_install_no_filter_is_named() {
        // Of root, of Debian 13's unit, and of one that gave up its rights for good.
        for (status, may) in [
            ("CapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n", true),
            ("CapEff:\t00000000000404c7\nNoNewPrivs:\t0\n", false),
            ("CapEff:\t00000000000404c7\nNoNewPrivs:\t1\n", true),
            ("", true),
        ] {
            let master = Process::told(status, "");
            let refused = refuse("postfix/cleanup", "postfix.service", Some(&master));
            assert_eq!(refused.is_ok(), may, "{status}");
        }
        assert!(refuse("postfix/cleanup", "postfix.service", None).is_ok());
    }
}
