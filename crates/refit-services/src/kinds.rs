//! The kinds of services: one file of `kinds/` for each, and its line in the table.

mod declared;
mod mariadb;
mod postfix;
mod postgresql;
mod redis;
mod rsyslog;
mod schema;
mod sqlite3;
mod sysctl;
mod systemd_unit;
mod unit_and_conf;
mod wrapper;

pub(crate) use postfix::of_daemon;

use crate::kind::Kind;
use crate::{Error, System, systemd};

/// The last one takes every unit.
static KINDS: [&dyn Kind; 14] = [
    &sysctl::Sysctl,
    &wrapper::Wrapper,
    &declared::SQLITE,
    &declared::POSTGRESQL,
    &schema::SQLITE,
    &schema::POSTGRESQL,
    &schema::MARIADB,
    &postgresql::Postgresql,
    &postfix::Postfix,
    &postfix::PostfixDaemon,
    &mariadb::Mariadb,
    &redis::Redis,
    &rsyslog::Rsyslog,
    &systemd_unit::SystemdUnit,
];

/// The kind of a service, and its full name.
///
/// # Errors
/// [`Error::UnknownService`].
pub(crate) fn kind_of(system: &System, word: &str) -> Result<(&'static dyn Kind, String), Error> {
    for kind in KINDS {
        if let Some(service) = kind.find(system, word)? {
            return Ok((kind, service));
        }
    }
    // systemd is asked once.
    if let Some(name) = systemd::find(system, word)? {
        let unit = systemd::unit(system, &name)?;
        for kind in KINDS {
            if kind.is_of_unit(system, &unit)? {
                return Ok((kind, name));
            }
        }
    }
    let (place, list) = if system.is_live() {
        (String::new(), "systemctl list-units --type=service --all")
    } else {
        (
            " in this tree".to_owned(),
            "systemctl --root=DIR list-unit-files",
        )
    };
    Err(Error::UnknownService {
        word: word.to_owned(),
        place,
        list: list.to_owned(),
    })
}

/// What can have settings made permanent: how such a service is typed, what it is, and its settings, as they are written.
/// The most general kind is the first.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let kinds = KINDS.into_iter().rev();
    kinds.map(|kind| (kind.form(), kind.name(), kind.known()))
}

/// The kind that a record names.
pub(crate) fn kind_named(name: &str) -> Option<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name)
}
