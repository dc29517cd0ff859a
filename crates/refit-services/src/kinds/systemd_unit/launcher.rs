//! `thp=never` of a unit: a program of refit's starts the unit's own.
//!
//! systemd has no such setting before version 259, and no variable does it for every allocator.

use crate::check::{Check, Layer};
use crate::processes::processes_of;
use crate::systemd::{self, Unit};
use crate::{Change, Error, Launcher, System, library};

use super::THP_NEVER;

/// What to know of it.
pub const NOTE: &str = "while the change is there the unit's own ExecStart= has no effect: where an upgrade changes that, `refit \
                        status` reports it";

/// Why it may change nothing: a program can do the same by itself, as MariaDB does since 10.11.
pub const ALREADY: &str =
    "its main process has no transparent huge pages already (THP_enabled: 0 in /proc/PID/status)";

/// Whether that is so.
pub fn has_none(unit: &Unit) -> bool {
    let processes = processes_of(unit);
    let mut main = processes.iter().filter(|one| one.pid == unit.main_pid);
    main.any(|one| one.status("THP_enabled") == Some("0"))
}

/// The launcher of a unit, and its content.
///
/// # Errors
/// [`Error::NotReached`] where its `ExecStart=` cannot be started by another program.
pub fn launcher(service: &str, unit: &Unit) -> Result<(Launcher, Vec<u8>), Error> {
    let refused = |reason| {
        Err(Error::NotReached {
            service: service.to_owned(),
            reason,
        })
    };
    let [line] = unit.exec_lines()[..] else {
        return refused("thp=never needs a unit with one ExecStart= line");
    };
    let (prefixes, command) = split(line);
    if prefixes.contains(['@', '|']) {
        return refused("thp=never cannot keep the @ or | before the program in its ExecStart=");
    }
    if !command.starts_with('/') {
        return refused("thp=never needs a program by its absolute path in ExecStart=");
    }
    if command.split_whitespace().any(|word| word == ";") {
        return refused("thp=never needs one program in ExecStart=, and there are several");
    }
    Ok(library::launcher(Some(line.to_owned())))
}

/// The lines of the drop-in.
pub fn lines(launcher: &Launcher) -> String {
    let (prefixes, command) = split(launcher.exec_start.as_deref().unwrap_or_default());
    let program = &launcher.program.path;
    format!("ExecStart=\nExecStart={prefixes}{program} {THP_NEVER} {command}\n")
}

/// Whether the unit's own files still say what is started.
///
/// # Errors
/// Where they cannot be read.
pub fn check(change: &Change, launcher: &Launcher) -> Result<Check, Error> {
    let ours = super::drop_in_of(change);
    let unit = systemd::unit_without(&System::new(None)?, &change.service, ours)?;
    let found = unit.exec_lines().join("; ");
    let expected = launcher.exec_start.clone().unwrap_or_default();
    Ok(Check {
        layer: Layer::Loaded,
        key: "the unit's own ExecStart=".to_owned(),
        holds: Some(found == expected),
        expected,
        found,
    })
}

/// The characters before a program (systemd.service(5)), and the program with its arguments.
fn split(line: &str) -> (&str, &str) {
    let begins = line.find(|c| !"@-:+!|".contains(c)).unwrap_or(line.len());
    line.split_at(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(lines: &[&str]) -> Unit {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("ExecStart={line}"))
            .collect();
        Unit::with(&lines.iter().map(|line| &**line).collect::<Vec<_>>())
    }

    #[test]
    fn prefixes_arguments_and_specifiers_stay() {
        let (launcher, _) =
            launcher("a.service", &unit(&["-:/bin/a --x \"b c\" %i $D"])).expect("it can");
        let path = &launcher.program.path;
        assert_eq!(
            lines(&launcher),
            format!("ExecStart=\nExecStart=-:{path} thp=never /bin/a --x \"b c\" %i $D\n")
        );
    }

    #[test]
    fn what_another_program_cannot_start_is_refused() {
        for lines in [
            &[][..],
            &["/bin/a", "/bin/b"],
            &["@/bin/a b"],
            &["a"],
            &["/bin/a ; /bin/b"],
        ] {
            assert!(launcher("a.service", &unit(lines)).is_err(), "{lines:?}");
        }
    }
}
