//! `sync=off` of a unit: a system call filter that answers 0, of static programs too.

use std::process::{Command, Stdio};

use crate::ask::{Ask, QUESTION};
use crate::sync_filter::CALLS;
use crate::{Change, Error, System, systemd};

/// systemd.exec(5) of 252: a filter implies `NoNewPrivileges=` where the unit has another user than root.
pub const NO_NEW_PRIVILEGES: &str = "with a filter systemd before 255 sets NoNewPrivileges for a unit with User= or DynamicUser=: programs with \
                                     a set-user-ID or set-group-ID bit or file capabilities that it starts (sudo, sendmail's postdrop) \
                                     get no rights, and may try again without end";

/// The first systemd that filters as root, and then changes the user (its NEWS).
const FILTERS_FIRST: u32 = 255;

/// Whether the filter takes rights away from the programs of a unit with another user; in a tree nobody knows.
pub fn takes_rights(system: &System) -> bool {
    let version = system.is_live().then(systemd::version).flatten();
    version.is_none_or(|version| version < FILTERS_FIRST)
}

/// The line of the drop-in.
pub fn line() -> String {
    format!("SystemCallFilter={}\n", filter())
}

/// `~` begins a list of what is not let through, each with its error number: 0 is success.
fn filter() -> String {
    format!("~{}:0", CALLS.join(":0 "))
}

/// Whether this systemd answers so with the filter lines of a unit and ours: what `sync` is told of
/// /dev/null, which cannot be synced (EINVAL, fsync(2)). systemd before 248 gets such lines wrong where the unit has a list of
/// what is allowed (systemd issue 18916).
///
/// # Errors
/// [`Error::Command`].
pub fn try_out(change: &Change) -> Result<(), Error> {
    // systemd has not loaded the drop-in yet.
    let ours = super::drop_in_of(change);
    let unit = systemd::unit_without(&System::new(None)?, &change.service, ours)?;
    let lines = unit.declared.list("SystemCallFilter");
    let mut lines: Vec<&str> = lines.iter().map(|line| &*line.value).collect();
    let filter = filter();
    lines.push(&filter);
    let mut command = Command::new("systemd-run");
    command.args(["--quiet", "--wait", "--collect", "--pipe"]);
    for line in lines {
        command.arg(format!("--property=SystemCallFilter={line}"));
    }
    let asks = "sync /dev/null && sync -d /dev/null";
    command.args(["/bin/sh", "-c", asks]).stdin(Stdio::null());
    let failed = |output: String| Error::Command {
        command: format!("systemd-run --property=SystemCallFilter=… sh -c '{asks}'"),
        output,
    };
    let output = command
        .answer(QUESTION)
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(failed(match printed.trim() {
        "" => output.status.to_string(),
        text => text.to_owned(),
    }))
}
