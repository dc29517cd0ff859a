//! What takes a change back that nobody confirms: a timer and a unit below /run, and a copy of
//! refit that the unit runs.
//!
//! Its time is absolute: systemd begins a relative one anew at every daemon-reload. A reboot
//! removes all that is below /run, a trial itself too. A change of files that stay is taken back
//! at the next start of the machine, before any service starts, by another unit in /etc.

use std::path::Path;
use std::time::Duration;

use refit_servers::systemd::quoted;

use crate::check::{Check, Layer};
use crate::record::now;
use crate::{Change, Error, FileEdit, FileError, FileState, Plan, System, Undo, library, systemd};

/// Until when a change stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It is reverted.
    Reverted,
    /// A reboot.
    Reboot,
    /// This has passed, or a reboot, unless it is confirmed.
    Confirmed(Duration),
}

/// The least time to confirm a change in: a restart has to fit into it.
const LEAST: Duration = Duration::from_secs(10);

/// Adds to a planned change the units that take it back unless it is confirmed in time; `within` is `None`: before the next
/// start of the machine.
///
/// # Errors
/// [`Error::TooShort`], [`Error::InTheWay`], or why refit's own file cannot be read.
pub fn add(system: &System, plan: &mut Plan, within: Option<Duration>) -> Result<(), Error> {
    if within.is_some_and(|within| within < LEAST) {
        return Err(Error::TooShort { least: LEAST });
    }
    let change = &mut plan.change;
    let service = &change.service;
    let own = std::env::current_exe().map_err(FileError::at(Path::new("/proc/self/exe")))?;
    let mut command = own.to_string_lossy().into_owned();
    let mut program = None;
    if system.is_live() {
        let (file, content) = library::own_program(&own)?;
        command.clone_from(&file.path);
        program = Some(file);
        plan.contents.push(content);
    }
    let unit = format!("refit-undo-{}", in_unit_name(service));
    let head = format!("[Unit]\nDescription=Takes back what refit applied to {service}\n");
    let at_unix = within.map(|within| now() + within.as_secs());
    let mut units = Vec::new();
    if let Some(at_unix) = at_unix {
        units.extend(at_a_time(&unit, &head, &command, service, at_unix));
    }
    if !change.trial {
        units.extend(at_next_start(&unit, &head, &command, service));
    }
    let mut files = Vec::new();
    for (path, text) in units {
        system.refuse_there(&path)?;
        files.push(FileEdit {
            path,
            before: None,
            after: Some(FileState::own(text.into_bytes())),
        });
    }
    if system.is_live() && at_unix.is_some() {
        let reload = "systemctl daemon-reload";
        let after_reload = plan.commands.iter().position(|command| command == reload);
        let start = format!("systemctl start {unit}.timer");
        match after_reload {
            Some(at) => plan.commands.insert(at + 1, start),
            None => drop(plan.commands.splice(0..0, [reload.to_owned(), start])),
        }
    }
    let when = match within {
        Some(within) => format!(
            "{} s after it is applied, and at a reboot",
            within.as_secs()
        ),
        None => "at a reboot".to_owned(),
    };
    plan.notes.push(format!(
        "it takes itself back {when}, unless: refit confirm {service}"
    ));
    change.undo = Some(Undo {
        at_unix,
        unit,
        files,
        program,
    });
    Ok(())
}

/// The unit that the timer starts. Its file stays while it runs: where it is gone at a daemon-reload, systemd forgets that
/// the unit is a oneshot, and ends it 90 s after its start (DefaultTimeoutStartSec= of systemd-system.conf(5)).
pub fn service_file(unit: &str) -> String {
    format!("/run/systemd/system/{unit}.service")
}

/// The unit that takes a change back, and the timer that starts it: paths and contents.
fn at_a_time(
    unit: &str,
    head: &str,
    command: &str,
    service: &str,
    at_unix: u64,
) -> [(String, String); 2] {
    // `@`: seconds since 1970 (systemd.time(7)). Exit code 3: a person must decide, so no new try.
    let timer = format!("{head}[Timer]\nOnCalendar=@{at_unix}\nAccuracySec=1s\n");
    let run = format!(
        "{head}StartLimitIntervalSec=0\n[Service]\nType=oneshot\nExecStart={} revert --unconfirmed {}\n\
         Restart=on-failure\nRestartSec=5s\nRestartPreventExitStatus=3\n",
        quoted(command),
        quoted(service)
    );
    [
        (service_file(unit), run),
        (format!("/run/systemd/system/{unit}.timer"), timer),
    ]
}

/// The unit that takes a change back before any service starts, and what makes the next start of the
/// machine want it: paths and contents.
fn at_next_start(unit: &str, head: &str, command: &str, service: &str) -> [(String, String); 2] {
    // bootup(7): local-fs.target is where all local file systems can be written to.
    let run = format!(
        "{head}DefaultDependencies=no\nRequiresMountsFor=/etc /usr /var/lib/refit\n\
         After=local-fs.target\nBefore=sysinit.target\n\
         [Service]\nType=oneshot\nExecStart={} revert --unconfirmed --at-boot {}\n",
        quoted(command),
        quoted(service)
    );
    let name = format!("{unit}-at-boot");
    let wants = format!("[Unit]\nWants={name}.service\n");
    [
        (format!("/etc/systemd/system/{name}.service"), run),
        (
            format!("/etc/systemd/system/sysinit.target.d/90-{name}.conf"),
            wants,
        ),
    ]
}

/// A service's name as a part of a unit's, as systemd-escape(1) writes what no unit's name can have.
pub fn in_unit_name(service: &str) -> String {
    let name = service.strip_suffix(".service").unwrap_or(service);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    let escaped = name.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("\\x{byte:02x}"),
    });
    escaped.collect()
}

/// Starts the timer, if there is one, before the service sees the change. For a live system.
///
/// # Errors
/// [`Error::Command`].
pub fn start(change: &Change) -> Result<(), Error> {
    if let Some(undo) = change.undo.as_ref().filter(|undo| undo.at_unix.is_some()) {
        systemd::systemctl(&["daemon-reload"])?;
        systemd::systemctl(&["start", &format!("{}.timer", undo.unit)])?;
    }
    Ok(())
}

/// Stops the timer, and its unit unless that is the caller. After a reboot there are none.
pub fn stop(undo: &Undo, is_caller: bool) {
    let timer = format!("{}.timer", undo.unit);
    let service = format!("{}.service", undo.unit);
    let units: &[&str] = if is_caller {
        &[&timer]
    } else {
        &[&timer, &service]
    };
    for verb in ["stop", "reset-failed"] {
        let _ = systemd::systemctl(&[&[verb], units].concat());
    }
}

/// Whether the timer still waits; `None`: there is none. One whose time was over when it was started never elapses.
///
/// # Errors
/// [`Error::Command`].
pub fn check(undo: &Undo) -> Result<Option<Check>, Error> {
    if undo.at_unix.is_none() {
        return Ok(None);
    }
    let key = format!("{}.timer", undo.unit);
    let found = systemd::systemctl(&["show", "-p", "SubState", "--value", &key])?;
    let found = found.trim().to_owned();
    Ok(Some(Check {
        layer: Layer::Loaded,
        key,
        expected: "waiting".to_owned(),
        holds: Some(found == "waiting"),
        found,
    }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_unit_is_named_after_any_service() {
        for (service, meant) in [
            ("a@b-c.service", "a@b-c"),
            ("postfix/cleanup", r"postfix\x2fcleanup"),
            ("wrapper:/a b", r"wrapper:\x2fa\x20b"),
        ] {
            assert_eq!(super::in_unit_name(service), meant);
        }
    }
}
