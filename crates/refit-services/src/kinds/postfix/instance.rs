//! The default instance of Postfix on a machine or in a tree.

use super::tools::DIRECTORY;
use crate::kinds::systemd_unit::restart;
use crate::{Change, Error, FileState, System, systemd};

/// The unit that starts the instance on Debian 13, and on Debian 12 nothing: all instances are part of it.
const SERVICE: &str = "postfix.service";

/// Its unit on Debian 12. The template of Debian 13 is for other instances, and of no use for this one.
const INSTANCE: &str = "postfix@-.service";

/// A note of a plan in a tree.
pub const ONLY_FILES: &str =
    "--root: files only; nothing is checked, reloaded, restarted or verified";

/// A note of a plan where it does not run.
pub const LATER: &str = "the service does not run: the change takes effect when it starts";

/// The service of the default instance, where Postfix is installed.
///
/// # Errors
/// As of a unit.
pub fn installed(system: &System) -> Result<Option<String>, Error> {
    // A link, wherever it leads, is Postfix's too: it is refused by its path, and not taken for a plain unit.
    let path = system.path(&format!("{DIRECTORY}/main.cf"))?;
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    // Asked first: it tells where nothing can be asked.
    let service = match systemd::find(system, SERVICE)? {
        Some(_) => unit(system)?,
        None => INSTANCE.to_owned(),
    };
    systemd::find(system, &service)
}

/// The unit that starts it.
///
/// # Errors
/// As [`systemd::unit`].
pub fn unit(system: &System) -> Result<String, Error> {
    let found = systemd::unit(system, SERVICE)?;
    let starts_it = found.starts(&["postfix"]).is_some();
    Ok(if starts_it { SERVICE } else { INSTANCE }.to_owned())
}

/// The unit that starts Postfix on this machine: a record may be older than the machine's Debian, and name the other one.
///
/// # Errors
/// As [`unit`].
pub fn unit_here() -> Result<String, Error> {
    unit(&System::new(None)?)
}

/// A file of the configuration, which has to be there.
///
/// # Errors
/// [`Error::NotReached`], [`Error::File`].
pub fn file(system: &System, service: &str, name: &str) -> Result<(String, FileState), Error> {
    let path = format!("{DIRECTORY}/{name}");
    match system.state(&path)? {
        Some(state) => Ok((path, state)),
        None => Err(Error::NotReached {
            service: service.to_owned(),
            reason: "/etc/postfix has no main.cf and master.cf",
        }),
    }
}

/// An answer of Postfix's commands.
///
/// # Errors
/// [`Error::Command`].
pub fn asked<T>(service: &str, answer: Result<T, String>) -> Result<T, Error> {
    answer.map_err(|output| Error::Command {
        command: format!("{service} cannot be asked by postconf"),
        output,
    })
}

/// Lets a Postfix that runs read its files, and starts one that failed since it ran.
///
/// # Errors
/// [`Error::Command`].
pub fn reload(change: &Change) -> Result<(), Error> {
    let unit = unit_here()?;
    if systemd::show(&unit)?.is_active {
        return systemd::systemctl(&["reload", &unit]).map(|_| ());
    }
    start_anew(change)
}

/// Restarts one that runs, or failed since it ran.
///
/// # Errors
/// [`Error::Command`].
pub fn start_anew(change: &Change) -> Result<(), Error> {
    let unit = Change {
        service: unit_here()?,
        ..change.clone()
    };
    restart(&unit)
}
